#pragma once
/* Files, tokenizers and JSON for the tests of the text parts. Helpers assert, they don't fail. */
#include <jansson.h>
#include "tests/fx_test.h"
#include "common/base/heap.h"
#include "common/model/tokenizer.h"

#define FX_MODEL_FOLDER FX_SOURCE_DIR "/models/fractal-tiny-moe/"
#define FX_VECTORS_FOLDER FX_SOURCE_DIR "/tests/unit/model/"

FX_DEFINE_AUTO(json_t, json_decref)

static inline json_t *fixture_json(const char *path) {
    json_error_t at;
    json_t *root = json_load_file(path, JSON_ALLOW_NUL, &at);
    if (!root) fail_msg("%s: line %d: %s", path, at.line, at.text);
    return root;
}

static inline fx_span fixture_span(const json_t *string) {
    assert_true(json_is_string(string));
    return (fx_span){(const uint8_t *)json_string_value(string), json_string_length(string)};
}

/* NULL where the loader refuses; `err` then says why. */
static inline fx_tokenizer *fixture_tokenizer(const json_t *tokenizer, const char *config,
                                              fx_error *err) {
    fx_tokenizer *made = NULL;
    char *text = json_dumps(tokenizer, JSON_COMPACT);
    struct fx_tokenizer_files files = {fx_span_str(text), fx_span_str(config ? config : "")};
    bool ok = fx_tokenizer_new(&files, &made, err);
    free(text);
    assert_true(ok == (made != NULL));
    return made;
}

static inline fx_tokenizer *fixture_load(const char *path, const char *config_path) {
    fx_error err = {0};
    fx_auto(json_t) tokenizer = fixture_json(path);
    fx_auto(json_t) config = config_path ? fixture_json(config_path) : json_object();
    char *text = json_dumps(config, JSON_COMPACT);
    fx_tokenizer *made = fixture_tokenizer(tokenizer, text, &err);
    free(text);
    if (!made) fail_msg("%s: %s", path, err.text);
    return made;
}

static inline fx_tokenizer *fixture_bundled(void) {
    return fixture_load(FX_MODEL_FOLDER "tokenizer.json", FX_MODEL_FOLDER "tokenizer_config.json");
}

static inline void fixture_encode(const fx_tokenizer *tokenizer, fx_span text, bool is_template,
                                  enum fx_encode mode, struct fx_ids *out) {
    fx_error err = {0};
    struct fx_segment segment = {text, is_template};
    if (!fx_tokenizer_encode(tokenizer, (struct fx_segments){&segment, 1}, mode, out, &err))
        fail_msg("encode: %s", err.text);
}

static inline void fixture_equal_ids(const char *what, struct fx_ids got, const json_t *want) {
    bool same = got.len == json_array_size(want);
    for (size_t i = 0; same && i < got.len; i++)
        same = got.at[i] == (uint32_t)json_integer_value(json_array_get(want, i));
    if (same) return;
    char *text = json_dumps(want, JSON_COMPACT);
    print_error("%s: want %s\ngot:", what, text);
    free(text);
    for (size_t i = 0; i < got.len; i++)
        print_error(" %u", got.at[i]);
    fail_msg("ids differ");
}
