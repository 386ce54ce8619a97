#pragma once
#include "common/base/logprob.h"
#include "common/queue/redis.h"

/** The generations' queue, leases and logs in Redis: typed calls of the functions in fractal.lua
 *  (see there for the keys). Everything is asynchronous.
 *  @thread the loop of the Redis client, callbacks included
 *
 *  Every call: on true its callback comes exactly once, later; on false never. In the callback
 *  `err` NULL means Redis answered and `status` says what; otherwise the call may or may not have
 *  been carried out (UNAVAILABLE) and may be repeated: every one is idempotent. */
typedef struct fx_queue fx_queue;

enum { FX_GEN_ID_BYTES = 16 };
typedef struct fx_gen_id {
    uint8_t bytes[FX_GEN_ID_BYTES];
} fx_gen_id;

enum {
    FX_QUEUE_TASK_BYTES_MAX = 4 << 20, /* a packed GenerationTask */
    FX_QUEUE_GROUP_MAX = 16,           /* generations of one request */
    FX_QUEUE_APPEND_MAX = 1024,        /* tokens of one append */
    FX_QUEUE_APPEND_LOGPROBS_MAX = 64, /* with log probabilities */
    FX_QUEUE_PULL_MAX = 64,            /* tasks of one pull */
    FX_QUEUE_MODELS_MAX = 256,
    FX_QUEUE_WORKERS_MAX = 256, /* of one model */
    FX_QUEUE_WORKER_ID_MAX = 64,
    FX_QUEUE_NAME_MAX = 128,       /* a model's name, a numerics id */
    FX_QUEUE_DETAIL_MAX = 200,     /* text of a finish record */
    FX_QUEUE_PREFIX_MAX = 1 << 20, /* logged tokens a pull brings */
    FX_QUEUE_FIGURES_MAX = 16384,  /* of a worker's heartbeat */
};

struct fx_queue_opts {
    fx_redis *redis;        /* borrowed; opened with library = fx_queue_library() */
    uint32_t lease_ms;      /* 0 = 3000 */
    uint32_t retain_s;      /* log and state after the finish, fixed by the submit; 0 = 600 */
    uint32_t model_max;     /* waiting generations of a model; 0 = 4096 */
    uint32_t tenant_max;    /* waiting generations of a model and tenant; 0 = 1024 */
    uint32_t fruitless_max; /* deliveries in a row without a new token; 0 = 3 */
    uint32_t calls_max;     /* calls in flight; 0 = 2048 */
    uint32_t silence_ms;    /* a watched log without a hint is read after; 0 = 1000 */
};

/** The Lua library for fx_redis_opts.library. */
fx_span fx_queue_library(void);
/** @own caller, fx_queue_free(), before its fx_redis @err RESOURCE_EXHAUSTED */
FX_MUST bool fx_queue_open(const struct fx_queue_opts *opts, fx_queue **out, fx_error *err);
/** Calls in flight are answered CANCELLED; end watches and subscriptions first. */
void fx_queue_free(fx_queue *queue);
FX_DEFINE_AUTO(fx_queue, fx_queue_free)
fx_redis *fx_queue_redis(const fx_queue *queue);

/** What a function said. */
enum fx_queue_status {
    FX_QUEUE_OK,
    FX_QUEUE_NOT_FOUND,   /* no such generation: never submitted, expired, or lost by Redis */
    FX_QUEUE_LEASE_LOST,  /* another epoch or owner, or the generation has ended: write no more */
    FX_QUEUE_GAP,         /* send again from last + 1 */
    FX_QUEUE_ABANDON,     /* a token differs from the logged one: write no more */
    FX_QUEUE_CANCELLED,   /* append refused: finish with FX_FINISH_CANCELLED */
    FX_QUEUE_MODEL_FULL,  /* submit refused: model_max */
    FX_QUEUE_TENANT_FULL, /* submit refused: tenant_max */
    FX_QUEUE_TAKEN,       /* submit refused: the id is another tenant's */
};
const char *fx_queue_status_name(enum fx_queue_status status);

