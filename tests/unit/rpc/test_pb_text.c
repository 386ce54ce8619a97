/* Strings on the wire: what protobuf-c would cut at a NUL, or take as it is, is named. */
#include "common/rpc/pb.h"
#include "fractal/v1/inference.pb-c.h"
#include "tests/fx_test.h"

enum { PACKED_MAX = 1024 };

#define TEXT(text)                                                                                 \
    { (const uint8_t *)(text), sizeof(text) - 1 }

static const struct row {
    const char *name;
    fx_span text;
    const char *wrong; /* NULL: it is text */
} rows[] = {
    {"empty",                     TEXT(""),                       NULL                 },
    {"ASCII",                     TEXT("abc"),                    NULL                 },
    {"NUL first",                 TEXT("\0abc"),                  "has a NUL character"},
    {"NUL last",                  TEXT("abc\0"),                  "has a NUL character"},
    {"only a NUL",                TEXT("\0"),                     "has a NUL character"},
    {"two, three and four bytes", TEXT("\u00e9\u20ac\U0001f600"), NULL                 },
    {"U+0080",                    TEXT("\xc2\x80"),               NULL                 },
    {"U+0800",                    TEXT("\xe0\xa0\x80"),           NULL                 },
    {"U+D7FF",                    TEXT("\xed\x9f\xbf"),           NULL                 },
    {"U+E000",                    TEXT("\xee\x80\x80"),           NULL                 },
    {"U+10000",                   TEXT("\xf0\x90\x80\x80"),       NULL                 },
    {"U+10FFFF",                  TEXT("\xf4\x8f\xbf\xbf"),       NULL                 },
    {"a NUL in two bytes",        TEXT("\xc0\x80"),               "is not valid UTF-8" },
    {"too long, two",             TEXT("\xc1\xbf"),               "is not valid UTF-8" },
    {"too long, three",           TEXT("\xe0\x9f\xbf"),           "is not valid UTF-8" },
    {"too long, four",            TEXT("\xf0\x8f\xbf\xbf"),       "is not valid UTF-8" },
    {"a surrogate",               TEXT("\xed\xa0\x80"),           "is not valid UTF-8" },
    {"past U+10FFFF",             TEXT("\xf4\x90\x80\x80"),       "is not valid UTF-8" },
    {"five bytes",                TEXT("\xf8\x88\x80\x80\x80"),   "is not valid UTF-8" },
    {"a lone continuation",       TEXT("a\x80"),                  "is not valid UTF-8" },
    {"cut in the middle",         TEXT("a\xe2\x82"),              "is not valid UTF-8" },
    {"no continuation",           TEXT("\xe2\x28\xa1"),           "is not valid UTF-8" },
};

static void put_string(fx_buf *out, unsigned field, fx_span text) {
    const uint8_t head[] = {(uint8_t)(field << 3 | 2), (uint8_t)text.len};
    assert_true(field < 16 && text.len < 128);
    fx_buf_put(out, (fx_span){head, sizeof head});
    fx_buf_put(out, text);
    assert_true(fx_buf_fits(out));
}

static void test_strings(void **state) {
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        uint8_t memory[PACKED_MAX];
        fx_buf packed = {memory, 0, sizeof memory};
        char field[FX_PB_FIELD_MAX], want[128];
        fx_error err = {0};
        put_string(&packed, 2, rows[i].text); /* GenerateRequest.text */
        bool ok = fx_pb_check_text(&fractal__v1__generate_request__descriptor,
                                   (fx_span){memory, packed.len}, field, &err);
        if (ok != !rows[i].wrong) fail_msg("%s: %s", rows[i].name, err.text);
        assert_string_equal(field, rows[i].wrong ? "text" : "");
        if (ok) continue;
        (void)snprintf(want, sizeof want, "text %s", rows[i].wrong);
        assert_string_equal(err.text, want);
        assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    }
}

/* ChatRequest{model, messages{role, content}..., sampling{stop...}}, in an order of its own. */
static void test_names(void **state) {
    static const struct {
        int bad;
        const char *field;
    } names[] = {
        {0, "model"              },
        {1, "messages[0].role"   },
        {2, "messages[1].content"},
        {3, "sampling.stop[1]"   },
        {4, ""                   },
    };
    fx_span good = TEXT("ok"), bad = TEXT("a\0b");
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(names); i++) {
        uint8_t memory[PACKED_MAX], inner[64];
        fx_buf packed = {memory, 0, sizeof memory};
        char field[FX_PB_FIELD_MAX];
        int at = names[i].bad;
        fx_buf first = {inner, 0, sizeof inner};
        put_string(&first, 1, at == 1 ? bad : good);
        put_string(&packed, 2, (fx_span){inner, first.len});
        fx_buf sampling = {inner, 0, sizeof inner};
        put_string(&sampling, 6, good);
        fx_buf_put(&sampling, (fx_span)TEXT("\x0d\0\0\0\0")); /* temperature: zeros that are none */
        put_string(&sampling, 6, at == 3 ? bad : good);
        put_string(&packed, 4, (fx_span){inner, sampling.len});
        fx_buf_put(&packed, (fx_span)TEXT("\x18\0")); /* max_tokens 0 */
        fx_buf second = {inner, 0, sizeof inner};
        put_string(&second, 2, at == 2 ? bad : good);
        put_string(&packed, 2, (fx_span){inner, second.len});
        put_string(&packed, 15, bad); /* a field nobody knows */
        put_string(&packed, 1, at == 0 ? bad : good);
        bool ok = fx_pb_check_text(&fractal__v1__chat_request__descriptor,
                                   (fx_span){memory, packed.len}, field, NULL);
        assert_int_equal(ok, at == 4);
        assert_string_equal(field, names[i].field);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
