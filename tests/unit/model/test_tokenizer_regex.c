/* Regular expressions: what Oniguruma reads otherwise than PCRE2, what is refused, and the scanners
 * for ASCII against PCRE2 at every place of random texts. */
#include "common/model/tokenizer_regex.h"
#include "tests/unit/model/text_fixture.h"

enum { ROUNDS = 3000, TEXT_MAX = 64 };

struct row {
    const char *name, *pattern, *text;
    size_t from, to;  /* the first match; from == to: none */
    const char *says; /* refused so */
};

static const struct row rows[] = {
    {"letters",                  "\\p{L}+",          "12ab3",            2, 4, NULL                },
    {"letters not",              "\\P{L}+",          "ab12",             2, 4, NULL                },
    {"a letter of Unicode 16",   "\\p{L}",           "\xea\x9f\x8d",     0, 3, NULL                },
    {"in a class",               "[\\p{L}]",         "\xea\x9f\x8d",     0, 3, NULL                },
    {"and not outside",          "[^\\p{L}]",        "\xea\x9f\x8d",     0, 0, NULL                },
    {"lower case of Unicode 16", "\\p{Ll}",          "\xea\x9f\x8d",     0, 3, NULL                },
    {"digits of Unicode 16",     "\\d",              "\xf0\x90\xb5\x80", 0, 4, NULL                },
    {"space",                    "\\s+",             "a \t\xc2\x85",     1, 5, NULL                },
    {"U+180E is no space",       "\\s",              "\xe1\xa0\x8e",     0, 0, NULL                },
    {"not space",                "\\S",              " \xe1\xa0\x8e",    1, 4, NULL                },
    {"no vertical space",        "\\v",              "\n\x0b",           1, 2, NULL                },
    {"Han by script",            "\\p{Han}",         "\xe3\x80\x81",     0, 0, NULL                },
    {"Han",                      "\\p{Han}",         "\xe4\xb8\x80",     0, 3, NULL                },
    {"point",                    "\\x{4e00}",        "\xe4\xb8\x80",     0, 3, NULL                },
    {"point by u",               "\\u4e00",          "\xe4\xb8\x80",     0, 3, NULL                },
    {"any case",                 "(?i:'s)",          "'S",               0, 2, NULL                },
    {"long s",                   "(?i:'s)",          "'\xc5\xbf",        0, 3, NULL                },
    {"any case from here",       "(?i)ab",           "xAB",              1, 3, NULL                },
    {"look-ahead",               "\\s+(?!\\S)",      "a   b",            1, 3, NULL                },
    {"look-behind",              "(?<=a)b",          "bab",              2, 3, NULL                },
    {"interval",                 "a{2,3}",           "aaaa",             0, 3, NULL                },
    {"possessive",               "a++b",             "aab",              0, 3, NULL                },
    {"escapes",                  "[\\-\\]\\[\\\\]+", "a-][\\",           1, 5, NULL                },
    {"empty",                    "a*",               "",                 0, 0, "empty"             },
    {"no pattern",               "",                 "",                 0, 0, "empty"             },
    {"word",                     "\\w",              "",                 0, 0, "this escape"       },
    {"border",                   "\\bx",             "",                 0, 0, "this escape"       },
    {"back reference",           "(a)\\1",           "",                 0, 0, "this escape"       },
    {"hex of Oniguruma",         "\\h",              "",                 0, 0, "this escape"       },
    {"begin of a line",          "^a",               "",                 0, 0, "^ or $"            },
    {"interval and plus",        "a{2}+",            "",                 0, 0, "} with + or ?"     },
    {"open interval",            "a{,2}",            "",                 0, 0, "this {"            },
    {"lone brace",               "a{",               "",                 0, 0, "this {"            },
    {"class in a class",         "[a[bc]]",          "",                 0, 0, "a class in a class"},
    {"posix class",              "[[:alpha:]]",      "",                 0, 0, "a class in a class"},
    {"and of classes",           "[a&&b]",           "",                 0, 0, "&&"                },
    {"empty class",              "[]a]",             "",                 0, 0, "an empty class"    },
    {"open class",               "[a",               "",                 0, 0, "without end"       },
    {"not space in a class",     "[\\S]",            "",                 0, 0, "this escape"       },
    {"unknown property",         "\\p{Greek}",       "",                 0, 0, "this \\p"          },
    {"a category that shrank",   "\\p{Mn}",          "",                 0, 0, "this \\p"          },
    {"open property",            "\\p{L",            "",                 0, 0, "this \\p"          },
    {"cased in any case",        "(?i:\\p{Lu})",     "",                 0, 0, "cased"             },
    {"named group",              "(?<a>b)",          "",                 0, 0, "this group"        },
    {"flags",                    "(?m:a)",           "",                 0, 0, "this group"        },
    {"closed too often",         "a)",               "",                 0, 0, "this )"            },
    {"not closed",               "(?:a",             "",                 0, 0, "regex"             },
    {"last backslash",           "a\\",              "",                 0, 0, "a last \\"         },
};

static void test_regex(void **state) {
    const struct row *row = *state;
    fx_auto(fx_regex) regex = NULL;
    fx_auto(fx_regex_work) work = NULL;
    fx_error err = {0};
    struct fx_match match;
    if (!fx_regex_new(fx_span_str(row->pattern), &regex, &err)) {
        if (!row->says || !strstr(err.text, row->says)) fail_msg("refused: %s", err.text);
        return;
    }
    assert_null(row->says);
    assert_true(fx_regex_work_new(&work, &err));
    assert_true(fx_regex_find(regex, work, fx_span_str(row->text), 0, &match, &err));
    if (match.from == match.to) match = (struct fx_match){0};
    assert_int_equal(match.from, row->from);
    assert_int_equal(match.to, row->to);
}

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define REST(tail) "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n" tail "]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED "[^\\r\\n\\p{L}\\p{N}]?"

