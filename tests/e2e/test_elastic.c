/* Workers come and go: from none to one, to three and back, while clients wait. Nobody is told,
 * every answer is the undisturbed one, and what an autoscaler reads is true all the while. */
#include <signal.h>
#include "tests/e2e/herd.h"

enum {
    HERD = 6,
    TOKENS = 120,
    LONG = 900,
    STEP_MS = 30000,
    WATCH_MS = 4000, /* leases of 1.5 s end meanwhile and are queued again */
    AWAY_MS = 1500,
    WORKERS = SUITE_WORKERS,
};
#define DEMAND "fx_queue_demand{model=\"" SUITE_MODEL "\"}"

/* False: this scheduler does not say it now. */
static bool said(const struct service *scheduler, const char *name, double *out) {
    fx_error err = {0};
    char *metrics = NULL;
    if (!service_metrics_try(scheduler, &metrics, &err)) return false;
    bool found = metric_find(metrics, name, out);
    free(metrics);
    return found;
}

static bool says(const struct service *scheduler, const char *name, double want) {
    double got = -1;
    return said(scheduler, name, &got) && got > want - 0.5 && got < want + 0.5;
}

static bool all_say(const struct suite *suite, const char *name, double want) {
    for (uint32_t i = 0; i < SUITE_MANY; i++)
        if (!says(&suite->schedulers[i], name, want)) return false;
    return true;
}

static void await(const struct suite *suite, const char *name, double want) {
    WAIT_FOR(all_say(suite, name, want), STEP_MS, "%s does not become %.0f", name, want);
}

/* Nobody says anything else, though some may be silent. */
static void demand_stays(const struct suite *suite, double want, uint32_t ms) {
    for (uint64_t end_ms = fx_clock_ms() + ms; fx_clock_ms() < end_ms; (void)usleep(5000))
        for (uint32_t i = 0; i < SUITE_MANY; i++) {
            double got;
            if (said(&suite->schedulers[i], "fx_queue_demand", &got) &&
                (got < want - 0.5 || got > want + 0.5))
                fail_msg("scheduler %u says %.0f of %.0f", i, got, want);
        }
}

static struct herd want_short, want_long;

static void record(struct suite *suite) {
    if (want_short.count) return;
    herd_send(&want_short, suite, 0, HERD, TOKENS);
    herd_rest(&want_short);
    herd_send(&want_long, suite, 0, HERD, LONG);
    herd_rest(&want_long);
}

static void leave(struct service *worker) {
    process_signal(&worker->process, SIGTERM);
    if (!process_wait(&worker->process, STEP_MS)) fail_msg("%s stays", worker->process.name);
    assert_int_equal(worker->process.code, 0);
}

/* -- tests; each begins and ends with one worker, workers[0] -- */

static void one_comes_when_it_is_wanted(void **state) {
    struct suite *suite = *state;
    auto_herd herd = {0};
    record(suite);
    leave(&suite->workers[0]);
    await(suite, "fx_queue_workers", 0);
    await(suite, DEMAND, 0); /* there, with nobody and nothing */
    herd_send(&herd, suite, 0, HERD, TOKENS);
    await(suite, DEMAND, HERD);
    assert_true(all_say(suite, "fx_queue_running", 0));
    demand_stays(suite, HERD, AWAY_MS);
    suite_worker_start(suite, 0);
    herd_rest(&herd);
    herd_equal(&herd, &want_short);
    await(suite, DEMAND, 0);
}

/* What waits, runs in a worker that stands still, was that of a dead one; with a scheduler that
 * starts again and a Redis that does not answer. */
static void the_demand_is_never_less(void **state) {
    struct suite *suite = *state;
    auto_herd herd = {0};
    struct service *worker = &suite->workers[0];
    record(suite);
    process_signal(&worker->process, SIGSTOP);
    herd_send(&herd, suite, 0, HERD, TOKENS);
    await(suite, DEMAND, HERD);
    suite->schedulers[1].killed = true;
    process_signal(&suite->schedulers[1].process, SIGKILL);
    assert_true(process_wait(&suite->schedulers[1].process, STEP_MS));
    suite_service_start(suite, &suite->schedulers[1]);
    demand_stays(suite, HERD, AWAY_MS);
    suite_await_ready(&suite->schedulers[1]);
    await(suite, DEMAND, HERD);
    assert_int_equal(kill(suite->redis.pid, SIGSTOP), 0);
    demand_stays(suite, HERD, AWAY_MS);
    assert_int_equal(kill(suite->redis.pid, SIGCONT), 0);
    worker->killed = true;
    process_signal(&worker->process, SIGKILL);
    demand_stays(suite, HERD, WATCH_MS);
    await(suite, "fx_queue_workers", 0);
    suite_worker_start(suite, 0);
    herd_rest(&herd);
    herd_equal(&herd, &want_short);
    await(suite, DEMAND, 0);
}

/* The one that is left is the last to come: what the others have is handed over. */
static void three_and_one_again(void **state) {
    struct suite *suite = *state;
    auto_herd herd = {0};
    record(suite);
    herd_send(&herd, suite, 0, HERD, LONG);
    await(suite, "fx_queue_workers", 1);
    for (uint32_t i = 1; i < WORKERS; i++)
        suite_worker_start(suite, i);
    await(suite, "fx_queue_workers", WORKERS);
    for (uint32_t i = 0; i < WORKERS - 1; i++)
        leave(&suite->workers[i]);
    herd_rest(&herd);
    herd_equal(&herd, &want_long);
    await(suite, "fx_queue_workers", 1);
    await(suite, DEMAND, 0);
    suite_worker_start(suite, 0);
    leave(&suite->workers[WORKERS - 1]);
}

static bool drains(struct service *worker) {
    auto_text log = process_text(worker->process.out);
    return strstr(log, "event=draining") || !process_runs(&worker->process);
}

static void killed_while_it_leaves(void **state) {
    struct suite *suite = *state;
    auto_herd herd = {0};
    struct service *worker = &suite->workers[0];
    record(suite);
    herd_send(&herd, suite, 0, HERD, LONG);
    herd_begun(&herd);
    process_signal(&worker->process, SIGTERM);
    WAIT_FOR(drains(worker), STEP_MS, "it does not drain");
    worker->killed = true;
    process_signal(&worker->process, SIGKILL);
    suite_worker_start(suite, 1);
    herd_rest(&herd);
    herd_equal(&herd, &want_long);
    suite_worker_start(suite, 0);
    leave(&suite->workers[1]);
}

/* One that is not wanted any more before it has read its model: nobody ever heard of it. */
static void told_to_end_while_it_loads(void **state) {
    struct suite *suite = *state;
    struct service *worker = &suite->workers[1];
    suite_service_start(suite, worker);
    WAIT_FOR(service_get(worker, "/livez") == 200, STEP_MS, "it does not start");
    leave(worker);
    await(suite, "fx_queue_workers", 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_comes_when_it_is_wanted), cmocka_unit_test(the_demand_is_never_less),
        cmocka_unit_test(three_and_one_again),         cmocka_unit_test(killed_while_it_leaves),
        cmocka_unit_test(told_to_end_while_it_loads),
    };
    int failed =
        suite_main("elastic", tests, FX_TEST_COUNT(tests),
                   &(struct suite_opts){.schedulers = SUITE_MANY,
                                        .env = WORDS("FX_COLD_MODELS=" SUITE_MODEL,
                                                     "FX_LEASE_MS=1500", "FX_RENEW_MS=400"),
                                        .worker_env = WORDS("FX_DRAIN_MS=50")});
    herd_close(&want_short);
    herd_close(&want_long);
    return failed;
}
