/* One tenant has 10,000 generations waiting at a real worker; another's request takes the next slot
 * that comes free. Its client's wait is counted in steps of the worker, from the request to the
 * first text: they take longer on a busy machine, as everything does. */
#include "common/model/store.h"
#include "common/queue/queue.h"
#include "common/rpc/client.h"
#include "fractal/v1/scheduler.pb-c.h"
#include "tests/e2e/suite.h"

enum {
    SLOTS = 4,
    WAITING = 10000,
    GROUPS = 64, /* of a call */
    CHOICES = 3, /* of a group, which have one length; slots come free one by one */
    HOG = 77,    /* its tenant */
    PROMPT = 16,
    TOKENS_MIN = 32,
    TOKENS_MAX = 63,
    LONG = 300, /* tokens of one that holds its slot */
    TRIES = 11,
    FREE_STEPS = 2,   /* the one that runs, and the one with the prompt */
    SLACK_STEPS = 32, /* until the scheduler has it, and until we have read the counter */
    STEP_MS = 20000,
    ARENA_BYTES = 256 * 1024,
};

struct hog {
    struct suite *suite;
    fx_client *client;
    uint32_t prompt[PROMPT], next;
    Fractal__V1__GenerationTask tasks[GROUPS];
    Fractal__V1__GenerationGroup groups[GROUPS], *groups_to[GROUPS];
    Fractal__V1__GenerationChoice choices[GROUPS][CHOICES], *choices_to[GROUPS][CHOICES];
    uint8_t ids[GROUPS][CHOICES][FX_GEN_ID_BYTES];
};
static struct hog hog;

/* -- the tenant with much to do -- */

static void hog_open(struct suite *suite) {
    char target[64];
    (void)snprintf(target, sizeof target, "127.0.0.1:%u", suite->schedulers[0].port);
    hog.suite = suite;
    for (uint32_t i = 0; i < PROMPT; i++)
        hog.prompt[i] = 'a' + i;
    MUST(fx_client_open(&(struct fx_client_opts){.target = target}, &hog.client, &err));
}

static void group_fill(uint32_t at, uint32_t count, uint32_t tokens) {
    Fractal__V1__GenerationTask *task = &hog.tasks[at];
    Fractal__V1__GenerationGroup *group = hog.groups_to[at] = &hog.groups[at];
    fractal__v1__generation_task__init(task);
    fractal__v1__generation_group__init(group);
    task->schema = 2;
    task->tenant = HOG;
    task->model = fx_model_number(SUITE_MODEL);
    task->model_name = (char *)(uintptr_t)SUITE_MODEL;
    task->prompt_ids = hog.prompt;
    task->n_prompt_ids = PROMPT;
    task->max_tokens = tokens;
    group->task = task;
    group->choices = hog.choices_to[at];
    group->n_choices = count;
    for (uint32_t i = 0; i < count; i++) {
        Fractal__V1__GenerationChoice *choice = hog.choices_to[at][i] = &hog.choices[at][i];
        fractal__v1__generation_choice__init(choice);
        memset(hog.ids[at][i], 0, FX_GEN_ID_BYTES);
        memcpy(hog.ids[at][i], &hog.next, sizeof hog.next);
        choice->id = (ProtobufCBinaryData){FX_GEN_ID_BYTES, hog.ids[at][i]};
        choice->choice = i;
        hog.next++;
    }
}

static void groups_submit(uint32_t count) {
    static uint8_t memory[ARENA_BYTES];
    Fractal__V1__SubmitGenerationsRequest message = FRACTAL__V1__SUBMIT_GENERATIONS_REQUEST__INIT;
    Fractal__V1__SubmitGenerationsReply *reply;
    fx_arena arena;
    fx_arena_init(&arena, memory, sizeof memory);
    message.groups = hog.groups_to;
    message.n_groups = count;
    struct fx_client_request request = {
        .method = "/fractal.v1.SchedulerService/SubmitGenerations",
        .message = &message,
        .reply = &fractal__v1__submit_generations_reply__descriptor,
        .deadline_ms = STEP_MS,
        .wait_for_ready = true,
        .arena = &arena,
    };
    MUST(fx_client_call_wait(hog.client, &request, &reply, &err));
    for (uint32_t i = 0; i < count; i++)
        if (reply->results[i]->code) fail_msg("%s", reply->results[i]->text);
    fx_arena_done(&arena);
}

