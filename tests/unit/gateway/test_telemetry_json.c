#include "services/gateway/telemetry_json.h"
#include <jansson.h>
#include "fractal/v1/worker.pb-c.h"
#include "tests/fx_test.h"

static uint8_t packed_[2][512];

/* A worker with these waits between tokens, in us. */
static fx_span figures_of(size_t place, uint32_t decoded, const uint32_t *waits_us, size_t count) {
    uint32_t buckets[8], counts[8];
    Fractal__V1__WorkerFigures figures = FRACTAL__V1__WORKER_FIGURES__INIT;
    Fractal__V1__LatencyCounts waits = FRACTAL__V1__LATENCY_COUNTS__INIT;
    for (size_t i = 0; i < count; i++) {
        buckets[i] = fx_latency_bucket(waits_us[i]);
        counts[i] = 1;
    }
    waits.n_buckets = waits.n_counts = count;
    waits.buckets = buckets;
    waits.counts = counts;
    figures.interval_ms = 2000;
    figures.interval_decoded = decoded;
    figures.interval_prefilled = 7;
    figures.interval_steps = 8;
    figures.interval_rows = 20;
    figures.tokens_decoded = 100;
    figures.tokens_prefilled = 50;
    figures.running = 2;
    figures.kv_waiting = 1;
    figures.kv_pages = 64;
    figures.kv_pages_free = 60;
    figures.inter_token = &waits;
    size_t len = fractal__v1__worker_figures__pack(&figures, packed_[place]);
    return (fx_span){packed_[place], len};
}

static json_t *written(const struct fx_queue_stats *stats) {
    static char text[16384];
    fx_buf out = {(uint8_t *)text, 0, sizeof text};
    gw_fleet_model_write("org/\"m\"", stats, &out);
    assert_true(fx_buf_fits(&out));
    json_t *json = json_loadb(text, out.len, JSON_REJECT_DUPLICATES, NULL);
    if (!json) fail_msg("not JSON: %.*s", (int)out.len, text);
    return json;
}

static double number(const json_t *of, const char *a, const char *b, const char *c) {
    const json_t *at = json_object_get(of, a);
    if (b) at = json_object_get(at, b);
    if (c) at = json_object_get(at, c);
    assert_true(json_is_number(at));
    return json_number_value(at);
}

/* Waits of 1, 2, 3 ms at one worker and 10, 20, 30 ms at the other. */
static void test_two_workers(void **state) {
    (void)state;
    static const uint32_t fast[] = {1000, 2000, 3000}, slow[] = {10000, 20000, 30000};
    struct fx_worker_info live[2] = {
        {.worker = "a", .slots = 4, .slots_free = 2, .figures = figures_of(0, 30, fast, 3)},
        {.worker = "b", .slots = 8, .slots_free = 6, .figures = figures_of(1, 5,  slow, 3)},
    };
    json_t *json = written(&(struct fx_queue_stats){
        .waiting = 9, .running = 4, .slots = 12, .slots_free = 8, .live = live, .live_count = 2});
    assert_string_equal(json_string_value(json_object_get(json, "model")), "org/\"m\"");
    assert_float_equal(number(json, "queue", "waiting", NULL), 9, 0);
    assert_float_equal(number(json, "queue", "running", NULL), 4, 0);
    assert_float_equal(number(json, "slots", "total", NULL), 12, 0);
    assert_float_equal(number(json, "slots", "free", NULL), 8, 0);
    assert_float_equal(number(json, "tokens_per_s", "decode", NULL), 17.5, 1e-9);
    assert_float_equal(number(json, "tokens_per_s", "prefill", NULL), 7, 1e-9);
    assert_float_equal(number(json, "tokens", "decode", NULL), 200, 0);
    assert_float_equal(number(json, "tokens", "prefill", NULL), 100, 0);
    assert_float_equal(number(json, "batch", "running", NULL), 4, 0);
    assert_float_equal(number(json, "batch", "mean_rows", NULL), 2.5, 0);
    assert_float_equal(number(json, "kv_pages", "used", NULL), 8, 0);
    assert_float_equal(number(json, "kv_pages", "total", NULL), 128, 0);
    assert_float_equal(number(json, "kv_pages", "waiting", NULL), 2, 0);
    assert_float_equal(number(json, "latency_ms", "inter_token", "count"), 6, 0);
    assert_float_equal(number(json, "latency_ms", "inter_token", "p50"), 3, 3.0 / 32);
    assert_float_equal(number(json, "latency_ms", "inter_token", "p95"), 30, 30.0 / 32);
    const json_t *worker = json_array_get(json_object_get(json, "workers"), 1);
    assert_string_equal(json_string_value(json_object_get(worker, "worker")), "b");
    assert_true(json_is_false(json_object_get(worker, "leaving")));
    assert_float_equal(number(worker, "tokens_per_s", "decode", NULL), 2.5, 1e-9);
    assert_float_equal(number(worker, "slots", "free", NULL), 6, 0);
    assert_float_equal(number(worker, "latency_ms", "inter_token", "p50"), 20, 20.0 / 32);
    const json_t *first = json_object_get(json_object_get(json, "latency_ms"), "first_token");
    assert_float_equal(number(first, "count", NULL, NULL), 0, 0);
    assert_true(json_is_null(json_object_get(first, "p50")));
    json_decref(json);
}

