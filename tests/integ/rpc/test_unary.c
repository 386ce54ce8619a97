/* Unary calls: replies, errors, deadlines, limits. */
#include "tests/integ/rpc/echo_service.h"

struct fixture {
    struct echo echo;
    fx_server *server;
    fx_client *client;
    char target[64];
};

static int setup(void **state) {
    static struct fixture fixture;
    fixture = (struct fixture){0};
    fixture.server =
        echo_open(&fixture.echo, (struct fx_server_opts){.calls_max = 8}, fixture.target);
    fixture.client = echo_client(fixture.target, NULL, 0);
    *state = &fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    fx_client_free(fixture->client);
    echo_close(&fixture->echo, fixture->server);
    return 0;
}

static void test_ok(void **state) {
    struct fixture *fixture = *state;
    char text[64];
    for (int i = 0; i < 100; i++) {
        assert_int_equal(
            echo_call(fixture->client, "/test.Echo/Now", 0, "h\xc3\xa9llo", 5000, text, 64), FX_OK);
        assert_string_equal(text, "h\xc3\xa9llo");
    }
    assert_true(fx_server_stats(fixture->server).calls >= 100);
}

static void test_large(void **state) {
    struct fixture *fixture = *state;
    static char token[60001], text[60001]; /* fits the call's arena of 64 KiB */
    memset(token, 'x', sizeof token - 1);
    assert_int_equal(
        echo_call(fixture->client, "/test.Echo/Now", 0, token, 5000, text, sizeof text), FX_OK);
    assert_string_equal(text, token);
}

static void test_arena_full(void **state) {
    struct fixture *fixture = *state;
    static char token[80001]; /* within request_bytes_max, beyond the arena */
    memset(token, 'x', sizeof token - 1);
    assert_int_equal(echo_call(fixture->client, "/test.Echo/Now", 0, token, 5000, NULL, 0),
                     FX_RESOURCE_EXHAUSTED);
}

static void test_too_large(void **state) {
    struct fixture *fixture = *state;
    char token[80], text[128];
    memset(token, 'x', sizeof token);
    token[sizeof token - 1] = '\0';
    assert_int_equal(echo_call(fixture->client, "/test.Echo/Small", 0, token, 5000, text, 128),
                     FX_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(text, "at most 64 fit"));
    token[40] = '\0';
    assert_int_equal(echo_call(fixture->client, "/test.Echo/Small", 0, token, 5000, text, 128),
                     FX_OK);
}

static void test_error(void **state) {
    struct fixture *fixture = *state;
    char text[64];
    for (uint32_t code = FX_CANCELLED; code <= FX_UNAUTHENTICATED; code++) {
        assert_int_equal(
            echo_call(fixture->client, "/test.Echo/Fail", code, "because", 5000, text, 64), code);
        assert_string_equal(text, "because");
    }
}

static void test_unknown_method(void **state) {
    struct fixture *fixture = *state;
    assert_int_equal(echo_call(fixture->client, "/test.Echo/Nothing", 0, "", 5000, NULL, 0),
                     FX_UNIMPLEMENTED);
    assert_int_equal(echo_call(fixture->client, "/other/Now", 0, "", 5000, NULL, 0),
                     FX_UNIMPLEMENTED);
}

/* On a busy machine the time may be up before the server has the call, so it is tried again. */
static void test_client_deadline(void **state) {
    struct fixture *fixture = *state;
    assert_int_equal(echo_call(fixture->client, "/test.Echo/Now", 0, "", 5000, NULL, 0), FX_OK);
    for (int i = 0; i < 50 && fixture->echo.cancelled == 0; i++) {
        uint64_t start = fx_clock_ms();
        assert_int_equal(echo_call(fixture->client, "/test.Echo/Hang", 0, "", 50, NULL, 0),
                         FX_DEADLINE_EXCEEDED);
        assert_in_range(fx_clock_ms() - start, 45, 5000);
        usleep(50000);
    }
    assert_true(fixture->echo.cancelled > 0);
    echo_until(&fixture->echo.hanging, 0);
}

