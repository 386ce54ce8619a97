/* Hostile bytes at the front door, a socket each: refused cheaply and in JSON, nothing submitted,
 * and the next client is served. */
#include <jansson.h>
#include "tests/integ/gateway/stage.h"

#define MODEL "\"model\":\"" STAGE_MODEL "\""
#define BODY "{" MODEL ",\"prompt\":\"hi\"}"
#define GOOD "Authorization: Bearer " STAGE_KEY "\r\n"
#define POST "POST /v1/completions HTTP/1.1\r\nHost: x\r\n" GOOD
#define GET "GET /v1/models HTTP/1.1\r\nHost: x\r\n" GOOD
#define BYTES(text) text, sizeof text - 1

static const struct row {
    const char *name, *bytes;
    size_t len;
    unsigned status;
} rows[] = {
    {"two lengths",                        BYTES(POST "Content-Length: 3\r\nContent-Length: 3\r\n\r\n{} "),        400},
    {"two lengths that differ",            BYTES(POST "Content-Length: 2\r\nContent-Length: 90\r\n\r\n{}"),
     400                                                                                                              },
    {"a signed length",                    BYTES(POST "Content-Length: +2\r\n\r\n{}"),                             400},
    {"a negative length",                  BYTES(POST "Content-Length: -2\r\n\r\n{}"),                             400},
    {"a length of 20 digits",              BYTES(POST "Content-Length: 18446744073709551616\r\n\r\n{}"),           400},
    {"a length with a NUL",                BYTES(POST "Content-Length: 2\0\r\n\r\n{}"),                            400},
    {"space before the colon",             BYTES(POST "Content-Length : 2\r\n\r\n{}"),                             400},
    {"length and chunks",
     BYTES(POST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),                               400},
    {"chunks twice",
     BYTES(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),                      400},
    {"an encoding that looks like chunks",
     BYTES(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),                                                   501},
    {"chunks, and one more encoding",
     BYTES(POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),                                          501},
    {"chunks with a vertical tab",
     BYTES(POST "Transfer-Encoding:\x0b"
                "chunked\r\n\r\n0\r\n\r\n"),
     400                                                                                                              },
    {"a chunk size past 64 bits",
     BYTES(POST "Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\n{}\r\n0\r\n\r\n"),                         400},
    {"a signed chunk size",                BYTES(POST "Transfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n"),
     400                                                                                                              },
    {"a chunk size in 0x",                 BYTES(POST "Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n"),
     400                                                                                                              },
    {"a chunk longer than it says",
     BYTES(POST "Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n"),                                         400},
    {"a chunk of 4 GB announced",          BYTES(POST "Transfer-Encoding: chunked\r\n\r\nffffffff\r\n"),
     413                                                                                                              },
    {"a NUL in a header's value",          BYTES(GET "A: b\0c\r\n\r\n"),                                           400},
    {"a NUL in a header's name",           BYTES(GET "A\0b: c\r\n\r\n"),                                           400},
    {"a NUL in the target",                BYTES("GET /v1/\0models HTTP/1.1\r\nHost: x\r\n" GOOD "\r\n"),          400},
    {"a NUL for a method",                 BYTES("\0GET /v1/models HTTP/1.1\r\nHost: x\r\n" GOOD "\r\n"),          400},
    {"a line break in a value",            BYTES(GET "A: b\nX-Auth-Token: c\r\n\r\n"),                             400},
    {"a carriage return in a value",       BYTES(GET "A: b\rc\r\n\r\n"),                                           400},
    {"a folded header",                    BYTES(GET "A: b\r\n\tc\r\n\r\n"),                                       400},
    {"two hosts",                          BYTES(GET "Host: y\r\n\r\n"),                                           400},
    {"an authority for a target",          BYTES("CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n"),                      400},
    {"a target without a slash",           BYTES("GET v1/models HTTP/1.1\r\nHost: x\r\n\r\n"),                     400},
    {"HTTP/2 without asking",              BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),                              505},
    {"TLS where there is none",            BYTES("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n"),              400},
};