/** The numbers of fractal.v1.GenerationState. */
enum fx_gen_state {
    FX_GEN_UNKNOWN = 0,
    FX_GEN_QUEUED = 1,
    FX_GEN_DISPATCHED = 2,
    FX_GEN_RUNNING = 3,
    FX_GEN_FINISHED = 4,
    FX_GEN_CANCELLED = 5,
    FX_GEN_FAILED = 6,
};
/** The numbers of fractal.v1.FinishReason. */
enum fx_finish {
    FX_FINISH_NONE = 0,
    FX_FINISH_STOP = 1,
    FX_FINISH_LENGTH = 2,
    FX_FINISH_CANCELLED = 3,
    FX_FINISH_ERROR = 4,
};

/* ---- gateways and schedulers -------------------------------------------------------------- */

struct fx_submit {
    uint32_t model;
    uint64_t tenant;
    uint32_t weight; /* 0 = 1 */
    fx_gen_id id;
    uint64_t seed;            /* also inside `task` */
    uint32_t prompt_tokens;   /* cost known */
    uint32_t expected_tokens; /* cost guessed, settled at the finish */
    fx_span task;             /* packed GenerationTask; copied */
    fx_span about;            /* the same without its prompt, kept after the end; copied */
};
/** The generations of one request: of one model and tenant, admitted all or none. */
struct fx_submit_group {
    uint32_t model;
    uint64_t tenant;
    uint32_t weight;                         /* 0 = 1 */
    uint32_t prompt_tokens, expected_tokens; /* of each */
    fx_span task, about;                     /* what all have of fx_submit's; copied */
    uint32_t count;                          /* 1..FX_QUEUE_GROUP_MAX */
    const struct fx_submit_member {
        fx_gen_id id;
        uint64_t seed;
        fx_span task, about; /* the rest, put behind the group's: packed messages add up so */
    } * members;
};
struct fx_submit_result {
    enum fx_queue_status status; /* OK, MODEL_FULL, TENANT_FULL, TAKEN; of a group in all alike */
    bool repeated;               /* the id was there already: `seed` and `state` are the stored */
    bool cancelled;
    uint64_t seed;
    enum fx_gen_state state;
};
/** `results` [count] of a group, one of a single submission; NULL with `err`. */
typedef void (*fx_queue_on_submit)(void *ctx, const struct fx_submit_result *results,
                                   const fx_error *err);
/** Puts a task into the backlog of its model and tenant; idempotent by id. */
FX_MUST bool fx_queue_submit(fx_queue *queue, const struct fx_submit *submit,
                             fx_queue_on_submit done, void *ctx, fx_error *err);
/** The same with all of a group in one step. Those that are there already count as admitted; the
 *  limits hold for the rest together. */
FX_MUST bool fx_queue_submit_group(fx_queue *queue, const struct fx_submit_group *group,
                                   fx_queue_on_submit done, void *ctx, fx_error *err);

struct fx_gen_info {
    enum fx_queue_status status; /* OK, NOT_FOUND */
    enum fx_gen_state state;
    bool cancelled; /* asked for; the state follows when its worker has finished it */
    uint32_t tokens, epoch;
    enum fx_finish finish;
    uint64_t tenant, seed;
    const char *worker; /* owner of the lease, or "" */
};
typedef void (*fx_queue_on_info)(void *ctx, const struct fx_gen_info *info, const fx_error *err);
/** Cancels in any state; `state` is the one after the call. A running generation stays RUNNING
 *  (cancelled = true) until its worker, or a reclaim, has finished it. Idempotent. */
FX_MUST bool fx_queue_cancel(fx_queue *queue, uint32_t model, const fx_gen_id *id,
                             fx_queue_on_info done, void *ctx, fx_error *err);
FX_MUST bool fx_queue_get(fx_queue *queue, uint32_t model, const fx_gen_id *id,
                          fx_queue_on_info done, void *ctx, fx_error *err);

