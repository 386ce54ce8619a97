#include "tests/integ/worker/fleet.h"

/* Through queue and worker comes what the engine itself makes of the request. */

static void test_text(void **state) {
    (void)state;
    fleet_auto fleet = fleet_open(1, NULL);
    struct fleet_ask asks[] = {
        fleet_ask("It is a truth universally acknowledged", 100, 0, 0),
        fleet_ask("It is a truth universally acknowledged", 100, 0.8F, 17),
        fleet_ask("Call me", 1, 0, 0),
        fleet_ask("", 300, 1.2F, 99),
    };
    for (size_t i = 0; i < FX_TEST_COUNT(asks); i++) {
        fleet_submit(fleet, &asks[i]);
        fleet_wait(fleet, &asks[i], 20000);
        fleet_expect(fleet, &asks[i]);
    }
    (void)fleet_idle(fleet, 0);
    fleet_worker_stop(fleet, 0);
}

/* A ceiling beyond the context is no error: the answer ends there by length. */
static void test_context_is_a_ceiling(void **state) {
    (void)state;
    fleet_auto fleet = fleet_open(1, (const char *const[]){"FX_KV_MIB=1", NULL});
    struct fleet_ask ask = fleet_ask("The ship", 100000, 0, 0);
    fleet_submit(fleet, &ask);
    fleet_wait(fleet, &ask, 30000);
    assert_int_equal(ask.finish, FX_FINISH_LENGTH);
    assert_int_equal(ask.prompt_count + ask.count, 512); /* 8 pages of 64 KiB, 2 KiB a token */
}

static void test_refused(void **state) {
    (void)state;
    fleet_auto fleet = fleet_open(1, (const char *const[]){"FX_KV_MIB=1", NULL});
    struct fleet_ask unknown = fleet_ask("abc", 10, 0, 0), hot = fleet_ask("abc", 10, 7, 0);
    struct fleet_ask longer = fleet_ask("", 10, 0, 0), none = fleet_ask("abc", 0, 0, 0);
    unknown.prompt[2] = 260;
    while (longer.prompt_count < 512)
        longer.prompt[longer.prompt_count++] = 'a';
    struct fleet_ask *asks[] = {&unknown, &hot, &longer, &none};
    const char *said[] = {"260", "temperature", "512", "max_tokens"};
    for (size_t i = 0; i < FX_TEST_COUNT(asks); i++) {
        fleet_submit(fleet, asks[i]);
        fleet_wait(fleet, asks[i], 10000);
        assert_int_equal(asks[i]->finish, FX_FINISH_ERROR);
        assert_non_null(strstr(asks[i]->detail, said[i]));
    }
    struct fleet_ask good = fleet_ask("abc", 10, 0, 0);
    fleet_submit(fleet, &good);
    fleet_wait(fleet, &good, 10000);
    fleet_expect(fleet, &good);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_context_is_a_ceiling),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
