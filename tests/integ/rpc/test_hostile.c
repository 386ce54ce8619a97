/* Clients that mean no good: what they cost, and that the others are served. */
#include "tests/integ/rpc/h2.h"

enum { STALL_MS = 300, FLOOD = 400 };

struct fixture {
    struct echo echo;
    fx_server *server;
    char target[64];
};

static int setup(void **state) {
    static struct fixture fixture;
    struct fx_server_opts opts = {
        .calls_max = 8, .stall_ms_max = STALL_MS, .message_bytes_max = 1024 * 1024};
    fixture = (struct fixture){0};
    fixture.server = echo_open(&fixture.echo, opts, fixture.target);
    *state = &fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    echo_close(&fixture->echo, fixture->server);
    return 0;
}

static uint16_t port(struct fixture *fixture) {
    return fx_server_port(fixture->server);
}

/* Others are served, and soon nothing is left of the hostile ones. */
static void check_well(struct fixture *fixture) {
    char text[16];
    fx_client *client = echo_client(fixture->target, NULL, 0);
    assert_int_equal(echo_call(client, "/test.Echo/Now", 0, "well", 5000, text, 16), FX_OK);
    assert_string_equal(text, "well");
    fx_client_free(client);
    for (int i = 0; i < 5000 && fx_server_stats(fixture->server).calls_active; i++)
        usleep(1000);
    assert_int_equal(fx_server_stats(fixture->server).calls_active, 0);
}

#define BYTES(text)                                                                                \
    { (const uint8_t *)(text), sizeof(text) - 1 }

/* -- one bad call -- */

static const struct row {
    const char *name, *path, *timeout; /* NULL: none */
    fx_span frame;                     /* of DATA, with its 5 bytes before the message */
    int least, most;                   /* statuses but OK; -1: a reset will do */
} rows[] = {
    {"an unknown method",           "/test.Echo/Nothing", NULL, BYTES("\0\0\0\0\0"),           12, 12},
    {"an unknown service",          "/a/b",               NULL, BYTES("\0\0\0\0\0"),           12, 12},
    {"no method at all",            "/",                  NULL, BYTES("\0\0\0\0\0"),           12, 12},
    {"a deadline of 0",             "/test.Echo/Hang",    "0m", BYTES("\0\0\0\0\0"),           -1, 4 },
    {"a deadline of 1 ns",          "/test.Echo/Hang",    "1n", BYTES("\0\0\0\0\0"),           -1, 4 },
    {"4 GiB announced, none there", "/test.Echo/Now",     NULL, BYTES("\0\xff\xff\xff\xff"),   -1, 16},
    {"less than was announced",     "/test.Echo/Now",     NULL, BYTES("\0\0\0\0\x9xy"),        -1, 16},
    {"half a prefix",               "/test.Echo/Now",     NULL, BYTES("\0\0"),                 -1, 16},
    {"no message",                  "/test.Echo/Now",     NULL, BYTES(""),                     -1, 16},
    {"no protobuf",                 "/test.Echo/Now",     NULL, BYTES("\0\0\0\0\2\xff\xff"),   3,  3 },
    {"a NUL in a string",           "/test.Echo/Now",     NULL, BYTES("\0\0\0\0\5\x12\3x\0y"), 3,  3 },
    {"a string that is no UTF-8",   "/test.Echo/Now",     NULL, BYTES("\0\0\0\0\3\x12\1\xff"), 3,  3 },
};

static void test_rows(void **state) {
    struct fixture *fixture = *state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        const struct row *row = &rows[i];
        int fd = h2_open(port(fixture), 65535);
        struct h2_header timeout = {"grpc-timeout", row->timeout};
        h2_call(fd, 1, row->path, &timeout, row->timeout ? 1 : 0, 0);
        h2_frame(fd, H2_DATA, H2_END_STREAM, 1, row->frame.at, row->frame.len);
        int status = h2_status(fd, 1, NULL);
        if (status < row->least || status > row->most || status == FX_OK)
            fail_msg("%s: %d", row->name, status);
        close(fd);
    }
    check_well(fixture);
}

