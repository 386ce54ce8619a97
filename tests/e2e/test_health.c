/* Health tells the truth: of an engine and a dispatch loop that stand still, of a model that is
 * being loaded, of idleness, of a Redis that is away. */
#include <signal.h>
#include "tests/e2e/freeze.h"
#include "tests/e2e/suite.h"

#define PROMPT "It is a truth universally acknowledged,"
enum {
    TOKENS = 240,
    UNREADY_MS = 2000,
    DEAD_MS = 5000,
    LATE_MS = 3000, /* what a busy machine may add */
    STEP_MS = 20000,
    ADMIN_MS = 5000,
};
#define THRESHOLDS "FX_UNREADY_MS=2000", "FX_DEAD_MS=5000"

static json_t *tokens(int count) {
    return json_pack("{s:i}", "max_tokens", count);
}

/* -- probes -- */

/* The status; `conn` has the rest and is the caller's. */
static unsigned probe(const struct service *service, const char *path, struct http_conn *conn) {
    const struct http_request request = {.method = "GET", .path = path};
    fx_error err;
    bool ok = http_open(conn, service->admin, &err) && http_send(conn, &request, &err) &&
              http_read_all(conn, ADMIN_MS, &err);
    return ok ? conn->status : 0;
}

static void assert_unready(const struct service *service, const char *reason) {
    auto_http conn = {0};
    char again[16] = "";
    if (probe(service, "/readyz", &conn) != 503)
        fail_msg("%s: /readyz says %u", service->process.name, conn.status);
    if (!strstr(conn.body.at, reason)) fail_msg("not '%s': %s", reason, conn.body.at);
    assert_true(http_header(&conn, "retry-after", again, sizeof again));
    assert_string_equal(again, "1");
}

static bool is(const struct service *service, const char *path, unsigned status) {
    return service_get(service, path) == status;
}

#define AWAIT(service, path, status, ms)                                                           \
    WAIT_FOR(is(service, path, status), ms, "%s: %s is not %d within %d ms",                       \
             (service)->process.name, path, status, ms)

/* Each threshold is kept: not before, and not long after. */
static void assert_sickens(const struct service *service, uint64_t frozen_ms, const char *reason) {
    AWAIT(service, "/readyz", 503, UNREADY_MS + LATE_MS);
    assert_true(fx_clock_ms() - frozen_ms >= UNREADY_MS / 2);
    assert_unready(service, reason);
    if (fx_clock_ms() - frozen_ms < DEAD_MS / 2) assert_true(is(service, "/livez", 200));
    AWAIT(service, "/livez", 503, DEAD_MS + LATE_MS);
    assert_true(fx_clock_ms() - frozen_ms >= DEAD_MS - UNREADY_MS / 2);
    assert_true(is(service, "/readyz", 503));
}

static void assert_recovers(struct service *service) {
    AWAIT(service, "/readyz", 200, STEP_MS);
    assert_true(is(service, "/livez", 200));
}

static bool log_has(const struct service *service, const char *text) {
    auto_text log = process_text(service->process.out);
    return strstr(log, text) != NULL;
}

/* -- a step loop that stands still -- */

static double taken(const struct service *worker) {
    return service_metric(worker, "fx_worker_generations_taken_total");
}

static struct service *busy_find(struct suite *suite) {
    for (uint32_t i = 0; i < SUITE_MANY; i++)
        if (!worker_is_free(&suite->workers[i])) return &suite->workers[i];
    return NULL;
}

