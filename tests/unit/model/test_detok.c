/* Incremental UTF-8 against whole decodings; expected texts follow the maximal-subpart rule. */
#include "tests/unit/model/text_fixture.h"
#include "common/model/detok.h"

#define R "\xef\xbf\xbd"

struct row {
    const char *name, *in, *want;
};

static const struct row rows[] = {
    {"ascii",                  "abc",                                    "abc"                                   },
    {"nothing",                "",                                       ""                                      },
    {"two bytes",              "\xc3\xa9",                               "\xc3\xa9"                              },
    {"three bytes",            "\xe4\xba\xac",                           "\xe4\xba\xac"                          },
    {"four bytes",             "\xf0\x9f\xa6\x88",                       "\xf0\x9f\xa6\x88"                      },
    {"mixed",                  "a\xc3\xa9\xe4\xba\xac\xf0\x9f\xa6\x88z", "a\xc3\xa9\xe4\xba\xac\xf0\x9f\xa6\x88z"},
    {"largest",                "\xf4\x8f\xbf\xbf",                       "\xf4\x8f\xbf\xbf"                      },
    {"past the largest",       "\xf4\x90\x80\x80",                       R R R R                                 },
    {"surrogate",              "\xed\xa0\x80",                           R R R                                   },
    {"last before surrogates", "\xed\x9f\xbf",                           "\xed\x9f\xbf"                          },
    {"overlong two",           "\xc0\x80",                               R R                                     },
    {"overlong two high",      "\xc1\xbf",                               R R                                     },
    {"overlong three",         "\xe0\x9f\xbf",                           R R R                                   },
    {"overlong four",          "\xf0\x8f\xbf\xbf",                       R R R R                                 },
    {"lone continuation",
     "\x80"
     "a",                                                                R "a"                                   },
    {"cut two",                "\xc3",                                   R                                       },
    {"cut three",              "\xe4\xba",                               R                                       },
    {"cut four",               "\xf0\x9f\xa6",                           R                                       },
    {"cut then ascii",
     "\xf0\x9f\xa6"
     "a",                                                                R "a"                                   },
    {"cut then another",       "\xe4\xba\xc3\xa9",                       R "\xc3\xa9"                            },
    {"cut then cut",           "\xe4\xe4\xba",                           R R                                     },
    {"bad lead bytes",         "\xf5\xff\xfe",                           R R R                                   },
    {"bad in the middle",      "a\xf0\x80\x80\x41",                      "a" R R R "A"                           },
    {"U+FFFD itself",          R,                                        R                                       },
};

static void push(struct fx_detok *detok, const char *at, size_t len, fx_buf *out) {
    fx_detok_push_bytes(detok, (fx_span){(const uint8_t *)at, len}, out);
}

static void check(fx_buf *out, const char *want) {
    assert_true(fx_buf_fits(out));
    assert_int_equal(out->len, strlen(want));
    assert_memory_equal(out->at, want, out->len);
}

/* Every way to cut a text into three pushes. */
static void test_splits(void **state) {
    const struct row *row = *state;
    size_t len = strlen(row->in);
    for (size_t first = 0; first <= len; first++) {
        for (size_t second = first; second <= len; second++) {
            uint8_t at[128];
            fx_buf out = {at, 0, sizeof at};
            struct fx_detok detok;
            fx_detok_init(&detok, NULL);
            push(&detok, row->in, first, &out);
            push(&detok, row->in + first, second - first, &out);
            /* what is out already is a prefix of the whole and ends between characters */
            assert_memory_equal(out.at, row->want, out.len);
            assert_true(((uint8_t)row->want[out.len] & 0xc0) != 0x80);
            push(&detok, row->in + second, len - second, &out);
            fx_detok_flush(&detok, &out);
            check(&out, row->want);
            fx_detok_flush(&detok, &out); /* a second end adds nothing */
            check(&out, row->want);
        }
    }
}

FX_TEST_MAIN(test_splits, rows)
