/* Whole answers: the bytes of streams and the JSON of the rest. */
#include <jansson.h>
#include "fractal/v1/generation.pb-c.h"
#include "tests/integ/gateway/stage.h"

#define MODEL "\"model\":\"" STAGE_MODEL "\""
#define CHAT(more) "{" MODEL ",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]" more "}"
#define TEXT(more) "{" MODEL ",\"prompt\":\"hi\"" more "}"
#define STREAM ",\"stream\":true"

static const struct row {
    const char *name, *path, *body;
    struct stage_script script;
    const char *text, *reason;
    size_t n, deltas, usages; /* deltas 0: not counted */
} rows[] = {
    {"chat",
     "/v1/chat/completions", CHAT(STREAM),
     {"Hello", 5, 0, 5, 1, FX_FINISH_STOP, NULL},
     "Hello",          "stop",
     5,  0,
     0},
    {"chat with usage",
     "/v1/chat/completions", CHAT(STREAM ",\"stream_options\":{\"include_usage\":true}"),
     {"Hello", 5, 0, 0, 1, FX_FINISH_STOP, NULL},
     "Hello",          "stop",
     5,  0,
     1},
    {"cut by max_tokens",
     "/v1/chat/completions", CHAT(STREAM ",\"max_tokens\":3"),
     {"Hello", 5, 0, 0, 1, FX_FINISH_STOP, NULL},
     "Hel",            "length",
     3,  0,
     0},
    {"completion",
     "/v1/completions",      TEXT(STREAM),
     {"Hello", 5, 0, 0, 1, FX_FINISH_STOP, NULL},
     "Hello",          "stop",
     5,  0,
     0},
    {"no token at all",
     "/v1/chat/completions", CHAT(STREAM),
     {"", 0, 0, 0, 1, FX_FINISH_STOP, NULL},
     "",               "stop",
     0,  0,
     0},
    {"a step's tokens in one chunk",
     "/v1/chat/completions", CHAT(STREAM),
     {"Hello, world", 12, 0, 40, 4, FX_FINISH_STOP, NULL},
     "Hello, world",   "stop",
     12, 3,
     0},
    {"a character over three tokens",
     "/v1/chat/completions", CHAT(STREAM),
     {"a\xe2\x82\xac"
      "b",
      5, 0, 20, 1, FX_FINISH_STOP, NULL},
     "a\xe2\x82\xac"
     "b",              "stop",
     5,  3,
     0},
    {"bytes that are no characters",
     "/v1/chat/completions", CHAT(STREAM),
     {"a\xff\xc0\xaf"
      "b",
      5, 0, 5, 1, FX_FINISH_STOP, NULL},
     "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
     "b",              "stop",
     5,  0,
     0},
    {"half a character at the end",
     "/v1/chat/completions", CHAT(STREAM),
     {"a\xe2\x82", 3, 0, 5, 1, FX_FINISH_LENGTH, NULL},
     "a\xef\xbf\xbd",  "length",
     3,  0,
     0},
    {"quotes and breaks",
     "/v1/chat/completions", CHAT(STREAM),
     {"\"\\\n\r\t\x01", 6, 0, 5, 1, FX_FINISH_STOP, NULL},
     "\"\\\n\r\t\x01", "stop",
     6,  0,
     0},
    {"a late first token",
     "/v1/chat/completions", CHAT(STREAM),
     {"Hello", 5, 1500, 0, 1, FX_FINISH_STOP, NULL},
     "Hello",          "stop",
     5,  0,
     0},
    {"a stop string over tokens",
     "/v1/chat/completions", CHAT(STREAM ",\"stop\":[\"nope\",\"ell\"]"),
     {"Hell", 4, 0, 5, 1, FX_FINISH_STOP, NULL},
     "H",              "stop",
     4,  0,
     0},
    {"a stop string that never gets whole",
     "/v1/completions",      TEXT(STREAM ",\"stop\":\"lox\""),
     {"Hello", 5, 0, 5, 1, FX_FINISH_STOP, NULL},
     "Hello",          "stop",
     5,  0,
     0},
    {"a stop string inside min_tokens",
     "/v1/completions",      TEXT(STREAM ",\"stop\":\"l\",\"min_tokens\":4"),
     {"Hellola", 7, 0, 5, 1, FX_FINISH_STOP, NULL},
     "Hello",          "stop",
     7,  0,
     0},
    {"the worker fails",
     "/v1/chat/completions", CHAT(STREAM),
     {"He", 2, 0, 5, 1, FX_FINISH_ERROR, "out of luck"},
     "He",             "error",
     2,  0,
     0},
};