/* The stream goes on elsewhere, new requests too; the frozen worker takes none, and says why. */
static void frozen_is_told(struct suite *suite, const char *thread, const char *reason) {
    struct service *worker;
    struct frozen frozen = {0};
    auto_stream stream = {0};
    auto_text want = suite_complete(suite, PROMPT, tokens(TOKENS));
    auto_text short_want = suite_complete(suite, "and then", tokens(8));
    MUST(stream_open(&stream, suite, PROMPT, tokens(TOKENS), &err));
    MUST(stream_until(&stream, 5, &err));
    WAIT_FOR((worker = busy_find(suite)) != NULL, STEP_MS, "no worker is busy");
    uint64_t frozen_ms = fx_clock_ms();
    thread_freeze(&frozen, &worker->process, thread);
    assert_true(is(worker, "/readyz", 200)); /* not yet */
    assert_sickens(worker, frozen_ms, reason);
    assert_true(log_has(worker, "event=not_ready"));
    MUST(stream_rest(&stream, &err));
    assert_string_equal(stream.text.at, want);
    double before = taken(worker);
    for (int i = 0; i < 4; i++) {
        auto_text got = suite_complete(suite, "and then", tokens(8));
        assert_string_equal(got, short_want);
    }
    assert_true(taken(worker) == before);
    thread_thaw(&frozen);
    assert_recovers(worker);
    WAIT_FOR(worker_is_free(worker), STEP_MS, "what it lost stays with it");
}

static void a_frozen_engine_is_told(void **state) {
    frozen_is_told(*state, "engine", "no step makes progress");
}

static void a_frozen_io_thread_is_told(void **state) {
    frozen_is_told(*state, "loop", "the I/O loop does not turn");
}

/* SIGTERM to one that is stuck: what it has goes to the other, and it ends without its engine. */
static void a_frozen_engine_ends(void **state) {
    struct suite *suite = *state;
    struct service *worker;
    struct frozen frozen = {0};
    auto_stream stream = {0};
    auto_text want = suite_complete(suite, PROMPT, tokens(TOKENS));
    MUST(stream_open(&stream, suite, PROMPT, tokens(TOKENS), &err));
    MUST(stream_until(&stream, 5, &err));
    WAIT_FOR((worker = busy_find(suite)) != NULL, STEP_MS, "no worker is busy");
    thread_freeze(&frozen, &worker->process, "engine");
    AWAIT(worker, "/readyz", 503, UNREADY_MS + LATE_MS);
    process_signal(&worker->process, SIGTERM);
    thread_bury(&frozen);
    assert_true(process_wait(&worker->process, STEP_MS));
    assert_int_equal(worker->process.code, 1);
    assert_true(log_has(worker, "event=ended_stuck"));
    MUST(stream_rest(&stream, &err));
    assert_string_equal(stream.text.at, want);
    suite_worker_start(suite, worker->number);
}

/* -- a dispatch loop that stands still -- */

static void a_frozen_scheduler_is_told(void **state) {
    struct suite *suite = *state;
    struct service *scheduler = &suite->schedulers[0];
    struct frozen frozen = {0};
    auto_text want = suite_complete(suite, PROMPT, tokens(16));
    uint64_t frozen_ms = fx_clock_ms();
    thread_freeze(&frozen, &scheduler->process, "loop");
    assert_sickens(scheduler, frozen_ms, "the dispatch loop has not turned");
    for (int i = 0; i < 4; i++) { /* the gateway asks the other */
        auto_text got = suite_complete(suite, PROMPT, tokens(16));
        assert_string_equal(got, want);
    }
    thread_thaw(&frozen);
    assert_recovers(scheduler);
}

/* The other services' loops: of a gateway's one is enough. */
static void frozen_loops_are_told(void **state) {
    struct suite *suite = *state;
    struct service *const services[] = {&suite->tenant, &suite->gateways[0]};
    struct frozen frozen[FX_TEST_COUNT(services)] = {0};
    uint64_t frozen_ms = fx_clock_ms();
    for (size_t i = 0; i < FX_TEST_COUNT(services); i++)
        thread_freeze(&frozen[i], &services[i]->process, "loop");
    assert_sickens(services[0], frozen_ms, "the loop has not turned");
    assert_sickens(services[1], frozen_ms, "does not turn");
    for (size_t i = 0; i < FX_TEST_COUNT(services); i++)
        thread_thaw(&frozen[i]);
    for (size_t i = 0; i < FX_TEST_COUNT(services); i++)
        assert_recovers(services[i]);
}

/* -- loading -- */

