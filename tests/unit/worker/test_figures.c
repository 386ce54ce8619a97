#include "services/worker/figures.h"
#include "common/base/clock.h"
#include "fractal/v1/worker.pb-c.h"
#include "tests/fx_test.h"

struct rig {
    struct worker_status status;
    struct worker_figures figures;
    uint8_t bytes[WORKER_FIGURES_BYTES_MAX];
};

static Fractal__V1__WorkerFigures *tell(struct rig *rig, uint64_t now_ms) {
    fx_span packed = worker_figures_pack(&rig->figures, &rig->status, now_ms, rig->bytes);
    Fractal__V1__WorkerFigures *out =
        fractal__v1__worker_figures__unpack(NULL, packed.len, packed.at);
    assert_non_null(out);
    return out;
}

static void forget(Fractal__V1__WorkerFigures *figures) {
    fractal__v1__worker_figures__free_unpacked(figures, NULL);
}

static void test_intervals(void **state) {
    static struct rig rig;
    (void)state;
    const struct fx_engine_stats before = {.steps = 10, .rows = 100, .tokens_decoded = 40},
                                 after = {.steps = 14,
                                          .rows = 110,
                                          .tokens_decoded = 45,
                                          .tokens_prefilled = 7,
                                          .running = 3,
                                          .waiting = 2,
                                          .pages = 64,
                                          .pages_free = 60};
    worker_status_engine(&rig.status, &before);
    Fractal__V1__WorkerFigures *told = tell(&rig, 5000);
    assert_int_equal(told->interval_ms, 0); /* nothing was told before */
    assert_int_equal(told->tokens_decoded, 40);
    forget(told);
    worker_status_engine(&rig.status, &after);
    told = tell(&rig, 6250);
    assert_int_equal(told->interval_ms, 1250);
    assert_int_equal(told->interval_decoded, 5);
    assert_int_equal(told->interval_prefilled, 7);
    assert_int_equal(told->interval_steps, 4);
    assert_int_equal(told->interval_rows, 10);
    assert_int_equal(told->tokens_decoded, 45);
    assert_int_equal(told->tokens_prefilled, 7);
    assert_int_equal(told->running, 3);
    assert_int_equal(told->kv_waiting, 2);
    assert_int_equal(told->kv_pages, 64);
    assert_int_equal(told->kv_pages_free, 60);
    forget(told);
    told = tell(&rig, 7250); /* idle */
    assert_int_equal(told->interval_ms, 1000);
    assert_int_equal(told->interval_decoded + told->interval_prefilled, 0);
    assert_int_equal(told->interval_steps + told->interval_rows, 0);
    forget(told);
}

static void test_latencies(void **state) {
    static struct rig rig;
    (void)state;
    struct fx_latency *between = &rig.figures.latencies[STATUS_INTER_TOKEN];
    forget(tell(&rig, 1000));
    for (uint64_t i = 0; i < 3; i++)
        fx_latency_add(between, 20);
    fx_latency_add(between, 1000000);
    Fractal__V1__WorkerFigures *told = tell(&rig, 2000);
    assert_int_equal(told->inter_token->n_buckets, 2);
    assert_int_equal(told->inter_token->n_counts, 2);
    assert_int_equal(told->inter_token->buckets[0], 20);
    assert_int_equal(told->inter_token->counts[0], 3);
    assert_int_equal(told->inter_token->buckets[1], fx_latency_bucket(1000000));
    assert_int_equal(told->inter_token->counts[1], 1);
    assert_int_equal(told->first_token->n_buckets + told->queue_time->n_buckets, 0);
    forget(told);
    told = tell(&rig, 2000 + 2 * FX_LATENCY_WINDOWS * FX_LATENCY_WINDOW_MS);
    assert_int_equal(told->inter_token->n_buckets, 0); /* a minute later */
    forget(told);
}

/* All buckets, each with the largest count: what is packed still fits. */
static void test_the_largest(void **state) {
    static struct rig rig;
    (void)state;
    for (size_t i = 0; i < STATUS_TIMES; i++)
        for (size_t bucket = 0; bucket < FX_LATENCY_BUCKETS; bucket++)
            for (size_t window = 0; window < 2; window++)
                rig.figures.latencies[i].counts[window][bucket] = UINT32_MAX;
    Fractal__V1__WorkerFigures *told = tell(&rig, 1000);
    assert_int_equal(told->queue_time->n_buckets, FX_LATENCY_BUCKETS);
    assert_int_equal(told->queue_time->counts[0], UINT32_MAX);
    forget(told);
}

static void test_since(void **state) {
    static struct rig rig;
    (void)state;
    struct fx_latency *waited = &rig.figures.latencies[STATUS_QUEUE_TIME];
    uint64_t counts[FX_LATENCY_BUCKETS] = {0};
    worker_figures_since(&rig.figures, &rig.status, STATUS_QUEUE_TIME, 0);
    fx_latency_sum(waited, counts);
    assert_int_equal(fx_latency_total(counts), 0); /* unknown */
    worker_figures_since(&rig.figures, &rig.status, STATUS_QUEUE_TIME, fx_wall_ms() + 60000);
    fx_latency_sum(waited, counts);
    assert_int_equal(counts[0], 1); /* a clock ahead of ours */
    worker_figures_since(&rig.figures, &rig.status, STATUS_QUEUE_TIME, fx_wall_ms() - 2000);
    memset(counts, 0, sizeof counts);
    fx_latency_sum(waited, counts);
    assert_in_range(fx_latency_percentile_us(counts, 100), 1950000, 2500000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intervals),
        cmocka_unit_test(test_latencies),
        cmocka_unit_test(test_the_largest),
        cmocka_unit_test(test_since),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
