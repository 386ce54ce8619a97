/* Event streams cut at every place; what counts as an event, a comment, the end. */
#include "tests/fx_test.h"
#include "common/base/heap.h"
#include "services/cli/sse.h"

struct row {
    const char *name, *in;
    const char *want; /* the events' data, each in brackets */
    bool done;
    uint64_t comments;
};

static const struct row rows[] = {
    {"one event",                      "data: a\n\n",                                               "[a]",                false, 0},
    {"no space",                       "data:a\n\n",                                                "[a]",                false, 0},
    {"one space only goes",            "data:  a \n\n",                                             "[ a ]",              false, 0},
    {"two events",                     "data: a\n\ndata: b\n\n",                                    "[a][b]",             false, 0},
    {"lines joined",                   "data: a\ndata: b\n\n",                                      "[a\nb]",             false, 0},
    {"empty data",                     "data:\n\n",                                                 "[]",                 false, 0},
    {"data without a colon",           "data\n\n",                                                  "[]",                 false, 0},
    {"two empty lines of data",        "data\ndata\n\n",                                            "[\n]",               false, 0},
    {"colons in the value",            "data: a:b: c\n\n",                                          "[a:b: c]",           false, 0},
    {"blank lines alone",              "\n\n\n",                                                    "",                   false, 0},
    {"cr",                             "data: a\r\rdata: b\r\r",                                    "[a][b]",             false, 0},
    {"crlf",                           "data: a\r\n\r\ndata: b\r\n\r\n",                            "[a][b]",             false, 0},
    {"crlf lines joined",              "data: a\r\ndata: b\r\n\r\n",                                "[a\nb]",             false, 0},
    {"cr lines joined",                "data: a\rdata: b\r\r",                                      "[a\nb]",             false, 0},
    {"mixed line ends",                "data: a\r\n\rdata: b\n\r\ndata: c\r\r\n",                   "[a][b][c]",          false, 0},
    {"lf then cr is two ends",         "data: a\n\rdata: b\n\n",                                    "[a][b]",             false, 0},
    {"comment",                        ": hello\n\ndata: a\n\n",                                    "[a]",                false, 1},
    {"empty comment",                  ":\n\n:\n\n",                                                "",                   false, 2},
    {"comment inside an event",        "data: a\n: x\ndata: b\n\n",                                 "[a\nb]",             false, 1},
    {"other fields",                   "id: 7\nevent: ping\nretry: 10\ndata: a\n\n",                "[a]",                false, 0},
    {"an event without data",          "event: ping\n\nid: 7\n\n",                                  "",                   false, 0},
    {"field names that only begin so", "data2: x\ndat: y\nDATA: z\n data: q\n\n",                   "",                   false, 0},
    {"no blank line at the end",       "data: a\n\ndata: b\n",                                      "[a]",                false, 0},
    {"no line end at the end",         "data: a\n\ndata: b",                                        "[a]",                false, 0},
    {"done",                           "data: a\n\ndata: [DONE]\n\n",                               "[a]",                true,  0},
    {"done without its blank line",    "data: [DONE]\n",                                            "",                   false, 0},
    {"done is exact",                  "data: [DONE] \n\ndata: [DONE]x\n\n",                        "[[DONE] ][[DONE]x]", false, 0},
    {"done of two lines is none",      "data: [DONE]\ndata:\n\n",                                   "[[DONE]\n]",         false, 0},
    {"nothing after done",             "data: [DONE]\n\ndata: a\n\n",                               "",                   true,  0},
    {"byte order mark",
     "\xef\xbb\xbf"
     "data: a\n\n",                                                                                 "[a]",                false, 0},
    {"byte order mark later",
     "data: a\n\n\xef\xbb\xbf"
     "data: b\n\n",                                                                                 "[a]",                false, 0},
    {"characters of several bytes",    "data: \xf0\x9f\xa6\x88\xc3\xa9\n\n",
     "[\xf0\x9f\xa6\x88\xc3\xa9]",                                                                                        false, 0},
    {"error event",                    "data: {\"error\":{\"message\":\"m\"}}\n\ndata: [DONE]\n\n",
     "[{\"error\":{\"message\":\"m\"}}]",                                                                                 true,  0},
};

struct seen {
    char text[256];
    size_t len;
};

static bool on_data(void *user, fx_span data, fx_error *err) {
    struct seen *seen = user;
    (void)err;
    int len = snprintf(seen->text + seen->len, sizeof seen->text - seen->len, "[%.*s]",
                       (int)data.len, (const char *)data.at);
    seen->len += (size_t)len;
    assert_true(seen->len < sizeof seen->text);
    return true;
}

static void feed(cli_sse *sse, const char *at, size_t len) {
    fx_error err = {0};
    assert_true(cli_sse_feed(sse, (fx_span){(const uint8_t *)at, len}, &err));
}

static cli_sse *open_sse(struct seen *seen) {
    cli_sse *sse = NULL;
    fx_error err = {0};
    assert_true(cli_sse_new(&(struct cli_sse_opts){on_data, seen}, &sse, &err));
    return sse;
}

static void check(const cli_sse *sse, const struct seen *seen, const struct row *row) {
    assert_string_equal(seen->text, row->want);
    assert_true(cli_sse_is_done(sse) == row->done);
    assert_int_equal(cli_sse_comments(sse), row->comments);
}

static void test_splits(void **state) {
    const struct row *row = *state;
    size_t len = strlen(row->in);
    for (size_t cut = 0; cut <= len; cut++) {
        struct seen seen = {0};
        fx_auto(cli_sse) sse = open_sse(&seen);
        feed(sse, row->in, cut);
        feed(sse, row->in + cut, len - cut);
        check(sse, &seen, row);
    }
    struct seen seen = {0};
    fx_auto(cli_sse) sse = open_sse(&seen);
    for (size_t i = 0; i < len; i++)
        feed(sse, row->in + i, 1);
    check(sse, &seen, row);
}

FX_TEST_MAIN(test_splits, rows)
