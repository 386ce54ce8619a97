#include "common/base/latency.h"
#include <pthread.h>
#include "tests/fx_test.h"

enum { DURATIONS = 20000, THREADS = 4 };

static void test_buckets(void **state) {
    (void)state;
    for (uint32_t us = 0; us < 32; us++) { /* one each */
        assert_int_equal(fx_latency_bucket(us), us);
        assert_int_equal(fx_latency_middle_us(us), us);
    }
    assert_int_equal(fx_latency_bucket(32), 32);
    assert_int_equal(fx_latency_bucket(33), 32);
    assert_int_equal(fx_latency_bucket(34), 33);
    assert_int_equal(fx_latency_bucket(UINT32_MAX), FX_LATENCY_BUCKETS - 1);
    assert_int_equal(fx_latency_bucket(1ULL << 32), FX_LATENCY_BUCKETS - 1);
    assert_int_equal(fx_latency_bucket(UINT64_MAX), FX_LATENCY_BUCKETS - 1);
    for (uint32_t bucket = 0; bucket < FX_LATENCY_BUCKETS; bucket++)
        assert_int_equal(fx_latency_bucket(fx_latency_middle_us(bucket)), bucket);
}

static void test_every_duration_is_within_its_bucket(void **state) {
    (void)state;
    uint32_t before = 0;
    for (uint64_t us = 1; us < 1ULL << 32; us += 1 + us / 37) {
        uint32_t bucket = fx_latency_bucket(us);
        uint64_t middle = fx_latency_middle_us(bucket);
        uint64_t off = middle > us ? middle - us : us - middle;
        assert_true(off * 32 <= us);
        assert_true(bucket >= before);
        before = bucket;
    }
}

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t draw(uint64_t *seed) {
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return *seed >> 33;
}

static void test_percentiles_of_a_sorted_array(void **state) {
    (void)state;
    static struct fx_latency latency;
    static uint64_t sorted[DURATIONS];
    static const uint32_t percents[] = {1, 25, 50, 95, 99, 100};
    uint64_t counts[FX_LATENCY_BUCKETS] = {0}, seed = 7;
    for (size_t i = 0; i < DURATIONS; i++) {
        sorted[i] = draw(&seed) >> draw(&seed) % 31; /* of all magnitudes */
        fx_latency_add(&latency, sorted[i]);
    }
    qsort(sorted, DURATIONS, sizeof *sorted, by_size);
    fx_latency_sum(&latency, counts);
    assert_int_equal(fx_latency_total(counts), DURATIONS);
    for (size_t i = 0; i < FX_TEST_COUNT(percents); i++) {
        uint64_t exact = sorted[(DURATIONS * percents[i] + 99) / 100 - 1];
        uint64_t told = fx_latency_percentile_us(counts, percents[i]);
        uint64_t off = told > exact ? told - exact : exact - told;
        assert_true(off * 32 <= exact);
    }
}

static void test_few(void **state) {
    (void)state;
    static struct fx_latency latency;
    uint64_t counts[FX_LATENCY_BUCKETS] = {0};
    assert_int_equal(fx_latency_percentile_us(counts, 50), 0);
    for (uint64_t us = 1; us <= 3; us++)
        fx_latency_add(&latency, us);
    fx_latency_sum(&latency, counts);
    assert_int_equal(fx_latency_percentile_us(counts, 1), 1);
    assert_int_equal(fx_latency_percentile_us(counts, 50), 2);
    assert_int_equal(fx_latency_percentile_us(counts, 66), 2);
    assert_int_equal(fx_latency_percentile_us(counts, 67), 3);
    assert_int_equal(fx_latency_percentile_us(counts, 100), 3);
}

static uint64_t held(const struct fx_latency *latency) {
    uint64_t counts[FX_LATENCY_BUCKETS] = {0};
    fx_latency_sum(latency, counts);
    return fx_latency_total(counts);
}

/* One duration a window: the sum holds the last six. */
static void test_the_window_slides(void **state) {
    (void)state;
    static struct fx_latency latency;
    uint64_t now_ms = 123456;
    fx_latency_turn(&latency, now_ms);
    for (uint64_t i = 1; i <= 9; i++) {
        fx_latency_add(&latency, 1000 * i);
        assert_int_equal(held(&latency), i < FX_LATENCY_WINDOWS ? i : FX_LATENCY_WINDOWS);
        fx_latency_turn(&latency, now_ms + FX_LATENCY_WINDOW_MS - 1); /* not yet */
        now_ms += FX_LATENCY_WINDOW_MS;
        fx_latency_turn(&latency, now_ms);
    }
    assert_int_equal(held(&latency), FX_LATENCY_WINDOWS - 1);
    fx_latency_turn(&latency, now_ms + 3 * FX_LATENCY_WINDOW_MS);
    assert_int_equal(held(&latency), 2);
    fx_latency_turn(&latency, now_ms + 1000ULL * FX_LATENCY_WINDOW_MS);
    assert_int_equal(held(&latency), 0);
}

static void *add_many(void *user) {
    for (uint64_t i = 0; i < DURATIONS; i++)
        fx_latency_add(user, i);
    return NULL;
}

static void test_any_thread_adds(void **state) {
    (void)state;
    static struct fx_latency latency;
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &latency), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(held(&latency), THREADS * DURATIONS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_every_duration_is_within_its_bucket),
        cmocka_unit_test(test_percentiles_of_a_sorted_array),
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_the_window_slides),
        cmocka_unit_test(test_any_thread_adds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