static const char *const scanned[] = {
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    CONTRACTIONS "|" CASED "\\p{L}+|\\p{N}{1,3}" REST(""),
    CONTRACTIONS "|" CASED "\\p{L}+|\\p{N}" REST(""),
    CASED UPPER "*" LOWER "+" CONTRACTIONS "?|" CASED UPPER "+" LOWER "*" CONTRACTIONS
                "?|\\p{N}{1,3}" REST("/"),
};

static uint64_t seed_ = 0x2545f4914f6cdd1d;
static uint32_t below(uint32_t limit) {
    seed_ ^= seed_ << 13;
    seed_ ^= seed_ >> 7;
    seed_ ^= seed_ << 17;
    return (uint32_t)(seed_ >> 32) % limit;
}

static void make_text(fx_buf *out) {
    static const char *const parts[] = {" ",
                                        " ",
                                        "\n",
                                        "\r",
                                        "\t",
                                        "\x0b",
                                        "\x1f",
                                        "'",
                                        "s",
                                        "S",
                                        "t",
                                        "re",
                                        "l",
                                        "L",
                                        "V",
                                        "e",
                                        "m",
                                        "d",
                                        "1",
                                        "23",
                                        "/",
                                        ".",
                                        "_",
                                        "\x7f",
                                        "a",
                                        "B",
                                        "\xc5\xbf",
                                        "\xc3\xa9",
                                        "\xe4\xb8\x80",
                                        "\xc2\xa0",
                                        "\xcc\x81",
                                        "\xc2\xb2",
                                        "\xe2\x80\x83",
                                        "\xf0\x9f\xa6\x88",
                                        "\xc7\x85"};
    bool ascii = below(2);
    for (uint32_t i = below(16) + 1; i > 0; i--)
        fx_buf_put(out, fx_span_str(parts[below(ascii ? 26 : FX_TEST_COUNT(parts))]));
    if (ascii && below(2)) { /* any ASCII at all */
        uint8_t byte = (uint8_t)below(128);
        fx_buf_put(out, (fx_span){&byte, 1});
    }
    assert_true(fx_buf_fits(out));
}

static size_t check_text(fx_regex *regex, fx_regex_work *work, fx_span text) {
    fx_error err = {0};
    size_t decided = 0;
    for (size_t at = 0; at < text.len; at++) {
        struct fx_match want, got;
        if (text.at[at] >> 6 == 2) continue;
        fx_regex_use_scanner(regex, false);
        assert_true(fx_regex_find(regex, work, text, at, &want, &err));
        fx_regex_use_scanner(regex, true);
        assert_true(fx_regex_find(regex, work, text, at, &got, &err));
        if (got.from != want.from || got.to != want.to)
            fail_msg("'%.*s' at %zu: %zu..%zu, not %zu..%zu", (int)text.len, (const char *)text.at,
                     at, got.from, got.to, want.from, want.to);
        decided += got.to - got.from;
    }
    return decided;
}

static void test_scanner(void **state) {
    fx_auto(fx_regex) regex = NULL;
    fx_auto(fx_regex_work) work = NULL;
    fx_error err = {0};
    size_t decided = 0;
    assert_true(fx_regex_new(fx_span_str(*state), &regex, &err));
    assert_true(fx_regex_has_scanner(regex));
    assert_true(fx_regex_work_new(&work, &err));
    for (int round = 0; round < ROUNDS; round++) {
        uint8_t bytes[TEXT_MAX + 64];
        fx_buf text = {bytes, 0, sizeof bytes};
        make_text(&text);
        decided += check_text(regex, work, (fx_span){text.at, text.len});
    }
    for (unsigned two = 0; two < 128 * 128; two++) { /* every pair */
        uint8_t bytes[3] = {(uint8_t)(two / 128), (uint8_t)(two % 128), 'e'};
        decided += check_text(regex, work, (fx_span){bytes, 2 + two % 2});
    }
    assert_true(decided > ROUNDS);
}

/* Backtracking without end is an error, not a hang. */
static void test_limit(void **state) {
    (void)state;
    fx_auto(fx_regex) regex = NULL;
    fx_auto(fx_regex_work) work = NULL;
    fx_error err = {0};
    uint8_t text[40];
    struct fx_match match;
    memset(text, 'a', sizeof text);
    assert_true(fx_regex_new(fx_span_str("(a+a+)+[bc]"), &regex, &err));
    assert_true(fx_regex_work_new(&work, &err));
    assert_false(fx_regex_find(regex, work, (fx_span){text, sizeof text}, 0, &match, &err));
    assert_int_equal(err.code, FX_RESOURCE_EXHAUSTED);
}

int main(void) {
    static struct CMUnitTest tests[FX_TEST_COUNT(rows) + FX_TEST_COUNT(scanned) + 1];
    size_t count = 0;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[count++] =
            (struct CMUnitTest){rows[i].name, test_regex, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    for (size_t i = 0; i < FX_TEST_COUNT(scanned); i++)
        tests[count++] = (struct CMUnitTest){scanned[i], test_scanner, NULL, NULL,
                                             (void *)(uintptr_t)scanned[i]};
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_limit);
    return _cmocka_run_group_tests("regex", tests, count, NULL, NULL);
}
