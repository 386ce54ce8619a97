/* POST /tokenize and /detokenize: the shapes vLLM's users know, what is refused, and that nothing
 * is submitted or charged. */
#include <jansson.h>
#include "tests/integ/gateway/stage.h"

#define MODEL "\"model\":\"" STAGE_MODEL "\""
#define USER(text) "\"messages\":[{\"role\":\"user\",\"content\":\"" text "\"}]"

static const struct row {
    const char *name, *path, *body, *want; /* of the answer, whole */
} rows[] = {
    {"text",                                  "/tokenize",   "{" MODEL ",\"prompt\":\"hi\"}",
     "{\"count\":3,\"max_model_len\":256,\"tokens\":[256,104,105],\"token_strs\":null}"                                                                },
    {"text alone",                            "/tokenize",   "{" MODEL ",\"prompt\":\"hi\",\"add_special_tokens\":false}",
     "{\"count\":2,\"max_model_len\":256,\"tokens\":[104,105],\"token_strs\":null}"                                                                    },
    {"with its tokens' texts",                "/tokenize",
     "{" MODEL ",\"prompt\":\"h\\u00e9\\\"\",\"return_token_strs\":true}",
     "{\"count\":5,\"max_model_len\":256,\"tokens\":[256,104,195,169,34],\"token_strs\":"
     "[\"<|bos|>\",\"h\",\"\xef\xbf\xbd\",\"\xef\xbf\xbd\",\"\\\"\"]}"                                                                                 },
    {"a special token in a text is text",     "/tokenize",
     "{" MODEL ",\"prompt\":\"<|eos|>\",\"add_special_tokens\":false}",
     "{\"count\":7,\"max_model_len\":256,\"tokens\":[60,124,101,111,115,124,62],\"token_strs\":"
     "null}"                                                                                                                                           },
    {"chat",                                  "/tokenize",   "{" MODEL "," USER("hi") "}",
     "{\"count\":3,\"max_model_len\":256,\"tokens\":[256,104,105],\"token_strs\":null}"                                                                },
    {"ids",                                   "/detokenize", "{" MODEL ",\"tokens\":[104,195,169]}",                       "{\"prompt\":\"h\xc3\xa9\"}"},
    {"special tokens are shown",              "/detokenize", "{" MODEL ",\"tokens\":[256,104,257]}",
     "{\"prompt\":\"<|bos|>h<|eos|>\"}"                                                                                                                },
    {"what is no text",                       "/detokenize", "{" MODEL ",\"tokens\":[97,255,98,226,130]}",
     "{\"prompt\":\"a\xef\xbf\xbd"
     "b\xef\xbf\xbd\"}"                                                                                                                                },
    {"half a character before a special one", "/detokenize", "{" MODEL ",\"tokens\":[226,130,257]}",
     "{\"prompt\":\"\xef\xbf\xbd<|eos|>\"}"                                                                                                            },
    {"escapes",                               "/detokenize", "{" MODEL ",\"tokens\":[34,10,0,92]}",
     "{\"prompt\":\"\\\"\\n\\u0000\\\\\"}"                                                                                                             },
};

static void test_answer(void **state) {
    struct stage *stage = *state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        char *answer = stage_ask(stage, rows[i].path, rows[i].body);
        print_message("- %s\n", rows[i].name);
        assert_int_equal(wire_status(answer), 200);
        assert_string_equal(stage_body(answer), rows[i].want);
        assert_non_null(strstr(answer, "content-type: application/json\r\n"));
        assert_non_null(strstr(answer, "x-request-id: "));
        free(answer);
    }
    assert_int_equal(stage->submitted, 0);
}

static const struct refused {
    const char *name, *path, *body;
    unsigned status;
    const char *param; /* NULL: null */
} refused[] = {
    {"past the vocabulary", "/detokenize",  "{" MODEL ",\"tokens\":[104,260]}",                         400, "tokens"},
    {"no tokens",           "/detokenize",  "{" MODEL ",\"tokens\":[]}",                                400, "tokens"},
    {"tokens of text",      "/detokenize",  "{" MODEL ",\"tokens\":[\"a\"]}",                           400, "tokens"},
    {"nothing alone",       "/tokenize",    "{" MODEL ",\"prompt\":\"\",\"add_special_tokens\":false}", 400,
     "prompt"                                                                                                        },
    {"a number",            "/tokenize",    "{" MODEL ",\"prompt\":7}",                                 400, "prompt"},
    {"not served",          "/tokenize",    "{" MODEL ",\"prompt\":\"a\",\"frob\":1}",                  400, "frob"  },
    {"no such model",       "/tokenize",    "{\"model\":\"other\",\"prompt\":\"a\"}",                   404, "model" },
    {"no such model",       "/detokenize",  "{\"model\":\"other\",\"tokens\":[1]}",                     404, "model" },
    {"no JSON",             "/tokenize",    "{",                                                        400, NULL    },
    {"another path",        "/v1/tokenize", "{" MODEL ",\"prompt\":\"a\"}",                             404, NULL    },
};

