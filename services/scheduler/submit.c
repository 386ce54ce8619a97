#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/rpc/pb.h"
#include "services/scheduler/op.h"

enum {
    WEIGHT_MAX = 1000,
    NO_WORKER_RETRY_MS = 2000,
    FULL_RETRY_MIN_MS = 1000,
    FULL_RETRY_MAX_MS = 30000,
    TURN_MS = 500, /* a guess of how long one generation holds its slot */
};

typedef Fractal__V1__GenerationTask task_type;

static const Fractal__V1__SubmitGenerationRequest *request_of(const struct op *op) {
    return op->request;
}

/* ---- checks that need no Redis ---- */

static FX_MUST bool bounded(const char *what, uint64_t value, uint64_t min, uint64_t max,
                            fx_error *err) {
    if (value >= min && value <= max) return true;
    return fx_fail(err, FX_INVALID_ARGUMENT, "%s: %llu is not in %llu..%llu", what,
                   (unsigned long long)value, (unsigned long long)min, (unsigned long long)max);
}

/* Written so that a NaN is refused. */
static FX_MUST bool within(const char *what, float value, float max, fx_error *err) {
    if (value >= 0.0f && value <= max) return true;
    return fx_fail(err, FX_INVALID_ARGUMENT, "%s: not in 0..%g", what, (double)max);
}

static FX_MUST bool sampling_check(const Fractal__V1__SamplingParams *sampling, fx_error *err) {
    return !sampling || (within("temperature", sampling->temperature, 2.0f, err) &&
                         within("top_p", sampling->top_p, 1.0f, err) &&
                         within("min_p", sampling->min_p, 1.0f, err));
}

static FX_MUST bool task_check(const task_type *task, uint32_t weight, fx_error *err) {
    if (!task) return fx_fail(err, FX_INVALID_ARGUMENT, "task: missing");
    return bounded("schema", task->schema, 1, 2, err) &&
           bounded("model", task->model, 1, UINT32_MAX, err) &&
           bounded("tenant", task->tenant, 1, UINT64_MAX, err) &&
           bounded("tenant_weight", weight, 0, WEIGHT_MAX, err) &&
           bounded("prompt_ids", task->n_prompt_ids, 1, PROMPT_TOKENS_MAX, err) &&
           bounded("stop_ids", task->n_stop_ids, 0, STOP_IDS_MAX, err) &&
           bounded("max_tokens", task->max_tokens, 1, GENERATED_TOKENS_MAX, err) &&
           sampling_check(task->sampling, err);
}

/* ---- the submission ---- */

static uint32_t full_retry_ms(const struct model *model) {
    uint64_t slots = model && model->stats.slots ? model->stats.slots : 1;
    uint64_t ms = model ? model->stats.waiting * TURN_MS / slots : 0;
    if (ms < FULL_RETRY_MIN_MS) return FULL_RETRY_MIN_MS;
    return ms > FULL_RETRY_MAX_MS ? FULL_RETRY_MAX_MS : (uint32_t)ms;
}

static void refuse_full(struct op *op, const char *whose) {
    op->app->refused_full++;
    op_refuse(op, FX_RESOURCE_EXHAUSTED, full_retry_ms(model_find(op->app, op->model)),
              "the queue of this %s is full", whose);
}

static void reply_seed(struct op *op, const struct fx_submit_result *result) {
    Fractal__V1__SubmitGenerationReply reply = FRACTAL__V1__SUBMIT_GENERATION_REPLY__INIT;
    if (result->repeated)
        op->app->repeated++;
    else
        op->app->admitted++;
    reply.seed = result->seed;
    fx_call_reply(op->call, &reply);
}

static void on_submitted(void *ctx, const struct fx_submit_result *result, const fx_error *err) {
    struct op *op = ctx;
    if (err)
        op_fail(op, err);
    else if (result->status == FX_QUEUE_MODEL_FULL)
        refuse_full(op, "model");
    else if (result->status == FX_QUEUE_TENANT_FULL)
        refuse_full(op, "tenant");
    else if (result->status == FX_QUEUE_TAKEN)
        op_refuse(op, FX_ALREADY_EXISTS, 0, "id: taken by another tenant");
    else
        reply_seed(op, result);
}