static void test_server_deadline(void **state) {
    struct fixture *fixture = *state;
    char text[64];
    uint64_t start = fx_clock_ms();
    assert_int_equal(echo_call(fixture->client, "/test.Echo/Brief", 0, "", 10000, text, 64),
                     FX_DEADLINE_EXCEEDED);
    assert_in_range(fx_clock_ms() - start, 45, 2000);
    assert_string_equal(text, "the deadline passed");
    echo_until(&fixture->echo.cancelled, 1);
}

static void test_later(void **state) {
    struct fixture *fixture = *state;
    char text[64];
    assert_int_equal(echo_call(fixture->client, "/test.Echo/Later", 30, "late", 5000, text, 64),
                     FX_OK);
    assert_string_equal(text, "late");
}

/* A reply after the client has gone ends the call all the same. */
static void test_late_reply_of_cancelled(void **state) {
    struct fixture *fixture = *state;
    assert_int_equal(echo_call(fixture->client, "/test.Echo/Later", 200, "late", 30, NULL, 0),
                     FX_DEADLINE_EXCEEDED);
    uint64_t end = fx_clock_ms() + 5000;
    while (fx_server_stats(fixture->server).calls_active && fx_clock_ms() < end)
        usleep(1000);
    assert_int_equal(fx_server_stats(fixture->server).calls_active, 0);
}

