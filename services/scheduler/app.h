#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include "common/queue/queue.h"
#include "common/rpc/loop.h"
#include "common/rpc/server.h"
#include "services/scheduler/config.h"

struct event;

enum {
    SCHEDULER_CALLS_MAX = 128,
    SCHEDULER_REQUEST_BYTES_MAX = 1 << 20,
    SCHEDULER_ARENA_BYTES = 3 << 20, /* the unpacked request and the task packed again */
    SCHEDULER_INBOX_MAX = 256,
    PROMPT_TOKENS_MAX = 131072,
    GENERATED_TOKENS_MAX = 1 << 20,
    STOP_IDS_MAX = 64,
    EXPECTED_TOKENS_MAX = 512, /* what a fair share is charged before the real length is known */
    DISPATCH_TICK_MS = 100,
    RECLAIM_TICK_MS_MAX = 400, /* reclaims are also how Redis's silences are noticed */
    STATS_TICK_MS = 500,
    FORGET_MS = 600000,    /* a model without workers and work is kept for so long */
    STATS_FRESH_MS = 1500, /* older ones are read again before a submission is judged by them */
};

/** What this replica knows of one model. Owned by the loop's thread; `shown` by the lock. */
struct model {
    uint32_t number;
    char name[FX_QUEUE_NAME_MAX + 1];
    bool used; /* a free place otherwise */
    bool cold; /* of FX_COLD_MODELS: never forgotten, admitted without a worker */
    bool dispatching, dispatch_again, reclaiming, reading;
    uint64_t read_ms;            /* when `stats` was read; 0 = never */
    uint64_t busy_ms;            /* when it last had a worker or work */
    struct fx_queue_stats stats; /* without `live` */
    struct scheduler_app *app;
};

/** One model's numbers as /metrics shows them. */
struct shown {
    bool used;
    char name[FX_QUEUE_NAME_MAX + 1];
    struct fx_queue_stats stats;
};

struct scheduler_app {
    const struct scheduler_config *config;
    fx_loop *loop;
    fx_redis *redis;
    fx_queue *queue;
    fx_queue_hints *hints;
    fx_server *server;
    struct event *dispatch_tick, *reclaim_tick, *stats_tick;
    struct model models[FX_QUEUE_MODELS_MAX];
    bool listing;

    pthread_mutex_t lock; /* shown */
    struct shown shown[FX_QUEUE_MODELS_MAX];

    _Atomic bool redis_ready;
    _Atomic uint32_t redis_reconnects;
    _Atomic bool draining;
    _Atomic uint64_t admitted, repeated, refused_full, refused_no_worker, refused_invalid;
    _Atomic uint64_t cancelled, dispatched, reclaimed, gave_up;
};

extern const struct fx_method scheduler_methods[];
extern const size_t scheduler_method_count;

/** Opens Redis, the queue and the ticks on the app's loop (which does not run yet).
 *  @err INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
FX_MUST bool scheduler_app_open(struct scheduler_app *app, fx_error *err);
/** After the loop's thread has ended; half-opened is fine. */
void scheduler_app_close(struct scheduler_app *app);
/** For the admin endpoints. @thread any */
bool scheduler_app_live(void *app, char *reason);
bool scheduler_app_ready(void *app, char *reason);
void scheduler_app_metrics(void *app, fx_buf *out);
void scheduler_app_follow(void *app, bool ready, const char *reason);

/* models.c; on the loop's thread */
/** NULL when it is not known. */
struct model *model_find(struct scheduler_app *app, uint32_t number);
/** Adds it when it is new; NULL when the table is full. `name` NULL: not known yet. */
struct model *model_add(struct scheduler_app *app, uint32_t number, const char *name);
bool model_is_fresh(const struct model *model);
/** Keeps what was read. */
void model_keep(struct model *model, const struct fx_queue_stats *stats);
/** Adds those of a list by comma as cold ones. @err INVALID_ARGUMENT */
FX_MUST bool models_add_cold(struct scheduler_app *app, const char *list, fx_error *err);
/** Reads its numbers; does nothing while they are being read. */
void model_read(struct model *model);
/** Reads the list of models and the numbers of each. */
void models_refresh(struct scheduler_app *app);
void models_each(struct scheduler_app *app, void (*fn)(struct model *model));

/* work.c; on the loop's thread */
void model_dispatch(struct model *model);
void model_reclaim(struct model *model);
/** A hint: `model` 0 = any. */
void work_hint(void *app, uint32_t model);
FX_MUST bool work_ticks_open(struct scheduler_app *app, fx_error *err);
void work_ticks_close(struct scheduler_app *app);
