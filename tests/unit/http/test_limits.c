/* Time, connections and memory: every limit is met, named and counted. */
#include "tests/unit/http/wire.h"

enum { CONNECTIONS_MAX = 2, SHORT_MS = 400 };

static void on_request(void *ctx, fx_http_call *call, const struct fx_http_request *request) {
    char text[32];
    (void)ctx;
    int len = snprintf(text, sizeof text, "body=%zu", request->body.len);
    fx_http_reply(call, &(struct fx_http_reply){
                            .status = 200, .body = {(const uint8_t *)text, (size_t)len}
    });
}

static void nothing(struct wire *wire) {
    (void)wire;
}

static void start(struct wire *wire) {
    wire_start(wire, (struct fx_http_server_opts){.request = on_request,
                                                  .connections_max = CONNECTIONS_MAX,
                                                  .bodies_bytes_max = 10000,
                                                  .head_ms_max = SHORT_MS,
                                                  .body_ms_max = SHORT_MS,
                                                  .idle_ms_max = SHORT_MS});
}

static const struct row {
    const char *name, *bytes;
    unsigned status; /* 0: closed without a word */
} rows[] = {
    {"idle",         "",                                                                        0  },
    {"half a line",  "GET /",                                                                   408},
    {"half a head",  "GET / HTTP/1.1\r\nHost: x\r\n",                                           408},
    {"half a body",  "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab",               408},
    {"half a chunk", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nab",
     408                                                                                           },
};

static void test_timeouts(void **state) {
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        struct wire wire = {0};
        bool closed;
        start(&wire);
        int fd = wire_connect(&wire);
        uint64_t begun = fx_clock_ms();
        wire_say(fd, rows[i].bytes);
        char *text = wire_read(fd, NULL, &closed);
        if (!closed || wire_status(text) != rows[i].status)
            fail_msg("%s: closed %d: %s", rows[i].name, closed, text);
        assert_true(fx_clock_ms() - begun < SHORT_MS + 2000);
        free(text);
        close(fd);
        wire_stop(&wire);
    }
}

/* A byte every so often does not keep a head alive. */
static void test_slow_head(void **state) {
    (void)state;
    struct wire wire = {0};
    bool closed;
    start(&wire);
    int fd = wire_connect(&wire);
    uint64_t begun = fx_clock_ms();
    wire_say(fd, "GET / HTTP/1.1\r\nHost: ");
    while (fx_clock_ms() - begun < SHORT_MS + 300) {
        wire_say(fd, "x");
        usleep(50000);
    }
    char *text = wire_read(fd, NULL, &closed);
    assert_true(closed);
    assert_int_equal(wire_status(text), 408);
    free(text);
    close(fd);
    wire_stop(&wire);
}

static void test_connections(void **state) {
    (void)state;
    struct wire wire = {0};
    bool closed;
    start(&wire);
    int fds[CONNECTIONS_MAX];
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        fds[i] = wire_connect(&wire);
        wire_say(fds[i], "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        free(wire_read(fds[i], "body=0", &closed));
    }
    int one_more = wire_connect(&wire);
    char *text = wire_read(one_more, NULL, &closed);
    assert_int_equal(wire_status(text), 503);
    assert_non_null(strstr(text, "retry-after: 1\r\nretry-after-ms: 1000\r\n"));
    assert_non_null(strstr(text, "\r\nx-request-id: "));
    assert_non_null(strstr(text, "\r\ncontent-type: application/json\r\n"));
    assert_non_null(strstr(text, "\r\n\r\n{\"error\":{\"message\":\""));
    assert_true(closed);
    free(text);
    close(one_more);
    wire_poke(&wire, nothing);
    assert_int_equal(wire.stats.refused_full, 1);
    assert_int_equal(wire.stats.open, CONNECTIONS_MAX);
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        close(fds[i]);
    wire_stop(&wire);
}