static void test_malformed(void **state) {
    struct fixture *fixture = *state;
    /* A CreateKeyReply with text in field 1, where ListTenantsRequest has a number. */
    Fractal__V1__CreateKeyReply message = FRACTAL__V1__CREATE_KEY_REPLY__INIT;
    uint8_t memory[1024];
    fx_arena arena;
    fx_error err = {0};
    void *reply = NULL;
    message.key = (char *)(uintptr_t) "text";
    fx_arena_init(&arena, memory, sizeof memory);
    struct fx_client_request request = {.method = "/test.Echo/Now",
                                        .message = &message,
                                        .reply = &fractal__v1__list_tenants_reply__descriptor,
                                        .deadline_ms = 5000,
                                        .arena = &arena};
    assert_false(fx_client_call_wait(fixture->client, &request, &reply, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    assert_null(reply);
    fx_arena_done(&arena);
}

static void test_metadata(void **state) {
    struct fixture *fixture = *state;
    static const struct fx_client_metadata metadata[] = {
        {"x-test",        "42"        },
        {"authorization", "Bearer abc"}
    };
    echo_request message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    echo_reply *reply = NULL;
    uint8_t memory[1024];
    fx_arena arena;
    fx_error err = {0};
    fx_trace trace;
    fx_trace_accept(fx_span_str("req-7"),
                    fx_span_str("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), &trace);
    fx_arena_init(&arena, memory, sizeof memory);
    struct fx_client_request request = {.method = "/test.Echo/Who",
                                        .message = &message,
                                        .reply = &fractal__v1__list_tenants_reply__descriptor,
                                        .deadline_ms = 5000,
                                        .metadata = metadata,
                                        .metadata_count = 2,
                                        .trace = &trace,
                                        .arena = &arena};
    echo_check(fx_client_call_wait(fixture->client, &request, &reply, &err), &err);
    char *text = reply->next_page_token;
    assert_memory_equal(text, "req-7 00-0af7651916cd43dd8448eb211c80319c-", 42);
    assert_memory_not_equal(text + 42, "b7ad6b7169203331", 16); /* a span of its own */
    assert_string_equal(text + 58, "-01 42 abc -");
    struct fx_client_metadata bad = {"x-test", "line\nbreak"};
    request.metadata = &bad;
    request.metadata_count = 1;
    assert_false(fx_client_call_wait(fixture->client, &request, &reply, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    assert_int_equal(fx_client_calls_active(fixture->client), 0);
    fx_arena_done(&arena);
}

/* Our code takes no memory for a call: everything was taken when the server opened. */
static void test_no_heap(void **state) {
    struct fixture *fixture = *state;
    char text[24];
    for (int i = 0; i < 50; i++) {
        assert_int_equal(echo_call(fixture->client, "/test.Echo/Now", 0, "x", 5000, NULL, 0),
                         FX_OK);
        assert_int_equal(echo_call(fixture->client, "/test.Echo/Heap", 0, "", 5000, text, 24),
                         FX_OK);
        assert_string_equal(text, "0");
    }
}

/* Within what client and server allow a reply arrives whole; beyond it the call fails, and the
 * slot is free again. */
static void test_big_replies(void **state) {
    struct fixture *fixture = *state;
    struct echo echo = {0};
    char target[64];
    static char text[200001];
    assert_int_equal(
        echo_call(fixture->client, "/test.Echo/Big", 200000, "", 5000, text, sizeof text), FX_OK);
    assert_int_equal(strlen(text), 200000);
    struct fx_server_opts opts = {.message_bytes_max = 100000};
    fx_server *server = echo_open(&echo, opts, target);
    fx_client *client = echo_client(target, NULL, 0);
    assert_int_equal(echo_call(client, "/test.Echo/Big", 200000, "", 5000, NULL, 0),
                     FX_RESOURCE_EXHAUSTED);
    assert_int_equal(echo_call(client, "/test.Echo/Big", 1000, "", 5000, NULL, 0), FX_OK);
    uint64_t end = fx_clock_ms() + 5000;
    while (fx_server_stats(server).calls_active && fx_clock_ms() < end)
        usleep(1000);
    assert_int_equal(fx_server_stats(server).calls_active, 0);
    fx_client_free(client);
    echo_close(&echo, server);
}

static void test_no_server(void **state) {
    (void)state;
    fx_client *client = echo_client("127.0.0.1:1", NULL, 0);
    assert_int_equal(echo_call(client, "/test.Echo/Now", 0, "", 3000, NULL, 0), FX_UNAVAILABLE);
    fx_client_free(client);
}

static void test_unix_socket(void **state) {
    struct echo echo = {0};
    char target[64], address[64], folder[] = "/tmp/fx-rpc-XXXXXX", text[16];
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(address, sizeof address, "unix:%s/s", folder);
    fx_server *server = echo_open(&echo, (struct fx_server_opts){.address = address}, target);
    assert_int_equal(fx_server_port(server), 0);
    fx_client *client = echo_client(address, NULL, 0);
    assert_int_equal(echo_call(client, "/test.Echo/Now", 0, "unix", 5000, text, 16), FX_OK);
    assert_string_equal(text, "unix");
    fx_client_free(client);
    echo_close(&echo, server);
    (void)unlink(address + 5);
    assert_int_equal(rmdir(folder), 0);
}

static void test_refused_opens(void **state) {
    struct fixture *fixture = *state;
    fx_server *second = NULL;
    fx_error err = {0};
    struct fx_server_opts opts = {.address = fixture->target};
    assert_false(fx_server_open(&opts, echo_methods, 1, &second, &err));
    assert_int_equal(err.code, FX_UNAVAILABLE);
    opts.address = "0.0.0.0:0";
    assert_false(fx_server_open(&opts, echo_methods, 1, &second, &err));
    assert_int_equal(err.code, FX_FAILED_PRECONDITION);
    opts = (struct fx_server_opts){.address = "127.0.0.1:0", .threads = 1};
    assert_false(fx_server_open(&opts, echo_methods, 1, &second, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    static const char *const addresses[] = {
        "",     "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:99999", "127.0.0.1:x",
        "[::1]"};
    for (size_t i = 0; i < FX_TEST_COUNT(addresses); i++) {
        opts = (struct fx_server_opts){.address = addresses[i]};
        assert_false(fx_server_open(&opts, echo_methods, 1, &second, &err));
        assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    }
    assert_null(second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_ok),
        TEST(test_large),
        TEST(test_arena_full),
        TEST(test_too_large),
        TEST(test_error),
        TEST(test_unknown_method),
        TEST(test_client_deadline),
        TEST(test_server_deadline),
        TEST(test_later),
        TEST(test_late_reply_of_cancelled),
        TEST(test_malformed),
        TEST(test_metadata),
        TEST(test_no_heap),
        TEST(test_big_replies),
        TEST(test_refused_opens),
        cmocka_unit_test(test_no_server),
        cmocka_unit_test(test_unix_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
