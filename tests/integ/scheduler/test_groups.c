/* SubmitGenerations: the generations of a request are admitted together or not at all, and each
 * request for itself. */
#include "tests/integ/scheduler/stage.h"

enum { MOST = 66 };

/** Groups of generations whose numbers follow each other. */
struct asking {
    struct stage_submission base[MOST];
    Fractal__V1__GenerationGroup groups[MOST], *to[MOST];
    Fractal__V1__GenerationChoice choices[MOST][17], *choices_to[MOST][17];
    fx_gen_id ids[MOST][17];
    Fractal__V1__SubmitGenerationsRequest request;
};

static struct asking *asking_new(void) {
    struct asking *asking = calloc(1, sizeof *asking);
    assert_non_null(asking);
    asking->request =
        (Fractal__V1__SubmitGenerationsRequest)FRACTAL__V1__SUBMIT_GENERATIONS_REQUEST__INIT;
    asking->request.groups = asking->to;
    return asking;
}

/* One more group: generations `from`..`from` + count - 1 of `tenant`. */
static struct stage_submission *add(struct asking *asking, uint32_t from, uint32_t count,
                                    uint64_t tenant) {
    size_t at = asking->request.n_groups++;
    struct stage_submission *base = &asking->base[at];
    Fractal__V1__GenerationGroup *group = asking->to[at] = &asking->groups[at];
    stage_submission(base, from);
    base->task.tenant = tenant;
    base->task.id = (ProtobufCBinaryData){0};
    *group = (Fractal__V1__GenerationGroup)FRACTAL__V1__GENERATION_GROUP__INIT;
    group->task = &base->task;
    group->choices = asking->choices_to[at];
    group->n_choices = count;
    for (uint32_t i = 0; i < count; i++) {
        Fractal__V1__GenerationChoice *choice = &asking->choices[at][i];
        *choice = (Fractal__V1__GenerationChoice)FRACTAL__V1__GENERATION_CHOICE__INIT;
        asking->ids[at][i] = rig_id(from + i);
        choice->id = (ProtobufCBinaryData){FX_GEN_ID_BYTES, asking->ids[at][i].bytes};
        choice->choice = i;
        group->choices[i] = choice;
    }
    return base;
}

static struct stage_process *scheduler(struct stage *stage) {
    return &stage->process[0];
}

static enum fx_code ask(struct stage *stage, struct asking *asking,
                        Fractal__V1__SubmitGenerationsReply **reply) {
    fx_error err = {0};
    return STAGE_CALL(scheduler(stage), "SubmitGenerations", &asking->request,
                      submit_generations_reply, reply, &err);
}

static bool is_there(struct stage *stage, uint32_t n) {
    return rig_get(&stage->rig, n).status == FX_QUEUE_OK;
}

static void admits(struct stage *stage) {
    struct asking *asking = asking_new();
    Fractal__V1__SubmitGenerationsReply *reply;
    rig_beat(&stage->rig, "w", 8);
    struct stage_submission *first = add(asking, 1, 3, 1);
    first->sampling.top_k = 7;
    first->task.schema = 2;
    (void)add(asking, 9, 1, 2);
    assert_int_equal(ask(stage, asking, &reply), FX_OK);
    assert_int_equal(reply->n_results, 2);
    assert_int_equal(reply->results[0]->code, FX_OK);
    assert_int_equal(reply->results[0]->n_seeds, 3);
    assert_true(reply->results[0]->seeds[0] == reply->results[0]->seeds[2]); /* one for all */
    assert_true(reply->results[0]->seeds[0] != reply->results[1]->seeds[0]);
    assert_int_equal(reply->results[1]->n_seeds, 1);
    uint64_t seed = reply->results[0]->seeds[0];
    assert_int_equal(ask(stage, asking, &reply), FX_OK); /* again: the same */
    assert_true(reply->results[0]->seeds[1] == seed);
    assert_int_equal(rig_get(&stage->rig, 9).tenant, 2);
    assert_int_equal(rig_stats(&stage->rig).waiting, 4);
    free(asking);
}

struct seen {
    bool done;
    uint8_t task[512];
    size_t len;
};

static void on_about(void *ctx, const struct fx_gen_about *about, const fx_error *err) {
    struct seen *seen = ctx;
    assert_null(err);
    assert_true(about->task.len > 0 && about->task.len <= sizeof seen->task);
    memcpy(seen->task, about->task.at, about->task.len);
    seen->len = about->task.len;
    seen->done = true;
}

/* What a worker gets of each is a whole task. */
static void tasks_are_whole(struct stage *stage) {
    struct asking *asking = asking_new();
    Fractal__V1__SubmitGenerationsReply *reply;
    rig_beat(&stage->rig, "w", 0);
    struct stage_submission *base = add(asking, 1, 2, 5);
    base->sampling.top_k = 7;
    base->sampling.seed_presence_case = FRACTAL__V1__SAMPLING_PARAMS__SEED_PRESENCE_SEED;
    base->sampling.seed = 77;
    assert_int_equal(ask(stage, asking, &reply), FX_OK);
    for (uint32_t i = 0; i < 2; i++) {
        struct seen seen = {0};
        fx_gen_id id = rig_id(1 + i);
        fx_error err = {0};
        assert_true(fx_queue_describe(stage->rig.queue, RIG_MODEL, &id, on_about, &seen, &err));
        rig_until(&stage->rig, &seen.done);
        Fractal__V1__GenerationTask *task =
            fractal__v1__generation_task__unpack(NULL, seen.len, seen.task);
        assert_non_null(task);
        assert_memory_equal(task->id.data, id.bytes, sizeof id.bytes);
        assert_int_equal(task->n_prompt_ids, 8);
        assert_int_equal(task->prompt_ids[7], 8);
        assert_int_equal(task->tenant, 5);
        assert_int_equal(task->max_tokens, 16);
        assert_int_equal(task->sampling->choice, i);
        assert_int_equal(task->sampling->top_k, 7);
        assert_int_equal(task->sampling->seed, 77);
        assert_true(task->submitted_ms > 0);
        fractal__v1__generation_task__free_unpacked(task, NULL);
    }
    free(asking);
}

