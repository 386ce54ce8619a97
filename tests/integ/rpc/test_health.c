/* grpc.health.v1 (Check, Watch) and client-side health checks. */
#include <event2/event.h>
#include "grpc/health/v1/health.pb-c.h"
#include "tests/integ/rpc/echo_service.h"

#define STATUS(name) ((int)GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##name)
typedef Grpc__Health__V1__HealthCheckRequest health_request;
typedef Grpc__Health__V1__HealthCheckResponse health_response;

struct fixture {
    struct echo echo;
    fx_server *server;
    fx_client *client;
    struct event_base *base;
    char target[64];
    int last;
    uint32_t messages, done;
    enum fx_code code;
};

static int setup(void **state) {
    static struct fixture fixture;
    fixture = (struct fixture){.last = -1};
    fixture.server = echo_open(&fixture.echo, (struct fx_server_opts){0}, fixture.target);
    fixture.base = event_base_new();
    fixture.client = echo_client(fixture.target, fixture.base, FX_HEALTH_WATCHERS_MAX + 16);
    *state = &fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    fx_client_free(fixture->client);
    event_base_free(fixture->base);
    echo_close(&fixture->echo, fixture->server);
    return 0;
}

static struct fx_client_request request_of(const char *method, const health_request *message) {
    return (struct fx_client_request){.method = method,
                                      .message = message,
                                      .reply = &grpc__health__v1__health_check_response__descriptor,
                                      .deadline_ms = 15000,
                                      .wait_for_ready = true};
}

/* The status, or -code. */
static int check(struct fixture *fixture, const char *service) {
    uint8_t memory[1024];
    fx_arena arena;
    fx_error err = {0};
    health_response *reply = NULL;
    health_request message = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    message.service = (char *)(uintptr_t)service;
    fx_arena_init(&arena, memory, sizeof memory);
    struct fx_client_opts opts = {.target = fixture->target, .health_check_off = true};
    fx_client *client = NULL;
    echo_check(fx_client_open(&opts, &client, &err), &err);
    struct fx_client_request request = request_of("/grpc.health.v1.Health/Check", &message);
    request.arena = &arena;
    int status =
        fx_client_call_wait(client, &request, &reply, &err) ? (int)reply->status : -(int)err.code;
    fx_client_free(client);
    fx_arena_done(&arena);
    return status;
}

static void test_check(void **state) {
    struct fixture *fixture = *state;
    static const char *const ours[] = {"", "test.Echo", "grpc.health.v1.Health"};
    for (size_t i = 0; i < FX_TEST_COUNT(ours); i++) {
        fx_server_set_serving(fixture->server, true);
        assert_int_equal(check(fixture, ours[i]), STATUS(SERVING));
        fx_server_set_serving(fixture->server, false);
        assert_int_equal(check(fixture, ours[i]), STATUS(NOT_SERVING));
    }
    assert_int_equal(check(fixture, "test.Ech"), -FX_NOT_FOUND);
    assert_int_equal(check(fixture, "test.Echo2"), -FX_NOT_FOUND);
}

static bool on_status(void *user, const void *message) {
    struct fixture *fixture = user;
    const health_response *response = message;
    fixture->last = (int)response->status;
    fixture->messages++;
    return true;
}

static void on_done(void *user, const struct fx_client_result *result) {
    struct fixture *fixture = user;
    fixture->code = result->code;
    fixture->done++;
}

static void watch(struct fixture *fixture, const char *service, fx_client_call **call) {
    fx_error err = {0};
    health_request message = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    message.service = (char *)(uintptr_t)service;
    struct fx_client_request request = request_of("/grpc.health.v1.Health/Watch", &message);
    request.user = fixture;
    request.on_message = on_status;
    request.on_done = on_done;
    echo_check(fx_client_start(fixture->client, &request, call, &err), &err);
}

