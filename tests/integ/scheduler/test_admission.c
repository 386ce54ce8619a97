/* What SubmitGeneration admits and what it refuses. */
#include <math.h>
#include "common/base/clock.h"
#include "common/model/store.h"
#include "tests/integ/scheduler/stage.h"

enum { CONTEXT = 512 }; /* of the rig's worker */
#define COLD "cold/one"

static struct stage_process *scheduler(struct stage *stage) {
    return &stage->process[0];
}

static void wait_for_worker(struct stage *stage) {
    rig_beat(&stage->rig, "w", 4);
}

static void draws_a_seed(struct stage *stage) {
    uint64_t first = 0, second = 0, third = 0;
    wait_for_worker(stage);
    assert_int_equal(stage_submit(scheduler(stage), 1, &first), FX_OK);
    assert_int_equal(stage_submit(scheduler(stage), 2, &second), FX_OK);
    assert_true(first != second);
    assert_int_equal(stage_submit(scheduler(stage), 1, &third), FX_OK); /* the same id again */
    assert_true(first == third);
}

static void keeps_a_given_seed(struct stage *stage) {
    struct stage_submission submission;
    Fractal__V1__SubmitGenerationReply *reply;
    wait_for_worker(stage);
    stage_submission(&submission, 1);
    submission.sampling.seed_presence_case = FRACTAL__V1__SAMPLING_PARAMS__SEED_PRESENCE_SEED;
    submission.sampling.seed = UINT64_MAX;
    assert_int_equal(STAGE_CALL(scheduler(stage), "SubmitGeneration", &submission.request,
                                submit_generation_reply, &reply, NULL),
                     FX_OK);
    assert_true(reply->seed == UINT64_MAX);
}

static void no_worker(struct stage *stage) {
    struct stage_submission submission;
    Fractal__V1__SubmitGenerationReply *reply;
    fx_error err = {0};
    stage_submission(&submission, 1);
    assert_int_equal(STAGE_CALL(scheduler(stage), "SubmitGeneration", &submission.request,
                                submit_generation_reply, &reply, &err),
                     FX_UNAVAILABLE);
    assert_non_null(strstr(err.text, "no worker"));
    wait_for_worker(stage);
    assert_int_equal(stage_submit(scheduler(stage), 1, NULL), FX_OK); /* seen at once */
}

static bool shows(struct stage *stage, const char *line) {
    char body[16384];
    assert_int_equal(stage_get(scheduler(stage), "/metrics", body, sizeof body), 200);
    return strstr(body, line) != NULL;
}

static void until_shown(struct stage *stage, const char *line) {
    uint64_t end_ms = fx_clock_ms() + 10000;
    while (!shows(stage, line)) {
        if (fx_clock_ms() > end_ms) fail_msg("never shown: %s", line);
        rig_sleep(&stage->rig, 50);
    }
}

/* A model that may wait for its first worker: shown before it has any, admitted without one. */
static void no_worker_yet(struct stage *stage) {
    struct stage_submission submission;
    void *reply;
    until_shown(stage, "\nfx_queue_demand{model=\"" COLD "\"} 0\n");
    assert_int_equal(stage_submit(scheduler(stage), 1, NULL), FX_UNAVAILABLE); /* another model */
    stage_submission(&submission, 2);
    submission.task.model = fx_model_number(COLD);
    assert_int_equal(STAGE_CALL(scheduler(stage), "SubmitGeneration", &submission.request,
                                submit_generation_reply, &reply, NULL),
                     FX_OK);
    until_shown(stage, "\nfx_queue_demand{model=\"" COLD "\"} 1\n");
    assert_true(shows(stage, "\nfx_queue_waiting{model=\"" COLD "\"} 1\n"));
    assert_true(shows(stage, "\nfx_queue_workers{model=\"" COLD "\"} 0\n"));
}

static void tenant_full(struct stage *stage) {
    wait_for_worker(stage);
    rig_beat(&stage->rig, "w", 0); /* live, but takes nothing */
    for (uint32_t n = 1; n <= 2; n++)
        assert_int_equal(stage_submit(scheduler(stage), n, NULL), FX_OK);
    assert_int_equal(stage_submit(scheduler(stage), 3, NULL), FX_RESOURCE_EXHAUSTED);
    assert_int_equal(stage_submit(scheduler(stage), 2, NULL), FX_OK);
}

