/* Workers whose KV pool holds far less than their slots want: the youngest yield, wait and compute
 * their tokens again. Nobody fails, nobody gets another text, and the oldest never waits. */
#include <signal.h>
#include "tests/chaos/crowd.h"

enum {
    ANSWERS = 12, /* with n=2: 15 generations */
    TOKENS = 180, /* of the first; each has 10 more */
    FRESH = 7,    /* of them; one with n=2 */
    FRESH_GENERATIONS = 8,
    LONG = 4, /* answers of the same length, each of which wants most of a pool */
    LONG_TOKENS = 460,
    LONG_PROMPT = 40,
    SLACK_STEPS = 64, /* between an answer's end and our reading of a metric */
    WAIT_MS = 60000,
};
#define WORKER_ENV "FX_SLOTS_MAX=12", "FX_THREADS=1"
static const char *const plenty[] = {WORKER_ENV, NULL};
static const char *const little[] = {WORKER_ENV, "FX_KV_MIB=1", NULL}; /* 8 blocks, 512 tokens */
/* The same, so slow that all have asked while the first is at its beginning. */
static const char *const little_slow[] = {WORKER_ENV, "FX_BACKEND=ref", "FX_KV_MIB=1", NULL};
static const char preemptions[] = "fx_worker_preemptions_total", steps[] = "fx_worker_steps_total",
                  waiting[] = "fx_worker_waiting", taken[] = "fx_worker_generations_taken_total";

static struct request requests[ANSWERS], long_request;
static struct client recorded[ANSWERS], long_recorded;

/* -- workers -- */

static void worker_stop(uint32_t number) {
    struct process *process = &cluster.workers[number].process;
    process_stop(process);
    assert_int_equal(process->code, 0);
    cluster.workers[number].killed = true; /* till it is started again */
}

static void workers_replace(const char *const *env, uint32_t count) {
    cluster.opts.worker_env = env;
    for (uint32_t i = 0; i < SUITE_MANY; i++)
        if (process_runs(&cluster.workers[i].process)) worker_stop(i);
    cluster.opts.workers = count;
    for (uint32_t i = 0; i < count; i++)
        suite_worker_start(&cluster, i);
}

static double metric(uint32_t worker, const char *name) {
    return service_metric(&cluster.workers[worker], name);
}

static double preempted(void) {
    double sum = 0;
    for (uint32_t i = 0; i < cluster.opts.workers; i++)
        sum += metric(i, preemptions);
    return sum;
}

/* -- answers -- */

/* Greedy and seeded, one choice and two, streamed and not; short prompts, so that several are let
 * in that have no room for their ends. */
static void request_fill(uint32_t number, struct request *out) {
    char prompt[32];
    *out = (struct request){
        .number = number, .choices = number % 4 == 3 ? 2 : 1, .stream = number % 3 != 2};
    (void)snprintf(prompt, sizeof prompt, "Chapter %u. It was", number);
    auto_json body = json_pack("{s:s, s:s, s:i, s:b, s:b, s:i, s:f, s:i}", "model", SUITE_MODEL,
                               "prompt", prompt, "max_tokens", (int)(TOKENS + 10 * number),
                               "stream", out->stream, "ignore_eos", 1, "n", (int)out->choices,
                               "temperature", number % 2 ? 0.9 : 0.0, "seed", (int)number);
    size_t len = json_dumpb(body, out->body, sizeof out->body - 1, JSON_COMPACT);
    assert_in_range(len, 1, sizeof out->body - 1);
}

/* Undisturbed: there is room for all. */
static void record(void) {
    for (uint32_t i = 0; i < ANSWERS; i++)
        request_fill(i, &requests[i]);
    request_make_long(LONG_PROMPT, LONG_TOKENS, &long_request);
    long_request.number = ANSWERS;
    crowd_record(recorded, requests, ANSWERS, ANSWERS);
    crowd_record(&long_recorded, &long_request, 1, 1);
    assert_true(preempted() == 0);
}

static void ask_all(struct client *clients, const char *run) {
    for (uint32_t i = 0; i < ANSWERS; i++)
        crowd_ask(&clients[i], &requests[i], run);
}

static void all_same(struct client *clients) {
    for (uint32_t i = 0; i < ANSWERS; i++) {
        crowd_join_same(&clients[i], &recorded[i]);
        assert_false(clients[i].repeated);
        client_free(&clients[i]);
    }
}

/* None had to be delivered twice for it, and none was given up. */
static void check_deliveries(double resumed) {
    double now = 0;
    for (uint32_t i = 0; i < cluster.opts.workers; i++) {
        now += metric(i, "fx_worker_generations_resumed_total");
        assert_true(metric(i, "fx_worker_generations_failed_total") == 0);
    }
    assert_true(now == resumed);
}

/* -- tests -- */

static void nobody_notices(uint32_t workers, const char *run) {
    struct client clients[ANSWERS];
    workers_replace(little, workers);
    ask_all(clients, run);
    all_same(clients);
    print_message("%u workers: %.0f pre-emptions\n", workers, preempted());
    assert_true(preempted() > 0);
    check_deliveries(0);
    cluster_await_clean();
}

