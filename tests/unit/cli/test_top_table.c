#include "services/cli/top_table.h"
#include "tests/fx_test.h"

static const char *const snapshot_text =
    "{\"at_ms\":1,\"models\":[{\"model\":\"org/tiny\",\"queue\":{\"waiting\":7,\"running\":3},"
    "\"slots\":{\"total\":8,\"free\":5},\"tokens_per_s\":{\"decode\":1234.5,\"prefill\":0.5},"
    "\"tokens\":{\"decode\":9,\"prefill\":9},\"batch\":{\"running\":3,\"mean_rows\":2.25},"
    "\"kv_pages\":{\"used\":12,\"total\":64,\"waiting\":0},\"latency_ms\":{"
    "\"first_token\":{\"count\":2,\"p50\":25.088,\"p95\":54.2,\"p99\":12345.6},"
    "\"inter_token\":{\"count\":0,\"p50\":null,\"p95\":null,\"p99\":null},"
    "\"queue\":{\"count\":2,\"p50\":1.5,\"p95\":2,\"p99\":3}},"
    "\"workers\":[{\"worker\":\"0123456789abcdef\",\"leaving\":true,"
    "\"slots\":{\"total\":8,\"free\":8},\"tokens_per_s\":null,\"tokens\":null,\"batch\":null,"
    "\"kv_pages\":null,\"latency_ms\":null}]}],\"models_omitted\":0}";

static const char *table(const char *json, uint32_t width) {
    static char text[16384];
    fx_buf out = {(uint8_t *)text, 0, sizeof text - 1};
    json_t *snapshot = json_loads(json, 0, NULL);
    assert_non_null(snapshot);
    cli_top_table(snapshot, &(struct cli_top_view){width}, &out);
    json_decref(snapshot);
    assert_true(fx_buf_fits(&out));
    text[out.len] = '\0';
    return text;
}

static size_t line_len(const char *text, size_t number) {
    for (; number; number--)
        text = strchr(text, '\n') + 1;
    return strcspn(text, "\n");
}

static void test_all_columns(void **state) {
    (void)state;
    assert_string_equal(
        table(snapshot_text, 0),
        "models 1  workers 1  running 3  waiting 7  1234.5 tokens/s\n"
        "MODEL                                       SLOTS  WAIT  RUN   ROWS   TOK/S PROMPT/S"
        "          KV TTFT p50    p95    p99  ITL p50    p95    p99 QUEUE p50    p95    p99\n"
        "org/tiny                                      3/8     7    3   2.25    1234     0.50"
        "       12/64     25.1   54.2  12.3s        -      -      -      1.50   2.00   3.00\n"
        "  01234567 leaving                            0/8     -    -      -       -        -"
        "           -        -      -      -        -      -      -         -      -      -\n");
}

/* Every width shows whole columns, the more important ones first. */
static void test_widths(void **state) {
    (void)state;
    static const struct {
        uint32_t width;
        const char *has, *has_not;
    } rows[] = {
        {40,  "MODEL",     "SLOTS"   },
        {48,  "TOK/S",     "KV"      },
        {60,  "KV",        "ROWS"    },
        {80,  "PROMPT/S",  "TTFT p50"},
        {100, "ITL p50",   "p99"     },
        {200, "QUEUE p50", "nothing" },
    };
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        const char *text = table(snapshot_text, rows[i].width);
        if (!strstr(text, rows[i].has) || strstr(text, rows[i].has_not))
            fail_msg("width %u:\n%s", rows[i].width, text);
        for (size_t line = 1; line < 4; line++)
            assert_true(line_len(text, line) <= rows[i].width);
    }
    for (uint32_t width = 20; width < 250; width++)
        assert_true(line_len(table(snapshot_text, width), 2) <= width);
}

static void test_nothing_yet(void **state) {
    (void)state;
    const char *text = table("{\"models\":[]}", 80);
    assert_non_null(strstr(text, "models 0  workers 0  running 0  waiting 0  0.0 tokens/s\n"));
    text = table("{\"models\":[null,{\"workers\":[7]}]}", 0); /* of another kind */
    assert_non_null(strstr(text, "\n?  "));
}

/* A model's name can't steer the terminal. */
static void test_names_are_plain(void **state) {
    (void)state;
    const char *text =
        table("{\"models\":[{\"model\":\"a\\u001b[2J\\n\\u009bb\\u00e9\",\"workers\":[]}]}", 80);
    assert_non_null(strstr(text, "a?[2J???b?? "));
    for (; *text; text++)
        assert_true(*text == '\n' || (*text >= 0x20 && *text < 0x7f));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_columns),
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_nothing_yet),
        cmocka_unit_test(test_names_are_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