static void test_refused(void **state) {
    struct stage *stage = *state;
    for (size_t i = 0; i < FX_TEST_COUNT(refused); i++) {
        char *answer = stage_ask(stage, refused[i].path, refused[i].body);
        json_t *json = json_loads(stage_body(answer), 0, NULL), *param = NULL;
        print_message("- %s\n", refused[i].name);
        assert_int_equal(wire_status(answer), refused[i].status);
        assert_int_equal(json_unpack(json, "{s:{s:o}}", "error", "param", &param), 0);
        if (refused[i].param)
            assert_string_equal(json_string_value(param), refused[i].param);
        else
            assert_true(json_is_null(param));
        json_decref(json);
        free(answer);
    }
}

static char *ask_with(struct stage *stage, const char *head) {
    bool closed;
    int fd = stage_connect(stage);
    wire_say(fd, head);
    char *answer = wire_read(fd, NULL, &closed);
    close(fd);
    return answer;
}

/* As the generating routes: a key, a bounded body, POST only. */
static void test_guarded(void **state) {
    struct stage *stage = *state;
    char head[512];
    char *answer =
        ask_with(stage, "POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n");
    assert_int_equal(wire_status(answer), 401);
    free(answer);
    (void)snprintf(head, sizeof head,
                   "POST /detokenize HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " STAGE_KEY
                   "\r\nContent-Length: %u\r\n\r\n",
                   stage->config.body_bytes_max + 1);
    answer = ask_with(stage, head);
    assert_int_equal(wire_status(answer), 413);
    free(answer);
    answer = ask_with(stage, "GET /tokenize HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                             "Authorization: Bearer " STAGE_KEY "\r\n\r\n");
    assert_int_equal(wire_status(answer), 405);
    assert_non_null(strstr(answer, "\r\nallow: POST\r\n"));
    free(answer);
}

/* A limited key hears of its limits, and spends nothing. */
static void test_free_of_charge(void **state) {
    struct stage *stage = *state;
    char left[64];
    stage->key_limits.requests = 2;
    stage->key_limits.tokens = 100;
    for (int i = 0; i < 5; i++) {
        char *answer = stage_ask(stage, "/tokenize", "{" MODEL ",\"prompt\":\"hi\"}");
        assert_int_equal(wire_status(answer), 200);
        assert_true(stage_header(answer, "x-ratelimit-remaining-requests", left));
        assert_string_equal(left, "2");
        assert_true(stage_header(answer, "x-ratelimit-remaining-tokens", left));
        assert_string_equal(left, "100");
        free(answer);
    }
}

/* A body as large as it may be: its ids are right, and there and back again is the same text. */
static void test_large(void **state) {
    struct stage *stage = *state;
    size_t len = 90000, index;
    char *text = calloc(1, len + 1), *body = calloc(1, len + 256);
    for (size_t i = 0; i < len; i++)
        text[i] = (char)('a' + i % 26);
    (void)snprintf(body, len + 256, "{" MODEL ",\"prompt\":\"%s\",\"add_special_tokens\":false}",
                   text);
    char *answer = stage_ask(stage, "/tokenize", body);
    assert_int_equal(wire_status(answer), 200);
    json_t *json = json_loads(stage_body(answer), 0, NULL), *id;
    assert_int_equal(json_integer_value(json_object_get(json, "count")), len);
    json_array_foreach(json_object_get(json, "tokens"), index, id)
        assert_int_equal(json_integer_value(id), text[index]);
    free(answer);
    json_t *ask = json_pack("{s:s, s:o}", "model", STAGE_MODEL, "tokens",
                            json_deep_copy(json_object_get(json, "tokens")));
    json_array_clear(json_object_get(json, "tokens"));
    json_decref(json);
    for (size_t left = len; left > 20000; left--)
        (void)json_array_remove(json_object_get(ask, "tokens"), left - 1);
    char *shorter = json_dumps(ask, JSON_COMPACT);
    answer = stage_ask(stage, "/detokenize", shorter);
    json = json_loads(stage_body(answer), 0, NULL);
    assert_int_equal(strlen(json_string_value(json_object_get(json, "prompt"))), 20000);
    assert_memory_equal(json_string_value(json_object_get(json, "prompt")), text, 20000);
    json_decref(json);
    json_decref(ask);
    free(shorter);
    free(answer);
    free(body);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answer, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_refused, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_guarded, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_free_of_charge, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_large, stage_setup, stage_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
