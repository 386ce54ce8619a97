#include "tests/fx_test.h"
#include "tests/fx_death.h"
#include "common/base/arena.h"

static _Alignas(16) uint8_t buffer[256];

static void test_alloc_is_aligned_and_zeroed(void **state) {
    (void)state;
    memset(buffer, 0xAA, sizeof buffer);
    fx_arena arena;
    fx_arena_init(&arena, buffer, sizeof buffer);
    for (size_t size = 1; size <= 40; size += 13) {
        uint8_t *at = fx_arena_alloc(&arena, size);
        assert_non_null(at);
        assert_int_equal((uintptr_t)at % 16, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(at[i], 0);
    }
    fx_arena_done(&arena);
}

static void test_odd_buffer_loses_only_the_skew(void **state) {
    (void)state;
    fx_arena arena;
    fx_arena_init(&arena, buffer + 1, 16 + 15);
    assert_ptr_equal(fx_arena_alloc(&arena, 16), buffer + 16);
    assert_null(fx_arena_alloc(&arena, 1));
    fx_arena_done(&arena);
    fx_arena_init(&arena, buffer + 1, 3); /* smaller than its skew */
    assert_null(fx_arena_alloc(&arena, 1));
    fx_arena_done(&arena);
}

static void test_full_is_said_and_forgotten_at_reset(void **state) {
    (void)state;
    fx_arena arena;
    fx_arena_init(&arena, buffer, 64);
    void *first = fx_arena_alloc(&arena, 48);
    assert_non_null(first);
    assert_false(arena.full);
    assert_null(fx_arena_alloc(&arena, 17));
    assert_true(arena.full);
    assert_non_null(fx_arena_alloc(&arena, 16)); /* what fits still fits */
    assert_true(arena.full);
    fx_arena_reset(&arena);
    assert_false(arena.full);
    assert_ptr_equal(fx_arena_alloc(&arena, 64), first);
    fx_arena_done(&arena);
}

static void test_sizes_that_overflow_are_refused(void **state) {
    (void)state;
    fx_arena arena;
    fx_arena_init(&arena, buffer, sizeof buffer);
    assert_null(fx_arena_alloc(&arena, SIZE_MAX));
    assert_null(fx_arena_alloc(&arena, SIZE_MAX - 14));
    assert_null(fx_arena_array(&arena, SIZE_MAX / 2 + 2, 2)); /* wraps to 2 */
    assert_null(fx_arena_copy(&arena, (fx_span){buffer, SIZE_MAX}));
    assert_int_equal(arena.used, 0);
    assert_non_null(fx_arena_array(&arena, 16, 16));
    fx_arena_done(&arena);
}

static void test_copy_and_printf(void **state) {
    (void)state;
    fx_arena arena;
    fx_arena_init(&arena, buffer, 48);
    assert_string_equal(fx_arena_copy(&arena, (fx_span){(const uint8_t *)"abcd", 3}), "abc");
    assert_string_equal(fx_arena_copy(&arena, (fx_span){NULL, 0}), "");
    assert_string_equal(fx_arena_printf(&arena, "%s-%d", "0123456789ab", 34), "0123456789ab-34");
    assert_null(fx_arena_printf(&arena, "%s", "one more"));
    assert_true(arena.full);
    fx_arena_done(&arena);
}

#ifdef __SANITIZE_ADDRESS__
static void read_unused_part(void) {
    fx_arena arena;
    fx_arena_init(&arena, buffer, sizeof buffer);
    volatile uint8_t *at = fx_arena_alloc(&arena, 16);
    (void)at[16];
}
static void read_past_an_odd_size(void) {
    fx_arena arena;
    fx_arena_init(&arena, buffer, sizeof buffer);
    volatile uint8_t *at = fx_arena_alloc(&arena, 13);
    (void)at[13];
}
static void read_after_reset(void) {
    fx_arena arena;
    fx_arena_init(&arena, buffer, sizeof buffer);
    volatile uint8_t *at = fx_arena_alloc(&arena, 16);
    fx_arena_reset(&arena);
    (void)at[0];
}
static void read_after_done(void) {
    fx_arena arena;
    fx_arena_init(&arena, buffer, sizeof buffer);
    fx_arena_done(&arena);
    (void)*(volatile uint8_t *)buffer;
}
#endif

static void test_unused_part_is_poisoned_under_asan(void **state) {
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    assert_true(fx_dies(read_unused_part));
    assert_true(fx_dies(read_past_an_odd_size));
    assert_true(fx_dies(read_after_reset));
    assert_false(fx_dies(read_after_done));
#else
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc_is_aligned_and_zeroed),
        cmocka_unit_test(test_odd_buffer_loses_only_the_skew),
        cmocka_unit_test(test_full_is_said_and_forgotten_at_reset),
        cmocka_unit_test(test_sizes_that_overflow_are_refused),
        cmocka_unit_test(test_copy_and_printf),
        cmocka_unit_test(test_unused_part_is_poisoned_under_asan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
