#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "common/rpc/loop.h"
#include "tests/fx_test.h"

enum { INBOX = 16, POSTERS = 4, EACH = 2000 };

static uint32_t order_[INBOX], ran_;
static _Atomic uint32_t count_;

static void note(void *user) {
    order_[ran_++] = (uint32_t)(uintptr_t)user;
}

static void count(void *user) {
    (void)user;
    count_++;
}

static fx_loop *open_loop(void) {
    fx_loop *loop = NULL;
    fx_error err = {0};
    assert_true(fx_loop_open(INBOX, &loop, &err));
    return loop;
}

static void test_order_and_bound(void **state) {
    fx_error err = {0};
    fx_loop *loop = open_loop();
    (void)state;
    ran_ = 0;
    for (uintptr_t i = 0; i < INBOX; i++)
        assert_true(fx_loop_post(loop, note, (void *)i));
    assert_false(fx_loop_post(loop, note, NULL)); /* full */
    assert_true(fx_loop_start(loop, &err));
    fx_loop_stop(loop); /* runs what was posted */
    assert_int_equal(ran_, INBOX);
    for (uint32_t i = 0; i < INBOX; i++)
        assert_int_equal(order_[i], i);
    assert_false(fx_loop_post(loop, note, NULL)); /* stopped */
    fx_loop_free(loop);
}

static void *poster(void *argument) {
    fx_loop *loop = argument;
    for (int i = 0; i < EACH; i++)
        while (!fx_loop_post(loop, count, NULL))
            usleep(10);
    return NULL;
}

static void test_many_posters(void **state) {
    fx_error err = {0};
    pthread_t threads[POSTERS];
    fx_loop *loop = open_loop();
    (void)state;
    count_ = 0;
    assert_true(fx_loop_start(loop, &err));
    for (int i = 0; i < POSTERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, poster, loop), 0);
    for (int i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    assert_true(fx_loop_call(loop, count, NULL)); /* all before it have run */
    assert_int_equal(count_, POSTERS * EACH + 1);
    fx_loop_free(loop);
}

static void test_call_without_thread(void **state) {
    fx_loop *loop = open_loop();
    (void)state;
    count_ = 0;
    assert_true(fx_loop_call(loop, count, NULL));
    assert_int_equal(count_, 1);
    fx_loop_free(loop);
}

static void block(void *user) {
    const atomic_bool *over = user;
    while (!*over)
        usleep(1000);
}

/* It tells of a thread that stands still, and of one that turns again; not of an idle one. */
static void test_silence(void **state) {
    enum { SILENT_MS = 1000, GIVE_UP_MS = 10000 };
    fx_error err = {0};
    fx_loop *loop = open_loop();
    atomic_bool over = false;
    (void)state;
    assert_true(fx_loop_start(loop, &err));
    assert_true(fx_loop_silence_ms(loop) < SILENT_MS);
    assert_true(fx_loop_post(loop, block, &over));
    for (int ms = 0; ms < GIVE_UP_MS && fx_loop_silence_ms(loop) < SILENT_MS; ms++)
        usleep(1000);
    assert_true(fx_loop_silence_ms(loop) >= SILENT_MS);
    over = true;
    for (int ms = 0; ms < GIVE_UP_MS && fx_loop_silence_ms(loop) >= SILENT_MS; ms++)
        usleep(1000);
    assert_true(fx_loop_silence_ms(loop) < SILENT_MS);
    fx_loop_free(loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_bound),
        cmocka_unit_test(test_many_posters),
        cmocka_unit_test(test_call_without_thread),
        cmocka_unit_test(test_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