static void a_worker_that_loads_says_so(void **state) {
    struct suite *suite = *state;
    struct service *worker = &suite->workers[1];
    const char *const *usual = suite->opts.worker_env;
    process_stop(&worker->process);
    assert_int_equal(worker->process.code, 0);
    suite->opts.worker_env = WORDS("FX_KV_MIB=1024", THRESHOLDS); /* takes its time */
    suite_service_start(suite, worker);
    WAIT_FOR(service_get(worker, "/livez") == 200, STEP_MS, "it does not come");
    assert_unready(worker, "the model is being loaded");
    suite_await_ready(worker);
    process_stop(&worker->process);
    assert_int_equal(worker->process.code, 0);
    suite_service_start(suite, worker); /* and once more, but it is ended */
    WAIT_FOR(service_get(worker, "/livez") == 200, STEP_MS, "it does not come");
    assert_unready(worker, "the model is being loaded");
    process_signal(&worker->process, SIGTERM);
    assert_true(process_wait(&worker->process, STEP_MS));
    assert_int_equal(worker->process.code, 0);
    assert_true(log_has(worker, "event=ended_while_loading"));
    suite->opts.worker_env = usual;
    suite_worker_start(suite, 1);
}

/* -- idleness, and Redis -- */

static void idle_is_healthy(void **state) {
    struct suite *suite = *state;
    const struct service *service;
    uint64_t end_ms = fx_clock_ms() + DEAD_MS + 1000;
    do {
        for (uint32_t i = 0; (service = suite_service(suite, i)); i++) {
            if (!is(service, "/readyz", 200)) fail_msg("%s is not ready", service->process.name);
            if (!is(service, "/livez", 200)) fail_msg("%s is not alive", service->process.name);
        }
        (void)usleep(200000);
    } while (fx_clock_ms() < end_ms);
}

static bool needs_redis(const struct service *service) {
    static const char *const those[] = {"tenant", "scheduler", "worker"};
    for (size_t i = 0; i < FX_TEST_COUNT(those); i++)
        if (strcmp(service->program, those[i]) == 0) return true;
    return false;
}

static void refuses_for_now(struct suite *suite) {
    char again[16] = "";
    auto_answer answer =
        suite_request(suite, "POST", "/v1/completions", suite_prompt(PROMPT, tokens(4)));
    assert_int_equal(answer.status, 503);
    assert_true(http_header(&answer.conn, "retry-after", again, sizeof again));
    assert_in_range(strtoul(again, NULL, 10), 1, 60);
}

/* Gateway and slicer are ready all the while; alive are all. */
static void without_redis(void **state) {
    struct suite *suite = *state;
    struct service *service;
    redis_fixture_kill(&suite->redis);
    for (uint32_t i = 0; (service = suite_service(suite, i)); i++)
        if (needs_redis(service)) AWAIT(service, "/readyz", 503, STEP_MS);
    uint64_t end_ms = fx_clock_ms() + DEAD_MS + 500;
    refuses_for_now(suite);
    do {
        for (uint32_t i = 0; (service = suite_service(suite, i)); i++) {
            assert_true(is(service, "/livez", 200));
            if (needs_redis(service))
                assert_unready(service, "Redis");
            else
                assert_true(is(service, "/readyz", 200));
        }
        (void)usleep(200000);
    } while (fx_clock_ms() < end_ms);
    redis_fixture_restart(&suite->redis, NULL);
    for (uint32_t i = 0; (service = suite_service(suite, i)); i++)
        suite_await_ready(service);
    auto_text text = suite_complete(suite, PROMPT, tokens(4));
    assert_true(*text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_is_healthy),
        cmocka_unit_test(a_frozen_engine_is_told),
        cmocka_unit_test(a_frozen_io_thread_is_told),
        cmocka_unit_test(a_frozen_engine_ends),
        cmocka_unit_test(a_frozen_scheduler_is_told),
        cmocka_unit_test(frozen_loops_are_told),
        cmocka_unit_test(a_worker_that_loads_says_so),
        cmocka_unit_test(without_redis),
    };
    return suite_main(
        "health", tests, FX_TEST_COUNT(tests),
        &(struct suite_opts){.workers = 2,
                             .schedulers = 2,
                             .worker_env = WORDS("FX_BACKEND=ref", THRESHOLDS), /* slowly */
                             .env = WORDS("FX_LEASE_MS=1500", "FX_RENEW_MS=400", THRESHOLDS)});
}
