#include "tests/fx_test.h"
#include "common/base/clock.h"
#include <time.h>

static void test_monotonic_counts_microseconds(void **state) {
    (void)state;
    uint64_t begin_us = fx_clock_us(), begin_ms = fx_clock_ms();
    (void)nanosleep(&(struct timespec){0, 20 * 1000 * 1000}, NULL);
    uint64_t took_us = fx_clock_us() - begin_us, took_ms = fx_clock_ms() - begin_ms;
    assert_in_range(took_us, 20000, 10 * 1000 * 1000);
    assert_in_range(took_ms, 19, 10 * 1000);
}

static void test_wall_is_this_century(void **state) {
    (void)state;
    uint64_t seconds = (uint64_t)time(NULL), wall_s = fx_wall_ms() / 1000;
    assert_in_range(wall_s, seconds - 1, seconds + 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_monotonic_counts_microseconds),
        cmocka_unit_test(test_wall_is_this_century),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
