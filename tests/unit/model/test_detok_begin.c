/* The begin of a text, where the decoder treats it apart, and special tokens: left out or named. */
#include "tests/unit/model/text_fixture.h"
#include "common/model/detok.h"
#include "tests/unit/model/pieces.h"

typedef void (*opening)(struct fx_detok *detok, const fx_tokenizer *tokenizer);
typedef void (*pushing)(struct fx_detok *detok, uint32_t id, fx_buf *out);

static const struct row {
    const char *name;
    opening open;
    pushing push;
    uint32_t ids[3], count;
    const char *want;
} rows[] = {
    {"a text of its own",     fx_detok_init,        fx_detok_push,     {PIECES_HI, PIECES_HI},    2, "Hi Hi"            },
    {"one that goes on",      fx_detok_init_middle, fx_detok_push,     {PIECES_HI, PIECES_HI},    2, " Hi Hi"           },
    {"a space alone",         fx_detok_init,        fx_detok_push,     {PIECES_SPACE, PIECES_HI}, 2, " Hi"              },
    {"specials are left out",
     fx_detok_init,                                 fx_detok_push,
     {PIECES_BOS, PIECES_HI, PIECES_EOS},
     3,                                                                                              "Hi"               },
    {"specials by name",
     fx_detok_init,                                 fx_detok_push_all,
     {PIECES_BOS, PIECES_HI, PIECES_EOS},
     3,                                                                                              "<|bos|> Hi<|eos|>"},
    {"by name at the end",
     fx_detok_init,                                 fx_detok_push_all,
     {PIECES_HI, PIECES_EOS},
     2,                                                                                              "Hi<|eos|>"        },
    {"by name in the middle",
     fx_detok_init_middle,                          fx_detok_push_all,
     {PIECES_EOS, PIECES_HI},
     2,                                                                                              "<|eos|> Hi"       },
    {"no such id",            fx_detok_init,        fx_detok_push_all, {4000000000U, PIECES_HI},  2, "Hi"               },
};

static void test_begin(void **state) {
    const struct row *row = *state;
    fx_auto(fx_tokenizer) tokenizer = NULL;
    fx_error err = {0};
    struct fx_tokenizer_files files = {fx_span_str(pieces_json), fx_span_str(pieces_config_json)};
    struct fx_detok detok;
    uint8_t text[64] = {0};
    fx_buf out = {text, 0, sizeof text - 1};
    if (!fx_tokenizer_new(&files, &tokenizer, &err)) fail_msg("%s", err.text);
    row->open(&detok, tokenizer);
    for (uint32_t i = 0; i < row->count; i++)
        row->push(&detok, row->ids[i], &out);
    fx_detok_flush(&detok, &out);
    assert_string_equal((char *)text, row->want);
}

FX_TEST_MAIN(test_begin, rows)
