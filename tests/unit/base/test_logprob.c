#include "common/base/logprob.h"
#include "tests/fx_test.h"
#include <float.h>

static void test_round_trip(void **state) {
    (void)state;
    struct fx_logprob in[FX_LOGPROBS_MAX] =
        {
            {7, -0.1F}
    },
                      out[FX_LOGPROBS_MAX] = {{7, 0}};
    uint8_t bytes[FX_LOGPROBS_TEXT_MAX];
    for (uint32_t i = 1; i < FX_LOGPROBS_MAX; i++)
        in[i] = (struct fx_logprob){4294967294U - i, -FLT_MIN * (float)i - (float)(i % 3)};
    for (uint32_t count = 1; count <= FX_LOGPROBS_MAX; count++) {
        fx_buf text = {bytes, 0, sizeof bytes};
        uint32_t read = 0;
        fx_logprobs_write(in, count, &text);
        assert_true(fx_buf_fits(&text));
        assert_true(fx_logprobs_read((fx_span){bytes, text.len}, out, &read));
        assert_int_equal(read, count);
        assert_memory_equal(in, out, count * sizeof *in);
    }
}

static void test_empty_places(void **state) {
    (void)state;
    const struct fx_logprob in[] = {
        {3,               -1},
        {3,               -1},
        {FX_LOGPROB_NONE, 0 }
    };
    uint8_t bytes[64] = {0};
    fx_buf text = {bytes, 0, sizeof bytes - 1};
    fx_logprobs_write(in, 3, &text);
    assert_string_equal((char *)bytes, "bf800000/3:bf800000");
}

static const struct row {
    const char *name, *text;
} rows[] = {
    {"empty",           ""                             },
    {"short",           "bf80000"                      },
    {"capital",         "BF800000"                     },
    {"not a number",    "7fc00000"                     },
    {"infinite",        "ff800000"                     },
    {"a byte more",     "bf800000 "                    },
    {"an empty place",  "bf800000/"                    },
    {"no id",           "bf800000/:bf800000"           },
    {"no value",        "bf800000/3"                   },
    {"half a value",    "bf800000/3:bf80"              },
    {"an id too large", "bf800000/4294967295:00000000" },
    {"a long id",       "bf800000/00000000003:bf800000"},
    {"infinite below",  "bf800000/3:ff800000"          },
};

static void test_refused(void **state) {
    struct fx_logprob out[FX_LOGPROBS_MAX];
    uint32_t count = 0;
    assert_false(fx_logprobs_read(fx_span_str(((const struct row *)*state)->text), out, &count));
}

static void test_too_many(void **state) {
    (void)state;
    char text[FX_LOGPROBS_TEXT_MAX + 64] = "bf800000";
    struct fx_logprob out[FX_LOGPROBS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < FX_TOP_LOGPROBS_MAX; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "/%u:bf800000", i);
    assert_true(fx_logprobs_read(fx_span_str(text), out, &count));
    assert_int_equal(count, FX_LOGPROBS_MAX);
    (void)snprintf(text + strlen(text), sizeof text - strlen(text), "/1:bf800000");
    assert_false(fx_logprobs_read(fx_span_str(text), out, &count));
}

int main(void) {
    struct CMUnitTest tests[FX_TEST_COUNT(rows) + 3] = {cmocka_unit_test(test_round_trip),
                                                        cmocka_unit_test(test_empty_places),
                                                        cmocka_unit_test(test_too_many)};
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i + 3] = (struct CMUnitTest){rows[i].name, test_refused, NULL, NULL,
                                           (void *)(uintptr_t)&rows[i]};
    return _cmocka_run_group_tests("logprob", tests, FX_TEST_COUNT(tests), NULL, NULL);
}
