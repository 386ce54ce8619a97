/* Stop strings, against a search of the whole text and with every way of cutting it. */
#include "common/base/heap.h"
#include "common/base/stops.h"
#include "tests/fx_test.h"

static const struct row {
    const char *name, *stops[FX_STOPS_MAX], *text, *shown;
    bool met;
    size_t held; /* before the flush */
} rows[] = {
    {"none of it",                {"xyz"},               "hello",                      "hello",        false, 0},
    {"in the middle",             {"lo w"},              "hello world",                "hel",          true,  0},
    {"at the begin",              {"he"},                "hello",                      "",             true,  0},
    {"one byte",                  {"l"},                 "hello",                      "he",           true,  0},
    {"half of it at the end",     {"low"},               "hello",                      "hello",        false, 2},
    {"the first of two",          {"o", "lo"},           "hello",                      "hel",          true,  0},
    {"the earlier end wins",      {"llo wor", "ll"},     "hello world",                "he",           true,  0},
    {"begins again inside",       {"aab"},               "aaab",                       "a",            true,  0},
    {"a border is kept",          {"abac"},              "ababac",                     "ab",           true,  0},
    {"another takes over",        {"abcd", "bce"},       "abce",                       "a",            true,  0},
    {"shorter held after longer", {"abcd", "cx"},        "abcab",                      "abcab",        false, 2},
    {"over characters",           {"\xe2\x82\xac!"},     "\xe2\x82\xac\xe2\x82\xac!?", "\xe2\x82\xac", true,  0},
    {"four",                      {"w", "x", "y", "or"}, "forget",                     "f",            true,  0},
    {"empty text",                {"w"},                 "",                           "",             false, 0},
};

static fx_stops *stops_of(const struct row *row) {
    fx_span strings[FX_STOPS_MAX];
    fx_stops *stops = NULL;
    size_t count = 0;
    for (; count < FX_STOPS_MAX && row->stops[count]; count++)
        strings[count] = fx_span_str(row->stops[count]);
    assert_true(fx_stops_new(strings, count, &stops, &(fx_error){0}));
    return stops;
}

/* The text in pieces: a cut behind byte i where bit i of `cuts` is set. */
static void check(const struct row *row, uint32_t cuts) {
    fx_auto(fx_stops) stops = stops_of(row);
    uint8_t bytes[64];
    fx_buf out = {bytes, 0, sizeof bytes};
    size_t len = strlen(row->text), from = 0;
    bool met = false;
    for (size_t i = 0; i < len; i++) {
        if (i + 1 < len && !(cuts >> i & 1)) continue;
        met =
            fx_stops_push(stops, (fx_span){(const uint8_t *)row->text + from, i + 1 - from}, &out);
        from = i + 1;
    }
    assert_int_equal(met, row->met);
    assert_int_equal(fx_stops_held(stops), row->held);
    assert_int_equal(out.len, strlen(row->shown) - row->held);
    fx_stops_flush(stops, &out);
    assert_int_equal(out.len, strlen(row->shown));
    assert_memory_equal(bytes, row->shown, out.len);
}

static void test_cuts(void **state) {
    const struct row *row = *state;
    size_t len = strlen(row->text);
    for (uint32_t cuts = 0; cuts < 1U << (len ? len - 1 : 0); cuts++)
        check(row, cuts);
}

static uint32_t random_state = 3;
static uint32_t below(uint32_t bound) {
    random_state = random_state * 1664525U + 1013904223U;
    return (random_state >> 16) % bound;
}

/* Where the first string that ends anywhere begins: the earliest end, then the longest. */
static size_t searched(const char *text, const char *const *stops, size_t count) {
    for (size_t end = 1; end <= strlen(text); end++) {
        size_t longest = 0;
        for (size_t i = 0; i < count; i++) {
            size_t len = strlen(stops[i]);
            if (len <= end && len > longest && memcmp(text + end - len, stops[i], len) == 0)
                longest = len;
        }
        if (longest) return end - longest;
    }
    return strlen(text);
}

static void letters(char *out, uint32_t len) {
    for (uint32_t i = 0; i < len; i++)
        out[i] = (char)('a' + below(2));
    out[len] = 0;
}

static void test_random(void **state) {
    (void)state;
    for (uint32_t round = 0; round < 20000; round++) {
        char text[41], stop[2][9];
        uint8_t bytes[64];
        fx_buf out = {bytes, 0, sizeof bytes};
        letters(text, below(41));
        letters(stop[0], 1 + below(8));
        letters(stop[1], 1 + below(8));
        const char *const stops[] = {stop[0], stop[1]};
        fx_auto(fx_stops) matcher = stops_of(&(struct row){
            .stops = {stop[0], stop[1]}
        });
        for (size_t at = 0; at < strlen(text);) {
            size_t len = 1 + below((uint32_t)(strlen(text) - at));
            (void)fx_stops_push(matcher, (fx_span){(const uint8_t *)text + at, len}, &out);
            assert_true(fx_stops_held(matcher) < 9);
            at += len;
        }
        fx_stops_flush(matcher, &out);
        size_t want = searched(text, stops, 2);
        assert_int_equal(out.len, want);
        if (want) assert_memory_equal(bytes, text, want);
    }
}

/* Nothing is shown once a stop string was met, not even by another push. */
static void test_after(void **state) {
    (void)state;
    fx_auto(fx_stops) stops = stops_of(&(struct row){.stops = {"b"}});
    uint8_t bytes[8];
    fx_buf out = {bytes, 0, sizeof bytes};
    assert_true(fx_stops_push(stops, fx_span_str("ab"), &out));
    uint64_t before = fx_heap_count();
    assert_true(fx_stops_push(stops, fx_span_str("cd"), &out));
    assert_int_equal(fx_heap_count(), before);
    fx_stops_flush(stops, &out);
    assert_int_equal(out.len, 1);
}

static void refused(const fx_span *strings, size_t count) {
    fx_stops *stops = NULL;
    fx_error err = {0};
    assert_false(fx_stops_new(strings, count, &stops, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    assert_null(stops);
}

static void test_refused(void **state) {
    (void)state;
    static const uint8_t long_one[FX_STOP_BYTES_MAX + 1] = {'a'};
    const fx_span five[5] = {fx_span_str("a"), fx_span_str("b"), fx_span_str("c"), fx_span_str("d"),
                             fx_span_str("e")};
    refused(five, 0);
    refused(five, 5);
    refused(&(fx_span){NULL, 0}, 1);
    refused(&(fx_span){long_one, sizeof long_one}, 1);
    fx_auto(fx_stops) longest = NULL;
    assert_true(fx_stops_new(&(fx_span){long_one, FX_STOP_BYTES_MAX}, 1, &longest, &(fx_error){0}));
}

int main(void) {
    struct CMUnitTest tests[FX_TEST_COUNT(rows) + 3] = {cmocka_unit_test(test_random),
                                                        cmocka_unit_test(test_after),
                                                        cmocka_unit_test(test_refused)};
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i + 3] =
            (struct CMUnitTest){rows[i].name, test_cuts, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    return _cmocka_run_group_tests("stops", tests, FX_TEST_COUNT(tests), NULL, NULL);
}