/* Of many lengths, so that slots do not come free all at once. */
static void hog_submit(uint32_t generations) {
    while (generations) {
        uint32_t groups = 0;
        for (; groups < GROUPS && generations; groups++) {
            uint32_t count = generations < CHOICES ? generations : CHOICES;
            group_fill(groups, count, TOKENS_MIN + hog.next * 37 % (TOKENS_MAX - TOKENS_MIN + 1));
            generations -= count;
        }
        groups_submit(groups);
    }
}

/* -- the other tenant's client -- */

static double slots_free(const struct suite *suite) {
    return service_metric(&suite->workers[0], "fx_worker_slots_free");
}

struct wait {
    double ms, steps;
    uint32_t others; /* generations that took a slot meanwhile */
};

static double taken(const struct suite *suite) {
    return service_metric(&suite->workers[0], "fx_worker_generations_taken_total");
}

static double steps(const struct suite *suite) {
    return service_metric(&suite->workers[0], "fx_worker_steps_total");
}

static struct wait ask(const struct suite *suite) {
    auto_stream stream = {0};
    double before = taken(suite), begin = steps(suite);
    uint64_t begin_us = fx_clock_us();
    MUST(stream_open(&stream, suite, "It is", json_pack("{s:i}", "max_tokens", 4), &err));
    MUST(stream_until(&stream, 1, &err));
    struct wait wait = {.ms = (double)(fx_clock_us() - begin_us) / 1000,
                        .steps = steps(suite) - begin};
    wait.others = (uint32_t)(taken(suite) - before) - 1;
    MUST(stream_rest(&stream, &err));
    return wait;
}

static int by_steps(const void *one, const void *other) {
    const struct wait *a = one, *b = other;
    return (a->steps > b->steps) - (a->steps < b->steps);
}

static void await_busy(const struct suite *suite, uint32_t slots) {
    WAIT_FOR(slots_free(suite) <= SLOTS - slots, STEP_MS, "slots are free");
}

/* Sorted by steps; `busy` slots are so before each. */
static void ask_often(const struct suite *suite, uint32_t busy, struct wait waits[TRIES]) {
    for (uint32_t i = 0; i < TRIES; i++) {
        await_busy(suite, busy);
        waits[i] = ask(suite);
    }
    qsort(waits, TRIES, sizeof *waits, by_steps);
}

static void show(const char *what, const struct wait waits[TRIES]) {
    double ms = 0;
    uint32_t others = 0;
    for (uint32_t i = 0; i < TRIES; i++) {
        ms += waits[i].ms / TRIES;
        others = waits[i].others > others ? waits[i].others : others;
    }
    print_message("%s: first text after %.0f steps (median), at most %.0f; %.0f ms on average; at "
                  "most %u others took a slot\n",
                  what, waits[TRIES / 2].steps, waits[TRIES - 1].steps, ms, others);
}

/* -- tests -- */

static void a_free_slot_is_taken_at_once(void **state) {
    struct suite *suite = *state;
    struct wait waits[TRIES];
    hog_open(suite);
    ask_often(suite, 0, waits);
    show("nothing else to do", waits);
    group_fill(0, SLOTS - 1, LONG);
    groups_submit(1);
    ask_often(suite, SLOTS - 1, waits);
    show("one of 4 slots free", waits);
    assert_true(waits[TRIES / 2].steps <= FREE_STEPS);
    assert_true(waits[TRIES - 1].steps <= FREE_STEPS + SLACK_STEPS);
    WAIT_FOR(slots_free(suite) >= SLOTS, STEP_MS, "they don't end");
}

static void ten_thousand_do_not_starve_another(void **state) {
    struct suite *suite = *state;
    struct wait waits[TRIES];
    hog_submit(WAITING);
    ask_often(suite, SLOTS, waits);
    show("10000 of another tenant waiting", waits);
    assert_true(service_metric(&suite->schedulers[0], "fx_queue_waiting") > WAITING / 2.0);
    assert_true(waits[TRIES - 1].steps <= TOKENS_MAX + FREE_STEPS + SLACK_STEPS);
    assert_true(waits[TRIES / 2].steps <= TOKENS_MAX / 2.0 + FREE_STEPS);
    fx_client_free(fx_take(hog.client));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_free_slot_is_taken_at_once),
        cmocka_unit_test(ten_thousand_do_not_starve_another),
    };
    return suite_main(
        "fairness", tests, FX_TEST_COUNT(tests),
        &(struct suite_opts){
            .worker_env = WORDS("FX_BACKEND=ref", "FX_THREADS=1", "FX_SLOTS_MAX=4"), /* slowly */
            .env = WORDS("FX_QUEUE_MODEL_MAX=20000", "FX_QUEUE_TENANT_MAX=20000")});
}
