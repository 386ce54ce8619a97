/* Slots, draining, stopping. */
#include <pthread.h>
#include "grpc/health/v1/health.pb-c.h"
#include "tests/integ/rpc/echo_service.h"

struct caller {
    fx_client *client;
    const char *method;
    uint32_t number, deadline_ms;
    pthread_t thread;
    enum fx_code code;
    char text[64];
};

static void *call_thread(void *argument) {
    struct caller *caller = argument;
    caller->code = echo_call(caller->client, caller->method, caller->number, "kept",
                             caller->deadline_ms, caller->text, sizeof caller->text);
    return NULL;
}

static void call_start(struct caller *caller) {
    assert_int_equal(pthread_create(&caller->thread, NULL, call_thread, caller), 0);
}

static void until_active(fx_server *server, uint32_t want) {
    uint64_t end = fx_clock_ms() + 5000;
    while (fx_server_stats(server).calls_active != want && fx_clock_ms() < end)
        usleep(1000);
    assert_int_equal(fx_server_stats(server).calls_active, want);
}

static bool is_healthy(fx_client *client) {
    uint8_t memory[1024];
    fx_arena arena;
    fx_error err = {0};
    Grpc__Health__V1__HealthCheckResponse *reply = NULL;
    Grpc__Health__V1__HealthCheckRequest message = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    fx_arena_init(&arena, memory, sizeof memory);
    struct fx_client_request request = {.method = "/grpc.health.v1.Health/Check",
                                        .message = &message,
                                        .reply =
                                            &grpc__health__v1__health_check_response__descriptor,
                                        .deadline_ms = 5000,
                                        .arena = &arena};
    bool ok = fx_client_call_wait(client, &request, &reply, &err) && reply->status == 1;
    fx_arena_done(&arena);
    return ok;
}

static void test_slots_exhausted(void **state) {
    struct echo echo = {0};
    char target[64], text[64];
    struct caller callers[4];
    (void)state;
    fx_server *server = echo_open(&echo, (struct fx_server_opts){.calls_max = 4}, target);
    fx_client *client = echo_client(target, NULL, 0);
    for (int i = 0; i < 4; i++) {
        callers[i] = (struct caller){client, "/test.Echo/Hang", 0, 10000, 0, FX_OK, ""};
        call_start(&callers[i]);
    }
    echo_until(&echo.hanging, 4);
    for (int i = 0; i < 20; i++)
        assert_int_equal(echo_call(client, "/test.Echo/Now", 0, "", 5000, text, 64),
                         FX_RESOURCE_EXHAUSTED);
    assert_int_equal(fx_server_stats(server).calls_refused, 20);
    /* health has slots of its own; unknown methods need none */
    assert_true(is_healthy(client));
    assert_int_equal(echo_call(client, "/test.Echo/Nothing", 0, "", 5000, NULL, 0),
                     FX_UNIMPLEMENTED);
    assert_true(fx_server_stop(server, 0, NULL)); /* no grace: cancelled */
    for (int i = 0; i < 4; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_int_not_equal(callers[i].code, FX_OK);
    }
    assert_int_equal(echo.cancelled, 4);
    assert_int_equal(fx_server_stats(server).calls_active, 0);
    fx_client_free(client);
    echo_close(&echo, server);
}

static void test_slots_come_back(void **state) {
    struct echo echo = {0};
    char target[64];
    (void)state;
    fx_server *server = echo_open(&echo, (struct fx_server_opts){.calls_max = 1}, target);
    fx_client *client = echo_client(target, NULL, 0);
    struct caller caller = {client, "/test.Echo/Hang", 0, 2500, 0, FX_OK, ""};
    call_start(&caller);
    echo_until(&echo.hanging, 1);
    assert_int_equal(echo_call(client, "/test.Echo/Now", 0, "", 5000, NULL, 0),
                     FX_RESOURCE_EXHAUSTED);
    pthread_join(caller.thread, NULL);
    until_active(server, 0);
    assert_int_equal(echo_call(client, "/test.Echo/Now", 0, "", 5000, NULL, 0), FX_OK);
    fx_client_free(client);
    echo_close(&echo, server);
}

