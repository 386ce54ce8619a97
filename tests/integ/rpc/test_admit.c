/* Calls are admitted by their metadata, before their message: at once or later, from any thread. */
#include "tests/integ/rpc/h2.h"

/* What admit leaves in the call's arena for the handler. */
struct pass {
    fx_call *call;
    char who[32];
};

struct fixture {
    fx_loop *loop;
    fx_server *server;
    fx_client *client;
    char target[64];
    _Atomic uint32_t admitted, handled, refused, held;
    _Atomic uint32_t hold; /* admit waits for it to be 0 */
};

static void admit_later(void *user) {
    struct pass *pass = user;
    fx_call_next(pass->call);
}

static void admit_held(void *user) {
    struct pass *pass = user;
    struct fixture *fixture = fx_call_user(pass->call);
    fixture->held++;
    while (fixture->hold)
        usleep(1000);
    fx_call_set_user(pass->call, pass);
    fx_call_next(pass->call);
}

/* "now", "later", "held" or nobody. */
static void admit(fx_call *call, const void *message, void *context) {
    struct fixture *fixture = context;
    fx_span who = fx_call_bearer(call);
    assert_null(message);
    if (!who.at || fx_span_eq_str(who, "nobody")) {
        fx_call_trailer(call, "x-why", "no key");
        fx_call_fail(call, FX_UNAUTHENTICATED, "who?");
        return;
    }
    struct pass *pass = fx_arena_alloc(fx_call_arena(call), sizeof *pass);
    pass->call = call;
    (void)snprintf(pass->who, sizeof pass->who, "%.*s", (int)who.len, (const char *)who.at);
    fixture->admitted++;
    fx_call_set_user(call, pass);
    if (fx_span_eq_str(who, "held")) {
        fx_call_set_user(call, fixture);
        assert_true(fx_loop_post(fixture->loop, admit_held, pass));
    } else if (fx_span_eq_str(who, "later")) {
        assert_true(fx_loop_post(fixture->loop, admit_later, pass));
    } else {
        fx_call_next(call);
    }
}

static void refuse(fx_call *call, const fx_error *err, const char *field, void *context) {
    struct fixture *fixture = context;
    fixture->refused++;
    fx_call_fail(call, err->code, "refused: %s [%s]", err->text, field);
}

static void hello(fx_call *call, const void *message, void *context) {
    struct fixture *fixture = context;
    const echo_request *request = message;
    const struct pass *pass = fx_call_user(call);
    fixture->handled++;
    echo_text(call, fx_arena_printf(fx_call_arena(call), "%s %s", request->page_token, pass->who));
}

/* Counts its messages; the pass outlives them. */
static void count(fx_call *call, const void *message, void *context) {
    struct fixture *fixture = context;
    const struct pass *pass = fx_call_user(call);
    fixture->handled++;
    if (message) {
        assert_non_null(fx_arena_alloc(fx_call_arena(call), 1024)); /* given back with it */
        fx_call_next(call);
    } else if (fx_call_cancelled(call)) {
        fx_call_fail(call, FX_CANCELLED, "gone");
    } else {
        echo_text(call,
                  fx_arena_printf(fx_call_arena(call), "%u %s", fixture->handled - 1, pass->who));
    }
}

static const struct fx_method methods[] = {
    {"/test.Door/Hello", hello, ECHO_REQUEST, FX_RPC_UNARY,         0, 64},
    {"/test.Door/Count", count, ECHO_REQUEST, FX_RPC_CLIENT_STREAM, 0, 64},
};

static int setup(void **state) {
    static struct fixture fixture;
    fx_error err = {0};
    fixture = (struct fixture){0};
    struct fx_server_opts opts = {.address = "127.0.0.1:0",
                                  .calls_max = 4,
                                  .arena_bytes = 4096,
                                  .context = &fixture,
                                  .admit = admit,
                                  .refuse = refuse};
    echo_check(fx_loop_open(64, &fixture.loop, &err), &err);
    echo_check(fx_loop_start(fixture.loop, &err), &err);
    echo_check(fx_server_open(&opts, methods, FX_TEST_COUNT(methods), &fixture.server, &err), &err);
    fx_server_set_serving(fixture.server, true);
    (void)snprintf(fixture.target, sizeof fixture.target, "127.0.0.1:%u",
                   fx_server_port(fixture.server));
    fixture.client = echo_client(fixture.target, NULL, 0);
    *state = &fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    fx_client_free(fixture->client);
    fx_server_free(fixture->server);
    fx_loop_free(fixture->loop);
    return 0;
}

static void wait_idle(struct fixture *fixture) {
    for (int i = 0; i < 5000 && fx_server_stats(fixture->server).calls_active; i++)
        usleep(1000);
    assert_int_equal(fx_server_stats(fixture->server).calls_active, 0);
}

