#pragma once
/* The I/O thread's parts: private to services/worker/{io,pull,write,lease,restore,kept,beat}.c, all
 * on its loop. */
#include <event2/event.h>
#include <sys/queue.h>
#include "common/base/arena.h"
#include "common/rpc/client.h"
#include "common/rpc/loop.h"
#include "services/worker/figures.h"
#include "services/worker/io.h"

enum {
    IO_WRITES_MAX = 8,              /* pipelined writes under way; tokens beyond gather */
    IO_TASK_ARENA_BYTES = 20 << 20, /* the largest task, unpacked */
    IO_TICK_MS = 100,
    IO_EVERY_MS = 1000,           /* pull without a hint, heartbeat */
    IO_KEPT_BYTES_MAX = 64 << 20, /* of ended generations that Redis may still lose */
};

/* One pipelined write: row i appended gens[i]'s tokens first[i].. */
struct io_write {
    worker_io *io;
    uint32_t left; /* rows without an answer; 0: free */
    struct gen **gens;
    uint32_t *first;
};

struct worker_io {
    struct worker_io_opts opts;
    uint32_t model, slots, context_max;
    char numerics_id[FX_NUMERICS_ID_MAX];

    fx_loop *loop;
    fx_redis *redis;
    fx_queue *queue;
    fx_work *work;
    fx_client *scheduler;
    struct event *news_event, *tick_event;

    struct gen *gens; /* [slots] */
    uint32_t *ids;
    uint32_t used;
    struct io_write writes[IO_WRITES_MAX];
    struct gen **write_gens;
    uint32_t *write_first;
    struct fx_append *appends; /* [slots] */
    void *arena_bytes;
    fx_arena arena;

    struct worker_figures figures;
    uint8_t figures_bytes[WORKER_FIGURES_BYTES_MAX];

    TAILQ_HEAD(, gen) kept; /* ended, by the time of their finish; first those to be sent again */
    size_t kept_bytes;
    uint32_t kept_count, kept_open; /* all; of them to be sent again */
    bool kept_asking;
    uint64_t kept_asked_ms;

    bool pulling, pull_again; /* one pull at a time; hints that came meanwhile */
    uint32_t pull_asked;      /* tasks the last pull was for */
    bool beating, draining;
    bool refused; /* the last heartbeat; the log was told why */
    uint64_t pulled_ms, beat_ms;
    uint64_t progress, progress_ms; /* the engine's counter, and when it last moved */
};

/* pull.c */
void io_pull(worker_io *io);
/* write.c: sends what is new, ends what has ended, frees what is done. */
void io_flush(worker_io *io);
void io_news(worker_io *io);
/* What append, finish and renew said; `first`: of the tokens that were sent. */
void io_gen_answered(worker_io *io, struct gen *gen, uint32_t first,
                     const struct fx_write_result *result);
/* Nothing is written any more, the engine stops. */
void io_gen_let_go(worker_io *io, struct gen *gen);
void io_gen_cancel(worker_io *io, struct gen *gen);
/* Frees the slot when engine and queue are done with it. */
void io_gen_settle(worker_io *io, struct gen *gen);
/* Redis has leased it to us again, and knows its first `result->last` tokens. */
void io_gen_restored(worker_io *io, struct gen *gen, const struct fx_write_result *result);
/* restore.c */
/* Redis says that it is not ours: true where that may be Redis's loss, and is put right. */
bool io_gen_restore(worker_io *io, struct gen *gen);
/* What a restore needs. False: no memory. */
bool gen_task_keep(struct gen *gen, const struct fx_task *task);
/* kept.c */
/* The ended generation of a slot that comes free. */
void io_keep(worker_io *io, struct gen *gen);
/* A kept one's finish is acknowledged again. */
void io_kept_finished(worker_io *io, struct gen *gen);
void io_kept_free(worker_io *io, struct gen *gen);
/* After a reconnect: all are finished again. */
void io_kept_verify(worker_io *io);
void io_kept_tick(worker_io *io, uint64_t now_ms);
/* The slots, then what is kept and to be sent again; NULL starts, NULL ends. */
struct gen *io_gen_next(worker_io *io, struct gen *gen);
/* lease.c */
void io_renew(worker_io *io, uint64_t now_ms);
void io_give_back(worker_io *io);
/* beat.c */
void io_beat(worker_io *io);