static void test_drain_waits(void **state) {
    struct echo echo = {0};
    char target[64];
    fx_error err = {0};
    (void)state;
    fx_server *server = echo_open(&echo, (struct fx_server_opts){0}, target);
    fx_client *client = echo_client(target, NULL, 0);
    struct caller caller = {client, "/test.Echo/Later", 300, 10000, 0, FX_OK, ""};
    call_start(&caller);
    until_active(server, 1);
    uint64_t start = fx_clock_ms();
    assert_true(fx_server_stop(server, 10000, &err));
    assert_in_range(fx_clock_ms() - start, 100, 5000);
    pthread_join(caller.thread, NULL);
    assert_int_equal(caller.code, FX_OK); /* the call in flight was answered */
    assert_string_equal(caller.text, "kept");
    assert_false(fx_server_serving(server));
    assert_int_equal(echo_call(client, "/test.Echo/Now", 0, "", 1000, NULL, 0), FX_UNAVAILABLE);
    assert_true(fx_server_stop(server, 10000, &err)); /* again: nothing to do */
    fx_client_free(client);
    echo_close(&echo, server);
}

static void test_drain_cancels_after_grace(void **state) {
    struct echo echo = {0};
    char target[64];
    fx_error err = {0};
    (void)state;
    fx_server *server = echo_open(&echo, (struct fx_server_opts){0}, target);
    fx_client *client = echo_client(target, NULL, 0);
    struct caller caller = {client, "/test.Echo/Hang", 0, 15000, 0, FX_OK, ""};
    call_start(&caller);
    echo_until(&echo.hanging, 1);
    uint64_t start = fx_clock_ms();
    assert_true(fx_server_stop(server, 200, &err));
    assert_in_range(fx_clock_ms() - start, 190, 5000);
    assert_int_equal(echo.cancelled, 1);
    pthread_join(caller.thread, NULL);
    assert_int_not_equal(caller.code, FX_OK);
    fx_client_free(client);
    echo_close(&echo, server);
}

static void test_open_close(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct echo echo = {0};
        char target[64];
        fx_server *server = echo_open(&echo, (struct fx_server_opts){.threads = 3}, target);
        echo_close(&echo, server);
    }
}

enum { STORM_THREADS = 8, STORM_CALLS = 150 };

static bool take_any(void *user, const void *message) {
    uint32_t *left = user;
    (void)message;
    return --*left > 0;
}

static void storm_stream(fx_client *client, const char *method, uint32_t messages,
                         uint32_t deadline_ms) {
    echo_request message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    message.page_size = 1000;
    struct fx_client_request request = {.method = method,
                                        .message = &message,
                                        .reply = &fractal__v1__list_tenants_reply__descriptor,
                                        .deadline_ms = deadline_ms,
                                        .user = &messages,
                                        .on_message = take_any};
    (void)!fx_client_stream_wait(client, &request, NULL);
}

/* Calls that mostly do not live to their end, by deadline or cancel, at any moment of theirs. */
static void *storm_thread(void *argument) {
    struct caller *caller = argument;
    static const char *const methods[] = {"/test.Echo/Now", "/test.Echo/Hang", "/test.Echo/Later"};
    uint32_t random = caller->number * 2654435761u + 1;
    for (int i = 0; i < STORM_CALLS; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t deadline_ms = 1 + (random >> 8) % 12, which = (random >> 16) % 5;
        if (which < 3)
            (void)echo_call(caller->client, methods[which], 1, "x", deadline_ms, NULL, 0);
        else
            storm_stream(caller->client, which == 3 ? "/test.Echo/Count" : "/test.Echo/Push",
                         1 + (random >> 20) % 50, deadline_ms);
    }
    return NULL;
}

static void test_storm(void **state) {
    struct echo echo = {0};
    char target[64], text[16];
    struct caller callers[STORM_THREADS];
    (void)state;
    fx_server *server = echo_open(&echo, (struct fx_server_opts){.calls_max = 32}, target);
    fx_client *client = echo_client(target, NULL, 0);
    for (uint32_t i = 0; i < STORM_THREADS; i++) {
        callers[i] = (struct caller){.client = client, .number = i};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, storm_thread, &callers[i]), 0);
    }
    for (int i = 0; i < STORM_THREADS; i++)
        pthread_join(callers[i].thread, NULL);
    until_active(server, 0); /* not one slot is lost */
    assert_int_equal(echo.hanging, 0);
    assert_int_equal(fx_client_calls_active(client), 0);
    assert_int_equal(echo_call(client, "/test.Echo/Now", 0, "calm", 5000, text, 16), FX_OK);
    assert_true(fx_server_stop(server, 1000, NULL));
    fx_client_free(client);
    echo_close(&echo, server);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_exhausted), cmocka_unit_test(test_slots_come_back),
        cmocka_unit_test(test_drain_waits),     cmocka_unit_test(test_drain_cancels_after_grace),
        cmocka_unit_test(test_open_close),      cmocka_unit_test(test_storm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
