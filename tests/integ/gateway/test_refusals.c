/* What is refused, with status, code and headers; models and their names. */
#include <jansson.h>
#include "tests/integ/gateway/stage.h"

#define GOOD "Authorization: Bearer " STAGE_KEY "\r\n"
#define MESSAGES "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define CHAT "{\"model\":\"" STAGE_MODEL "\"," MESSAGES "}"

static const struct row {
    const char *name, *method, *path, *headers, *body;
    unsigned status;
    const char *code, *param; /* NULL: null */
    const char *holds;        /* a header; NULL: any */
} rows[] = {
    {"no key",                  "POST",     "/v1/chat/completions", "",                                 CHAT,                                 401, "missing_api_key",       NULL,
     "www-authenticate: Bearer\r\n"                                                                                                                                                            },
    {"no key for models",       "GET",      "/v1/models",           "",                                 "",                                   401, "missing_api_key",       NULL,          NULL},
    {"wrong key",               "POST",     "/v1/chat/completions", "Authorization: Bearer fx-bad\r\n", CHAT,                                 401,
     "invalid_api_key",                                                                                                                                                     NULL,          NULL},
    {"wrong key for models",    "GET",      "/v1/models/x",         "X-Auth-Token: fx-bad\r\n",         "",                                   401,
     "invalid_api_key",                                                                                                                                                     NULL,          NULL},
    {"no such URL",             "GET",      "/v1/frobs",            GOOD,                               "",                                   404, "unknown_url",           NULL,          NULL},
    {"root",                    "GET",      "/",                    GOOD,                               "",                                   404, "unknown_url",           NULL,          NULL},
    {"metrics are elsewhere",   "GET",      "/metrics",             GOOD,                               "",                                   404, "unknown_url",           NULL,          NULL},
    {"wrong method",            "GET",      "/v1/chat/completions", GOOD,                               "",                                   405, "method_not_allowed",    NULL,
     "allow: POST\r\n"                                                                                                                                                                         },
    {"no such model",           "POST",     "/v1/chat/completions", GOOD,                               "{\"model\":\"gpt-4\"," MESSAGES "}",
     404,                                                                                                                                          "model_not_found",       "model",       NULL},
    {"no such model to show",   "GET",      "/v1/models/gpt-4",     GOOD,                               "",                                   404, "model_not_found",       "model",
     NULL                                                                                                                                                                                      },
    {"malformed JSON",          "POST",     "/v1/chat/completions", GOOD,                               "{\"model\":",                        400, "invalid_json",
     NULL,                                                                                                                                                                                 NULL},
    {"bytes that are no UTF-8", "POST",     "/v1/chat/completions", GOOD,                               "{\"model\":\"\xff\"}",               400,
     "invalid_json",                                                                                                                                                        NULL,          NULL},
    {"a field out of range",    "POST",     "/v1/chat/completions", GOOD,
     "{\"model\":\"m\"," MESSAGES ",\"temperature\":9}",                                                                                      400, "invalid_value",         "temperature", NULL},
    {"a field not served yet",  "POST",     "/v1/chat/completions", GOOD,
     "{\"model\":\"m\"," MESSAGES ",\"tools\":[{}]}",                                                                                         400, "unsupported_parameter", "tools",       NULL},
    {"ids past the vocabulary", "POST",     "/v1/completions",      GOOD,
     "{\"model\":\"" STAGE_MODEL "\",\"prompt\":[5000]}",                                                                                     400, "invalid_value",         "prompt",      NULL},
    {"a stream over HTTP/1.0",  "POST 1.0", "/v1/chat/completions", GOOD,
     "{\"model\":\"m\"," MESSAGES ",\"stream\":true}",                                                                                        505, "http_version",          NULL,
     "x-should-retry: false\r\n"                                                                                                                                                               },
    {"a bad path",              "GET",      "/v1/models/%zz",       GOOD,                               "",                                   400, NULL,                    NULL,          NULL},
};

