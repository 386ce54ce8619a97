/* Ids of the bundled model's oracle and of the `tokenizers` library (tokenizer-vectors.json). */
#include "tests/unit/model/text_fixture.h"
#include "common/model/detok.h"

enum { IDS_MAX = 4096 };

static void test_oracle(void **state) {
    (void)state;
    fx_auto(fx_tokenizer) tokenizer = fixture_bundled();
    fx_auto(json_t) oracle = fixture_json(FX_MODEL_FOLDER "oracle.json");
    json_t *prompt;
    size_t i;
    assert_int_equal(json_array_size(json_object_get(oracle, "prompts")), 5);
    json_array_foreach(json_object_get(oracle, "prompts"), i, prompt) {
        uint32_t at[IDS_MAX];
        struct fx_ids ids = {at, 0, IDS_MAX};
        fixture_encode(tokenizer, fixture_span(json_object_get(prompt, "text")), false,
                       FX_ENCODE_PROMPT, &ids);
        fixture_equal_ids("oracle", ids, json_object_get(prompt, "ids"));
    }
}

static void test_bundled_facts(void **state) {
    (void)state;
    fx_auto(fx_tokenizer) tokenizer = fixture_bundled();
    uint32_t bos = 0, eos = 0, id = 0;
    assert_int_equal(fx_tokenizer_vocabulary(tokenizer), 260);
    assert_true(fx_tokenizer_bos_id(tokenizer, &bos) && fx_tokenizer_eos_id(tokenizer, &eos));
    assert_int_equal(bos, 256);
    assert_int_equal(eos, 257);
    assert_string_equal(fx_tokenizer_bos_text(tokenizer), "<|bos|>");
    assert_string_equal(fx_tokenizer_eos_text(tokenizer), "<|eos|>");
    assert_true(fx_tokenizer_added_id(tokenizer, fx_span_str("<|pad|>"), &id));
    assert_int_equal(id, 258);
    assert_false(fx_tokenizer_added_id(tokenizer, fx_span_str("<|pad|> "), &id));
    assert_false(fx_tokenizer_added_id(tokenizer, fx_span_str("a"), &id));
    assert_true(fx_tokenizer_is_special(tokenizer, 259));
    assert_false(fx_tokenizer_is_special(tokenizer, 255));
    assert_false(fx_tokenizer_is_special(tokenizer, 260));
    for (uint32_t byte = 0; byte < 256; byte++) {
        fx_span bytes = fx_tokenizer_bytes(tokenizer, byte);
        assert_true(bytes.len == 1 && bytes.at[0] == byte);
    }
    assert_int_equal(fx_tokenizer_bytes(tokenizer, 260).len, 0);
    assert_int_equal(fx_tokenizer_bytes_max(tokenizer), strlen("<|unused|>"));
    assert_true(fx_tokenizer_chat_template(tokenizer).len > 100);
}

static void check_encode_row(const fx_tokenizer *tokenizer, const json_t *row) {
    static const char bos[] = "<|bos|>";
    fx_span text = fixture_span(json_object_get(row, "text"));
    const char *what = (const char *)text.at;
    uint32_t at[IDS_MAX];
    struct fx_ids ids = {at, 0, IDS_MAX};
    fixture_encode(tokenizer, text, true, FX_ENCODE_PLAIN, &ids);
    fixture_equal_ids(what, ids, json_object_get(row, "template"));
    ids.len = 0;
    fixture_encode(tokenizer, text, false, FX_ENCODE_PLAIN, &ids);
    fixture_equal_ids(what, ids, json_object_get(row, "user"));
    if (strncmp(what, bos, strlen(bos)) == 0) return; /* we want one BOS: test_bos_once */
    ids.len = 0;
    fixture_encode(tokenizer, text, true, FX_ENCODE_PROMPT, &ids);
    fixture_equal_ids(what, ids, json_object_get(row, "prompt"));
}

static void check_decode_row(const fx_tokenizer *tokenizer, const json_t *row) {
    struct fx_detok detok;
    uint8_t at[IDS_MAX];
    fx_buf out = {at, 0, sizeof at};
    fx_span want = fixture_span(json_object_get(row, "text"));
    json_t *id;
    size_t i;
    fx_detok_init(&detok, tokenizer);
    json_array_foreach(json_object_get(row, "ids"), i, id)
        fx_detok_push(&detok, (uint32_t)json_integer_value(id), &out);
    fx_detok_flush(&detok, &out);
    assert_true(fx_buf_fits(&out));
    assert_int_equal(out.len, want.len);
    assert_memory_equal(out.at, want.at, want.len);
}

static void check_vectors(const char *name, const char *path) {
    fx_auto(fx_tokenizer) tokenizer = fixture_load(path, NULL);
    fx_auto(json_t) all = fixture_json(FX_VECTORS_FOLDER "tokenizer-vectors.json");
    const json_t *vectors = json_object_get(all, name);
    json_t *row;
    size_t i;
    assert_true(json_array_size(json_object_get(vectors, "encode")) >= 100);
    json_array_foreach(json_object_get(vectors, "encode"), i, row) check_encode_row(tokenizer, row);
    assert_true(json_array_size(json_object_get(vectors, "decode")) >= 80);
    json_array_foreach(json_object_get(vectors, "decode"), i, row) check_decode_row(tokenizer, row);
}

static void test_vectors(void **state) {
    (void)state;
    check_vectors("tokenizer-bpe", FX_VECTORS_FOLDER "tokenizer-bpe.json");
}