/* The task with its seed inside. The request is in the call's arena and ours to change. */
static FX_MUST bool task_pack(struct op *op, uint64_t *seed, fx_span *out, fx_error *err) {
    task_type *task = request_of(op)->task;
    if (!task->sampling) {
        task->sampling = fx_arena_alloc(fx_call_arena(op->call), sizeof *task->sampling);
        if (!task->sampling) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "the task is too large");
        fractal__v1__sampling_params__init(task->sampling);
    }
    if (task->sampling->seed_presence_case != FRACTAL__V1__SAMPLING_PARAMS__SEED_PRESENCE_SEED) {
        task->sampling->seed_presence_case = FRACTAL__V1__SAMPLING_PARAMS__SEED_PRESENCE_SEED;
        fx_random(&task->sampling->seed, sizeof task->sampling->seed);
    }
    if (!task->submitted_ms) task->submitted_ms = fx_wall_ms();
    *seed = task->sampling->seed;
    return fx_pb_pack(task, fx_call_arena(op->call), out, err);
}

/* What is kept of the task when it has ended, for those who come back for its answer. */
static FX_MUST bool about_pack(struct op *op, fx_span *out, fx_error *err) {
    task_type about = *request_of(op)->task;
    Fractal__V1__SamplingParams sampling = *about.sampling;
    about.n_prompt_ids = sampling.n_logit_bias = 0;
    about.sampling = &sampling;
    return fx_pb_pack(&about, fx_call_arena(op->call), out, err);
}

static FX_MUST bool submit_send(struct op *op, fx_error *err) {
    const task_type *task = request_of(op)->task;
    struct fx_submit submit = {
        .model = op->model,
        .tenant = task->tenant,
        .weight = request_of(op)->tenant_weight,
        .id = op->id,
        .prompt_tokens = (uint32_t)task->n_prompt_ids,
        .expected_tokens =
            task->max_tokens < EXPECTED_TOKENS_MAX ? task->max_tokens : EXPECTED_TOKENS_MAX,
    };
    return task_pack(op, &submit.seed, &submit.task, err) && about_pack(op, &submit.about, err) &&
           fx_queue_submit(op->app->queue, &submit, on_submitted, op, err);
}

/* ---- is there a worker that can take it? ---- */

static void judge(struct op *op, const struct fx_queue_stats *stats) {
    const task_type *task = request_of(op)->task;
    uint64_t tokens = (uint64_t)task->n_prompt_ids + task->max_tokens;
    fx_error err;
    if (!stats->workers) {
        op->app->refused_no_worker++;
        op_refuse(op, FX_UNAVAILABLE, NO_WORKER_RETRY_MS, "no worker serves this model now");
    } else if (tokens > stats->context_max) {
        op->app->refused_invalid++;
        op_refuse(op, FX_INVALID_ARGUMENT, 0,
                  "prompt_ids and max_tokens: %llu tokens, the context holds %u",
                  (unsigned long long)tokens, stats->context_max);
    } else if (!submit_send(op, &err)) {
        op_fail(op, &err);
    }
}

static void on_stats(void *ctx, const struct fx_queue_stats *stats, const fx_error *err) {
    struct op *op = ctx;
    if (err) {
        op_fail(op, err);
        return;
    }
    struct model *model = stats->workers ? model_add(op->app, op->model, NULL) : NULL;
    if (model) model_keep(model, stats);
    if (stats->workers && !model) /* nobody here would dispatch it */
        op_refuse(op, FX_RESOURCE_EXHAUSTED, NO_WORKER_RETRY_MS, "%d models are served already",
                  FX_QUEUE_MODELS_MAX);
    else
        judge(op, stats);
}

/* Known numbers are good enough to admit; to refuse they are read again. */
static void submit_start(struct op *op) {
    const struct model *model = model_find(op->app, op->model);
    fx_error err;
    if (model && model_is_fresh(model) && model->stats.workers)
        judge(op, &model->stats);
    else if (!fx_queue_stats(op->app->queue, op->model, on_stats, op, &err))
        op_fail(op, &err);
}

void submit_generation(fx_call *call, const void *request, void *app) {
    const Fractal__V1__SubmitGenerationRequest *submit = request;
    fx_error err = {0};
    struct op *op = op_new(call, request, app);
    if (!op) return;
    if (!task_check(submit->task, submit->tenant_weight, &err) ||
        !id_read(submit->task->id, &op->id, &err)) {
        op->app->refused_invalid++;
        op_fail(op, &err);
        return;
    }
    op->model = submit->task->model;
    op_post(op, submit_start);
}