static char *send_row(struct stage *stage, const struct row *row) {
    char head[1024];
    bool closed, old = strcmp(row->method, "POST 1.0") == 0;
    int fd = stage_connect(stage);
    (void)snprintf(head, sizeof head,
                   "%s %s HTTP/1.%d\r\nHost: x\r\nx-request-id: r.1\r\nConnection: close\r\n%s"
                   "Content-Length: %zu\r\n\r\n",
                   old ? "POST" : row->method, row->path, old ? 0 : 1, row->headers,
                   strlen(row->body));
    wire_say(fd, head);
    wire_say(fd, row->body);
    char *answer = wire_read(fd, NULL, &closed);
    close(fd);
    return answer;
}

static void test_refused(void **state) {
    struct stage *stage = *state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        const struct row *row = &rows[i];
        char *answer = send_row(stage, row);
        const char *type, *message;
        json_t *json, *param, *code;
        print_message("- %s\n", row->name);
        if (wire_status(answer) != row->status) fail_msg("%s", answer);
        assert_true(strlen(stage_body(answer)) <= FX_HTTP_ERROR_BODY_MAX);
        assert_non_null(strstr(answer, "content-type: application/json\r\n"));
        assert_non_null(strstr(answer, "x-request-id: r"));
        if (row->holds) assert_non_null(strstr(answer, row->holds));
        json = json_loads(stage_body(answer), JSON_REJECT_DUPLICATES, NULL);
        assert_int_equal(json_unpack(json, "{s:{s:s, s:s, s:o, s:o}}", "error", "type", &type,
                                     "message", &message, "param", &param, "code", &code),
                         0);
        assert_true(*type && *message);
        if (row->param)
            assert_string_equal(json_string_value(param), row->param);
        else
            assert_true(json_is_null(param));
        if (row->code) assert_string_equal(json_string_value(code), row->code);
        json_decref(json);
        free(answer);
    }
    assert_int_equal(stage->submitted, 0);
}

static void test_too_large(void **state) {
    struct stage *stage = *state;
    size_t len = stage->config.body_bytes_max + 1;
    char *body = calloc(1, len + 1);
    memset(body, ' ', len);
    char *answer = stage_ask(stage, "/v1/chat/completions", body);
    assert_int_equal(wire_status(answer), 413);
    assert_non_null(strstr(answer, "\"type\":\"invalid_request_error\""));
    free(answer);
    body[len - 1] = 0; /* the largest that is taken: the JSON is what is wrong with it */
    answer = stage_ask(stage, "/v1/chat/completions", body);
    assert_int_equal(wire_status(answer), 400);
    free(answer);
    free(body);
}

/* Without a key, or where nothing is, the body is not waited for. */
static void test_body_unwanted(void **state) {
    struct stage *stage = *state;
    static const struct {
        const char *head;
        unsigned status;
    } heads[] = {
        {"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n\r\n",        401},
        {"POST /v1/frobs HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n" GOOD "\r\n",           404},
        {"PUT /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n" GOOD "\r\n",
         405                                                                                         },
        {"POST /v1/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
         "Content-Length: 9\r\n\r\n",                                                    401},
    };
    for (size_t i = 0; i < FX_TEST_COUNT(heads); i++) {
        bool closed;
        int fd = stage_connect(stage);
        wire_say(fd, heads[i].head);
        char *answer = wire_read(fd, NULL, &closed);
        assert_int_equal(wire_status(answer), heads[i].status);
        assert_true(closed);
        free(answer);
        close(fd);
    }
}

static void test_retries_counted(void **state) {
    struct stage *stage = *state;
    for (int i = 0; i < 4; i++) {
        char headers[128];
        (void)snprintf(headers, sizeof headers, GOOD "x-stainless-retry-count: %d\r\n", i);
        free(stage_get(stage, "/v1/models", i < 3 ? headers : GOOD));
    }
    assert_int_equal(stage->gateway->metrics.retries, 2);
}

