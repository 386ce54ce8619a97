/* Live figures of a real suite: two workers, two gateways, and what they told is what happened. */
#include <pthread.h>
#include "common/base/hash.h"
#include "tests/e2e/listener.h"
#include "tests/e2e/suite.h"

enum {
    GENERATIONS = 8,
    TOKENS = 48, /* of each, exactly */
    SNAPSHOT_MS = 5000,
    SETTLED_MS = 20000,
};

static void listen_at(struct listener *listener, const struct suite *suite, uint32_t gateway) {
    MUST(listener_open(listener, suite->gateways[gateway].port, "/v1/telemetry", suite->key, &err));
    assert_int_equal(listener->conn.status, 200);
}

/* The next snapshot with both workers' figures. */
static json_t *next(struct listener *listener) {
    uint64_t end_ms = fx_clock_ms() + SETTLED_MS;
    for (;;) {
        json_t *snapshot;
        MUST(listener_next(listener, SNAPSHOT_MS, &snapshot, &err));
        const json_t *model = snapshot_model(snapshot, SUITE_MODEL);
        const json_t *workers = json_object_get(model, "workers");
        size_t known = 0;
        for (size_t i = 0; i < json_array_size(workers); i++)
            known += snapshot_number(json_array_get(workers, i), "tokens.decode") >= 0;
        if (known == SUITE_MANY) return snapshot;
        json_decref(snapshot);
        if (fx_clock_ms() > end_ms) fail_msg("%zu of the workers tell figures", known);
    }
}

static double figure(struct listener *listener, const char *path) {
    auto_json snapshot = next(listener);
    return snapshot_number(snapshot_model(snapshot, SUITE_MODEL), path);
}

struct asking {
    struct suite *suite;
    pthread_t thread;
    bool ok;
};

static void *ask(void *user) {
    struct asking *asking = user;
    fx_error err = {0};
    auto_stream stream = {0};
    json_t *fields = json_pack("{s:i,s:b}", "max_tokens", TOKENS, "ignore_eos", 1);
    asking->ok = stream_open(&stream, asking->suite, "It is a truth", fields, &err) &&
                 stream_rest(&stream, &err);
    return NULL;
}

static double prompts_prefilled(struct suite *suite) {
    double all = 0;
    for (uint32_t i = 0; i < SUITE_MANY; i++)
        all += service_metric(&suite->workers[i], "fx_worker_tokens_prefilled_total");
    return all;
}

/* What was seen while they ran. */
struct busy {
    double running, kv_used, decode_per_s, mean_rows;
};

static void most(double *of, double is) {
    if (is > *of) *of = is;
}

/* Sums that only grow. */
static const char *const counts[] = {
    "tokens.decode",
    "tokens.prefill",
    "latency_ms.first_token.count",
    "latency_ms.queue.count",
    "latency_ms.inter_token.count",
};
enum { COUNTS = sizeof counts / sizeof counts[0] };

static void counts_read(const json_t *model, double out[COUNTS]) {
    for (size_t i = 0; i < COUNTS; i++)
        out[i] = snapshot_number(model, counts[i]);
}

static bool counts_reach(const json_t *model, const double want[COUNTS]) {
    for (size_t i = 0; i < COUNTS; i++)
        if (snapshot_number(model, counts[i]) < want[i]) return false;
    return true;
}

/* The snapshot when all that was wanted is there, and nothing runs any more. */
static json_t *watch(struct listener *listener, const double want[COUNTS], struct busy *busy) {
    uint64_t end_ms = fx_clock_ms() + SETTLED_MS;
    for (;;) {
        json_t *snapshot = next(listener);
        const json_t *model = snapshot_model(snapshot, SUITE_MODEL);
        most(&busy->running, snapshot_number(model, "batch.running"));
        most(&busy->kv_used, snapshot_number(model, "kv_pages.used"));
        most(&busy->decode_per_s, snapshot_number(model, "tokens_per_s.decode"));
        most(&busy->mean_rows, snapshot_number(model, "batch.mean_rows"));
        bool idle = snapshot_number(model, "batch.running") == 0 &&
                    snapshot_number(model, "queue.running") == 0 &&
                    snapshot_number(model, "kv_pages.used") == 0;
        if (idle && counts_reach(model, want)) return snapshot;
        json_decref(snapshot);
        if (fx_clock_ms() > end_ms)
            fail_msg("not settled: %.*s", (int)listener->data.len, (const char *)listener->data.at);
    }
}

