#pragma once
#include "common/queue/queue.h"
#include "engine/engine.h"
#include "services/worker/stop.h"
#include "common/base/heap.h"
#include <stdatomic.h>
#include <sys/queue.h>

enum { GEN_DETAIL_MAX = FX_QUEUE_DETAIL_MAX };

/** One of the worker's slots: a generation from its pull to the end of its last call. Belongs to
 *  the I/O thread, but between an order to add it and the news of its end the engine thread reads
 *  what is marked *, and writes `end` and `detail` before that news. */
struct gen {
    struct worker_io *io; /* its owner, for callbacks */
    bool used;
    fx_gen_id id;
    uint32_t epoch;
    uint32_t *ids;         /* * [context_max + 1]: the prompt, then tokens 1..have */
    uint32_t prompt_count; /* * */
    uint32_t logged;       /* * tokens that were logged when it came */
    uint32_t max_tokens;   /* * */
    uint32_t stops[FX_ENGINE_STOPS_MAX], stop_count; /* * */
    struct fx_sampling sampling;                     /* * */
    struct gen_stop stop;                            /* the engine's thread moves it on */
    struct fx_logprob *logprobs; /* [tokens from `logged` on][logprobs_each]; the engine's thread
                                    writes a token's before its news; NULL: not wanted */
    uint32_t logprobs_each;      /* * */
    struct fx_bias *biases;      /* * sampling.bias; NULL: none */

    uint32_t have, sent, acked; /* tokens generated, handed to Redis, known to be logged */
    uint32_t calls;             /* queue calls in flight that hold it */
    uint64_t submitted_ms;      /* wall clock; 0: unknown */
    uint64_t acked_us;          /* when `acked` last grew; 0: not here */
    uint64_t renewed_ms;        /* when its lease was last extended, or the call for it was sent */
    bool in_engine;             /* added, and no news of its end yet */
    bool dropping;              /* the engine was told to let go */
    bool lost;                  /* another owns it, or nobody: nothing is written any more */
    bool finishing, finished;   /* the finish is under way, is done */
    bool inexact;               /* resumed behind tokens of other numerics */
    enum fx_finish finish;      /* NONE until it has ended */

    /* For a Redis that loses what it acknowledged: see restore.c and kept.c. */
    uint8_t *task; /* the packed task and what is kept of it after the end; NULL: no memory */
    size_t task_len, about_len;
    struct fx_task_terms terms;
    uint32_t server;      /* fx_redis_report's when Redis last knew us as the owner ... */
    uint64_t heard_ms;    /* ... and when that was */
    bool restoring;       /* the call for it is under way */
    bool kept;            /* in worker_io's list, no slot: its finish was acknowledged once ... */
    uint64_t finished_ms; /* ... last then */
    TAILQ_ENTRY(gen) entry;

    enum fx_engine_end end;
    char detail[GEN_DETAIL_MAX];
};

/** What the slot holds beside its ids. */
static inline void gen_free(struct gen *gen) {
    free(gen->biases);
    free(gen->logprobs);
    free(gen->task);
    gen->biases = NULL;
    gen->logprobs = NULL;
    gen->task = NULL;
    gen_stop_done(&gen->stop);
}

/** Of token `number`, which this worker generated. */
static inline struct fx_logprob *gen_logprobs(const struct gen *gen, uint32_t number) {
    return gen->logprobs + (size_t)(number - gen->logged - 1) * gen->logprobs_each;
}

static inline uint32_t *gen_tokens(const struct gen *gen) {
    return gen->ids + gen->prompt_count;
}

/** I/O to engine. */
enum order_kind {
    ORDER_ADD,
    ORDER_DROP, /* stop between steps; the news of the end comes unless it came already */
};
struct order {
    enum order_kind kind;
    struct gen *gen;
};

/** Engine to I/O. For each ORDER_ADD exactly one NEWS_END comes, as its last. */
enum news_kind { NEWS_TOKEN, NEWS_END };
struct news {
    enum news_kind kind;
    struct gen *gen;
    uint32_t number, token;
};