static void expect_unknown(fx_span figures) {
    struct fx_worker_info live = {.worker = "a", .slots = 4, .leaving = true, .figures = figures};
    json_t *json = written(&(struct fx_queue_stats){.live = &live, .live_count = 1});
    const json_t *worker = json_array_get(json_object_get(json, "workers"), 0);
    static const char *const names[] = {"tokens_per_s", "tokens", "batch", "kv_pages",
                                        "latency_ms"};
    for (size_t i = 0; i < FX_TEST_COUNT(names); i++) {
        assert_true(json_is_null(json_object_get(worker, names[i])));
        assert_true(json_is_null(json_object_get(json, names[i])));
    }
    assert_float_equal(number(worker, "slots", "total", NULL), 4, 0);
    assert_true(json_is_true(json_object_get(worker, "leaving")));
    json_decref(json);
}

/* What an old build, or nobody of ours, put there. */
static void test_unknown(void **state) {
    (void)state;
    static uint32_t beyond[] = {FX_LATENCY_BUCKETS}, one[] = {1, 1};
    static uint8_t bytes[256];
    Fractal__V1__WorkerFigures figures = FRACTAL__V1__WORKER_FIGURES__INIT;
    Fractal__V1__LatencyCounts counts = FRACTAL__V1__LATENCY_COUNTS__INIT;
    expect_unknown((fx_span){NULL, 0});
    expect_unknown(fx_span_str("\x0a\xff"));
    counts.n_buckets = counts.n_counts = 1;
    counts.buckets = beyond;
    counts.counts = one;
    figures.queue_time = &counts;
    expect_unknown((fx_span){bytes, fractal__v1__worker_figures__pack(&figures, bytes)});
    counts.buckets = one;
    counts.n_counts = 2;
    expect_unknown((fx_span){bytes, fractal__v1__worker_figures__pack(&figures, bytes)});
    figures.queue_time = NULL;
    figures.kv_pages_free = 1;
    expect_unknown((fx_span){bytes, fractal__v1__worker_figures__pack(&figures, bytes)});
}

/* All buckets of all latencies: the arena has room. */
static void test_the_largest(void **state) {
    (void)state;
    static uint32_t buckets[FX_LATENCY_BUCKETS], most[FX_LATENCY_BUCKETS];
    static uint8_t bytes[FX_QUEUE_FIGURES_MAX];
    Fractal__V1__WorkerFigures figures = FRACTAL__V1__WORKER_FIGURES__INIT;
    Fractal__V1__LatencyCounts counts = FRACTAL__V1__LATENCY_COUNTS__INIT;
    for (uint32_t i = 0; i < FX_LATENCY_BUCKETS; i++) {
        buckets[i] = i;
        most[i] = UINT32_MAX;
    }
    counts.n_buckets = counts.n_counts = FX_LATENCY_BUCKETS;
    counts.buckets = buckets;
    counts.counts = most;
    figures.first_token = figures.inter_token = figures.queue_time = &counts;
    struct fx_worker_info worker = {
        .worker = "a",
        .figures = {bytes, fractal__v1__worker_figures__pack(&figures, bytes)},
    };
    static struct gw_fleet fleet;
    gw_fleet_read(&worker, &fleet);
    assert_true(fleet.known);
    assert_int_equal(fleet.latencies[GW_QUEUE_TIME][FX_LATENCY_BUCKETS - 1], UINT32_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_workers),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_the_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