/** What is stored of a generation besides its log. */
struct fx_gen_about {
    enum fx_queue_status status; /* OK, NOT_FOUND */
    uint64_t tenant;
    enum fx_gen_state state;
    enum fx_finish finish; /* NONE: it has not ended */
    bool cancelled;
    uint32_t prompt_tokens, tokens;
    fx_span task; /* packed GenerationTask; after the end without prompt_ids and logit_bias;
                     borrowed until the callback returns */
};
typedef void (*fx_queue_on_about)(void *ctx, const struct fx_gen_about *about, const fx_error *err);
FX_MUST bool fx_queue_describe(fx_queue *queue, uint32_t model, const fx_gen_id *id,
                               fx_queue_on_about done, void *ctx, fx_error *err);

struct fx_count_result {
    uint32_t count;  /* moved by this call */
    uint32_t failed; /* reclaim: of them ended as failed or cancelled */
    bool more;       /* call again at once */
};
typedef void (*fx_queue_on_count)(void *ctx, const struct fx_count_result *result,
                                  const fx_error *err);
/** Moves waiting tasks to the workers of a model, fairly, at most as many as live workers have
 *  free slots. Any number of callers at once. */
FX_MUST bool fx_queue_dispatch(fx_queue *queue, uint32_t model, fx_queue_on_count done, void *ctx,
                               fx_error *err);
/** Takes back expired leases of a model: queued again with epoch + 1, or ended. To be called at
 * least four times a lease: when Redis heard none for half of one, it was away or stood still, and
 * nothing expires until one lease later. */
FX_MUST bool fx_queue_reclaim(fx_queue *queue, uint32_t model, fx_queue_on_count done, void *ctx,
                              fx_error *err);

struct fx_worker_info {
    char worker[FX_QUEUE_WORKER_ID_MAX + 1];
    uint32_t slots, slots_free, context_max;
    char numerics_id[FX_QUEUE_NAME_MAX + 1];
    bool leaving;
    fx_span figures; /* packed WorkerFigures; .len 0: none, or not asked for. Borrowed */
};
struct fx_queue_stats {
    uint32_t model;
    uint64_t waiting;                  /* backlog + dispatched but not taken */
    uint64_t backlog;                  /* not dispatched yet */
    uint64_t running;                  /* leases */
    uint32_t workers;                  /* live and not leaving */
    uint32_t slots, slots_free;        /* slots_free = slots - running - dispatched, at least 0 */
    uint32_t context_max;              /* the largest of a live worker */
    const struct fx_worker_info *live; /* [live_count], leaving ones included */
    size_t live_count;
};
typedef void (*fx_queue_on_stats)(void *ctx, const struct fx_queue_stats *stats,
                                  const fx_error *err);
FX_MUST bool fx_queue_stats(fx_queue *queue, uint32_t model, fx_queue_on_stats done, void *ctx,
                            fx_error *err);
/** The same with each worker's figures. */
FX_MUST bool fx_queue_figures(fx_queue *queue, uint32_t model, fx_queue_on_stats done, void *ctx,
                              fx_error *err);
struct fx_queue_model {
    uint32_t number;
    const char *name;
};
typedef void (*fx_queue_on_models)(void *ctx, const struct fx_queue_model *models, size_t count,
                                   const fx_error *err);
/** Models that had a worker and were not forgotten; at most FX_QUEUE_MODELS_MAX. */
FX_MUST bool fx_queue_models(fx_queue *queue, fx_queue_on_models done, void *ctx, fx_error *err);

/** A scheduler's hints: something to dispatch or a slot that came free. model 0: read everything
 *  (connected or reconnected). */
typedef void (*fx_queue_on_hint)(void *ctx, uint32_t model);
typedef struct fx_queue_hints fx_queue_hints;
FX_MUST bool fx_queue_hints_open(fx_queue *queue, fx_queue_on_hint on_hint, void *ctx,
                                 fx_queue_hints **out, fx_error *err);
void fx_queue_hints_free(fx_queue_hints *hints);
FX_DEFINE_AUTO(fx_queue_hints, fx_queue_hints_free)

/* ---- a generation's log ------------------------------------------------------------------- */

