#include "tests/fx_test.h"
#include "common/base/span.h"
#include "common/base/auto.h"

static void test_equality(void **state) {
    (void)state;
    fx_span abc = fx_span_str("abc");
    assert_int_equal(abc.len, 3);
    assert_true(fx_span_eq(abc, (fx_span){(const uint8_t *)"abcd", 3}));
    assert_false(fx_span_eq(abc, fx_span_str("abd")));
    assert_false(fx_span_eq_str(abc, "ab"));
    assert_false(fx_span_eq_str(abc, "abcd"));
    assert_true(fx_span_eq_str((fx_span){NULL, 0}, ""));
    assert_true(fx_span_eq((fx_span){NULL, 0}, (fx_span){(const uint8_t *)"x", 0}));
    assert_false(fx_span_eq_str((fx_span){(const uint8_t *)"a\0b", 3}, "a"));
}

struct row {
    const char *title;
    size_t cap;
    const char *written;
    bool fits;
};
static const struct row rows[] = {
    {"room to spare", 8, "abcdef", true },
    {"exact",         6, "abcdef", true },
    {"one short",     5, "abcde",  false},
    {"second cut",    3, "abc",    false},
    {"first cut",     2, "ab",     false},
    {"no room",       0, "",       false},
};

static void test_buf_writes_what_fits_and_counts_all(void **state) {
    (void)state;
    for (size_t i = 0; i < FX_COUNT(rows); i++) {
        uint8_t bytes[9];
        memset(bytes, '#', sizeof bytes);
        fx_buf buf = {bytes, 0, rows[i].cap};
        fx_buf_put(&buf, fx_span_str("abc"));
        fx_buf_put(&buf, (fx_span){NULL, 0});
        fx_buf_put(&buf, fx_span_str("def"));
        size_t written = strlen(rows[i].written);
        assert_int_equal(buf.len, 6);
        assert_int_equal(fx_buf_fits(&buf), rows[i].fits);
        assert_memory_equal(bytes, rows[i].written, written);
        for (size_t rest = written; rest < sizeof bytes; rest++)
            assert_int_equal(bytes[rest], '#');
    }
}

static void test_buf_measures_without_memory(void **state) {
    (void)state;
    fx_buf buf = {NULL, 0, 0};
    fx_buf_put(&buf, fx_span_str("four"));
    assert_int_equal(buf.len, 4);
    assert_false(fx_buf_fits(&buf));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equality),
        cmocka_unit_test(test_buf_writes_what_fits_and_counts_all),
        cmocka_unit_test(test_buf_measures_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
