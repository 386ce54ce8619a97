#include "tests/fx_test.h"
#include "tests/fx_death.h"
#include "common/base/heap.h"
#include <pthread.h>

static void test_alloc_is_zeroed_and_counted(void **state) {
    (void)state;
    uint64_t before = fx_heap_count();
    fx_auto(uint8_t) bytes = fx_alloc(100, 3);
    assert_non_null(bytes);
    for (size_t i = 0; i < 300; i++)
        assert_int_equal(bytes[i], 0);
    fx_auto(char) text = fx_strdup("copy");
    assert_string_equal(text, "copy");
    bytes = fx_realloc(bytes, 200, 3);
    assert_non_null(bytes);
    assert_int_equal(fx_heap_count() - before, 3);
}

static void test_sizes_that_overflow_give_null(void **state) {
    (void)state;
    volatile size_t huge = SIZE_MAX / 2 + 2; /* times 2 wraps to 2 */
    assert_null(fx_alloc(huge, 2));
    fx_auto(void) old = fx_alloc(1, 8);
    assert_null(fx_realloc(old, huge, 2)); /* `old` stays the caller's */
    fx_auto(void) none = fx_alloc(0, 8);
    assert_non_null(none);
}

static void alloc_sealed(void) {
    fx_heap_seal();
    free(fx_alloc(1, 1));
}
static void realloc_sealed(void) {
    fx_heap_seal();
    free(fx_realloc(NULL, 1, 1));
}
static void strdup_sealed(void) {
    fx_heap_seal();
    free(fx_strdup("x"));
}
static void alloc_unsealed_again(void) {
    fx_heap_seal();
    fx_heap_unseal();
    free(fx_alloc(1, 1));
}

static void test_a_sealed_thread_aborts(void **state) {
    (void)state;
    assert_true(fx_dies(alloc_sealed));
    assert_true(fx_dies(realloc_sealed));
    assert_true(fx_dies(strdup_sealed));
    assert_false(fx_dies(alloc_unsealed_again));
}

static void *alloc_twice(void *count) {
    free(fx_alloc(1, 1));
    free(fx_alloc(1, 1));
    *(uint64_t *)count = fx_heap_count();
    return NULL;
}

static void test_seal_and_count_are_the_threads_own(void **state) {
    (void)state;
    pthread_t thread;
    uint64_t theirs = 0, mine = fx_heap_count();
    fx_heap_seal();
    int rc = pthread_create(&thread, NULL, alloc_twice, &theirs);
    if (rc == 0) rc = pthread_join(thread, NULL);
    fx_heap_unseal();
    assert_int_equal(rc, 0);
    assert_int_equal(theirs, 2);
    assert_int_equal(fx_heap_count(), mine);
}

static void test_take_hands_over(void **state) {
    (void)state;
    char *kept = NULL;
    {
        fx_auto(char) text = fx_strdup("kept");
        kept = fx_take(text);
        assert_null(text);
    }
    assert_string_equal(kept, "kept");
    free(kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc_is_zeroed_and_counted),
        cmocka_unit_test(test_sizes_that_overflow_give_null),
        cmocka_unit_test(test_a_sealed_thread_aborts),
        cmocka_unit_test(test_seal_and_count_are_the_threads_own),
        cmocka_unit_test(test_take_hands_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
