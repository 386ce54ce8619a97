/* Web pages at the gateway: which answers they may read, and what their browser asks first. */
#include "tests/integ/gateway/stage.h"

#define PAGE "https://app.example"
#define FROM "Origin: " PAGE "\r\n"
#define GOOD "Authorization: Bearer " STAGE_KEY "\r\n"
#define ALLOWED "\r\naccess-control-allow-origin: " PAGE "\r\n"
#define MODEL "\"model\":\"" STAGE_MODEL "\""

static int setup(void **state) {
    (void)stage_setup(state);
    struct stage *stage = *state;
    stage_gateway_close(stage);
    stage->config.cors_origins = "http://localhost:3000," PAGE;
    stage_gateway_open(stage);
    return 0;
}

static char *send_request(struct stage *stage, const char *line, const char *headers,
                          const char *body) {
    char head[1024];
    bool closed;
    int fd = stage_connect(stage);
    (void)snprintf(head, sizeof head,
                   "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n",
                   line, headers, strlen(body));
    wire_say(fd, head);
    wire_say(fd, body);
    char *answer = wire_read(fd, NULL, &closed);
    close(fd);
    return answer;
}

static const struct row {
    const char *name, *line, *headers, *body;
    unsigned status;
} rows[] = {
    {"models",         "GET /v1/models",       GOOD,                       "",                                                200},
    {"an answer",      "POST /v1/completions", GOOD,                       "{" MODEL ",\"prompt\":\"hi\"}",                   200},
    {"a stream",       "POST /v1/completions", GOOD,                       "{" MODEL ",\"prompt\":\"hi\",\"stream\":true}",
     200                                                                                                                         },
    {"token ids",      "POST /tokenize",       GOOD,                       "{" MODEL ",\"prompt\":\"hi\"}",                   200},
    {"no key",         "POST /v1/completions", "",                         "{}",                                              401},
    {"a bad key",      "GET /v1/models",       "X-Auth-Token: fx-bad\r\n", "",                                                401},
    {"a bad field",    "POST /v1/completions", GOOD,                       "{" MODEL ",\"prompt\":\"hi\",\"temperature\":9}",
     400                                                                                                                         },
    {"nothing there",  "GET /v1/nothing",      GOOD,                       "",                                                404},
    {"another method", "PUT /v1/models",       GOOD,                       "",                                                405},
    {"a bad path",     "GET /v1/%zz",          GOOD,                       "",                                                400},
};

static void test_answers(void **state) {
    struct stage *stage = *state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        char headers[256];
        print_message("- %s\n", rows[i].name);
        (void)snprintf(headers, sizeof headers, FROM "%s", rows[i].headers);
        char *answer = send_request(stage, rows[i].line, headers, rows[i].body);
        if (wire_status(answer) != rows[i].status || !strstr(answer, ALLOWED))
            fail_msg("%s", answer);
        assert_non_null(strstr(answer, "\r\nvary: origin\r\n"));
        assert_non_null(strstr(answer, "\r\naccess-control-expose-headers: x-request-id, "));
        free(answer);
        (void)snprintf(headers, sizeof headers, "Origin: https://evil.example\r\n%s",
                       rows[i].headers);
        answer = send_request(stage, rows[i].line, headers, rows[i].body);
        assert_int_equal(wire_status(answer), rows[i].status); /* the browser holds it back */
        assert_null(strstr(answer, "access-control"));
        free(answer);
    }
}

/* What the official client's own headers need, asked without a key. */
static void test_preflight(void **state) {
    struct stage *stage = *state;
    static const char asks[] =
        FROM "Access-Control-Request-Method: POST\r\n"
             "Access-Control-Request-Headers: authorization,content-type,idempotency-key,"
             "last-event-id,x-auth-token,x-stainless-arch,x-stainless-retry-count\r\n";
    char *answer = send_request(stage, "OPTIONS /v1/chat/completions", asks, "");
    assert_int_equal(wire_status(answer), 204);
    assert_non_null(strstr(answer, ALLOWED));
    assert_non_null(strstr(answer, "\r\naccess-control-allow-methods: GET, POST\r\n"));
    assert_non_null(strstr(answer, "\r\naccess-control-allow-headers: authorization,content-type,"
                                   "idempotency-key,last-event-id,x-auth-token,x-stainless-arch,"
                                   "x-stainless-retry-count\r\n"));
    free(answer);
    assert_int_equal(stage->authenticated, 0);
}

/* Off: no header of it, and OPTIONS is a method that nothing has. */
static void test_off(void **state) {
    struct stage *stage = *state;
    char *answer = send_request(stage, "OPTIONS /v1/models",
                                FROM "Access-Control-Request-Method: GET\r\n", "");
    assert_int_equal(wire_status(answer), 405);
    assert_null(strstr(answer, "access-control"));
    assert_null(strstr(answer, "vary"));
    free(answer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answers, setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_preflight, setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_off, stage_setup, stage_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