static void test_stream(void **state) {
    struct stage *stage = *state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        const struct row *row = &rows[i];
        stage_say(stage, row->script);
        print_message("- %s\n", row->name);
        int fd = stage_connect(stage);
        bool closed;
        stage_post(fd, row->path, row->body);
        char *answer = wire_read(fd, "\r\n0\r\n\r\n", &closed);
        assert_false(closed); /* the connection stays */
        assert_null(strstr(answer, "connection: close"));
        if (strcmp(row->reason, "error") == 0) assert_non_null(strstr(answer, "out of luck"));
        struct stage_stream got = stage_stream_read(answer);
        assert_string_equal(got.text, row->text);
        assert_string_equal(got.reason, row->reason);
        assert_int_equal(got.last_n, row->n);
        assert_int_equal(got.usages, row->usages);
        assert_int_equal(got.role_first, strstr(row->path, "chat") != NULL);
        if (row->deltas) assert_int_equal(got.deltas, row->deltas);
        free(got.text);
        free(answer);
        close(fd);
    }
    assert_int_equal(stage->cancelled, 0);
}

static json_t *ask_json(struct stage *stage, const char *path, const char *body, unsigned status) {
    char *answer = stage_ask(stage, path, body);
    if (wire_status(answer) != status) fail_msg("%s", answer);
    assert_non_null(strstr(answer, "content-type: application/json\r\n"));
    json_t *json = json_loads(stage_body(answer), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    free(answer);
    return json;
}

static void test_whole(void **state) {
    struct stage *stage = *state;
    const char *role, *content, *reason, *object, *text;
    int prompt, completion, total, n;
    stage_say(stage, (struct stage_script){"Gr\xc3\xbc\xc3\x9f"
                                           "e",
                                           7, 0, 2, 1, FX_FINISH_STOP, NULL});
    json_t *json = ask_json(stage, "/v1/chat/completions", CHAT(""), 200);
    assert_int_equal(json_unpack(json, "{s:s, s:[{s:{s:s, s:s}, s:s}], s:{s:i, s:i, s:i}, s:{s:i}}",
                                 "object", &object, "choices", "message", "role", &role, "content",
                                 &content, "finish_reason", &reason, "usage", "prompt_tokens",
                                 &prompt, "completion_tokens", &completion, "total_tokens", &total,
                                 "fractal", "n", &n),
                     0);
    assert_string_equal(object, "chat.completion");
    assert_string_equal(role, "assistant");
    assert_string_equal(content, "Gr\xc3\xbc\xc3\x9f"
                                 "e");
    assert_string_equal(reason, "stop");
    assert_true(prompt == 3 && completion == 7 && total == 10 && n == 7);
    json_decref(json);
    json = ask_json(stage, "/v1/completions", TEXT(",\"max_tokens\":2"), 200);
    assert_int_equal(json_unpack(json, "{s:s, s:[{s:s, s:s}]}", "object", &object, "choices",
                                 "text", &text, "finish_reason", &reason),
                     0);
    assert_string_equal(object, "text_completion");
    assert_string_equal(text, "Gr");
    assert_string_equal(reason, "length");
    json_decref(json);
}

static void test_whole_fails(void **state) {
    struct stage *stage = *state;
    const char *code, *message;
    stage_say(stage, (struct stage_script){"He", 2, 0, 2, 1, FX_FINISH_ERROR, "out of luck"});
    json_t *json = ask_json(stage, "/v1/chat/completions", CHAT(""), 500);
    assert_int_equal(
        json_unpack(json, "{s:{s:s, s:s}}", "error", "code", &code, "message", &message), 0);
    assert_string_equal(code, "generation_failed");
    assert_non_null(strstr(message, "out of luck"));
    json_decref(json);
    /* what somebody cancelled is not asked for again by a client that retries every 500 */
    stage_say(stage, (struct stage_script){"He", 2, 0, 2, 1, FX_FINISH_CANCELLED, NULL});
    char *answer = stage_ask(stage, "/v1/chat/completions", CHAT(""));
    assert_int_equal(wire_status(answer), 500);
    assert_non_null(strstr(answer, "\"code\":\"generation_cancelled\""));
    assert_non_null(strstr(answer, "\r\nx-should-retry: false\r\n"));
    free(answer);
}

/* Bytes that are no characters: the text has marks, `bytes` what was really there. */
static void test_rubbish(void **state) {
    struct stage *stage = *state;
    stage_say(stage, (struct stage_script){"a\xff\xc0\xaf"
                                           "b",
                                           5, 0, 2, 1, FX_FINISH_STOP, NULL});
    json_t *json =
        ask_json(stage, "/v1/chat/completions", CHAT(",\"logprobs\":true,\"top_logprobs\":2"), 200);
    const uint8_t want[] = {'a', 0xff, 0xc0, 0xaf, 'b'};
    json_t *content = NULL, *entry;
    size_t i;
    assert_int_equal(
        json_unpack(json, "{s:[{s:{s:o}}]}", "choices", "logprobs", "content", &content), 0);
    assert_int_equal(json_array_size(content), sizeof want);
    json_array_foreach(content, i, entry) {
        const char *token, *first;
        int byte, top, second;
        double logprob, above;
        assert_int_equal(json_unpack(entry, "{s:s, s:F, s:[i!], s:[{s:s, s:F, s:[i!]}, {s:[i!]}!]}",
                                     "token", &token, "logprob", &logprob, "bytes", &byte,
                                     "top_logprobs", "token", &first, "logprob", &above, "bytes",
                                     &top, "bytes", &second),
                         0);
        assert_int_equal(byte, want[i]);
        assert_string_equal(token, byte == 'a' ? "a" : byte == 'b' ? "b" : "\xef\xbf\xbd");
        assert_string_equal(first, "\xef\xbf\xbd");
        assert_true(top == 0xfd && second == 0xfe);
        assert_true(logprob > -0.51 && logprob < -0.49 && above > -1.01 && above < -0.99);
    }
    json_decref(json);
    json = ask_json(stage, "/v1/completions", TEXT(",\"logprobs\":1"), 200);
    char *logprobs =
        json_dumps(json_object_get(json_array_get(json_object_get(json, "choices"), 0), "logprobs"),
                   JSON_COMPACT | JSON_REAL_PRECISION(3));
    assert_string_equal(
        logprobs,
        "{\"tokens\":[\"a\",\"bytes:\\\\xff\",\"bytes:\\\\xc0\",\"bytes:\\\\xaf\",\"b\"],"
        "\"token_logprobs\":[-0.5,-0.5,-0.5,-0.5,-0.5],"
        "\"top_logprobs\":[{\"a\":-0.5,\"bytes:\\\\xfd\":-1},"
        "{\"bytes:\\\\xff\":-0.5,\"bytes:\\\\xfd\":-1},"
        "{\"bytes:\\\\xc0\":-0.5,\"bytes:\\\\xfd\":-1},"
        "{\"bytes:\\\\xaf\":-0.5,\"bytes:\\\\xfd\":-1},{\"b\":-0.5,\"bytes:\\\\xfd\":-1}],"
        "\"text_offset\":[0,1,2,3,4]}");
    free(logprobs);
    json_decref(json);
}

/* All that schema 2 has. */
static void test_task_sampling(void **state) {
    struct stage *stage = *state;
    json_t *json = ask_json(stage, "/v1/completions",
                            TEXT(",\"typical_p\":0.5,\"presence_penalty\":-1,"
                                 "\"frequency_penalty\":0.25,\"repetition_penalty\":1.25,"
                                 "\"min_tokens\":3,\"ignore_eos\":true,\"stop\":[\"a\",\"bc\"],"
                                 "\"logit_bias\":{\"7\":-100,\"259\":0.5}"),
                            200);
    json_decref(json);
    Fractal__V1__GenerationTask *task =
        fractal__v1__generation_task__unpack(NULL, stage->last_task_len, stage->last_task);
    assert_non_null(task);
    const Fractal__V1__SamplingParams *params = task->sampling;
    assert_int_equal(task->schema, 2);
    assert_int_equal(task->n_stop_ids, 0); /* ignored */
    assert_int_equal(task->n_stop, 2);
    assert_string_equal(task->stop[0], "a");
    assert_string_equal(task->stop[1], "bc");
    assert_true(params->typical_p == 0.5F && params->presence_penalty == -1);
    assert_true(params->frequency_penalty == 0.25F && params->repetition_penalty == 1.25F);
    assert_int_equal(params->min_tokens, 3);
    assert_int_equal(params->n_logit_bias, 2);
    assert_true(params->logit_bias[0]->id == 7 && params->logit_bias[0]->value == -100);
    assert_true(params->logit_bias[1]->id == 259 && params->logit_bias[1]->value == 0.5F);
    fractal__v1__generation_task__free_unpacked(task, NULL);
}

/* What the scheduler is handed. */
static void test_task(void **state) {
    struct stage *stage = *state;
    json_t *json = ask_json(stage, "/v1/chat/completions",
                            CHAT(",\"temperature\":0.5,\"top_p\":0.75,\"top_k\":7,\"min_p\":0.25,"
                                 "\"seed\":11,\"max_tokens\":100000"),
                            200);
    json_decref(json);
    Fractal__V1__GenerationTask *task =
        fractal__v1__generation_task__unpack(NULL, stage->last_task_len, stage->last_task);
    assert_non_null(task);
    assert_int_equal(task->schema, 1);
    assert_int_equal(task->tenant, STAGE_TENANT);
    assert_int_equal(task->model, STAGE_NUMBER);
    assert_string_equal(task->model_name, STAGE_MODEL);
    assert_int_equal(task->n_prompt_ids, 3);
    assert_true(task->prompt_ids[0] == 256 && task->prompt_ids[1] == 'h' &&
                task->prompt_ids[2] == 'i');
    assert_int_equal(task->max_tokens, STAGE_CONTEXT - 3); /* a ceiling: clamped */
    assert_true(task->n_stop_ids == 1 && task->stop_ids[0] == STAGE_EOS);
    assert_true(task->sampling->temperature == 0.5F && task->sampling->top_p == 0.75F &&
                task->sampling->top_k == 7 && task->sampling->min_p == 0.25F);
    assert_int_equal(task->sampling->seed_presence_case,
                     FRACTAL__V1__SAMPLING_PARAMS__SEED_PRESENCE_SEED);
    assert_int_equal(task->sampling->seed, 11);
    fractal__v1__generation_task__free_unpacked(task, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stream, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_whole, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_whole_fails, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_rubbish, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_task, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_task_sampling, stage_setup, stage_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
