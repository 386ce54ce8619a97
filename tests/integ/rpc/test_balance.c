/* Round robin over two servers, one of which goes away and comes back. */
#include "tests/integ/rpc/echo_service.h"

struct fixture {
    struct echo echo[2];
    fx_server *server[2];
    char target[2][64];
    fx_client *client;
};

static int setup(void **state) {
    static struct fixture fixture;
    char both[129];
    fixture = (struct fixture){0};
    for (int i = 0; i < 2; i++)
        fixture.server[i] =
            echo_open(&fixture.echo[i], (struct fx_server_opts){0}, fixture.target[i]);
    (void)snprintf(both, sizeof both, "%s,%s", fixture.target[0], fixture.target[1]);
    fixture.client = echo_client(both, NULL, 0);
    *state = &fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    fx_client_free(fixture->client);
    for (int i = 0; i < 2; i++)
        echo_close(&fixture->echo[i], fixture->server[i]);
    return 0;
}

/* How many of `count` calls each server got; every one must succeed. */
static void share(struct fixture *fixture, int count, uint64_t got[2]) {
    uint64_t before[2] = {0, 0};
    for (int i = 0; i < 2; i++)
        before[i] = fixture->server[i] ? fx_server_stats(fixture->server[i]).calls : 0;
    for (int i = 0; i < count; i++)
        assert_int_equal(echo_call(fixture->client, "/test.Echo/Now", 0, "", 5000, NULL, 0), FX_OK);
    for (int i = 0; i < 2; i++)
        got[i] = fixture->server[i] ? fx_server_stats(fixture->server[i]).calls - before[i] : 0;
}

static void until_shared(struct fixture *fixture) {
    uint64_t got[2], end = fx_clock_ms() + 10000;
    do {
        share(fixture, 10, got);
        usleep(20000);
    } while ((got[0] < 4 || got[1] < 4) && fx_clock_ms() < end);
    assert_in_range(got[0], 4, 6);
    assert_in_range(got[1], 4, 6);
}

static void test_even(void **state) {
    until_shared(*state);
}

/* Stopped in order: no call fails, all go to the other. */
static void test_one_stops(void **state) {
    struct fixture *fixture = *state;
    uint64_t got[2];
    until_shared(fixture);
    fx_server_free(fixture->server[0]);
    fixture->server[0] = NULL;
    share(fixture, 50, got);
    assert_int_equal(got[1], 50);
}

static void test_one_unhealthy(void **state) {
    struct fixture *fixture = *state;
    uint64_t got[2];
    until_shared(fixture);
    fx_server_set_serving(fixture->server[1], false);
    uint64_t end = fx_clock_ms() + 10000;
    do
        share(fixture, 10, got);
    while (got[1] > 0 && fx_clock_ms() < end);
    share(fixture, 50, got);
    assert_int_equal(got[0], 50);
    fx_server_set_serving(fixture->server[1], true);
    until_shared(fixture);
}

static void test_comes_back(void **state) {
    struct fixture *fixture = *state;
    char target[64];
    until_shared(fixture);
    struct fx_server_opts opts = {.address = fixture->target[0]};
    fx_server_free(fixture->server[0]);
    fixture->server[0] = NULL;
    usleep(100000);
    fixture->server[0] = echo_open(&fixture->echo[0], opts, target);
    until_shared(fixture);
}

/* An UNAVAILABLE of the handler is tried again: three calls reach the servers. */
static void test_retries(void **state) {
    struct fixture *fixture = *state;
    until_shared(fixture);
    uint64_t before =
        fx_server_stats(fixture->server[0]).calls + fx_server_stats(fixture->server[1]).calls;
    assert_int_equal(
        echo_call(fixture->client, "/test.Echo/Fail", FX_UNAVAILABLE, "away", 5000, NULL, 0),
        FX_UNAVAILABLE);
    assert_int_equal(fx_server_stats(fixture->server[0]).calls +
                         fx_server_stats(fixture->server[1]).calls - before,
                     3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_even),       TEST(test_one_stops), TEST(test_one_unhealthy),
        TEST(test_comes_back), TEST(test_retries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