/* A worker may hold less than the model's context: its scheduler says so. */
static void test_too_long_for_workers(void **state) {
    struct stage *stage = *state;
    stage->submit_code = FX_OUT_OF_RANGE;
    char *answer = stage_ask(stage, "/v1/chat/completions", CHAT);
    assert_int_equal(wire_status(answer), 400);
    assert_non_null(strstr(answer, "\"param\":\"messages\",\"code\":\"context_length_exceeded\""));
    free(answer);
    answer =
        stage_ask(stage, "/v1/completions", "{\"model\":\"" STAGE_MODEL "\",\"prompt\":\"a\"}");
    assert_int_equal(wire_status(answer), 400);
    assert_non_null(strstr(answer, "\"param\":\"prompt\",\"code\":\"context_length_exceeded\""));
    free(answer);
}

static void test_too_long(void **state) {
    struct stage *stage = *state;
    char body[STAGE_CONTEXT + 200], text[STAGE_CONTEXT];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = 0; /* with BOS exactly the context: no room for an answer */
    (void)snprintf(body, sizeof body, "{\"model\":\"" STAGE_MODEL "\",\"prompt\":\"%s\"}", text);
    char *answer = stage_ask(stage, "/v1/completions", body);
    assert_int_equal(wire_status(answer), 400);
    assert_non_null(strstr(answer, "context_length_exceeded"));
    free(answer);
    text[sizeof text - 2] = 0; /* one less: one token comes */
    (void)snprintf(body, sizeof body, "{\"model\":\"" STAGE_MODEL "\",\"prompt\":\"%s\"}", text);
    answer = stage_ask(stage, "/v1/completions", body);
    assert_int_equal(wire_status(answer), 200);
    assert_non_null(strstr(answer, "\"finish_reason\":\"length\""));
    free(answer);
}

static void test_models(void **state) {
    struct stage *stage = *state;
    const char *shown = "{\"id\":\"" STAGE_MODEL "\",\"object\":\"model\",\"created\":1234,"
                        "\"owned_by\":\"fractal\",\"max_model_len\":256}";
    const char *paths[] = {"/v1/models/org%2Ftiny%20model", "/v1/models/org/tiny%20model"};
    char *answer = stage_get(stage, "/v1/models", GOOD), want[256];
    (void)snprintf(want, sizeof want, "{\"object\":\"list\",\"data\":[%s]}", shown);
    assert_int_equal(wire_status(answer), 200);
    assert_string_equal(stage_body(answer), want);
    free(answer);
    for (size_t i = 0; i < FX_TEST_COUNT(paths); i++) {
        answer = stage_get(stage, paths[i], GOOD);
        assert_int_equal(wire_status(answer), 200);
        assert_string_equal(stage_body(answer), shown);
        free(answer);
    }
}

/* A model that is imported while the gateway runs is there for the next request. */
static void test_new_model(void **state) {
    struct stage *stage = *state;
    stage->hide_model = 1;
    for (int i = 0; i < 5000 && stage->gateway->metrics.models; i++)
        usleep(1000);
    char *answer = stage_ask(stage, "/v1/chat/completions", CHAT);
    assert_int_equal(wire_status(answer), 404);
    free(answer);
    stage->hide_model = 0;
    usleep(120 * 1000); /* a miss asks again when the list is older than 100 ms */
    answer = stage_ask(stage, "/v1/chat/completions", CHAT);
    assert_int_equal(wire_status(answer), 200);
    free(answer);
}

static void test_slicer_away(void **state) {
    struct stage *stage = *state;
    stage->list_code = FX_UNAVAILABLE;
    char *answer = stage_ask(stage, "/v1/chat/completions", CHAT); /* known: served */
    assert_int_equal(wire_status(answer), 200);
    free(answer);
    usleep(120 * 1000); /* until then the last list still says that there is none */
    answer = stage_ask(stage, "/v1/chat/completions", "{\"model\":\"other\"," MESSAGES "}");
    assert_int_equal(wire_status(answer), 503); /* nobody can say that it does not exist */
    assert_non_null(strstr(answer, "retry-after: 1\r\n"));
    free(answer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refused, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_too_large, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_body_unwanted, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_too_long, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_too_long_for_workers, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_retries_counted, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_models, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_new_model, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_slicer_away, stage_setup, stage_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