/** Tokens in order, without gap or repetition; `finish` NONE while more will come. */
struct fx_gen_tokens {
    uint32_t first; /* number of tokens[0], from 1 */
    const uint32_t *tokens;
    const fx_span *logprobs; /* [count], of each token for fx_logprobs_read(); empty: it has none */
    uint32_t count;
    enum fx_finish finish; /* not NONE: these were the last; no event follows */
    const char *detail;    /* of the finish, "" if none: for the log and an error's text */
    bool gone;             /* Redis knows no such generation (any more): submit it again under its
                              id, or give up. May come again, once per silence_ms */
};
typedef void (*fx_queue_on_tokens)(void *ctx, const struct fx_gen_tokens *tokens);
typedef struct fx_watch fx_watch;
/** Follows a log from token `after` + 1 on; begin when the submit was acknowledged. Hints are used
 *  as they come; the log is read at the start, on a gap, after silence and after a reconnect.
 *  @own caller, fx_watch_free(), also inside the callback */
FX_MUST bool fx_queue_watch(fx_queue *queue, uint32_t model, const fx_gen_id *id, uint32_t after,
                            fx_queue_on_tokens on_tokens, void *ctx, fx_watch **out, fx_error *err);
void fx_watch_free(fx_watch *watch);
FX_DEFINE_AUTO(fx_watch, fx_watch_free)

typedef void (*fx_queue_on_log)(void *ctx, const struct fx_gen_tokens *tokens, const fx_error *err);
/** One page of a log: at most `max` (<= FX_QUEUE_APPEND_MAX) tokens after token `after`. */
FX_MUST bool fx_queue_read_log(fx_queue *queue, uint32_t model, const fx_gen_id *id, uint32_t after,
                               uint32_t max, fx_queue_on_log done, void *ctx, fx_error *err);

/* ---- workers ------------------------------------------------------------------------------ */

struct fx_beat {
    uint32_t model;
    const char *model_name;
    struct fx_worker_info worker;
};
typedef void (*fx_queue_on_beat)(void *ctx, const fx_error *err);
/** A worker's heartbeat, once a second; after 5 s of silence it counts no slots.
 *  @err INVALID_ARGUMENT (empty or over-long texts, slots) */
FX_MUST bool fx_queue_beat(fx_queue *queue, const struct fx_beat *beat, fx_queue_on_beat done,
                           void *ctx, fx_error *err);

/** Takes a model that has neither workers nor work from the list; a heartbeat puts it back. */
FX_MUST bool fx_queue_forget(fx_queue *queue, uint32_t model, fx_queue_on_beat done, void *ctx,
                             fx_error *err);

/** What a submission said besides the task: for fx_queue_restore(). */
struct fx_task_terms {
    uint64_t tenant, seed;
    uint32_t weight, prompt_tokens, expected_tokens, retain_s;
};
struct fx_task {
    fx_gen_id id;
    uint32_t epoch;
    fx_span task;           /* packed GenerationTask */
    const uint32_t *logged; /* tokens 1..logged_count, logged by earlier owners */
    uint32_t logged_count;
    const char *numerics_id; /* of the worker that logged the first token; "" when none did */
    bool cancelled;          /* finish it at once with FX_FINISH_CANCELLED */
    struct fx_task_terms terms;
    fx_span about; /* of the submission */
};
struct fx_pull {
    uint32_t model;
    const char *worker;
    const char *numerics_id;
    uint32_t count; /* 1..FX_QUEUE_PULL_MAX: free slots */
    bool inexact;   /* will go on with tokens of other numerics */
};
/** `tasks` is borrowed until the callback returns. */
typedef void (*fx_queue_on_tasks)(void *ctx, const struct fx_task *tasks, size_t count,
                                  const fx_error *err);
/** Takes up to `count` dispatched tasks and leases them for lease_ms. One whose tokens were made by
 *  other numerics comes only when no worker with those was alive for 15 s (`inexact`: 5 s). */
FX_MUST bool fx_queue_pull(fx_queue *queue, const struct fx_pull *pull, fx_queue_on_tasks done,
                           void *ctx, fx_error *err);

