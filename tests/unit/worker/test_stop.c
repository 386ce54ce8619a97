/* Stop strings over tokens: where a text begins decides whether its first space is part of it. */
#include "tests/fx_test.h"
#include "services/worker/stop.h"
#include "tests/unit/model/pieces.h"

static const struct row {
    const char *name;
    bool continues;
    const char *stop;
    uint32_t tokens[4], count;
    uint32_t met; /* by which token, from 1; 0: none */
} rows[] = {
    {"a text of its own begins without a space", false, " Hi", {PIECES_HI, PIECES_I},    2, 0},
    {"its second word has one",                  false, " Hi", {PIECES_HI, PIECES_HI},   2, 2},
    {"one that goes on begins with it",          true,  " Hi", {PIECES_HI, PIECES_I},    2, 1},
    {"without the space both meet it",           true,  "Hi",  {PIECES_HI, PIECES_I},    2, 1},
    {"without the space both meet it",           false, "Hi",  {PIECES_HI, PIECES_I},    2, 1},
    {"a space alone at the begin",               false, " ",   {PIECES_SPACE, PIECES_I}, 2, 0},
    {"a space alone that goes on",               true,  " ",   {PIECES_SPACE, PIECES_I}, 2, 1},
    {"over two tokens",                          true,  "Hii", {PIECES_HI, PIECES_I},    2, 2},
};

static void test_stop(void **state) {
    const struct row *row = *state;
    fx_auto(fx_tokenizer) tokenizer = NULL;
    fx_error err = {0};
    struct fx_tokenizer_files files = {fx_span_str(pieces_json), fx_span_str(pieces_config_json)};
    struct gen_stop stop = {0};
    char *strings[] = {(char *)(uintptr_t)row->stop};
    uint32_t met = 0;
    if (!fx_tokenizer_new(&files, &tokenizer, &err)) fail_msg("%s", err.text);
    assert_true(gen_stop_init(&stop, tokenizer, strings, 1, row->continues, &err));
    for (uint32_t i = 0; i < row->count && !met; i++)
        if (gen_stop_token(&stop, row->tokens[i], true)) met = i + 1;
    assert_int_equal(met, row->met);
    gen_stop_done(&stop);
    gen_stop_done(&stop);
}

FX_TEST_MAIN(test_stop, rows)
