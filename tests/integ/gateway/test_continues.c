/* A completion goes on with its prompt's text, so its first space is shown; an answer of a chat,
 * or to no text at all, is a text of its own. The worker is told, for its stop strings. */
#include <jansson.h>
#include "fractal/v1/generation.pb-c.h"
#include "tests/integ/gateway/stage.h"
#include "tests/unit/model/pieces.h"

#define MODEL "\"model\":\"" STAGE_MODEL "\""
#define HI_HI_I "\x07\x07\x05"

static int setup(void **state) {
    (void)stage_setup(state);
    struct stage *stage = *state;
    stage_gateway_close(stage);
    (void)snprintf(stage->tokenizer, sizeof pieces_json, "%s", pieces_json);
    stage->tokenizer_len = sizeof pieces_json - 1;
    stage_gateway_open(stage);
    return 0;
}

static const struct row {
    const char *name, *path, *body, *text;
    bool continues;
} rows[] = {
    {"completion",           "/v1/completions",      "{" MODEL ",\"prompt\":\"Hi\"}",                  " Hi Hii", true },
    {"of ids",               "/v1/completions",      "{" MODEL ",\"prompt\":[7]}",                     " Hi Hii", true },
    {"streamed",             "/v1/completions",      "{" MODEL ",\"prompt\":\"Hi\",\"stream\":true}",  " Hi Hii",
     true                                                                                                              },
    {"of no text",           "/v1/completions",      "{" MODEL ",\"prompt\":\"\"}",                    "Hi Hii",  false},
    {"of the begin alone",   "/v1/completions",      "{" MODEL ",\"prompt\":[1]}",                     "Hi Hii",  false},
    {"stopped at its begin", "/v1/completions",      "{" MODEL ",\"prompt\":\"Hi\",\"stop\":\" Hi\"}",
     "",                                                                                                          true },
    {"stopped later",        "/v1/completions",      "{" MODEL ",\"prompt\":\"\",\"stop\":\" Hi\"}",   "Hi",
     false                                                                                                             },
    {"chat",                 "/v1/chat/completions",
     "{" MODEL ",\"messages\":[{\"role\":\"user\","
     "\"content\":\"Hi\"}]}",                                                                          "Hi Hii",  false},
    {"chat streamed",        "/v1/chat/completions",
     "{" MODEL ",\"stream\":true,\"messages\":[{"
     "\"role\":\"user\",\"content\":\"Hi\"}]}",                                                        "Hi Hii",  false},
};

static char *text_of(char *answer) {
    if (strstr(answer, "text/event-stream")) return stage_stream_read(answer).text;
    json_t *json = json_loads(stage_body(answer), 0, NULL);
    json_t *choice = json_array_get(json_object_get(json, "choices"), 0);
    json_t *message = json_object_get(choice, "message");
    json_t *text = message ? json_object_get(message, "content") : json_object_get(choice, "text");
    assert_true(json_is_string(text));
    char *copy = strdup(json_string_value(text));
    json_decref(json);
    return copy;
}

static bool task_continues(const struct stage *stage) {
    Fractal__V1__GenerationTask *task =
        fractal__v1__generation_task__unpack(NULL, stage->last_task_len, stage->last_task);
    assert_non_null(task);
    bool continues = task->continues_prompt;
    fractal__v1__generation_task__free_unpacked(task, NULL);
    return continues;
}

static void test_begin(void **state) {
    struct stage *stage = *state;
    stage_say(stage, (struct stage_script){HI_HI_I, 3, 0, 2, 1, FX_FINISH_STOP, NULL});
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        char *answer = stage_ask(stage, rows[i].path, rows[i].body);
        print_message("- %s\n", rows[i].name);
        assert_int_equal(wire_status(answer), 200);
        char *text = text_of(answer);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(task_continues(stage), rows[i].continues);
        free(text);
        free(answer);
    }
}

/* As one does that does not know that the text goes on: the answer is the same. */
static void test_worker_misses_the_stop(void **state) {
    static const char *const streams[] = {"false", "true"};
    struct stage *stage = *state;
    stage_say(stage, (struct stage_script){HI_HI_I, 3, 0, 2, 1, FX_FINISH_LENGTH, NULL});
    for (size_t i = 0; i < FX_TEST_COUNT(streams); i++) {
        char body[160];
        (void)snprintf(body, sizeof body,
                       "{" MODEL ",\"prompt\":\"Hi\",\"stop\":\" Hi\",\"stream\":%s}", streams[i]);
        char *answer = stage_ask(stage, "/v1/completions", body);
        assert_int_equal(wire_status(answer), 200);
        assert_non_null(strstr(answer, "\"finish_reason\":\"stop\""));
        char *text = text_of(answer);
        assert_string_equal(text, "");
        free(text);
        free(answer);
    }
}

/* There and back: what vLLM shows, the special tokens and the space behind them. */
static void test_detokenize(void **state) {
    struct stage *stage = *state;
    static const struct {
        const char *tokens, *want;
    } asked[] = {
        {"[7,7]",   "{\"prompt\":\"Hi Hi\"}"      },
        {"[1,7,5]", "{\"prompt\":\"<|bos|> Hii\"}"},
        {"[7,2]",   "{\"prompt\":\"Hi<|eos|>\"}"  },
        {"[3,3]",   "{\"prompt\":\" \"}"          },
    };
    for (size_t i = 0; i < FX_TEST_COUNT(asked); i++) {
        char body[128];
        (void)snprintf(body, sizeof body, "{" MODEL ",\"tokens\":%s}", asked[i].tokens);
        char *answer = stage_ask(stage, "/detokenize", body);
        assert_int_equal(wire_status(answer), 200);
        assert_string_equal(stage_body(answer), asked[i].want);
        free(answer);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_begin, setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_worker_misses_the_stop, setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_detokenize, setup, stage_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
