/* The x-ratelimit-* headers: names, numbers, durations; the ceiling of tokens. */
#include "services/gateway/limits.h"
#include "tests/fx_test.h"

static const struct row {
    const char *want;
    uint64_t ms;
} rows[] = {
    {"0s",      0       },
    {"1ms",     1       },
    {"999ms",   999     },
    {"1s",      1000    },
    {"2s",      1001    },
    {"59s",     59000   },
    {"1m0s",    59001   },
    {"1m1s",    60001   },
    {"6m0s",    360000  },
    {"59m59s",  3599000 },
    {"1h0m0s",  3600000 },
    {"25h1m2s", 90062000},
};

static void test_duration(void **state) {
    const struct row *row = *state;
    char text[GW_LIMIT_TEXT];
    gw_limit_duration(row->ms, text);
    assert_string_equal(text, row->want);
}

static void test_headers(void **state) {
    static const struct {
        const char *name, *value;
    } want[] = {
        {"x-ratelimit-limit-requests",     "60"        },
        {"x-ratelimit-remaining-requests", "0"         },
        {"x-ratelimit-reset-requests",     "1m0s"      },
        {"x-ratelimit-limit-tokens",       "1000000000"},
        {"x-ratelimit-remaining-tokens",   "1000000000"},
        {"x-ratelimit-reset-tokens",       "0s"        },
    };
    struct gw_limit_state limits = {
        .known = true, .requests = {60, 0, 60000}
    };
    struct gw_limit_headers headers;
    (void)state;
    gw_limit_headers(&limits, &headers);
    assert_int_equal(headers.count, FX_TEST_COUNT(want));
    for (size_t i = 0; i < FX_TEST_COUNT(want); i++) {
        assert_true(fx_span_eq_str(headers.headers[i].name, want[i].name));
        assert_true(fx_span_eq_str(headers.headers[i].value, want[i].value));
    }
    limits.known = false;
    gw_limit_headers(&limits, &headers);
    assert_int_equal(headers.count, 0);
}

static void test_ceiling(void **state) {
    static const struct {
        uint32_t key, tenant, prompt, max, want;
    } cases[] = {
        {0,   0,  10,  500, 500},
        {100, 0,  10,  500, 90 },
        {100, 0,  10,  20,  20 },
        {100, 50, 10,  500, 40 },
        {50,  70, 10,  500, 40 },
        {100, 0,  99,  500, 1  },
        {100, 0,  100, 500, 500}, /* refused when it is taken */
        {100, 0,  200, 500, 500},
    };
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(cases); i++) {
        struct gw_identity who = {
            .limits = {{.tokens = cases[i].key}, {.tokens = cases[i].tenant}}
        };
        assert_int_equal(gw_limits_ceiling(&who, cases[i].prompt, cases[i].max), cases[i].want);
    }
}

static void test_limited(void **state) {
    (void)state;
    assert_false(gw_limited(&(struct gw_identity){0}));
    assert_true(gw_limited(&(struct gw_identity){
        .limits = {{.requests = 1}, {0}}
    }));
    assert_true(gw_limited(&(struct gw_identity){
        .limits = {{0}, {.tokens = 1}}
    }));
    assert_true(gw_limited(&(struct gw_identity){
        .limits = {{0}, {.streams = 1}}
    }));
}

int main(void) {
    struct CMUnitTest tests[FX_TEST_COUNT(rows) + 3] = {cmocka_unit_test(test_headers),
                                                        cmocka_unit_test(test_ceiling),
                                                        cmocka_unit_test(test_limited)};
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i + 3] = (struct CMUnitTest){rows[i].want, test_duration, NULL, NULL,
                                           (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
