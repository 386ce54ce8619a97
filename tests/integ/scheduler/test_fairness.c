/* Three tenants of weights 1, 2 and 4 before three real schedulers, one of which dies: each gets
 * its share of the tokens, whatever their generations' lengths, and no credit for having been idle.
 * The worker is played: it makes tokens in steps, by the queue's own functions. */
#include "tests/integ/scheduler/stage.h"
#include "common/base/clock.h"

enum {
    TENANTS = 3,
    SCHEDULERS = 3,
    SLOTS = 4,
    WAITING = 12, /* of each tenant that is not idle */
    STEP = 8,     /* tokens of each generation in a step */
    BEAT_MS = 1000,
    PROMPT_MAX = 48,
    MAX_TOKENS = 160, /* what all ask for; how many there are turns out */
};

/* Unequal lengths: the heavier a tenant is the shorter are its prompts and its answers. */
static const struct tenant {
    uint32_t weight, prompt, tokens_min, tokens_max;
} tenants[TENANTS] = {
    {1, 48, 40, 120},
    {2, 24, 20, 80 },
    {4, 8,  4,  40 },
};

struct running {
    bool used;
    uint32_t n, epoch, tenant, made, length;
};

struct fair {
    struct stage *stage;
    uint32_t alive; /* schedulers, from the first */
    uint32_t next, waiting[TENANTS], submitted;
    bool idle[TENANTS];
    uint64_t tokens[TENANTS]; /* of prompts and answers, since the window began */
    uint64_t beat_ms;
    struct running running[SLOTS];
};

/* -- tenants -- */

static uint32_t length_of(uint32_t n, uint32_t tenant) {
    const struct tenant *of = &tenants[tenant];
    uint32_t spread = of->tokens_max - of->tokens_min + 1;
    return of->tokens_min + (n * 2654435761u >> 8) % spread;
}

static void submit(struct fair *fair, uint32_t tenant) {
    static uint32_t prompt[PROMPT_MAX];
    struct stage_submission submission;
    Fractal__V1__SubmitGenerationReply *reply;
    struct stage_process *to = &fair->stage->process[fair->submitted++ % fair->alive];
    stage_submission(&submission, tenant << 24 | fair->next++);
    submission.task.tenant = tenant + 1;
    submission.task.prompt_ids = prompt;
    submission.task.n_prompt_ids = tenants[tenant].prompt;
    submission.task.max_tokens = MAX_TOKENS;
    submission.request.tenant_weight = tenants[tenant].weight;
    assert_int_equal(STAGE_CALL(to, "SubmitGeneration", &submission.request,
                                submit_generation_reply, &reply, NULL),
                     FX_OK);
    fair->waiting[tenant]++;
}

static void submit_all(struct fair *fair) {
    for (uint32_t tenant = 0; tenant < TENANTS; tenant++)
        while (!fair->idle[tenant] && fair->waiting[tenant] < WAITING)
            submit(fair, tenant);
}

/* -- the worker -- */

static void beat(struct fair *fair) {
    if (fx_clock_ms() - fair->beat_ms < BEAT_MS) return;
    fair->beat_ms = fx_clock_ms();
    rig_beat(&fair->stage->rig, "w", SLOTS);
}

static struct running *slot_free(struct fair *fair) {
    for (uint32_t i = 0; i < SLOTS; i++)
        if (!fair->running[i].used) return &fair->running[i];
    return NULL;
}

static void pull(struct fair *fair) {
    uint32_t spare = 0;
    for (uint32_t i = 0; i < SLOTS; i++)
        spare += !fair->running[i].used;
    if (!spare) return;
    struct rig_tasks tasks = rig_pull(&fair->stage->rig, "w", spare);
    for (size_t i = 0; i < tasks.count; i++) {
        struct running *to = slot_free(fair);
        assert_non_null(to);
        uint32_t n = rig_number(&tasks.at[i].id), tenant = n >> 24;
        *to = (struct running){true, n, tasks.at[i].epoch, tenant, 0, length_of(n, tenant)};
        fair->waiting[tenant]--;
        fair->tokens[tenant] += tenants[tenant].prompt;
    }
    if (!tasks.count) rig_sleep(&fair->stage->rig, 1);
}