static void model_full(struct stage *stage) {
    rig_beat(&stage->rig, "w", 0);
    assert_int_equal(stage_submit(scheduler(stage), 1, NULL), FX_OK);
    assert_int_equal(stage_submit(scheduler(stage), 2, NULL), FX_RESOURCE_EXHAUSTED);
}

static void other_tenants_id(struct stage *stage) {
    struct stage_submission submission;
    void *reply;
    wait_for_worker(stage);
    assert_int_equal(stage_submit(scheduler(stage), 1, NULL), FX_OK);
    stage_submission(&submission, 1);
    submission.task.tenant = 2;
    assert_int_equal(STAGE_CALL(scheduler(stage), "SubmitGeneration", &submission.request,
                                submit_generation_reply, &reply, NULL),
                     FX_ALREADY_EXISTS);
}

typedef void (*spoil)(struct stage_submission *submission);
static void short_id(struct stage_submission *s) {
    s->task.id.len = 15;
}
static void no_id(struct stage_submission *s) {
    s->task.id.len = 0;
}
static void no_prompt(struct stage_submission *s) {
    s->task.n_prompt_ids = 0;
}
static void no_tokens(struct stage_submission *s) {
    s->task.max_tokens = 0;
}
static void new_schema(struct stage_submission *s) {
    s->task.schema = 3;
}
static void no_model(struct stage_submission *s) {
    s->task.model = 0;
}
static void no_tenant(struct stage_submission *s) {
    s->task.tenant = 0;
}
static void no_task(struct stage_submission *s) {
    s->request.task = NULL;
}
static void heavy(struct stage_submission *s) {
    s->request.tenant_weight = 1001;
}
static void hot(struct stage_submission *s) {
    s->sampling.temperature = 2.1f;
}
static void cold(struct stage_submission *s) {
    s->sampling.temperature = -0.1f;
}
static void no_number(struct stage_submission *s) {
    s->sampling.temperature = NAN;
}
static void wide(struct stage_submission *s) {
    s->sampling.top_p = 1.5f;
}
static void mean(struct stage_submission *s) {
    s->sampling.min_p = INFINITY;
}

static void refuses_bad_tasks(struct stage *stage) {
    static const struct {
        spoil spoil;
        const char *names;
    } cases[] = {
        {short_id,   "id"         },
        {no_id,      "id"         },
        {no_prompt,  "prompt_ids" },
        {no_tokens,  "max_tokens" },
        {new_schema, "schema"     },
        {no_model,   "model"      },
        {no_tenant,  "tenant"     },
        {no_task,    "task"       },
        {heavy,      "weight"     },
        {hot,        "temperature"},
        {cold,       "temperature"},
        {no_number,  "temperature"},
        {wide,       "top_p"      },
        {mean,       "min_p"      },
    };
    wait_for_worker(stage);
    for (size_t i = 0; i < FX_TEST_COUNT(cases); i++) {
        struct stage_submission submission;
        void *reply;
        fx_error err = {0};
        stage_submission(&submission, 1);
        cases[i].spoil(&submission);
        assert_int_equal(STAGE_CALL(scheduler(stage), "SubmitGeneration", &submission.request,
                                    submit_generation_reply, &reply, &err),
                         FX_INVALID_ARGUMENT);
        if (!strstr(err.text, cases[i].names)) print_error("%zu: %s\n", i, err.text);
        assert_non_null(strstr(err.text, cases[i].names));
    }
    assert_int_equal(rig_stats(&stage->rig).waiting, 0);
}

/* With a prompt of so many tokens. */
static enum fx_code submit_long(struct stage *stage, uint32_t prompt_tokens, uint32_t max_tokens) {
    struct stage_submission submission;
    uint32_t prompt[CONTEXT] = {0};
    void *reply;
    stage_submission(&submission, 1);
    submission.task.prompt_ids = prompt;
    submission.task.n_prompt_ids = prompt_tokens;
    submission.task.max_tokens = max_tokens;
    return STAGE_CALL(scheduler(stage), "SubmitGeneration", &submission.request,
                      submit_generation_reply, &reply, NULL);
}

