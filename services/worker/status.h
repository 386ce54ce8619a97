#pragma once
#include "common/base/span.h"
#include "common/http/metrics.h"
#include "common/rpc/server.h"
#include "engine/engine.h"
#include "services/worker/config.h"
#include <stdatomic.h>

/** What the worker tells of itself. Each number is written by one thread and read by any, which
 * then sees what was written before it. */
enum status_number {
    STATUS_SLOTS,
    STATUS_SLOTS_FREE,
    STATUS_RUNNING,
    STATUS_WAITING,
    STATUS_KV_BLOCKS,
    STATUS_KV_BLOCKS_FREE,
    STATUS_STEPS,
    STATUS_ROWS,
    STATUS_TOKENS_PREFILLED,
    STATUS_TOKENS_DECODED,
    STATUS_LOGGED_PREFILLED,
    STATUS_LOGGED_SAMPLED,
    STATUS_PREEMPTIONS,
    STATUS_ROWS_FAILED,
    STATUS_DENSE_MATMULS,
    STATUS_DENSE_ROWS,
    STATUS_EXPERT_MATMULS,
    STATUS_EXPERT_ROWS,
    STATUS_WEIGHT_BYTES,
    STATUS_TAKEN,
    STATUS_RESUMED,
    STATUS_FINISHED,
    STATUS_CANCELLED,
    STATUS_FAILED,
    STATUS_LEASES_LOST,
    STATUS_APPEND_WRITES,
    STATUS_APPENDS,
    STATUS_GAPS,
    STATUS_RESTORED,
    STATUS_KEPT,
    STATUS_KEPT_DROPPED,
    STATUS_REDIS_RECONNECTS,
    STATUS_REDIS_READY,
    STATUS_REDIS_ALWAYS, /* appendfsync */
    STATUS_REGISTERED,
    STATUS_SOUND_MS,  /* fx_clock_ms of when there was last progress, or nothing to do */
    STATUS_TURNED_MS, /* likewise of the I/O thread's last turn */
    STATUS_LOADED,
    STATUS_PULLING, /* tasks may come although no slot shows it */
    STATUS_DRAINING,
    STATUS_LEFT, /* the scheduler was told */
    STATUS_COUNT,
};

/** How long generations wait here. */
enum status_time {
    STATUS_FIRST_TOKEN, /* from the submission to the first token in the log */
    STATUS_INTER_TOKEN, /* between tokens in the log; those that one append brought share the wait
                         */
    STATUS_QUEUE_TIME,  /* from the submission to its taking */
    STATUS_TIMES,
};

struct worker_status {
    _Atomic uint64_t number[STATUS_COUNT];
    struct fx_histogram times[STATUS_TIMES]; /* @thread I/O counts, any reads */
    const char *worker, *model, *backend;    /* set before the threads start, as what follows */
    uint32_t unready_ms, dead_ms;
    fx_server *server; /* its health follows readiness */
};

static inline void status_set(struct worker_status *status, enum status_number which,
                              uint64_t value) {
    atomic_store_explicit(&status->number[which], value, memory_order_release);
}
static inline void status_add(struct worker_status *status, enum status_number which,
                              uint64_t value) {
    (void)atomic_fetch_add_explicit(&status->number[which], value, memory_order_relaxed);
}
static inline uint64_t status_get(const struct worker_status *status, enum status_number which) {
    return atomic_load_explicit(&status->number[which], memory_order_acquire);
}

/** Copies the engine's counters. @thread engine */
void worker_status_engine(struct worker_status *status, const struct fx_engine_stats *stats);
/** The I/O thread has not turned for unready_ms. */
bool worker_is_mute(const struct worker_status *status);
/** Work waits and no step makes progress for unready_ms, or the worker is mute. */
bool worker_is_stuck(const struct worker_status *status);
/** For fx_admin; `ctx` is the worker_status. */
bool worker_live(void *ctx, char *reason);
bool worker_ready(void *ctx, char *reason);
void worker_metrics(void *ctx, fx_buf *out);
void worker_follow(void *ctx, bool ready, const char *reason);
/** WorkerService; the server's context is the worker_status. */
extern const struct fx_method worker_methods[];
extern const size_t worker_methods_count;
