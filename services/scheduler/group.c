/* The admission of one request. */
#include "services/scheduler/group.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/rpc/pb.h"

enum {
    NO_WORKER_RETRY_MS = 2000,
    FULL_RETRY_MIN_MS = 1000,
    FULL_RETRY_MAX_MS = 30000,
    TURN_MS = 500, /* a guess of how long one generation holds its slot */
};

typedef Fractal__V1__GenerationTask task_type;

static struct scheduler_app *app_of(const struct group *group) {
    return group->submission->op->app;
}

static fx_arena *arena_of(const struct group *group) {
    return fx_call_arena(group->submission->op->call);
}

/* ---- the end ---- */

static void group_end(struct group *group) {
    struct submission *submission = group->submission;
    group->ended = true;
    if (--submission->left == 0) submission->end(submission);
}

void group_refuse(struct group *group, const fx_error *err, uint32_t retry_after_ms) {
    char *text = fx_arena_printf(arena_of(group), "%s", err->text);
    group->result.code = (uint32_t)err->code;
    group->result.retry_after_ms = retry_after_ms;
    if (text) group->result.text = text;
    group_end(group);
}

static void fail(struct group *group, const fx_error *err) {
    fx_error why = *err;
    if (why.code == FX_CANCELLED) why.code = FX_UNAVAILABLE;
    bool again = why.code == FX_UNAVAILABLE || why.code == FX_RESOURCE_EXHAUSTED;
    group_refuse(group, &why, again ? OP_RETRY_AFTER_MS : 0);
}

static uint32_t full_retry_ms(const struct model *model) {
    uint64_t slots = model && model->stats.slots ? model->stats.slots : 1;
    uint64_t ms = model ? model->stats.waiting * TURN_MS / slots : 0;
    if (ms < FULL_RETRY_MIN_MS) return FULL_RETRY_MIN_MS;
    return ms > FULL_RETRY_MAX_MS ? FULL_RETRY_MAX_MS : (uint32_t)ms;
}

static void refuse_full(struct group *group, const char *whose) {
    fx_error err = {0};
    app_of(group)->refused_full += group->count;
    fx_error_set(&err, FX_RESOURCE_EXHAUSTED, "the queue of this %s is full", whose);
    group_refuse(group, &err, full_retry_ms(model_find(app_of(group), group->task->model)));
}

static void admitted(struct group *group, const struct fx_submit_result *results) {
    struct scheduler_app *app = app_of(group);
    for (uint32_t i = 0; i < group->count; i++) {
        group->result.seeds[i] = results[i].seed;
        if (results[i].repeated)
            app->repeated++;
        else
            app->admitted++;
    }
    group->result.n_seeds = group->count;
    group_end(group);
}

static void on_submitted(void *ctx, const struct fx_submit_result *results, const fx_error *err) {
    struct group *group = ctx;
    fx_error taken = {FX_ALREADY_EXISTS, "id: taken by another tenant"};
    if (err)
        fail(group, err);
    else if (results->status == FX_QUEUE_MODEL_FULL)
        refuse_full(group, "model");
    else if (results->status == FX_QUEUE_TENANT_FULL)
        refuse_full(group, "tenant");
    else if (results->status == FX_QUEUE_TAKEN)
        group_refuse(group, &taken, 0);
    else
        admitted(group, results);
}

/* ---- the submission ---- */

/* One seed for all. The task is in the call's arena and ours to change. */
static FX_MUST bool task_complete(struct group *group, fx_error *err) {
    task_type *task = group->task;
    if (!task->sampling) {
        task->sampling = fx_arena_alloc(arena_of(group), sizeof *task->sampling);
        if (!task->sampling) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "the task is too large");
        fractal__v1__sampling_params__init(task->sampling);
    }
    if (task->sampling->seed_presence_case != FRACTAL__V1__SAMPLING_PARAMS__SEED_PRESENCE_SEED) {
        task->sampling->seed_presence_case = FRACTAL__V1__SAMPLING_PARAMS__SEED_PRESENCE_SEED;
        fx_random(&task->sampling->seed, sizeof task->sampling->seed);
    }
    if (!task->submitted_ms) task->submitted_ms = fx_wall_ms();
    return true;
}

/* What all have: the task without its id and sampling; `about` is what is kept of it when it has
 * ended, for those who come back for its answer. */
