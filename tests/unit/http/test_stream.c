/* Streams: chunks, pings, hanging up, back pressure, drain. */
#include "common/http/sse.h"
#include "tests/unit/http/wire.h"

enum { OUTPUT_MAX = 65536, PING_MS = 300 };

static void on_gone(void *ctx) {
    struct wire *wire = ctx;
    wire->call = NULL;
    wire->gone_ms = fx_clock_ms();
    wire->gone++;
}

/* /hold: nothing yet. /stream: the head of a stream. /fixed: a reply at once. */
static void on_request(void *ctx, fx_http_call *call, const struct fx_http_request *request) {
    struct wire *wire = ctx;
    if (fx_span_eq_str(request->segments[0], "fixed")) {
        fx_http_reply(call, &(struct fx_http_reply){.status = 200, .body = fx_span_str("{}")});
        return;
    }
    wire->call = call;
    fx_http_call_on_gone(call, on_gone, wire);
    if (fx_span_eq_str(request->segments[0], "stream"))
        fx_http_stream_begin(call, NULL, 0, PING_MS);
}

static int setup(void **state) {
    struct wire *wire = calloc(1, sizeof *wire);
    wire_start(wire, (struct fx_http_server_opts){.request = on_request,
                                                  .output_bytes_max = OUTPUT_MAX,
                                                  .stall_ms_max = 600});
    *state = wire;
    return 0;
}

static int teardown(void **state) {
    wire_stop(*state);
    free(*state);
    return 0;
}

static void write_two(struct wire *wire) {
    uint8_t bytes[256];
    fx_buf buf = {bytes, 0, sizeof bytes};
    fx_sse_data(&buf, fx_span_str("{\"a\":1}"));
    fx_sse_data(&buf, fx_span_str("{\"a\":2}"));
    fx_http_stream_write(wire->call, (fx_span){bytes, buf.len});
}

static void finish(struct wire *wire) {
    uint8_t bytes[64];
    fx_buf buf = {bytes, 0, sizeof bytes};
    fx_sse_done(&buf);
    fx_http_stream_write(wire->call, (fx_span){bytes, buf.len});
    fx_http_stream_end(wire->call);
    wire->call = NULL;
}

static void nothing(struct wire *wire) {
    (void)wire;
}

