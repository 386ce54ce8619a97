/* SubmitGenerations of the stage's scheduler. */
#include "tests/integ/gateway/stage.h"
#include "common/base/heap.h"
#include "fractal/v1/scheduler.pb-c.h"

enum { GROUPS_MAX = 64 };

struct batch {
    struct stage *stage;
    fx_call *call;
    const Fractal__V1__SubmitGenerationsRequest *request;
    size_t left;
    struct group {
        struct batch *batch;
        Fractal__V1__GroupResult result;
        uint64_t seeds[FX_QUEUE_GROUP_MAX];
        size_t count;
    } groups[GROUPS_MAX];
};

static void batch_end(struct batch *batch) {
    Fractal__V1__SubmitGenerationsReply reply = FRACTAL__V1__SUBMIT_GENERATIONS_REPLY__INIT;
    Fractal__V1__GroupResult *results[GROUPS_MAX];
    reply.n_results = batch->request->n_groups;
    reply.results = results;
    for (size_t i = 0; i < reply.n_results; i++)
        results[i] = &batch->groups[i].result;
    fx_call_reply(batch->call, &reply);
    free(batch);
}

static void group_end(struct group *group) {
    if (--group->batch->left == 0) batch_end(group->batch);
}

static void on_submit(void *ctx, const struct fx_submit_result *results, const fx_error *err) {
    struct group *group = ctx;
    if (err) group->result.code = (uint32_t)err->code;
    for (size_t i = 0; !err && i < group->count; i++)
        group->seeds[i] = results[i].seed;
    group->result.seeds = group->seeds;
    group->result.n_seeds = err ? 0 : group->count;
    group_end(group);
}

/* The whole task of one choice, as a worker gets it. */
static fx_span task_pack(struct stage *stage, const Fractal__V1__GenerationGroup *from, size_t at) {
    from->task->id = from->choices[at]->id;
    from->task->sampling->choice = from->choices[at]->choice;
    stage->last_task_len = fractal__v1__generation_task__pack(from->task, stage->last_task);
    uint8_t *copy = calloc(1, stage->last_task_len);
    memcpy(copy, stage->last_task, stage->last_task_len);
    return (fx_span){copy, stage->last_task_len};
}

static void group_submit(struct group *group, const Fractal__V1__GenerationGroup *from) {
    struct stage *stage = group->batch->stage;
    struct fx_submit_member members[FX_QUEUE_GROUP_MAX] = {0};
    fx_error err = {0};
    group->count = from->n_choices;
    assert_true(group->count > 0 && group->count <= FX_QUEUE_GROUP_MAX);
    pthread_mutex_lock(&stage->lock);
    for (size_t i = 0; i < group->count; i++) {
        members[i].task = members[i].about = task_pack(stage, from, i);
        members[i].seed = 99;
        memcpy(members[i].id.bytes, from->choices[i]->id.data, FX_GEN_ID_BYTES);
    }
    pthread_mutex_unlock(&stage->lock);
    const struct fx_submit_group submit = {.model = from->task->model,
                                           .tenant = from->task->tenant,
                                           .prompt_tokens = (uint32_t)from->task->n_prompt_ids,
                                           .expected_tokens = from->task->max_tokens,
                                           .count = (uint32_t)group->count,
                                           .members = members};
    if (!fx_queue_submit_group(stage->queue, &submit, on_submit, group, &err))
        on_submit(group, NULL, &err);
    for (size_t i = 0; i < group->count; i++)
        free((void *)(uintptr_t)members[i].task.at);
}

/* Told to fail: whole groups of them. */
static bool is_refused(struct group *group, const Fractal__V1__GenerationGroup *from) {
    struct stage *stage = group->batch->stage;
    int choices = (int)from->n_choices, submitted = atomic_fetch_add(&stage->submitted, choices);
    submitted += choices;
    if (!stage->submit_code || submitted <= stage->submit_good) return false;
    group->result.code = (uint32_t)stage->submit_code;
    group->result.text = (char *)(uintptr_t) "told to fail";
    group->result.retry_after_ms = 2500;
    return true;
}

static void submit_on_loop(void *user) {
    struct batch *batch = user;
    size_t count = batch->request->n_groups;
    batch->left = count + 1;
    for (size_t i = 0; i < count; i++) {
        struct group *group = &batch->groups[i];
        group->batch = batch;
        fractal__v1__group_result__init(&group->result);
        if (is_refused(group, batch->request->groups[i]))
            group_end(group);
        else
            group_submit(group, batch->request->groups[i]);
    }
    if (--batch->left == 0) batch_end(batch);
}

void stage__submit_generations(fx_call *call, const void *message, void *context) {
    struct stage *stage = context;
    stage->submit_calls++;
    while (stage->hold_submits)
        usleep(1000);
    if (stage->old_scheduler) {
        fx_call_fail(call, FX_UNIMPLEMENTED, "unknown method");
        return;
    }
    struct batch *batch = fx_alloc(1, sizeof *batch);
    *batch = (struct batch){.stage = stage, .call = call, .request = message};
    assert_true(batch->request->n_groups > 0 && batch->request->n_groups <= GROUPS_MAX);
    assert_true(fx_loop_post(stage->loop, submit_on_loop, batch));
}