/* FX_QUEUE_TENANT_MAX=3 */
static void each_for_itself(struct stage *stage) {
    struct asking *asking = asking_new();
    Fractal__V1__SubmitGenerationsReply *reply;
    rig_beat(&stage->rig, "w", 0);
    (void)add(asking, 1, 2, 1);
    (void)add(asking, 11, 2, 1); /* does not fit beside the first */
    (void)add(asking, 21, 1, 1); /* does */
    (void)add(asking, 31, 4, 2); /* never does */
    add(asking, 41, 1, 3)->task.max_tokens = 0;
    add(asking, 51, 1, 3)->task.n_prompt_ids = 0;
    (void)add(asking, 61, 3, 4);
    static const struct {
        enum fx_code code;
        uint32_t first, count;
        const char *text;
    } want[] = {
        {FX_OK,                 1,  2, ""          },
        {FX_RESOURCE_EXHAUSTED, 11, 2, "tenant"    },
        {FX_OK,                 21, 1, ""          },
        {FX_RESOURCE_EXHAUSTED, 31, 4, "tenant"    },
        {FX_INVALID_ARGUMENT,   41, 1, "max_tokens"},
        {FX_INVALID_ARGUMENT,   51, 1, "prompt_ids"},
        {FX_OK,                 61, 3, ""          },
    };
    assert_int_equal(ask(stage, asking, &reply), FX_OK);
    assert_int_equal(reply->n_results, FX_TEST_COUNT(want));
    for (size_t i = 0; i < FX_TEST_COUNT(want); i++) {
        const Fractal__V1__GroupResult *result = reply->results[i];
        bool full = want[i].code == FX_RESOURCE_EXHAUSTED;
        assert_int_equal(result->code, want[i].code);
        assert_non_null(strstr(result->text, want[i].text));
        assert_int_equal(result->retry_after_ms >= 1000, full);
    }
    for (size_t i = 0; i < FX_TEST_COUNT(want); i++)
        for (uint32_t n = 0; n < want[i].count; n++)
            assert_int_equal(is_there(stage, want[i].first + n), want[i].code == FX_OK);
    free(asking);
}

static void no_worker(struct stage *stage) {
    struct asking *asking = asking_new();
    Fractal__V1__SubmitGenerationsReply *reply;
    (void)add(asking, 1, 2, 1);
    assert_int_equal(ask(stage, asking, &reply), FX_OK);
    assert_int_equal(reply->results[0]->code, FX_UNAVAILABLE);
    assert_int_equal(reply->results[0]->retry_after_ms, 2000);
    assert_false(is_there(stage, 1));
    free(asking);
}

static void bad_groups(struct stage *stage) {
    Fractal__V1__SubmitGenerationsReply *reply;
    struct asking *asking = asking_new();
    rig_beat(&stage->rig, "w", 0);
    assert_int_equal(ask(stage, asking, &reply), FX_INVALID_ARGUMENT); /* none */
    (void)add(asking, 1, 17, 1);
    (void)add(asking, 21, 0, 1);
    (void)add(asking, 31, 2, 1);
    memcpy(&asking->ids[2][1], &asking->ids[2][0], sizeof(fx_gen_id));
    (void)add(asking, 41, 1, 1);
    asking->to[3]->task = NULL;
    (void)add(asking, 51, 2, 1);
    asking->choices[4][1].id.len = 3;
    assert_int_equal(ask(stage, asking, &reply), FX_OK);
    for (size_t i = 0; i < reply->n_results; i++)
        assert_int_equal(reply->results[i]->code, FX_INVALID_ARGUMENT);
    assert_int_equal(rig_stats(&stage->rig).waiting, 0);
    while (asking->request.n_groups < 65)
        (void)add(asking, 100 + (uint32_t)asking->request.n_groups, 1, 1);
    assert_int_equal(ask(stage, asking, &reply), FX_INVALID_ARGUMENT); /* 65 */
    asking->request.n_groups = 64;
    assert_int_equal(ask(stage, asking, &reply), FX_OK);
    assert_int_equal(reply->n_results, 64);
    assert_int_equal(reply->results[63]->code, FX_OK);
    assert_int_equal(rig_stats(&stage->rig).waiting, 59);
    free(asking);
}

static const struct stage_row rows[] = {
    {"admits",          admits,          {NULL},                          false},
    {"tasks are whole", tasks_are_whole, {NULL},                          false},
    {"each for itself", each_for_itself, {"FX_QUEUE_TENANT_MAX=3", NULL}, false},
    {"no worker",       no_worker,       {NULL},                          false},
    {"bad groups",      bad_groups,      {NULL},                          false},
};
STAGE_MAIN(rows)