static void test_vectors_ignore_merges(void **state) {
    (void)state;
    check_vectors("tokenizer-bpe-words", FX_VECTORS_FOLDER "tokenizer-bpe-words.json");
}

static void test_bos_once(void **state) {
    (void)state;
    fx_auto(fx_tokenizer) tokenizer = fixture_bundled();
    uint32_t at[64];
    struct fx_ids ids = {at, 0, 64};
    fixture_encode(tokenizer, fx_span_str("<|bos|>ab"), true, FX_ENCODE_PROMPT, &ids);
    assert_int_equal(ids.len, 3);
    assert_int_equal(at[0], 256);
    assert_int_equal(at[1], 'a');
    ids.len = 0; /* a user's text is no BOS */
    fixture_encode(tokenizer, fx_span_str("<|bos|>ab"), false, FX_ENCODE_PROMPT, &ids);
    assert_int_equal(ids.len, 1 + 9);
    assert_int_equal(at[1], '<');
}

/* Segments do not merge across their border; only template text has special tokens. */
static void test_segments(void **state) {
    (void)state;
    fx_error err = {0};
    fx_auto(fx_tokenizer) tokenizer = fixture_load(FX_VECTORS_FOLDER "tokenizer-bpe.json", NULL);
    uint32_t at[64], eos = 0;
    struct fx_ids ids = {at, 0, 64};
    assert_true(fx_tokenizer_added_id(tokenizer, fx_span_str("<|eos|>"), &eos));
    const struct fx_segment segments[] = {
        {fx_span_str("a"),       true },
        {fx_span_str("a"),       false},
        {fx_span_str("<|eos|>"), true },
        {fx_span_str("<|eos|>"), false},
    };
    assert_true(fx_tokenizer_encode(tokenizer, (struct fx_segments){segments, 4}, FX_ENCODE_PLAIN,
                                    &ids, &err));
    assert_int_equal(at[0], at[1]); /* alone "aa" is one token */
    assert_int_equal(at[2], eos);
    assert_true(ids.len > 4);
    for (size_t i = 3; i < ids.len; i++)
        assert_int_not_equal(at[i], eos);
}

static void test_no_room(void **state) {
    (void)state;
    fx_auto(fx_tokenizer) tokenizer = fixture_bundled();
    fx_error err = {0};
    uint32_t at[5] = {7, 0, 0, 0, 9};
    struct fx_segment segment = {fx_span_str("abcd"), false};
    struct fx_ids ids = {at, 1, 4}; /* room for three */
    assert_false(fx_tokenizer_encode(tokenizer, (struct fx_segments){&segment, 1}, FX_ENCODE_PLAIN,
                                     &ids, &err));
    assert_int_equal(err.code, FX_OUT_OF_RANGE);
    assert_non_null(strstr(err.text, "4 tokens, there is room for 3"));
    assert_int_equal(ids.len, 1);
    assert_int_equal(at[0], 7);
    assert_int_equal(at[4], 9);
}

static void test_too_long(void **state) {
    (void)state;
    fx_auto(fx_tokenizer) tokenizer = fixture_bundled();
    fx_error err = {0};
    uint32_t at[1];
    struct fx_ids ids = {at, 0, 1};
    struct fx_segment half = {
        {(const uint8_t *)"", FX_TOKENIZER_TEXT_BYTES_MAX},
        false
    };
    struct fx_segment segments[] = {
        half, {fx_span_str("x"), false}
    };
    assert_false(fx_tokenizer_encode(tokenizer, (struct fx_segments){segments, 2}, FX_ENCODE_PLAIN,
                                     &ids, &err));
    assert_int_equal(err.code, FX_OUT_OF_RANGE);
}

static void check_affix_flags(const char *flags, size_t want_len, uint32_t first, uint32_t last) {
    char config[256];
    fx_error err = {0};
    (void)snprintf(config, sizeof config,
                   "{\"bos_token\":{\"content\":\"<|bos|>\"},\"eos_token\":\"<|eos|>\"%s}", flags);
    fx_auto(json_t) spec = fixture_json(FX_VECTORS_FOLDER "tokenizer-bpe.json");
    fx_auto(fx_tokenizer) tokenizer = fixture_tokenizer(spec, config, &err);
    assert_non_null(tokenizer);
    uint32_t at[8];
    struct fx_ids ids = {at, 0, 8};
    fixture_encode(tokenizer, fx_span_str("!"), false, FX_ENCODE_PROMPT, &ids);
    assert_int_equal(ids.len, want_len);
    assert_int_equal(at[0], first);
    assert_int_equal(at[want_len - 1], last);
}

static void test_affix_flags(void **state) {
    (void)state;
    uint32_t bos = 0, eos = 1, mark = 2; /* "!" */
    check_affix_flags("", 3, bos, eos);
    check_affix_flags(",\"add_bos_token\":true", 2, bos, mark);
    check_affix_flags(",\"add_bos_token\":false", 1, mark, mark);
    check_affix_flags(",\"add_bos_token\":false,\"add_eos_token\":true", 2, mark, eos);
    check_affix_flags(",\"add_bos_token\":null", 3, bos, eos);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oracle),      cmocka_unit_test(test_bundled_facts),
        cmocka_unit_test(test_vectors),     cmocka_unit_test(test_vectors_ignore_merges),
        cmocka_unit_test(test_bos_once),    cmocka_unit_test(test_segments),
        cmocka_unit_test(test_no_room),     cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_affix_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
