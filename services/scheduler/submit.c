/* SubmitGeneration and SubmitGenerations: the first is the second with one group of one. */
#include "services/scheduler/group.h"

enum { WEIGHT_MAX = 1000 };

typedef Fractal__V1__GenerationTask task_type;

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

/* What one group says, into `group`. */
static FX_MUST bool group_read(struct group *group, const Fractal__V1__GenerationGroup *from,
                               fx_error *err) {
    group->task = from->task;
    group->weight = from->tenant_weight;
    if (!task_check(from->task, from->tenant_weight, err) ||
        !bounded("choices", from->n_choices, 1, CHOICES_MAX, err))
        return false;
    group->count = (uint32_t)from->n_choices;
    for (uint32_t i = 0; i < group->count; i++) {
        group->choices[i] = from->choices[i]->choice;
        if (!id_read(from->choices[i]->id, &group->members[i].id, err)) return false;
        for (uint32_t j = 0; j < i; j++)
            if (memcmp(&group->members[i].id, &group->members[j].id, FX_GEN_ID_BYTES) == 0)
                return fx_fail(err, FX_INVALID_ARGUMENT, "id: twice in one group");
    }
    return true;
}

/* ---- the call ---- */

/* `left` counts the handler too: what refuses a group at once does not end the call under it. */
static void give_up_one(struct submission *submission) {
    if (--submission->left == 0) submission->end(submission);
}

static void start(struct op *op) {
    struct submission *submission = op->user;
    for (uint32_t i = 0; i < submission->count; i++)
        if (!submission->groups[i].ended) group_start(&submission->groups[i]);
    give_up_one(submission);
}

static void begin(struct submission *submission) {
    if (submission->left == 1)
        give_up_one(submission); /* nothing is left to be asked for */
    else
        op_post(submission->op, start);
}

static FX_MUST bool group_alloc(struct group *group, struct submission *submission,
                                size_t choices) {
    size_t count = choices && choices <= CHOICES_MAX ? choices : 1;
    group->submission = submission;
    fractal__v1__group_result__init(&group->result);
    group->members = op_alloc(submission->op, count, sizeof *group->members);
    if (group->members) group->choices = op_alloc(submission->op, count, sizeof *group->choices);
    if (group->choices)
        group->result.seeds = op_alloc(submission->op, count, sizeof *group->result.seeds);
    return group->result.seeds != NULL;
}

/* False: the call has ended. */
static FX_MUST bool group_add(struct submission *submission,
                              const Fractal__V1__GenerationGroup *from) {
    struct group *group = &submission->groups[submission->count++];
    fx_error err = {0};
    if (!group_alloc(group, submission, from->n_choices)) return false;
    submission->left++;
    if (group_read(group, from, &err)) return true;
    submission->op->app->refused_invalid += group->count ? group->count : 1;
    group_refuse(group, &err, 0);
    return true;
}

static struct submission *submission_new(fx_call *call, const void *request, void *app,
                                         size_t count, void (*end)(struct submission *)) {
    struct op *op = op_new(call, request, app);
    struct submission *submission = op ? op_alloc(op, 1, sizeof *submission) : NULL;
    if (!submission) return NULL;
    *submission = (struct submission){.op = op, .left = 1, .end = end};
    submission->groups = op_alloc(op, count, sizeof *submission->groups);
    if (!submission->groups) return NULL;
    op->user = submission;
    return submission;
}

/* ---- SubmitGeneration ---- */

static void end_one(struct submission *submission) {
    const Fractal__V1__GroupResult *result = &submission->groups[0].result;
    Fractal__V1__SubmitGenerationReply reply = FRACTAL__V1__SUBMIT_GENERATION_REPLY__INIT;
    if (result->code) {
        op_refuse(submission->op, (enum fx_code)result->code, result->retry_after_ms, "%s",
                  result->text);
        return;
    }
    reply.seed = result->seeds[0];
    fx_call_reply(submission->op->call, &reply);
}

void submit_generation(fx_call *call, const void *request, void *app) {
    const Fractal__V1__SubmitGenerationRequest *submit = request;
    Fractal__V1__GenerationGroup group = FRACTAL__V1__GENERATION_GROUP__INIT;
    Fractal__V1__GenerationChoice choice = FRACTAL__V1__GENERATION_CHOICE__INIT;
    Fractal__V1__GenerationChoice *choices[] = {&choice};
    struct submission *submission = submission_new(call, request, app, 1, end_one);
    if (!submission) return;
    group.task = submit->task;
    group.tenant_weight = submit->tenant_weight;
    group.choices = choices;
    group.n_choices = 1;
    if (submit->task) choice.id = submit->task->id;
    if (submit->task && submit->task->sampling) choice.choice = submit->task->sampling->choice;
    if (group_add(submission, &group)) begin(submission);
}

/* ---- SubmitGenerations ---- */

static void end_all(struct submission *submission) {
    Fractal__V1__SubmitGenerationsReply reply = FRACTAL__V1__SUBMIT_GENERATIONS_REPLY__INIT;
    Fractal__V1__GroupResult *results[GROUPS_MAX];
    for (uint32_t i = 0; i < submission->count; i++)
        results[i] = &submission->groups[i].result;
    reply.results = results;
    reply.n_results = submission->count;
    fx_call_reply(submission->op->call, &reply);
}

void submit_generations(fx_call *call, const void *request, void *app) {
    const Fractal__V1__SubmitGenerationsRequest *submit = request;
    if (!submit->n_groups || submit->n_groups > GROUPS_MAX) {
        fx_call_fail(call, FX_INVALID_ARGUMENT, "groups: %zu is not in 1..%d", submit->n_groups,
                     GROUPS_MAX);
        return;
    }
    struct submission *submission = submission_new(call, request, app, submit->n_groups, end_all);
    if (!submission) return;
    for (size_t i = 0; i < submit->n_groups; i++)
        if (!group_add(submission, submit->groups[i])) return;
    begin(submission);
}
