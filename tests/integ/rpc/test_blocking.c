/* The blocking client: streams, cancels, several threads, a server that comes late. */
#include <pthread.h>
#include "tests/integ/rpc/echo_service.h"

enum { THREADS = 8, EACH = 200 };

struct fixture {
    struct echo echo;
    fx_server *server;
    fx_client *client;
    char target[64];
    uint32_t messages, stop_at;
};

static int setup(void **state) {
    static struct fixture fixture;
    fixture = (struct fixture){.stop_at = UINT32_MAX};
    fixture.server = echo_open(&fixture.echo, (struct fx_server_opts){0}, fixture.target);
    fixture.client = echo_client(fixture.target, NULL, THREADS);
    *state = &fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    fx_client_free(fixture->client);
    echo_close(&fixture->echo, fixture->server);
    return 0;
}

static bool on_message(void *user, const void *message) {
    struct fixture *fixture = user;
    const echo_reply *reply = message;
    char text[16];
    (void)snprintf(text, sizeof text, "%u", fixture->messages);
    assert_string_equal(reply->next_page_token, text);
    return ++fixture->messages < fixture->stop_at;
}

static enum fx_code stream(struct fixture *fixture, const char *method, uint32_t count,
                           uint32_t deadline_ms) {
    fx_error err = {0};
    echo_request message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    message.page_size = count;
    struct fx_client_request request = {.method = method,
                                        .message = &message,
                                        .reply = &fractal__v1__list_tenants_reply__descriptor,
                                        .deadline_ms = deadline_ms,
                                        .user = fixture,
                                        .on_message = on_message};
    fixture->messages = 0;
    return fx_client_stream_wait(fixture->client, &request, &err) ? FX_OK : err.code;
}

static void test_stream(void **state) {
    struct fixture *fixture = *state;
    static const char *const methods[] = {"/test.Echo/Count", "/test.Echo/Push"};
    for (size_t i = 0; i < FX_TEST_COUNT(methods); i++) {
        assert_int_equal(stream(fixture, methods[i], 1000, 10000), FX_OK);
        assert_int_equal(fixture->messages, 1000);
        assert_int_equal(stream(fixture, methods[i], 0, 10000), FX_OK);
        assert_int_equal(fixture->messages, 0);
    }
}

static void until_idle(fx_server *server) {
    uint64_t end = fx_clock_ms() + 5000;
    while (fx_server_stats(server).calls_active && fx_clock_ms() < end)
        usleep(1000);
    assert_int_equal(fx_server_stats(server).calls_active, 0);
}

static void test_stream_cancelled(void **state) {
    struct fixture *fixture = *state;
    fixture->stop_at = 7;
    assert_int_equal(stream(fixture, "/test.Echo/Push", 100000000, 10000), FX_CANCELLED);
    assert_int_equal(fixture->messages, 7);
    until_idle(fixture->server); /* the pushing thread saw it and ended the call */
}

static void test_stream_deadline(void **state) {
    struct fixture *fixture = *state;
    assert_int_equal(stream(fixture, "/test.Echo/Count", 100000000, 200), FX_DEADLINE_EXCEEDED);
    assert_in_range(fixture->messages, 1, 100000000 - 1);
    echo_until(&fixture->echo.cancelled, 1);
    until_idle(fixture->server);
}

static void test_stream_refused(void **state) {
    struct fixture *fixture = *state;
    assert_int_equal(stream(fixture, "/test.Echo/Nothing", 5, 5000), FX_UNIMPLEMENTED);
    assert_int_equal(fixture->messages, 0);
}

struct caller {
    struct fixture *fixture;
    pthread_t thread;
    uint32_t index, right;
};

static void *call_often(void *argument) {
    struct caller *caller = argument;
    for (uint32_t i = 0; i < EACH; i++) {
        char token[32], text[32];
        (void)snprintf(token, sizeof token, "%u.%u", caller->index, i);
        enum fx_code code = echo_call(caller->fixture->client, "/test.Echo/Now", 0, token, 10000,
                                      text, sizeof text);
        caller->right += code == FX_OK && strcmp(text, token) == 0;
    }
    return NULL;
}

static void test_threads(void **state) {
    struct fixture *fixture = *state;
    struct caller callers[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){.fixture = fixture, .index = i};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_int_equal(callers[i].right, EACH);
    }
    assert_int_equal(fx_client_calls_active(fixture->client), 0);
}

static void *open_late(void *argument) {
    struct fixture *fixture = argument;
    struct fx_server_opts opts = {.address = fixture->target};
    char target[64];
    usleep(300000);
    fixture->server = echo_open(&fixture->echo, opts, target);
    return NULL;
}

static void test_wait_for_ready(void **state) {
    struct fixture *fixture = *state;
    pthread_t thread;
    uint8_t memory[1024];
    fx_arena arena;
    fx_error err = {0};
    echo_reply *reply = NULL;
    echo_request message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    message.page_token = (char *)(uintptr_t) "worth it";
    fx_arena_init(&arena, memory, sizeof memory);
    struct fx_client_request request = {.method = "/test.Echo/Now",
                                        .message = &message,
                                        .reply = &fractal__v1__list_tenants_reply__descriptor,
                                        .deadline_ms = 15000,
                                        .wait_for_ready = true,
                                        .arena = &arena};
    fx_server_free(fixture->server);
    fixture->server = NULL;
    assert_int_equal(pthread_create(&thread, NULL, open_late, fixture), 0);
    bool ok = fx_client_call_wait(fixture->client, &request, &reply, &err);
    pthread_join(thread, NULL);
    echo_check(ok, &err);
    assert_string_equal(reply->next_page_token, "worth it");
    fx_arena_done(&arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_stream),         TEST(test_stream_cancelled), TEST(test_stream_deadline),
        TEST(test_stream_refused), TEST(test_threads),          TEST(test_wait_for_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
