/* Small tokenizers, one for each step and option of tokenizer.json, against the ids and texts of
 * the `tokenizers` library (tokenizer-steps.json, made by make_tokenizer_steps.py). */
#include "tests/unit/model/text_fixture.h"
#include "common/model/detok.h"

enum { IDS_MAX = 1024 };

static json_t *steps_;

/* The case as a tokenizer.json. */
static json_t *spec_of(const json_t *row) {
    static const char *const keys[] = {"normalizer", "pre_tokenizer", "post_processor", "decoder",
                                       "added_tokens"};
    json_t *spec = json_object(), *name;
    size_t i;
    const char *model_name = json_string_value(json_object_get(row, "model"));
    json_t *model = json_deep_copy(json_object_get(json_object_get(steps_, "models"), model_name));
    assert_non_null(model);
    for (i = 0; i < FX_TEST_COUNT(keys); i++)
        json_object_set(spec, keys[i], json_object_get(row, keys[i]));
    json_object_update(model, json_object_get(row, "flags"));
    json_array_foreach(json_object_get(row, "without"), i, name)
        json_object_del(json_object_get(model, "vocab"), json_string_value(name));
    json_object_set_new(spec, "model", model);
    return spec;
}

static void check_ids(const fx_tokenizer *tokenizer, const json_t *row, const char *kind) {
    char what[128];
    json_t *text;
    size_t i;
    json_array_foreach(json_object_get(steps_, "texts"), i, text) {
        uint32_t at[IDS_MAX];
        struct fx_ids ids = {at, 0, IDS_MAX};
        (void)snprintf(what, sizeof what, "%s, %s text %zu",
                       json_string_value(json_object_get(row, "name")), kind, i);
        fixture_encode(tokenizer, fixture_span(text), strcmp(kind, "template") == 0,
                       FX_ENCODE_PLAIN, &ids);
        fixture_equal_ids(what, ids, json_array_get(json_object_get(row, kind), i));
    }
}

static void check_decoded(const fx_tokenizer *tokenizer, const json_t *ids, const json_t *want) {
    struct fx_detok detok;
    uint8_t at[4 * IDS_MAX];
    fx_buf out = {at, 0, sizeof at};
    json_t *id;
    size_t i;
    fx_detok_init(&detok, tokenizer);
    json_array_foreach(ids, i, id) {
        size_t before = out.len;
        fx_detok_push(&detok, (uint32_t)json_integer_value(id), &out);
        assert_true(out.len - before <= fx_detok_room(tokenizer));
    }
    fx_detok_flush(&detok, &out);
    assert_true(fx_buf_fits(&out));
    if (!fx_span_eq((fx_span){out.at, out.len}, fixture_span(want)))
        fail_msg("'%.*s' is not '%s'", (int)out.len, (const char *)out.at, json_string_value(want));
}

static void check_texts(const fx_tokenizer *tokenizer, const json_t *row) {
    json_t *pair, *text;
    size_t i;
    json_array_foreach(json_object_get(row, "texts"), i, text)
        check_decoded(tokenizer, json_array_get(json_object_get(row, "template"), i), text);
    json_array_foreach(json_object_get(row, "decode"), i, pair)
        check_decoded(tokenizer, json_array_get(pair, 0), json_array_get(pair, 1));
}

static void test_steps(void **state) {
    const json_t *row = *state;
    fx_error err = {0};
    uint32_t at[IDS_MAX];
    struct fx_ids ids = {at, 0, IDS_MAX};
    fx_auto(json_t) spec = spec_of(row);
    fx_auto(fx_tokenizer) tokenizer = fixture_tokenizer(spec, NULL, &err);
    if (!tokenizer) fail_msg("%s", err.text);
    assert_true(json_array_size(json_object_get(steps_, "texts")) >= 30);
    check_ids(tokenizer, row, "template");
    check_ids(tokenizer, row, "user");
    check_ids(tokenizer, row, "template"); /* again: now from the cache */
    check_texts(tokenizer, row);
    fixture_encode(tokenizer, fx_span_str("the sea"), true, FX_ENCODE_PROMPT, &ids);
    fixture_equal_ids("prompt", ids, json_object_get(row, "prompt"));
}

int main(void) {
    steps_ = fixture_json(FX_VECTORS_FOLDER "tokenizer-steps.json");
    json_t *cases = json_object_get(steps_, "cases"), *row;
    struct CMUnitTest tests[64];
    size_t i;
    assert_true(json_array_size(cases) >= 40 && json_array_size(cases) <= 64);
    json_array_foreach(cases, i, row) {
        const char *name = json_string_value(json_object_get(row, "name"));
        tests[i] = (struct CMUnitTest){name, test_steps, NULL, NULL, row};
    }
    int failed = _cmocka_run_group_tests("steps", tests, json_array_size(cases), NULL, NULL);
    json_decref(steps_);
    return failed;
}