static void expect_order(const json_t *model, const char *name) {
    char path[64];
    double told[3];
    static const char *const percents[] = {"p50", "p95", "p99"};
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "latency_ms.%s.%s", name, percents[i]);
        told[i] = snapshot_number(model, path);
    }
    assert_true(told[0] >= 0 && told[0] <= told[1] && told[1] <= told[2]);
    assert_true(told[2] < SUITE_ANSWER_MS);
}

static void test_figures_are_true(void **state) {
    struct suite *suite = *state;
    struct asking askings[GENERATIONS];
    struct busy busy = {0};
    auto_listener listener = {0};
    auto_listener other = {0};
    double before[COUNTS], want[COUNTS];
    const double more[COUNTS] = {GENERATIONS * TOKENS, 0, GENERATIONS, GENERATIONS,
                                 GENERATIONS * (TOKENS - 1)};
    listen_at(&listener, suite, 0);
    listen_at(&other, suite, 1);
    auto_json first = next(&listener);
    counts_read(snapshot_model(first, SUITE_MODEL), before);
    double prompts = prompts_prefilled(suite);
    for (size_t i = 0; i < COUNTS; i++)
        want[i] = before[i] + more[i];
    for (size_t i = 0; i < GENERATIONS; i++) {
        askings[i] = (struct asking){.suite = suite};
        assert_int_equal(pthread_create(&askings[i].thread, NULL, ask, &askings[i]), 0);
    }
    auto_json snapshot = watch(&listener, want, &busy);
    for (size_t i = 0; i < GENERATIONS; i++) {
        assert_int_equal(pthread_join(askings[i].thread, NULL), 0);
        assert_true(askings[i].ok);
    }
    const json_t *model = snapshot_model(snapshot, SUITE_MODEL);
    want[1] += prompts_prefilled(suite) - prompts;
    assert_true(want[1] > before[1]);
    for (size_t i = 0; i < COUNTS; i++)
        if (snapshot_number(model, counts[i]) != want[i])
            fail_msg("%s: %.0f, want %.0f", counts[i], snapshot_number(model, counts[i]), want[i]);
    expect_order(model, "first_token");
    expect_order(model, "inter_token");
    expect_order(model, "queue");
    assert_true(snapshot_number(model, "latency_ms.first_token.p50") >=
                snapshot_number(model, "latency_ms.queue.p50"));
    assert_float_equal(snapshot_number(model, "queue.waiting"), 0, 0);
    assert_float_equal(snapshot_number(model, "slots.free"), snapshot_number(model, "slots.total"),
                       0);
    assert_true(busy.decode_per_s > 0 && busy.mean_rows >= 1);
    /* any gateway tells the same of all */
    for (uint64_t end_ms = fx_clock_ms() + SETTLED_MS;;) {
        if (figure(&other, counts[0]) == want[0]) break;
        assert_true(fx_clock_ms() < end_ms);
    }
}

/* A long answer keeps KV pages long enough for a heartbeat to see them. */
static void test_kv_pages_come_back(void **state) {
    struct suite *suite = *state;
    auto_listener listener = {0};
    struct busy busy = {0};
    auto_stream stream = {0};
    listen_at(&listener, suite, 0);
    for (uint64_t end_ms = fx_clock_ms() + SETTLED_MS; busy.kv_used <= 0;) {
        json_t *fields = json_pack("{s:i,s:b}", "max_tokens", 100000, "ignore_eos", 1);
        MUST(stream_open(&stream, suite, "It is a truth", fields, &err));
        auto_json snapshot = next(&listener);
        most(&busy.kv_used,
             snapshot_number(snapshot_model(snapshot, SUITE_MODEL), "kv_pages.used"));
        stream_close(&stream); /* hangs up: a cancel */
        assert_true(fx_clock_ms() < end_ms);
    }
    json_decref(watch(&listener, (const double[COUNTS]){0}, &busy)); /* used is 0 again */
}

