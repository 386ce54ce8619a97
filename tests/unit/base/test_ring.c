#include "common/base/ring.h"
#include "tests/fx_test.h"
#include <pthread.h>
#include <sched.h>

struct message {
    uint64_t number;
    uint32_t check;
};

static void test_order_and_bounds(void **state) {
    (void)state;
    fx_auto(fx_ring) ring = NULL;
    fx_error err = {0};
    assert_true(fx_ring_open(3, sizeof(uint32_t), &ring, &err));
    uint32_t out = 99;
    assert_false(fx_ring_pop(ring, &out));
    assert_int_equal(out, 99);
    for (uint32_t lap = 0; lap < 5; lap++) { /* 3 is rounded up to 4 */
        for (uint32_t i = 0; i < 4; i++)
            assert_true(fx_ring_push(ring, &(uint32_t){lap * 10 + i}));
        assert_false(fx_ring_push(ring, &(uint32_t){7}));
        assert_int_equal(fx_ring_count(ring), 4);
        for (uint32_t i = 0; i < 4; i++) {
            assert_true(fx_ring_pop(ring, &out));
            assert_int_equal(out, lap * 10 + i);
        }
        assert_int_equal(fx_ring_count(ring), 0);
    }
}

static void test_refused(void **state) {
    (void)state;
    fx_ring *ring = NULL;
    fx_error err = {0};
    assert_false(fx_ring_open(0, 4, &ring, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    assert_false(fx_ring_open((1 << 20) + 1, 4, &ring, &err));
    assert_false(fx_ring_open(8, 0, &ring, &err));
    assert_null(ring);
    fx_ring_free(NULL);
}

enum { MESSAGES = 200000 };

static void *produce(void *user) {
    fx_ring *ring = user;
    for (uint64_t i = 0; i < MESSAGES;) {
        struct message message = {i, (uint32_t)(i * 2654435761U)};
        if (fx_ring_push(ring, &message))
            i++;
        else
            (void)sched_yield();
    }
    return NULL;
}

static void test_two_threads(void **state) {
    (void)state;
    fx_auto(fx_ring) ring = NULL;
    fx_error err = {0};
    pthread_t thread;
    assert_true(fx_ring_open(64, sizeof(struct message), &ring, &err));
    assert_int_equal(pthread_create(&thread, NULL, produce, ring), 0);
    for (uint64_t i = 0; i < MESSAGES;) {
        struct message message;
        if (!fx_ring_pop(ring, &message)) {
            (void)sched_yield();
            continue;
        }
        assert_int_equal(message.number, i);
        assert_int_equal(message.check, (uint32_t)(i * 2654435761U));
        i++;
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_bounds),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