static enum fx_code call_hello(struct fixture *fixture, const char *who, const char *token,
                               uint32_t deadline_ms, char text[128]) {
    uint8_t memory[4096];
    fx_arena arena;
    fx_error err = {0};
    char bearer[64];
    struct fx_client_metadata key = {"authorization", bearer};
    echo_request message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    echo_reply *reply = NULL;
    (void)snprintf(bearer, sizeof bearer, "Bearer %s", who);
    fx_arena_init(&arena, memory, sizeof memory);
    message.page_token = (char *)(uintptr_t)token;
    struct fx_client_request request = {.method = "/test.Door/Hello",
                                        .message = &message,
                                        .reply = &fractal__v1__list_tenants_reply__descriptor,
                                        .deadline_ms = deadline_ms,
                                        .metadata = &key,
                                        .metadata_count = 1,
                                        .arena = &arena};
    bool ok = fx_client_call_wait(fixture->client, &request, &reply, &err);
    (void)snprintf(text, 128, "%s", ok ? reply->next_page_token : err.text);
    fx_arena_done(&arena);
    return ok ? FX_OK : err.code;
}

static void test_admitted(void **state) {
    static const char *const who[] = {"now", "later", "held"};
    struct fixture *fixture = *state;
    char text[128], want[128];
    for (size_t i = 0; i < 3 * FX_TEST_COUNT(who); i++) {
        assert_int_equal(call_hello(fixture, who[i % 3], "hello", 5000, text), FX_OK);
        (void)snprintf(want, sizeof want, "hello %s", who[i % 3]);
        assert_string_equal(text, want);
    }
    assert_int_equal(fixture->handled, 9);
}

/* The client never says a word after its headers, and is answered. */
static void test_refused_before_message(void **state) {
    struct fixture *fixture = *state;
    static const struct h2_header nobody = {"authorization", "Bearer nobody"};
    char text[H2_FRAME_MAX];
    for (size_t i = 0; i < 2; i++) {
        int fd = h2_open(fx_server_port(fixture->server), 65535);
        h2_call(fd, 1, "/test.Door/Hello", &nobody, i, 0);
        assert_int_equal(h2_status(fd, 1, text), FX_UNAUTHENTICATED);
        assert_non_null(strstr(text, "who?"));
        assert_non_null(strstr(text, "no key"));
        close(fd);
    }
    assert_int_equal(fixture->handled + fixture->admitted, 0);
    wait_idle(fixture);
}

static void test_bad_messages(void **state) {
    struct fixture *fixture = *state;
    char text[128], large[100];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    assert_int_equal(call_hello(fixture, "later", large, 5000, text), FX_RESOURCE_EXHAUSTED);
    assert_string_equal(text, "refused: the request has 101 bytes, at most 64 fit []");
    assert_int_equal(call_hello(fixture, "now", "a\xff", 5000, text), FX_INVALID_ARGUMENT);
    assert_string_equal(text, "refused: page_token is not valid UTF-8 [page_token]");
    assert_int_equal(fixture->refused, 2);
    assert_int_equal(fixture->handled, 0);
    wait_idle(fixture);
}

/* The client goes while it waits at the door: no handler, nothing stays. */
static void test_gone_at_the_door(void **state) {
    struct fixture *fixture = *state;
    char text[128];
    fixture->hold = 1;
    assert_int_equal(call_hello(fixture, "held", "hello", 100, text), FX_DEADLINE_EXCEEDED);
    echo_until(&fixture->held, 1);
    usleep(50000);
    fixture->hold = 0;
    wait_idle(fixture);
    assert_int_equal(fixture->handled, 0);
    assert_int_equal(call_hello(fixture, "later", "hi", 5000, text), FX_OK);
}

static void test_client_stream(void **state) {
    struct fixture *fixture = *state;
    static const struct h2_header later = {"authorization", "Bearer later"};
    static struct h2_frame frame;
    int fd = h2_open(fx_server_port(fixture->server), 65535);
    h2_call(fd, 1, "/test.Door/Count", &later, 1, 0);
    for (int i = 0; i < 20; i++)
        h2_message(fd, 1, (fx_span){(const uint8_t *)"\x12\1x", 3}, 0);
    h2_frame(fd, H2_DATA, H2_END_STREAM, 1, NULL, 0);
    while (h2_next(fd, &frame) && frame.type != H2_DATA)
        continue;
    assert_non_null(memmem(frame.at, frame.len, "20 later", 8));
    close(fd);
    wait_idle(fixture);
}

/* The built-in services let everybody in. */
static void test_health(void **state) {
    struct fixture *fixture = *state;
    int fd = h2_open(fx_server_port(fixture->server), 65535);
    h2_call(fd, 1, "/grpc.health.v1.Health/Check", NULL, 0, 0);
    h2_message(fd, 1, (fx_span){0}, H2_END_STREAM);
    assert_int_equal(h2_status(fd, 1, NULL), FX_OK);
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_admitted),         TEST(test_refused_before_message), TEST(test_bad_messages),
        TEST(test_gone_at_the_door), TEST(test_client_stream),          TEST(test_health),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