static FX_MUST bool shared_pack(struct group *group, struct fx_submit_group *submit,
                                fx_error *err) {
    task_type shared = *group->task;
    shared.id = (ProtobufCBinaryData){0};
    shared.sampling = NULL;
    if (!fx_pb_pack(&shared, arena_of(group), &submit->task, err)) return false;
    shared.n_prompt_ids = 0;
    return fx_pb_pack(&shared, arena_of(group), &submit->about, err);
}

/* What each has of its own, to stand behind that. */
static FX_MUST bool member_pack(struct group *group, uint32_t index, fx_error *err) {
    struct fx_submit_member *member = &group->members[index];
    Fractal__V1__SamplingParams sampling = *group->task->sampling;
    task_type own = FRACTAL__V1__GENERATION_TASK__INIT;
    own.id = (ProtobufCBinaryData){FX_GEN_ID_BYTES, member->id.bytes};
    own.sampling = &sampling;
    sampling.choice = group->choices[index];
    member->seed = sampling.seed;
    if (!fx_pb_pack(&own, arena_of(group), &member->task, err)) return false;
    sampling.n_logit_bias = 0;
    return fx_pb_pack(&own, arena_of(group), &member->about, err);
}

static FX_MUST bool submit_send(struct group *group, fx_error *err) {
    const task_type *task = group->task;
    struct fx_submit_group submit = {
        .model = task->model,
        .tenant = task->tenant,
        .weight = group->weight,
        .prompt_tokens = (uint32_t)task->n_prompt_ids,
        .expected_tokens =
            task->max_tokens < EXPECTED_TOKENS_MAX ? task->max_tokens : EXPECTED_TOKENS_MAX,
        .count = group->count,
        .members = group->members,
    };
    if (!task_complete(group, err) || !shared_pack(group, &submit, err)) return false;
    for (uint32_t i = 0; i < group->count; i++)
        if (!member_pack(group, i, err)) return false;
    return fx_queue_submit_group(app_of(group)->queue, &submit, on_submitted, group, err);
}

/* ---- is there a worker that can take it? ---- */

/* max_tokens is a ceiling: what a worker can hold is one too. */
static void ceiling_lower(task_type *task, uint32_t context_max) {
    uint32_t room = context_max - (uint32_t)task->n_prompt_ids;
    if (task->max_tokens > room) task->max_tokens = room;
}

/* Nobody has to be there yet: whoever comes will look at what it holds. */
static bool is_cold(const struct group *group) {
    const struct model *model = model_find(app_of(group), group->task->model);
    return model && model->cold;
}

static void judge(struct group *group, const struct fx_queue_stats *stats) {
    task_type *task = group->task;
    fx_error err = {0};
    if (!stats->workers && !is_cold(group)) {
        app_of(group)->refused_no_worker += group->count;
        fx_error_set(&err, FX_UNAVAILABLE, "no worker serves this model now");
        group_refuse(group, &err, NO_WORKER_RETRY_MS);
        return;
    }
    if (stats->workers && task->n_prompt_ids >= stats->context_max) {
        app_of(group)->refused_invalid += group->count;
        fx_error_set(&err, FX_OUT_OF_RANGE,
                     "the prompt has %zu tokens and a worker's context holds %u: at least one must "
                     "be left for the answer",
                     task->n_prompt_ids, stats->context_max);
        group_refuse(group, &err, 0);
        return;
    }
    if (stats->workers) ceiling_lower(task, stats->context_max);
    if (!submit_send(group, &err)) fail(group, &err);
}

static void on_stats(void *ctx, const struct fx_queue_stats *stats, const fx_error *err) {
    struct group *group = ctx;
    fx_error full = {0};
    if (err) {
        fail(group, err);
        return;
    }
    struct model *model = stats->workers || is_cold(group)
                              ? model_add(app_of(group), group->task->model, NULL)
                              : NULL;
    if (model) model_keep(model, stats);
    if (!stats->workers || model) {
        judge(group, stats);
        return;
    }
    fx_error_set(&full, FX_RESOURCE_EXHAUSTED, "%d models are served already",
                 FX_QUEUE_MODELS_MAX); /* nobody here would dispatch it */
    group_refuse(group, &full, NO_WORKER_RETRY_MS);
}

/* Known numbers are good enough to admit; to refuse they are read again. */
void group_start(struct group *group) {
    const struct model *model = model_find(app_of(group), group->task->model);
    fx_error err = {0};
    if (model && model_is_fresh(model) && model->stats.workers)
        judge(group, &model->stats);
    else if (!fx_queue_stats(app_of(group)->queue, group->task->model, on_stats, group, &err))
        fail(group, &err);
}
