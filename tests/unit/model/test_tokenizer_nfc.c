/* Normalisation in stretches against utf8proc on the whole text, and the marks that are held. */
#include <utf8proc.h>
#include "common/model/tokenizer_internal.h"
#include "common/model/tokenizer_unicode.h"
#include "tests/unit/model/text_fixture.h"

enum { ROUNDS = 20000, POINTS_MAX = 24 };

static uint64_t seed_ = 0x2545f4914f6cdd1d;
static uint32_t below(uint32_t limit) {
    seed_ ^= seed_ << 13;
    seed_ ^= seed_ >> 7;
    seed_ ^= seed_ << 17;
    return (uint32_t)(seed_ >> 32) % limit;
}

static fx_span nfc(struct fx_made *made, fx_span text) {
    fx_error err = {0};
    made->len = 0;
    assert_true(fx_nfc__append(text, made, &err));
    return (fx_span){made->at, made->len};
}

static void check(struct fx_made *made, fx_span text, const char *want) {
    fx_span got = nfc(made, text);
    if (!fx_span_eq_str(got, want)) {
        for (size_t i = 0; i < text.len; i++)
            print_error("%02x ", text.at[i]);
        fail_msg("differ");
    }
    if (fx_nfc__is_plain(text)) assert_true(fx_span_eq(text, got));
}

/* As utf8proc has it, for a text without U+0000. */
static void check_whole(struct fx_made *made, const char *text) {
    char *want = (char *)utf8proc_NFC((const uint8_t *)text);
    assert_non_null(want);
    check(made, fx_span_str(text), want);
    free(want);
}

static uint32_t random_point(void) {
    static const uint32_t first[] = {0x20,   0x41,   0xc0,   0x300,   0x340,  0x391,  0x5d0,
                                     0x915,  0x93c,  0x9be,  0xdca,   0xf71,  0x1100, 0x1161,
                                     0x11a8, 0x1e00, 0x1f00, 0x2126,  0x3041, 0x3099, 0x4e00,
                                     0xac00, 0xf900, 0xfb1d, 0x110a5, 0x1d15e};
    return first[below((uint32_t)FX_TEST_COUNT(first))] + below(48);
}

static void test_random(void **state) {
    (void)state;
    struct fx_made made = {0};
    for (int round = 0; round < ROUNDS; round++) {
        uint8_t text[4 * POINTS_MAX + 1];
        size_t len = 0;
        for (uint32_t i = below(POINTS_MAX) + 1; i > 0; i--) {
            uint32_t point = random_point();
            if (!fx_unicode__is_held(point))
                len += (size_t)utf8proc_encode_char((int32_t)point, text + len);
        }
        text[len] = 0;
        check_whole(&made, (const char *)text);
    }
    free(made.at);
}

/* Every character alone, between inert ones, and before a mark. */
static void test_each(void **state) {
    (void)state;
    struct fx_made made = {0};
    for (int32_t point = 1; point < 0x110000; point++) {
        uint8_t text[16] = "a";
        if ((point >= 0xd800 && point < 0xe000) || fx_unicode__is_held((uint32_t)point)) continue;
        size_t len = 1 + (size_t)utf8proc_encode_char(point, text + 1);
        memcpy(text + len, "\xcc\x81z", 4);
        check_whole(&made, (const char *)text);
        text[len] = 0;
        check_whole(&made, (const char *)text + 1);
    }
    free(made.at);
}

static void test_long(void **state) {
    (void)state;
    struct fx_made made = {0};
    static char text[3 * 4096 + 1];
    for (size_t i = 0; i < 4096; i++)
        memcpy(text + 3 * i, i % 3 ? "\xe0\xa4\x95" : "\xe0\xa5\x98", 3);
    check_whole(&made, text);
    free(made.at);
}

/* Unicode 9 does not know U+0898 and U+11930: no reordering, no composition, over them neither. */
static void test_held(void **state) {
    (void)state;
    struct fx_made made = {0};
    check(&made, fx_span_str("q\xe0\xa2\x98\xcc\xb4"), "q\xe0\xa2\x98\xcc\xb4");
    check(&made, fx_span_str("a\xe0\xa2\x98\xcc\x81"), "a\xe0\xa2\x98\xcc\x81");
    check(&made, fx_span_str("\xf0\x91\xa4\xb5\xf0\x91\xa4\xb0"),
          "\xf0\x91\xa4\xb5\xf0\x91\xa4\xb0");
    check(&made, fx_span_str("a\xcc\x81\xe0\xa2\x98"), "\xc3\xa1\xe0\xa2\x98");
    free(made.at);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_each),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
