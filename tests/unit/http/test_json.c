/* JSON in: what is refused. JSON out: escapes and UTF-8. */
#include "tests/fx_test.h"
#include "common/base/heap.h"
#include "common/http/json.h"

static const struct row {
    const char *name, *text;
    bool ok;
} rows[] = {
    {"object",              "{\"a\":[1,2.5,null,true,\"x\"]}", true },
    {"scalar",              "3",                               true },
    {"unicode escape",      "\"\\u00e9\"",                     true },
    {"empty",               "",                                false},
    {"trailing comma",      "[1,]",                            false},
    {"trailing text",       "{} x",                            false},
    {"duplicate member",    "{\"a\":1,\"a\":1}",               false},
    {"NUL in a string",     "\"\\u0000\"",                     false},
    {"lone surrogate",      "\"\\ud800\"",                     false},
    {"bytes that are none", "\"\xff\"",                        false},
    {"overlong",            "\"\xc0\xaf\"",                    false},
    {"surrogate in UTF-8",  "\"\xed\xa0\x80\"",                false},
    {"number too large",    "1e999",                           false},
    {"single quotes",       "{'a':1}",                         false},
};

static void test_parse(void **state) {
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        fx_auto(json_t) json = NULL;
        fx_error err = {0};
        bool ok = fx_json_parse(fx_span_str(rows[i].text), &json, &err);
        if (ok != rows[i].ok) fail_msg("%s: %s", rows[i].name, err.text);
        if (!ok) assert_true(fx_utf8_valid(fx_span_str(err.text)));
    }
}

static void put_times(fx_buf *out, const char *text, size_t times) {
    for (size_t i = 0; i < times; i++)
        fx_json_put(out, text);
}

static bool parses(const char *open, const char *close, size_t depth) {
    size_t cap = depth * (strlen(open) + strlen(close)) + 1;
    fx_buf text = {calloc(cap, 1), 0, cap};
    put_times(&text, open, depth);
    fx_json_put(&text, "1");
    put_times(&text, close, depth);
    fx_auto(json_t) json = NULL;
    bool ok = fx_json_parse((fx_span){text.at, text.len}, &json, &(fx_error){0});
    free(text.at);
    return ok;
}

static void test_depth(void **state) {
    (void)state;
    assert_true(parses("[", "]", FX_JSON_DEPTH_MAX));
    assert_false(parses("[", "]", FX_JSON_DEPTH_MAX + 1));
    assert_true(parses("{\"[\":", "}", FX_JSON_DEPTH_MAX));
    assert_false(parses("{\"a\":", "}", FX_JSON_DEPTH_MAX + 1));
    assert_false(parses("[", "", 60000));
}

static void test_count(void **state) {
    (void)state;
    size_t count = FX_JSON_VALUES_MAX + 10;
    char *text = malloc(2 * count + 2), *at = text;
    *at++ = '[';
    for (size_t i = 0; i < count; i++)
        *at++ = '1', *at++ = i + 1 < count ? ',' : ']';
    fx_auto(json_t) json = NULL;
    fx_error err = {0};
    assert_false(fx_json_parse((fx_span){(uint8_t *)text, (size_t)(at - text)}, &json, &err));
    assert_non_null(strstr(err.text, "values"));
    free(text);
}

static const struct {
    const char *in, *want;
} strings[] = {
    {"plain",                                "\"plain\""                                           },
    {"a\"b\\c/",                             "\"a\\\"b\\\\c/\""                                    },
    {"\n\r\t\x01\x1f",                       "\"\\n\\r\\t\\u0001\\u001f\""                         },
    {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""            },
    {"a\xff"
     "b",                               "\"a\xef\xbf\xbd"
     "b\""                                                                           },
    {"\xc0\xaf",                             "\"\xef\xbf\xbd\xef\xbf\xbd\""                        },
    {"x\xe2\x82",                            "\"x\xef\xbf\xbd\xef\xbf\xbd\""                       },
    {"\xf4\x90\x80\x80",                     "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {"",                                     "\"\""                                                },
};

static void test_strings(void **state) {
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(strings); i++) {
        uint8_t bytes[128];
        fx_buf out = {bytes, 0, sizeof bytes}, measured = {0};
        fx_json_put_string(&out, fx_span_str(strings[i].in));
        fx_json_put_string(&measured, fx_span_str(strings[i].in));
        assert_int_equal(out.len, strlen(strings[i].want));
        assert_int_equal(out.len, measured.len);
        assert_memory_equal(bytes, strings[i].want, out.len);
        assert_true(fx_utf8_valid((fx_span){bytes, out.len}));
    }
}

static void test_numbers(void **state) {
    (void)state;
    uint8_t bytes[64] = {0};
    fx_buf out = {bytes, 0, sizeof bytes - 1};
    fx_json_put_u64(&out, 0);
    fx_json_put(&out, ",");
    fx_json_put_u64(&out, UINT64_MAX);
    fx_json_put(&out, ",");
    fx_json_put_text(&out, NULL);
    assert_string_equal((char *)bytes, "0,18446744073709551615,null");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),   cmocka_unit_test(test_depth),
        cmocka_unit_test(test_count),   cmocka_unit_test(test_strings),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