static void step_one(struct fair *fair, struct running *running) {
    static const uint32_t made[STEP];
    struct rig *rig = &fair->stage->rig;
    uint32_t left = running->length - running->made, count = left < STEP ? left : STEP;
    assert_int_equal(
        rig_append(rig, running->n, running->epoch, running->made + 1, made, count).status,
        FX_QUEUE_OK);
    running->made += count;
    fair->tokens[running->tenant] += count;
    if (running->made < running->length) return;
    assert_int_equal(
        rig_finish(rig, running->n, running->epoch, running->made, FX_FINISH_STOP).status,
        FX_QUEUE_OK);
    running->used = false;
}

static void step(struct fair *fair) {
    beat(fair);
    submit_all(fair);
    pull(fair);
    for (uint32_t i = 0; i < SLOTS; i++)
        if (fair->running[i].used) step_one(fair, &fair->running[i]);
}

/* -- what is judged -- */

static uint64_t tokens_sum(const struct fair *fair) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < TENANTS; i++)
        sum += fair->tokens[i];
    return sum;
}

static void run(struct fair *fair, uint64_t tokens) {
    memset(fair->tokens, 0, sizeof fair->tokens);
    while (tokens_sum(fair) < tokens)
        step(fair);
}

/* Each that is not idle has its share within 5 %. */
static void check_shares(const struct fair *fair, const char *what) {
    double weights = 0, sum = (double)tokens_sum(fair), worst = 0;
    for (uint32_t i = 0; i < TENANTS; i++)
        weights += fair->idle[i] ? 0 : tenants[i].weight;
    print_message("%s, %.0f tokens:", what, sum);
    for (uint32_t i = 0; i < TENANTS; i++) {
        double want = fair->idle[i] ? 0 : tenants[i].weight / weights;
        double got = (double)fair->tokens[i] / sum;
        double off = want > 0 ? got / want - 1 : got;
        if (off < 0) off = -off;
        if (off > worst) worst = off;
        print_message(" %.2f %% (of %.2f)", 100 * got, 100 * want);
    }
    print_message(", at most %.1f %% off\n", 100 * worst);
    assert_true(worst <= 0.05);
}

/* -- rows -- */

static void fair_open(struct fair *fair, struct stage *stage) {
    *fair = (struct fair){.stage = stage, .alive = SCHEDULERS, .next = 1};
    for (size_t i = 1; i < SCHEDULERS; i++)
        stage_start(stage, i, NULL);
    beat(fair);
}

static void shares_by_weight(struct stage *stage) {
    struct fair fair;
    fair_open(&fair, stage);
    run(&fair, 2000); /* until all are under way */
    run(&fair, 30000);
    check_shares(&fair, "three schedulers");
    stage_kill(&stage->process[--fair.alive]);
    run(&fair, 30000);
    check_shares(&fair, "one killed");
}

static void drain(struct fair *fair, uint32_t tenant) {
    fair->idle[tenant] = true;
    while (fair->waiting[tenant])
        step(fair);
    run(fair, 2000); /* what it still has running ends */
}

static void idleness_earns_no_credit(struct stage *stage) {
    struct fair fair;
    fair_open(&fair, stage);
    run(&fair, 2000);
    drain(&fair, 2);
    run(&fair, 20000);
    check_shares(&fair, "one idle");
    fair.idle[2] = false;
    run(&fair, 500); /* what the others have running ends */
    run(&fair, 20000);
    check_shares(&fair, "back from idleness");
}

static const struct stage_row rows[] = {
    {"shares by weight",         shares_by_weight,         {NULL}, false},
    {"idleness earns no credit", idleness_earns_no_credit, {NULL}, false},
};
STAGE_MAIN(rows)