/* As many as there are slots, and no word of any: they get none for long. */
static void test_silent(void **state) {
    struct fixture *fixture = *state;
    int fd = h2_open(port(fixture), 65535);
    for (uint32_t stream = 1; stream < 16; stream += 2)
        h2_call(fd, stream, "/test.Echo/Count", NULL, 0, 0);
    for (int i = 0; i < 5000 && fx_server_stats(fixture->server).calls_active < 8; i++)
        usleep(1000);
    for (int i = 0; i < 5000 && fx_server_stats(fixture->server).calls_active; i++)
        usleep(1000);
    check_well(fixture);
    close(fd);
}

/* The field is named, whatever the message. */
static void test_field_named(void **state) {
    struct fixture *fixture = *state;
    char text[H2_FRAME_MAX];
    int fd = h2_open(port(fixture), 65535);
    h2_call(fd, 1, "/test.Echo/Now", NULL, 0, 0);
    h2_message(fd, 1, (fx_span)BYTES("\x12\3a\0b"), H2_END_STREAM);
    assert_int_equal(h2_status(fd, 1, text), FX_INVALID_ARGUMENT);
    assert_non_null(strstr(text, "page_token has a NUL character"));
    close(fd);
}

static int call_with(struct fixture *fixture, const struct h2_header *headers, size_t count) {
    int fd = h2_open(port(fixture), 65535);
    h2_call(fd, 1, "/nobody/home", NULL, 0, H2_END_STREAM);
    assert_int_equal(h2_status(fd, 1, NULL), FX_UNIMPLEMENTED); /* the settings are there, too */
    h2_call(fd, 3, "/test.Echo/Now", headers, count, 0);
    h2_message(fd, 3, (fx_span){0}, H2_END_STREAM);
    int status = h2_status(fd, 3, NULL);
    close(fd);
    return status;
}

