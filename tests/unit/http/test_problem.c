/* The error body: its shape, its bound, its retry headers. */
#include "common/http/json.h"
#include "tests/unit/http/wire.h"

static const struct row {
    const char *name;
    uint32_t retry_ms;
    const char *headers; /* NULL: none */
} rows[] = {
    {"no retry",  0,      NULL                                          },
    {"too soon",  5,      "retry-after: 1\r\nretry-after-ms: 1000\r\n"  },
    {"rounds up", 1500,   "retry-after: 2\r\nretry-after-ms: 1500\r\n"  },
    {"too late",  500000, "retry-after: 60\r\nretry-after-ms: 60000\r\n"},
};

static struct fx_http_problem problem_ = {
    .status = 429, .type = "rate_limit_error", .code = "full", .message = "no \"room\""};

static void on_request(void *ctx, fx_http_call *call, const struct fx_http_request *request) {
    (void)ctx, (void)request;
    fx_http_reply_problem(call, &problem_);
}

/* Headers of the caller's, and a client that is told not to wait. */
static void test_more_headers(void **state) {
    struct wire wire = {0};
    bool closed;
    struct fx_http_header more[FX_HTTP_PROBLEM_HEADERS_MAX];
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(more); i++)
        more[i] = (struct fx_http_header){fx_span_str("x-more"), fx_span_str("yes")};
    problem_.retry_ms = 60000;
    problem_.no_retry = true;
    problem_.headers = more;
    problem_.header_count = FX_TEST_COUNT(more);
    wire_start(&wire, (struct fx_http_server_opts){.request = on_request});
    int fd = wire_connect(&wire);
    wire_say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    char *text = wire_read(fd, "}}", &closed);
    assert_non_null(strstr(text, "retry-after: 60\r\n"));
    assert_non_null(strstr(text, "x-should-retry: false\r\n"));
    size_t found = 0;
    for (const char *at = text; (at = strstr(at, "x-more: yes\r\n")); at++)
        found++;
    assert_int_equal(found, FX_TEST_COUNT(more));
    free(text);
    close(fd);
    wire_stop(&wire);
    problem_.no_retry = false;
    problem_.header_count = 0;
}

static void test_headers(void **state) {
    const struct row *row = *state;
    struct wire wire = {0};
    bool closed;
    problem_.retry_ms = row->retry_ms;
    wire_start(&wire, (struct fx_http_server_opts){.request = on_request});
    int fd = wire_connect(&wire);
    wire_say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    char *text = wire_read(fd, "}}", &closed);
    assert_int_equal(wire_status(text), 429);
    assert_null(strstr(text, "x-should-retry"));
    if (row->headers)
        assert_non_null(strstr(text, row->headers));
    else
        assert_null(strstr(text, "retry-after"));
    assert_string_equal(strstr(text, "\r\n\r\n") + 4,
                        "{\"error\":{\"message\":\"no \\\"room\\\"\",\"type\":\"rate_limit_error\","
                        "\"param\":null,\"code\":\"full\"}}");
    free(text);
    close(fd);
    wire_stop(&wire);
}

static void test_bound(void **state) {
    (void)state;
    const char fill[] = {'a', 1, '\xff', '"', '\xe2'};
    for (size_t f = 0; f < sizeof fill; f++) {
        char message[6000];
        uint8_t body[FX_HTTP_ERROR_BODY_MAX];
        fx_buf out = {body, 0, sizeof body};
        memset(message, fill[f], sizeof message - 1);
        message[sizeof message - 1] = 0;
        struct fx_http_problem problem = {.type = "t", .param = "p", .message = message};
        fx_http_problem_json(&problem, &out);
        assert_true(fx_buf_fits(&out));
        assert_true(out.len > FX_HTTP_ERROR_BODY_MAX / 8);
        fx_auto(json_t) json = NULL;
        assert_true(fx_json_parse((fx_span){body, out.len}, &json, &(fx_error){0}));
    }
}

int main(void) {
    struct CMUnitTest tests[FX_TEST_COUNT(rows) + 2] = {cmocka_unit_test(test_bound),
                                                        cmocka_unit_test(test_more_headers)};
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i + 2] = (struct CMUnitTest){rows[i].name, test_headers, NULL, NULL,
                                           (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