static void turn_until(struct fixture *fixture, const uint32_t *value, uint32_t want) {
    uint64_t end = fx_clock_ms() + 5000;
    while (*value < want && fx_clock_ms() < end) {
        event_base_loop(fixture->base, EVLOOP_NONBLOCK);
        usleep(1000);
    }
    assert_int_equal(*value, want);
}

static void watch_flips(struct fixture *fixture, const char *service) {
    fx_client_call *call = NULL;
    watch(fixture, service, &call);
    turn_until(fixture, &fixture->messages, 1);
    assert_int_equal(fixture->last, STATUS(SERVING));
    for (uint32_t flip = 1; flip <= 6; flip++) {
        fx_server_set_serving(fixture->server, flip % 2 == 0);
        turn_until(fixture, &fixture->messages, 1 + flip);
        assert_int_equal(fixture->last, flip % 2 ? STATUS(NOT_SERVING) : STATUS(SERVING));
        fx_server_set_serving(fixture->server, flip % 2 == 0); /* the same again: no message */
    }
    assert_int_equal(fixture->done, 0);
    fx_client_cancel(call);
    turn_until(fixture, &fixture->done, 1);
}

static void test_watch(void **state) {
    watch_flips(*state, "");
}

static void test_watch_service(void **state) {
    watch_flips(*state, "test.Echo");
}

static void test_watch_unknown(void **state) {
    struct fixture *fixture = *state;
    watch(fixture, "nobody", NULL);
    turn_until(fixture, &fixture->messages, 1);
    assert_int_equal(fixture->last, STATUS(SERVICE_UNKNOWN));
    assert_int_equal(fixture->done, 0); /* the stream stays open */
}

static void test_watch_sees_drain(void **state) {
    struct fixture *fixture = *state;
    fx_error err = {0};
    watch(fixture, "", NULL);
    turn_until(fixture, &fixture->messages, 1);
    uint64_t start = fx_clock_ms();
    echo_check(fx_server_stop(fixture->server, 5000, &err), &err);
    assert_in_range(fx_clock_ms() - start, 0, 2500); /* a watcher does not hold it up */
    turn_until(fixture, &fixture->done, 1);
    assert_int_equal(fixture->last, STATUS(NOT_SERVING));
    assert_int_equal(fixture->code, FX_UNAVAILABLE);
}

static void test_watchers_max(void **state) {
    struct fixture *fixture = *state;
    for (int i = 0; i < FX_HEALTH_WATCHERS_MAX + 5; i++)
        watch(fixture, "", NULL);
    /* the channel's own health check is a watcher too */
    turn_until(fixture, &fixture->done, 6);
    assert_int_equal(fixture->code, FX_RESOURCE_EXHAUSTED);
    assert_int_equal(fixture->messages, FX_HEALTH_WATCHERS_MAX - 1);
    assert_int_equal(check(fixture, ""), STATUS(SERVING));
}

static void until_code(fx_client *client, enum fx_code want) {
    uint64_t end = fx_clock_ms() + 10000;
    enum fx_code code;
    while ((code = echo_call(client, "/test.Echo/Now", 0, "", 3000, NULL, 0)) != want &&
           fx_clock_ms() < end)
        usleep(5000);
    assert_int_equal(code, want);
}

/* Client-side health checks: calls go only where SERVING is. */
static void test_client_side(void **state) {
    struct fixture *fixture = *state;
    fx_client *client = echo_client(fixture->target, NULL, 0);
    for (int i = 0; i < 3; i++) {
        fx_server_set_serving(fixture->server, true);
        until_code(client, FX_OK);
        fx_server_set_serving(fixture->server, false);
        until_code(client, FX_UNAVAILABLE);
    }
    fx_client_free(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_check),
        TEST(test_watch),
        TEST(test_watch_service),
        TEST(test_watch_unknown),
        TEST(test_watch_sees_drain),
        TEST(test_watchers_max),
        TEST(test_client_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