struct seen {
    bool done;
    uint32_t max_tokens;
};

static void on_about(void *ctx, const struct fx_gen_about *about, const fx_error *err) {
    struct seen *seen = ctx;
    assert_null(err);
    Fractal__V1__GenerationTask *task =
        fractal__v1__generation_task__unpack(NULL, about->task.len, about->task.at);
    assert_non_null(task);
    seen->max_tokens = task->max_tokens;
    seen->done = true;
    fractal__v1__generation_task__free_unpacked(task, NULL);
}

/* What a worker is told. */
static uint32_t queued_ceiling(struct stage *stage) {
    struct seen seen = {0};
    fx_gen_id id = rig_id(1);
    fx_error err = {0};
    assert_true(fx_queue_describe(stage->rig.queue, RIG_MODEL, &id, on_about, &seen, &err));
    rig_until(&stage->rig, &seen.done);
    return seen.max_tokens;
}

static void fits_exactly(struct stage *stage) {
    wait_for_worker(stage);
    assert_int_equal(submit_long(stage, 8, CONTEXT - 8), FX_OK);
    assert_int_equal(queued_ceiling(stage), CONTEXT - 8);
}

/* max_tokens is a ceiling, the context another. */
static void lowers_the_ceiling(struct stage *stage) {
    wait_for_worker(stage);
    assert_int_equal(submit_long(stage, 8, 100000), FX_OK);
    assert_int_equal(queued_ceiling(stage), CONTEXT - 8);
}

static void leaves_room_for_one(struct stage *stage) {
    wait_for_worker(stage);
    assert_int_equal(submit_long(stage, CONTEXT, 1), FX_OUT_OF_RANGE);
    assert_int_equal(rig_stats(&stage->rig).waiting, 0);
    assert_int_equal(submit_long(stage, CONTEXT - 1, 16), FX_OK);
    assert_int_equal(queued_ceiling(stage), 1);
}

static void counts(struct stage *stage) {
    char body[16384];
    wait_for_worker(stage);
    (void)stage_submit(scheduler(stage), 1, NULL);
    (void)stage_submit(scheduler(stage), 1, NULL);
    rig_sleep(&stage->rig, 700);
    assert_int_equal(stage_get(scheduler(stage), "/metrics", body, sizeof body), 200);
    assert_non_null(strstr(body, "\nfx_scheduler_admitted_total 1\n"));
    assert_non_null(strstr(body, "\nfx_scheduler_repeated_total 1\n"));
    assert_non_null(strstr(body, "\nfx_scheduler_dispatched_total 1\n"));
    assert_non_null(strstr(body, "\nfx_queue_waiting{model=\"org/tiny\"} 1\n"));
    assert_non_null(strstr(body, "\nfx_queue_slots_free{model=\"org/tiny\"} 3\n"));
}

static const struct stage_row rows[] = {
    {"draws a seed",        draws_a_seed,        {NULL},                          false},
    {"keeps a given seed",  keeps_a_given_seed,  {NULL},                          false},
    {"no worker",           no_worker,           {NULL},                          false},
    {"no worker yet",       no_worker_yet,       {"FX_COLD_MODELS=" COLD, NULL},  false},
    {"tenant full",         tenant_full,         {"FX_QUEUE_TENANT_MAX=2", NULL}, false},
    {"model full",          model_full,          {"FX_QUEUE_MODEL_MAX=1", NULL},  false},
    {"other tenant's id",   other_tenants_id,    {NULL},                          false},
    {"refuses bad tasks",   refuses_bad_tasks,   {NULL},                          false},
    {"fits exactly",        fits_exactly,        {NULL},                          false},
    {"lowers the ceiling",  lowers_the_ceiling,  {NULL},                          false},
    {"leaves room for one", leaves_room_for_one, {NULL},                          false},
    {"counts",              counts,              {NULL},                          false},
};
STAGE_MAIN(rows)