/* More than is kept is not seen; more than the limit is refused, once the client knows it. */
static void test_much_metadata(void **state) {
    struct fixture *fixture = *state;
    static struct h2_header many[600]; /* each counts as 32 bytes more than it has */
    char large[15000];
    for (size_t i = 0; i < FX_TEST_COUNT(many); i++)
        many[i] = (struct h2_header){"x-m", "y"};
    memset(large, 'y', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    assert_int_equal(call_with(fixture, many, 400), FX_OK);
    assert_int_equal(call_with(fixture, &(struct h2_header){"x-large", large}, 1), FX_OK);
    assert_int_equal(call_with(fixture, many, FX_TEST_COUNT(many)), FX_RESOURCE_EXHAUSTED);
    check_well(fixture);
}

/* -- a message without an end -- */

enum { LENT_MAX = 256 * 1024 * 1024, WINDOW_UPDATE = 8 };

struct endless {
    int fd;
    int64_t windows[2], initial, sent; /* of the connection, of the stream; what that began with */
    bool ended;
};

static void settings_take(struct endless *endless, const struct h2_frame *frame) {
    for (uint32_t i = 0; i + 6 <= frame->len && !(frame->flags & H2_ACK); i += 6) {
        uint32_t value;
        memcpy(&value, frame->at + i + 2, sizeof value);
        if (frame->at[i + 1] != H2_WINDOW) continue;
        endless->windows[1] += (int64_t)ntohl(value) - endless->initial;
        endless->initial = (int64_t)ntohl(value);
    }
}

static void windows_take(struct endless *endless) {
    static struct h2_frame frame;
    uint32_t more;
    if (!h2_any(endless->fd, &frame)) {
        endless->ended = true;
        return;
    }
    memcpy(&more, frame.at, sizeof more);
    if (frame.type == WINDOW_UPDATE) endless->windows[frame.stream != 0] += (int64_t)ntohl(more);
    if (frame.type == H2_SETTINGS) settings_take(endless, &frame);
    if (frame.type == H2_RST_STREAM || frame.type == H2_HEADERS) endless->ended = true;
}

static bool h2_waits(int fd) {
    return poll(&(struct pollfd){fd, POLLIN, 0}, 1, 0) == 1;
}

/* Core takes a message as long as it says it is. All of them together are bounded. */
static void test_endless(void **state) {
    struct fixture *fixture = *state;
    static uint8_t bytes[H2_FRAME_MAX] = {0, 0xff, 0xff, 0xff, 0xff};
    struct endless endless = {
        .windows = {65535, 65535},
          .initial = 65535
    };
    endless.fd = h2_open(port(fixture), 65535);
    h2_call(endless.fd, 1, "/test.Echo/Sum", NULL, 0, 0);
    while (!endless.ended && endless.sent < LENT_MAX) {
        bool open = endless.windows[0] >= H2_FRAME_MAX && endless.windows[1] >= H2_FRAME_MAX;
        if (!open || h2_waits(endless.fd)) {
            windows_take(&endless);
            continue;
        }
        h2_frame(endless.fd, H2_DATA, 0, 1, bytes, sizeof bytes);
        memset(bytes, 0, 5);
        endless.windows[0] -= H2_FRAME_MAX;
        endless.windows[1] -= H2_FRAME_MAX;
        endless.sent += H2_FRAME_MAX;
    }
    assert_in_range(endless.sent, 1, 100 * 1024 * 1024); /* 64 MiB, and what was on its way */
    close(endless.fd);
    check_well(fixture);
}

/* Who asks for what is not there and reads no answers keeps nobody else from asking. */
static void test_flood(void **state) {
    struct fixture *fixture = *state;
    int fds[4];
    for (size_t i = 0; i < FX_TEST_COUNT(fds); i++) {
        fds[i] = h2_open(port(fixture), 0);
        for (uint32_t stream = 1; stream < 2 * FLOOD; stream += 2) {
            h2_call(fds[i], stream, "/nobody/home", NULL, 0, H2_END_STREAM);
            if (stream % 100 == 1) check_well(fixture);
        }
    }
    for (size_t i = 0; i < FX_TEST_COUNT(fds); i++)
        close(fds[i]);
    check_well(fixture);
}

/* -- clients that do not read -- */

static void wait_cut(struct fixture *fixture, uint64_t count) {
    for (int i = 0; i < 5000 && fx_server_stats(fixture->server).cut_slow < count; i++)
        usleep(1000);
    check_well(fixture);
    assert_int_equal(fx_server_stats(fixture->server).cut_slow, count);
}

/* Nothing may be sent to it, and it never allows more: it is cut, its handler told, others served.
 */
static void test_closed_window(void **state) {
    struct fixture *fixture = *state;
    char text[H2_FRAME_MAX];
    int fd = h2_open(port(fixture), 0);
    uint64_t begun_ms = fx_clock_ms();
    h2_call(fd, 1, "/test.Echo/Count", NULL, 0, 0);
    h2_message(fd, 1, (fx_span)BYTES("\x8\x64"), H2_END_STREAM); /* page_size 100 */
    wait_cut(fixture, 1);
    assert_in_range(fx_clock_ms() - begun_ms, STALL_MS, 5000);
    assert_int_equal(h2_status(fd, 1, text), FX_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(text, "does not read"));
    assert_int_equal(fixture->echo.cancelled, 1);
    assert_in_range(fixture->echo.sent, 0, 1);
    close(fd);
}

/* A unary reply, which nobody but the core waits for. */
static void test_closed_window_unary(void **state) {
    struct fixture *fixture = *state;
    int fd = h2_open(port(fixture), 0);
    h2_call(fd, 1, "/test.Echo/Now", NULL, 0, 0);
    h2_message(fd, 1, (fx_span)BYTES("\x12\2hi"), H2_END_STREAM);
    wait_cut(fixture, 1);
    assert_int_equal(h2_status(fd, 1, NULL), FX_RESOURCE_EXHAUSTED);
    close(fd);
}

/* All slots are taken by such clients: they come free. */
static void test_all_slots(void **state) {
    struct fixture *fixture = *state;
    int fd = h2_open(port(fixture), 0);
    for (uint32_t stream = 1; stream < 16; stream += 2) {
        h2_call(fd, stream, "/test.Echo/Count", NULL, 0, 0);
        h2_message(fd, stream, (fx_span)BYTES("\x8\x64"), H2_END_STREAM);
    }
    wait_cut(fixture, 8);
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_rows),
        TEST(test_silent),
        TEST(test_field_named),
        TEST(test_much_metadata),
        TEST(test_endless),
        TEST(test_flood),
        TEST(test_closed_window),
        TEST(test_closed_window_unary),
        TEST(test_all_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