static void test_bodies_in_memory(void **state) {
    (void)state;
    struct wire wire = {0};
    bool closed;
    char body[9000];
    start(&wire);
    int fd = wire_connect(&wire);
    memset(body, 'b', sizeof body);
    wire_say(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n");
    wire_send(fd, body, sizeof body);
    char *text = wire_read(fd, NULL, &closed);
    assert_int_equal(wire_status(text), 503);
    assert_non_null(strstr(text, "retry-after-ms: 1000"));
    free(text);
    close(fd);
    fd = wire_connect(&wire); /* what it held is free again */
    wire_say(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n");
    wire_send(fd, body, 5000);
    text = wire_read(fd, "body=5000", &closed);
    assert_int_equal(wire_status(text), 200);
    free(text);
    close(fd);
    wire_stop(&wire);
}

static void test_continue(void **state) {
    (void)state;
    struct wire wire = {0};
    bool closed;
    start(&wire);
    int fd = wire_connect(&wire);
    wire_say(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    char *text = wire_read(fd, "\r\n\r\n", &closed);
    assert_string_equal(text, "HTTP/1.1 100 Continue\r\n\r\n");
    free(text);
    wire_say(fd, "ab");
    text = wire_read(fd, "body=2", &closed);
    assert_int_equal(wire_status(text), 200);
    free(text);
    wire_say(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n"
                 "Expect: 100-continue\r\n\r\n");
    text = wire_read(fd, NULL, &closed);
    assert_int_equal(wire_status(text), 413); /* refused without a body */
    free(text);
    close(fd);
    wire_stop(&wire);
}

/* A client that sends its whole body before it reads still sees the 413. */
static void test_refusal_survives_unread_input(void **state) {
    (void)state;
    struct wire wire = {0};
    bool closed;
    static char body[2000000];
    start(&wire);
    int fd = wire_connect(&wire);
    wire_say(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n");
    wire_send(fd, body, sizeof body);
    char *text = wire_read(fd, NULL, &closed);
    assert_int_equal(wire_status(text), 413);
    free(text);
    close(fd);
    wire_stop(&wire);
}

static void test_byte_by_byte(void **state) {
    (void)state;
    struct wire wire = {0};
    bool closed;
    start(&wire);
    int fd = wire_connect(&wire);
    const char *text = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "3\r\nabc\r\n0\r\n\r\n";
    for (const char *at = text; *at; at++) {
        wire_send(fd, at, 1);
        usleep(500);
    }
    char *got = wire_read(fd, "body=3", &closed);
    assert_int_equal(wire_status(got), 200);
    free(got);
    close(fd);
    wire_stop(&wire);
}

/* Requests without end from a client that takes no reply: the server stops reading, and serves them
 * all once the client reads. */
static void test_replies_not_taken(void **state) {
    static const char get[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    (void)state;
    struct wire wire = {0};
    size_t sent = 0, asked, got = 0;
    uint64_t quiet_ms = fx_clock_ms();
    start(&wire);
    int fd = wire_connect(&wire);
    while (fx_clock_ms() - quiet_ms < 300) { /* until nothing more is taken */
        const char *at = get + sent % (sizeof get - 1);
        ssize_t n = send(fd, at, strlen(at), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            sent += (size_t)n, quiet_ms = fx_clock_ms();
        else
            usleep(1000);
        assert_true(sent < 256u << 20); /* it would take for ever */
    }
    asked = sent / (sizeof get - 1);
    assert_true((size_t)wire.done < asked);
    for (char text[65537]; got < asked;) {
        ssize_t n = recv(fd, text, sizeof text - 1, 0);
        assert_true(n > 0);
        for (ssize_t i = 0; i < n; i++)
            got += text[i] == '='; /* one in each reply */
    }
    assert_true(wire_wait(&wire.done, (int)asked));
    close(fd);
    wire_stop(&wire);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timeouts),     cmocka_unit_test(test_slow_head),
        cmocka_unit_test(test_connections),  cmocka_unit_test(test_bodies_in_memory),
        cmocka_unit_test(test_continue),     cmocka_unit_test(test_refusal_survives_unread_input),
        cmocka_unit_test(test_byte_by_byte), cmocka_unit_test(test_replies_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