static void ticket_get(struct suite *suite, char path[128]) {
    auto_answer answer = suite_request(suite, "POST", "/v1/telemetry/tickets", NULL);
    assert_int_equal(answer.status, 200);
    (void)snprintf(path, 128, "/v1/telemetry?ticket=%s",
                   json_string_value(json_object_get(answer.json, "ticket")));
}

static void log_lacks(const struct service *service, const char *text) {
    char *all = process_text(service->process.out);
    if (strstr(all, text)) fail_msg("%s %u logs '%s'", service->program, service->number, text);
    free(all);
}

/* Given by one gateway, taken by the other, and in no log. */
static void test_tickets_of_another_gateway(void **state) {
    struct suite *suite = *state;
    char path[128];
    auto_listener listener = {0};
    auto_listener again = {0};
    ticket_get(suite, path);
    MUST(listener_open(&listener, suite->gateways[1].port, path, NULL, &err));
    assert_int_equal(listener.conn.status, 200);
    json_decref(next(&listener));
    MUST(listener_open(&again, suite->gateways[0].port, path, NULL, &err));
    assert_int_equal(again.conn.status, 401);
    for (uint32_t i = 0; i < SUITE_MANY; i++)
        log_lacks(&suite->gateways[i], strchr(path, '=') + 1);
}

/* A key that is revoked takes its streams with it. */
static void test_revoked(void **state) {
    struct suite *suite = *state;
    char key[SUITE_KEY_MAX], digest_hex[FX_SHA256_HEX];
    uint8_t digest[FX_SHA256_BYTES];
    auto_listener listener = {0};
    fx_error ended = {0};
    json_t *snapshot;
    suite_key_make(suite, key);
    fx_sha256(fx_span_str(key), digest);
    fx_hex((fx_span){digest, sizeof digest}, digest_hex);
    digest_hex[16] = '\0'; /* the key's id */
    MUST(listener_open(&listener, suite->gateways[0].port, "/v1/telemetry", key, &err));
    assert_int_equal(listener.conn.status, 200);
    json_decref(next(&listener));
    free(suite_cli_ok(suite, (const char *const[]){"keys", "revoke", digest_hex, NULL}));
    uint64_t begun_ms = fx_clock_ms();
    while (listener_next(&listener, SNAPSHOT_MS, &snapshot, &ended))
        json_decref(snapshot);
    assert_int_equal(ended.code, FX_OUT_OF_RANGE);
    assert_true(fx_clock_ms() - begun_ms < 5000);
}

/* `fractal top` shows what the stream tells. */
static void test_top(void **state) {
    struct suite *suite = *state;
    auto_text table = suite_cli_ok(suite, (const char *const[]){"top", NULL});
    assert_non_null(strstr(table, "models 1  workers 2  running 0"));
    assert_non_null(strstr(table, "\n" SUITE_MODEL " "));
    auto_text json = suite_cli_ok(suite, (const char *const[]){"top", "--json", "--once", NULL});
    auto_json snapshot = json_loads(json, 0, NULL);
    assert_non_null(snapshot_model(snapshot, SUITE_MODEL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures_are_true),
        cmocka_unit_test(test_kv_pages_come_back),
        cmocka_unit_test(test_tickets_of_another_gateway),
        cmocka_unit_test(test_revoked),
        cmocka_unit_test(test_top),
    };
    const struct suite_opts opts = {
        .workers = SUITE_MANY,
        .gateways = SUITE_MANY,
        .worker_env =
            WORDS("FX_BACKEND=ref", "FX_THREADS=1"), /* a long answer outlasts a heartbeat */
    };
    return suite_main("telemetry", tests, FX_TEST_COUNT(tests), &opts);
}