static void one_worker(void **state) {
    (void)state;
    nobody_notices(1, "one");
}

static void two_workers(void **state) {
    (void)state;
    nobody_notices(SUITE_MANY, "two");
}

/* In each step the oldest gets a token, however many wait or are set back meanwhile. */
static void the_oldest_never_waits(void **state) {
    static const char *const names[LONG] = {"oldest", "second", "third", "youngest"};
    struct client clients[LONG];
    (void)state;
    workers_replace(little_slow, 1);
    crowd_ask(&clients[0], &long_request, names[0]);
    WAIT_FOR(clients[0].chunk_count > 0, WAIT_MS, "no token comes");
    double begin = metric(0, steps);
    for (uint32_t i = 1; i < LONG; i++)
        crowd_ask(&clients[i], &long_request, names[i]);
    crowd_join_same(&clients[0], &long_recorded);
    double passed = metric(0, steps) - begin, set_back = metric(0, preemptions);
    for (uint32_t i = 1; i < LONG; i++)
        crowd_join_same(&clients[i], &long_recorded);
    print_message("%d tokens in %.0f steps, %.0f pre-emptions\n", LONG_TOKENS, passed, set_back);
    assert_true(set_back > 0);
    assert_true(passed <= LONG_TOKENS + SLACK_STEPS);
    for (uint32_t i = 0; i < LONG; i++)
        client_free(&clients[i]);
    cluster_await_clean();
}

/* Who has no room for those it has takes no more, slots or not: another worker may have room. */
static void new_ones_go_where_there_is_room(void **state) {
    static const char *const names[LONG] = {"full-0", "full-1", "full-2", "full-3"};
    struct client full[LONG], clients[FRESH];
    (void)state;
    workers_replace(plenty, SUITE_MANY);
    worker_stop(0);
    cluster.opts.worker_env = little;
    suite_worker_start(&cluster, 0);
    process_signal(&cluster.workers[1].process, SIGSTOP);
    for (uint32_t i = 0; i < LONG; i++)
        crowd_ask(&full[i], &long_request, names[i]);
    WAIT_FOR(metric(0, waiting) > 0 && metric(0, taken) == LONG, WAIT_MS, "nobody is set back");
    process_signal(&cluster.workers[1].process, SIGCONT);
    for (uint32_t i = 0; i < FRESH; i++)
        crowd_ask(&clients[i], &requests[i], "fresh");
    WAIT_FOR(metric(0, taken) + metric(1, taken) == LONG + FRESH_GENERATIONS, WAIT_MS,
             "not all are taken");
    assert_true(metric(0, taken) == LONG);
    for (uint32_t i = 0; i < LONG; i++)
        crowd_join_same(&full[i], &long_recorded);
    for (uint32_t i = 0; i < FRESH; i++)
        crowd_join_same(&clients[i], &recorded[i]);
    for (uint32_t i = 0; i < LONG; i++)
        client_free(&full[i]);
    for (uint32_t i = 0; i < FRESH; i++)
        client_free(&clients[i]);
    cluster_await_clean();
}

/* One of two dies with generations that wait for blocks: the other continues them as well. */
static void a_worker_dies_with_some_set_back(void **state) {
    struct client clients[ANSWERS];
    struct service *victim = &cluster.workers[0];
    (void)state;
    workers_replace(little, SUITE_MANY);
    ask_all(clients, "dies");
    WAIT_FOR(metric(0, preemptions) > 0 && metric(0, waiting) > 0, WAIT_MS, "nobody is set back");
    double before = metric(0, preemptions);
    process_signal(&victim->process, SIGKILL);
    assert_true(process_wait(&victim->process, WAIT_MS));
    victim->killed = true;
    all_same(clients);
    assert_true(metric(1, "fx_worker_generations_resumed_total") > 0);
    print_message("%.0f pre-emptions before it died, %.0f at the other\n", before,
                  metric(1, preemptions));
    suite_worker_start(&cluster, 0);
    cluster_await_clean();
}

static void recording(void **state) {
    (void)state;
    record();
}

int main(void) {
    const struct suite_opts opts = {
        .workers = SUITE_MANY,
        .worker_env = plenty,
        .env = WORDS("FX_LEASE_MS=1500", "FX_RENEW_MS=400", "FX_GEN_RETAIN_S=120"),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recording),
        cmocka_unit_test(one_worker),
        cmocka_unit_test(the_oldest_never_waits),
        cmocka_unit_test(two_workers),
        cmocka_unit_test(new_ones_go_where_there_is_room),
        cmocka_unit_test(a_worker_dies_with_some_set_back),
    };
    int failed = cluster_main("preempt", tests, FX_TEST_COUNT(tests), &opts);
    for (uint32_t i = 0; i < ANSWERS; i++)
        client_free(&recorded[i]);
    client_free(&long_recorded);
    return failed;
}