static char *say(const struct stage *stage, const char *bytes, size_t len, bool *closed) {
    int fd = stage_connect(stage);
    wire_send(fd, bytes, len);
    char *answer = wire_read(fd, NULL, closed);
    close(fd);
    return answer;
}

/* An error as every client expects it, and the end of the connection. */
static void check_refused(char *answer, unsigned status, bool closed, const char *name) {
    if (wire_status(answer) != status || !closed)
        fail_msg("%s: closed %d: %s", name, closed, answer);
    const char *body = stage_body(answer), *message, *type;
    assert_true(strlen(body) <= FX_HTTP_ERROR_BODY_MAX);
    assert_non_null(strstr(answer, "x-request-id: "));
    json_t *json = json_loads(body, JSON_REJECT_DUPLICATES, NULL);
    assert_int_equal(
        json_unpack(json, "{s:{s:s, s:s}}", "error", "message", &message, "type", &type), 0);
    json_decref(json);
}

static void check_serves(const struct stage *stage) {
    char *answer = stage_ask(stage, "/v1/completions", BODY);
    assert_int_equal(wire_status(answer), 200);
    free(answer);
}

static void test_refused(void **state) {
    struct stage *stage = *state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        bool closed;
        char *answer = say(stage, rows[i].bytes, rows[i].len, &closed);
        check_refused(answer, rows[i].status, closed, rows[i].name);
        free(answer);
    }
    assert_int_equal(stage->submitted, 0);
    check_serves(stage);
}

/* -- bombs -- */

/* Appends a text; its length. */
static size_t put(char *to, const char *text) {
    size_t len = strlen(text);
    memcpy(to, text, len + 1);
    return len;
}

static char *headers_of(size_t count, size_t bytes) {
    char *text = calloc(1, sizeof GET + count * (bytes + 16) + 64), *at = text;
    at += put(at, GET);
    for (size_t i = 0; i < count; i++) {
        at += put(at, "A: ");
        memset(at, 'a', bytes);
        at += bytes;
        at += put(at, "\r\n");
    }
    (void)put(at, "Connection: close\r\n\r\n");
    return text;
}

static void test_header_bombs(void **state) {
    struct stage *stage = *state;
    static const struct {
        size_t count, bytes;
        unsigned status;
    } bombs[] = {
        {40,    1,       200},
        {64,    1,       431}, /* with the others over FX_HTTP_HEADERS_MAX */
        {20000, 1,       431},
        {1,     1 << 14, 431},
        {1,     1 << 20, 431},
    };
    for (size_t i = 0; i < FX_TEST_COUNT(bombs); i++) {
        char *bytes = headers_of(bombs[i].count, bombs[i].bytes);
        bool closed;
        char *answer = say(stage, bytes, strlen(bytes), &closed);
        if (wire_status(answer) != bombs[i].status) fail_msg("%zu: %s", i, answer);
        assert_true(closed);
        free(answer);
        free(bytes);
    }
    check_serves(stage);
}

/* Chunks of one byte until the body's limit is passed, and without end. */
static void test_chunks_past_the_limit(void **state) {
    struct stage *stage = *state;
    size_t count = stage->config.body_bytes_max + 1;
    char *text = calloc(1, sizeof POST + 64 + count * 6), *at = text;
    at += put(at, POST "Transfer-Encoding: chunked\r\n\r\n");
    for (size_t i = 0; i < count; i++)
        at += put(at, "1\r\n \r\n");
    bool closed;
    char *answer = say(stage, text, strlen(text), &closed);
    check_refused(answer, 413, closed, "chunks");
    free(answer);
    free(text);
    check_serves(stage);
}

/* -- JSON -- */

static char *json_nested(const char *field, size_t depth) {
    char *text = calloc(1, 256 + 2 * depth), *at = text;
    at += put(at, "{" MODEL ",\"prompt\":\"hi\",\"");
    at += put(at, field);
    at += put(at, "\":");
    memset(at, '[', depth);
    memset(at + depth, ']', depth);
    (void)put(at + 2 * depth, "}");
    return text;
}