struct fx_append {
    uint32_t model;
    fx_gen_id id;
    uint32_t epoch;
    uint32_t first;                    /* number of tokens[0], from 1 */
    const uint32_t *tokens;            /* copied */
    uint32_t count;                    /* 1..FX_QUEUE_APPEND_MAX */
    const struct fx_logprob *logprobs; /* [count][logprobs_each]; copied; NULL: none */
    uint32_t logprobs_each;            /* 0..FX_LOGPROBS_MAX; then count is bounded by
                                          FX_QUEUE_APPEND_LOGPROBS_MAX */
    const char *worker; /* only if it owns the lease; NULL: whoever has the epoch. A Redis that lost
                           its last second may give two workers the same one */
};
struct fx_write_result {
    enum fx_queue_status status; /* OK, NOT_FOUND, LEASE_LOST, GAP, ABANDON, CANCELLED */
    bool cancelled;
    uint32_t last; /* number of the last token logged */
};
typedef void (*fx_queue_on_write)(void *ctx, const struct fx_write_result *result,
                                  const fx_error *err);
/** Logs tokens, tells the watchers and renews the lease, in one step. */
FX_MUST bool fx_queue_append(fx_queue *queue, const struct fx_append *append,
                             fx_queue_on_write done, void *ctx, fx_error *err);
/** `index` is the row's place in the array given. */
typedef void (*fx_queue_on_append)(void *ctx, size_t index, const struct fx_write_result *result,
                                   const fx_error *err);
/** One step's appends in one pipelined write. All or, on false, none is sent. */
FX_MUST bool fx_queue_append_many(fx_queue *queue, const struct fx_append *appends, size_t count,
                                  fx_queue_on_append done, void *ctx, fx_error *err);

struct fx_gen_end {
    uint32_t model;
    fx_gen_id id;
    uint32_t epoch;
    uint32_t last; /* number of the last token; GAP if Redis has another, but when cancelled */
    enum fx_finish reason;
    const char *detail; /* NULL = none; cut at FX_QUEUE_DETAIL_MAX */
    const char *worker; /* as fx_append's */
};
/** Ends a generation: finish record, settled cost, lease and queue entry gone, expiry set.
 *  Idempotent for its epoch. May follow the last append in the same pipeline. */
FX_MUST bool fx_queue_finish(fx_queue *queue, const struct fx_gen_end *end, fx_queue_on_write done,
                             void *ctx, fx_error *err);

struct fx_renew {
    uint32_t model;
    fx_gen_id id;
    uint32_t epoch;
    const char *worker;
    bool give_back; /* ends the lease now: the next reclaim hands the generation to another. No
                       fruitless delivery, unless the owner's numerics were the wrong ones */
};
FX_MUST bool fx_queue_renew(fx_queue *queue, const struct fx_renew *renew, fx_queue_on_write done,
                            void *ctx, fx_error *err);

struct fx_restore {
    uint32_t model;
    fx_gen_id id;
    uint32_t epoch;
    const char *worker, *numerics_id;
    struct fx_task_terms terms;
    fx_span task, about;
};
/** Gives a generation back to the worker that had it when Redis lost what it had acknowledged: the
 *  generation is made again where it is missing, and leased to the worker under its epoch. `last`
 *  tells what the log still has; what follows is appended, and finished, again. LEASE_LOST: it has
 *  ended, or another has it under this epoch or a later one. Only for a worker that knows that
 *  Redis is another (fx_redis_report's servers), and that was heard less than retain_s ago: what
 *  ended since cannot have expired. */
FX_MUST bool fx_queue_restore(fx_queue *queue, const struct fx_restore *restore,
                              fx_queue_on_write done, void *ctx, fx_error *err);

enum fx_work_event {
    FX_WORK_TASKS,  /* tasks were dispatched, or may have been while disconnected: pull */
    FX_WORK_CANCEL, /* `id` is to stop now, whoever runs it */
};
typedef void (*fx_queue_on_work)(void *ctx, enum fx_work_event event, const fx_gen_id *id);
typedef struct fx_work fx_work;
/** A worker's hints. Pull once a second too: a hint may be lost. */
FX_MUST bool fx_queue_wait_tasks(fx_queue *queue, uint32_t model, fx_queue_on_work on_work,
                                 void *ctx, fx_work **out, fx_error *err);
void fx_work_free(fx_work *work);
FX_DEFINE_AUTO(fx_work, fx_work_free)