static void test_chunks(void **state) {
    struct wire *wire = *state;
    bool closed;
    int fd = wire_connect(wire);
    wire_say(fd, "POST /stream HTTP/1.1\r\nHost: x\r\nx-request-id: my.id-1\r\n\r\n");
    char *head = wire_read(fd, "\r\n\r\n", &closed);
    assert_string_equal(head, "HTTP/1.1 200 OK\r\n"
                              "x-request-id: my.id-1\r\n"
                              "content-type: text/event-stream; charset=utf-8\r\n"
                              "cache-control: no-cache\r\n"
                              "x-accel-buffering: no\r\n"
                              "transfer-encoding: chunked\r\n\r\n");
    free(head);
    wire_poke(wire, write_two);
    char *events = wire_read(fd, "2}\n\n\r\n", &closed);
    assert_string_equal(events, "1e\r\ndata: {\"a\":1}\n\ndata: {\"a\":2}\n\n\r\n");
    free(events);
    wire_poke(wire, finish);
    char *end = wire_read(fd, "0\r\n\r\n", &closed);
    assert_string_equal(end, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
    free(end);
    wire_say(fd, "GET /fixed HTTP/1.1\r\nHost: x\r\n\r\n"); /* kept alive */
    char *next = wire_read(fd, "{}", &closed);
    assert_int_equal(wire_status(next), 200);
    free(next);
    close(fd);
    assert_int_equal(wire->gone, 0);
}

static void test_ping(void **state) {
    struct wire *wire = *state;
    bool closed;
    int fd = wire_connect(wire);
    wire_say(fd, "POST /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    char *text = wire_read(fd, "8\r\n: ping\n\n\r\n", &closed);
    assert_non_null(strstr(text, "\r\n\r\n8\r\n: ping\n\n\r\n"));
    free(text);
    close(fd);
}

static void hang_up(struct wire *wire, const char *request, bool reset) {
    int fd = wire_connect(wire);
    int before = wire->gone;
    wire_say(fd, request);
    uint64_t end = fx_clock_ms() + WIRE_WAIT_MS;
    do
        wire_poke(wire, nothing);
    while (!wire->call && fx_clock_ms() < end);
    assert_non_null(wire->call);
    struct linger hard = {1, 0};
    if (reset) setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    uint64_t closed_ms = fx_clock_ms();
    close(fd);
    assert_true(wire_wait(&wire->gone, before + 1));
    assert_true(wire->gone_ms - closed_ms < 500);
    assert_null(wire->call);
}

static void test_hang_up(void **state) {
    hang_up(*state, "POST /hold HTTP/1.1\r\nHost: x\r\n\r\n", false);
    hang_up(*state, "POST /hold HTTP/1.1\r\nHost: x\r\n\r\n", true);
    hang_up(*state, "POST /stream HTTP/1.1\r\nHost: x\r\n\r\n", false);
    hang_up(*state, "POST /stream HTTP/1.1\r\nHost: x\r\n\r\n", true);
    hang_up(*state, "POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na", false);
}

static void test_half_close_gets_a_fixed_reply(void **state) {
    bool closed;
    int fd = wire_connect(*state);
    wire_say(fd, "GET /fixed HTTP/1.1\r\nHost: x\r\n\r\n");
    shutdown(fd, SHUT_WR);
    char *text = wire_read(fd, NULL, &closed);
    assert_int_equal(wire_status(text), 200);
    assert_true(closed);
    free(text);
    close(fd);
}

static void flood(struct wire *wire) {
    static uint8_t block[16384];
    memset(block, ':', sizeof block);
    if (wire->call) fx_http_stream_write(wire->call, (fx_span){block, sizeof block});
}

static void test_slow_reader_is_cut(void **state) {
    struct wire *wire = *state;
    int fd = wire_connect(wire), small = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    wire_say(fd, "POST /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < 2000 && !wire->gone; i++)
        wire_poke(wire, flood);
    assert_true(wire_wait(&wire->gone, 1));
    wire_poke(wire, nothing);
    assert_int_equal(wire->stats.cut_slow, 1);
    assert_int_equal(wire->stats.open, 0);
    assert_int_equal(wire->stats.streams, 0);
    close(fd);
}

static void test_stalled_reader_is_cut(void **state) {
    struct wire *wire = *state;
    int fd = wire_connect(wire), small = 4096;
    struct fx_http_stats *stats = &wire->stats;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    wire_say(fd, "POST /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    uint64_t end = fx_clock_ms() + WIRE_WAIT_MS;
    do
        wire_poke(wire, nothing);
    while (!wire->call && fx_clock_ms() < end);
    /* a little at a time: never over the limit at once, until the kernel takes no more */
    for (int i = 0; i < 400 && !stats->cut_slow && !wire->gone; i++) {
        wire_poke(wire, flood);
        usleep(20000);
    }
    assert_true(wire_wait(&wire->gone, 1));
    close(fd);
}

static void test_sent_ahead_is_bounded(void **state) {
    struct wire *wire = *state;
    char block[8192];
    int fd = wire_connect(wire);
    wire_say(fd, "POST /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 16; i++)
        wire_send(fd, block, sizeof block);
    assert_true(wire_wait(&wire->gone, 1));
    close(fd);
}

static void test_pipelined(void **state) {
    bool closed;
    int fd = wire_connect(*state);
    wire_say(fd,
             "GET /fixed HTTP/1.1\r\nHost: x\r\nx-request-id: one\r\n\r\n"
             "GET /fixed HTTP/1.1\r\nHost: x\r\nx-request-id: two\r\n\r\n"
             "GET /fixed HTTP/1.1\r\nHost: x\r\nx-request-id: three\r\nConnection: close\r\n\r\n");
    char *text = wire_read(fd, NULL, &closed);
    char *one = strstr(text, "one"), *two = strstr(text, "two"), *three = strstr(text, "three");
    assert_true(one && two && three && one < two && two < three && closed);
    free(text);
    close(fd);
}

static void test_pipelined_behind_a_stream(void **state) {
    struct wire *wire = *state;
    bool closed;
    int fd = wire_connect(wire);
    wire_say(fd, "POST /stream HTTP/1.1\r\nHost: x\r\n\r\nGET /fixed HTTP/1.1\r\nHost: x\r\n\r\n");
    free(wire_read(fd, "\r\n\r\n", &closed));
    wire_poke(wire, finish);
    char *text = wire_read(fd, "{}", &closed);
    assert_non_null(strstr(text, "0\r\n\r\nHTTP/1.1 200 OK\r\n"));
    free(text);
    close(fd);
}

static void drain(struct wire *wire) {
    fx_http_server_drain(wire->server);
}

static void unlisten(struct wire *wire) {
    fx_http_server_unlisten(wire->server);
}

static void test_drain(void **state) {
    struct wire *wire = *state;
    bool closed;
    int idle = wire_connect(wire), busy = wire_connect(wire);
    wire_say(idle, "GET /fixed HTTP/1.1\r\nHost: x\r\n\r\n");
    free(wire_read(idle, "{}", &closed));
    wire_say(busy, "POST /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    free(wire_read(busy, "\r\n\r\n", &closed));
    wire_poke(wire, drain);
    int late = wire_connect(wire); /* it still listens, and answers those that are connected */
    wire_say(late, "GET /fixed HTTP/1.1\r\nHost: x\r\n\r\n");
    char *text = wire_read(late, NULL, &closed);
    assert_int_equal(wire_status(text), 200);
    assert_non_null(strstr(text, "\r\nconnection: close\r\n"));
    assert_true(closed);
    free(text);
    close(late);
    assert_int_equal(wire->drained, 0);
    wire_poke(wire, unlisten);
    text = wire_read(idle, NULL, &closed);
    assert_string_equal(text, "");
    assert_true(closed);
    free(text);
    assert_int_equal(wire->drained, 0);
    wire_poke(wire, finish);
    text = wire_read(busy, NULL, &closed);
    assert_string_equal(text, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
    assert_true(closed);
    free(text);
    close(idle);
    close(busy);
    assert_true(wire_wait(&wire->drained, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_chunks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ping, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hang_up, setup, teardown),
        cmocka_unit_test_setup_teardown(test_half_close_gets_a_fixed_reply, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slow_reader_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stalled_reader_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sent_ahead_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pipelined, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pipelined_behind_a_stream, setup, teardown),
        cmocka_unit_test_setup_teardown(test_drain, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