static void test_depth(void **state) {
    struct stage *stage = *state;
    static const struct {
        size_t depth; /* with the object around */
        unsigned status;
    } nested[] = {
        {128,   200},
        {129,   400},
        {40000, 400},
    };
    for (size_t i = 0; i < FX_TEST_COUNT(nested); i++) {
        char *body = json_nested("metadata", nested[i].depth - 1);
        char *answer = stage_ask(stage, "/v1/completions", body);
        if (wire_status(answer) != nested[i].status) fail_msg("%s", answer);
        if (nested[i].status == 400) assert_non_null(strstr(answer, "\"code\":\"invalid_json\""));
        free(answer);
        free(body);
    }
}

/* What a body says is not said again: neither its bytes nor all of what is wrong with it. */
static void test_not_echoed(void **state) {
    struct stage *stage = *state;
    char *name = calloc(1, 60001), *body = calloc(1, 70000);
    memset(name, 'n', 60000);
    (void)snprintf(body, 70000, "{" MODEL ",\"prompt\":\"hi\",\"%s\":1}", name);
    char *answer = stage_ask(stage, "/v1/completions", body);
    assert_int_equal(wire_status(answer), 400);
    assert_true(strlen(stage_body(answer)) <= FX_HTTP_ERROR_BODY_MAX);
    free(answer);
    answer = stage_ask(stage, "/v1/completions",
                       "{" MODEL ",\"prompt\":\"se\xff\xfe"
                       "cret\"}");
    assert_int_equal(wire_status(answer), 400);
    assert_null(strchr(answer, '\xff'));
    assert_null(strstr(answer, "cret"));
    free(answer);
    free(body);
    free(name);
}

/* -- more than one request -- */

static size_t count_of(const char *text, const char *part) {
    size_t count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

/* Sent at once: answered in order; what is wrong ends the connection, and what follows is not
 * read as a request. */
static void test_pipelined(void **state) {
    struct stage *stage = *state;
    static const char last[] = "GET /v1/nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    char text[2048];
    bool closed;
    (void)snprintf(text, sizeof text, GET "\r\n" POST "Content-Length: %zu\r\n\r\n%s" GET "\r\n%s",
                   sizeof BODY - 1, BODY, last);
    char *answer = say(stage, text, strlen(text), &closed);
    assert_true(closed);
    assert_int_equal(count_of(answer, "HTTP/1.1 200 OK\r\n"), 3);
    assert_int_equal(count_of(answer, "HTTP/1.1 404 "), 1);
    const char *list = strstr(answer, "\"object\":\"list\"");
    const char *completion = strstr(answer, "\"object\":\"text_completion\"");
    const char *nothing = strstr(answer, "unknown_url");
    assert_true(list && completion && nothing && list < completion && completion < nothing);
    free(answer);
    (void)snprintf(text, sizeof text,
                   GET "\r\n" GET "Content-Length: 1\r\nContent-Length: 2\r\n\r\n%s", last);
    answer = say(stage, text, strlen(text), &closed);
    assert_true(closed);
    assert_int_equal(count_of(answer, "HTTP/1.1 "), 2);
    assert_int_equal(count_of(answer, "HTTP/1.1 400 "), 1);
    free(answer);
}

/* The absolute form is served, whatever host it names: routing is by path alone. */
static void test_absolute_form(void **state) {
    struct stage *stage = *state;
    bool closed;
    static const char text[] = "GET http://other.example:81/v1/models HTTP/1.1\r\nHost: x\r\n" GOOD
                               "Connection: close\r\n\r\n";
    char *answer = say(stage, text, sizeof text - 1, &closed);
    assert_int_equal(wire_status(answer), 200);
    assert_non_null(strstr(answer, STAGE_MODEL));
    free(answer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refused, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_header_bombs, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_chunks_past_the_limit, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_depth, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_not_echoed, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_pipelined, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_absolute_form, stage_setup, stage_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
