/* Every template of template-vectors.json renders as Jinja2 renders it, or fails where it fails. */
#include "tests/unit/model/text_fixture.h"
#include "common/model/template.h"

enum { ARENA_BYTES = 1 << 20, MESSAGES_MAX = 8 };

static uint8_t *memory_;
static fx_arena arena_;

static size_t messages_of(const json_t *list, struct fx_message *out) {
    json_t *message;
    size_t i;
    assert_true(json_array_size(list) <= MESSAGES_MAX);
    json_array_foreach(list, i, message) {
        out[i].role = fixture_span(json_object_get(message, "role"));
        out[i].content = fixture_span(json_object_get(message, "content"));
    }
    return json_array_size(list);
}

static void equal_text(const char *name, struct fx_segments got, fx_span want) {
    size_t at = 0;
    bool same = true;
    for (size_t i = 0; i < got.count && same; at += got.at[i++].text.len) {
        fx_span text = got.at[i].text;
        same = text.len && text.len <= want.len - at && !memcmp(want.at + at, text.at, text.len);
        same = same && (!i || got.at[i].is_template != got.at[i - 1].is_template);
    }
    if (same && at == want.len) return;
    print_error("%s\nwant: '%.*s'\ngot:  '", name, (int)want.len, (const char *)want.at);
    for (size_t i = 0; i < got.count; i++)
        print_error("%.*s|", (int)got.at[i].text.len, (const char *)got.at[i].text.at);
    print_error("'\n");
    fail_msg("%s: the text differs", name);
}

static void check_row(const json_t *row) {
    const char *name = json_string_value(json_object_get(row, "name"));
    const json_t *output = json_object_get(row, "output");
    const char *message = json_string_value(json_object_get(row, "message"));
    struct fx_message messages[MESSAGES_MAX];
    struct fx_template_input input = {
        .messages = messages,
        .count = messages_of(json_object_get(row, "messages"), messages),
        .bos_token = fx_span_str("<|bos|>"),
        .eos_token = fx_span_str("<|eos|>"),
        .add_generation_prompt = json_is_true(json_object_get(row, "prompt")),
    };
    fx_error err = {0};
    fx_auto(fx_template) template = NULL;
    if (!fx_template_compile(fixture_span(json_object_get(row, "template")), &template, &err))
        fail_msg("%s: %s", name, err.text);
    for (int round = 0; round < 2; round++) { /* the second finds no trace of the first */
        struct fx_segments got = {0};
        fx_arena_reset(&arena_);
        bool ok = fx_template_render(template, &input, &arena_, &got, &err);
        if (ok && json_is_null(output)) fail_msg("%s: rendered, should fail", name);
        if (!ok && !json_is_null(output)) fail_msg("%s: %s", name, err.text);
        if (ok) equal_text(name, got, fixture_span(output));
        if (!ok) assert_int_equal(err.code, FX_INVALID_ARGUMENT);
        if (!ok && message) assert_string_equal(err.text, message);
        if (!ok && !message) assert_non_null(strstr(err.text, "chat template: line "));
    }
}

static void test_vectors(void **state) {
    (void)state;
    fx_auto(json_t) rows = fixture_json(FX_VECTORS_FOLDER "template-vectors.json");
    json_t *row;
    size_t i, failing = 0;
    assert_true(json_array_size(rows) >= 180);
    json_array_foreach(rows, i, row) {
        check_row(row);
        failing += json_is_null(json_object_get(row, "output"));
    }
    assert_true(failing >= 15 && failing < 40);
}

/* The bundled model's own chat: template, segments, tokens. */
static void test_oracle_chat(void **state) {
    (void)state;
    fx_error err = {0};
    fx_auto(fx_tokenizer) tokenizer = fixture_bundled();
    fx_auto(json_t) oracle = fixture_json(FX_MODEL_FOLDER "oracle.json");
    const json_t *chat = json_object_get(oracle, "chat");
    struct fx_message messages[MESSAGES_MAX];
    struct fx_template_input input = {
        .messages = messages,
        .count = messages_of(json_object_get(chat, "messages"), messages),
        .bos_token = fx_span_str(fx_tokenizer_bos_text(tokenizer)),
        .eos_token = fx_span_str(fx_tokenizer_eos_text(tokenizer)),
        .add_generation_prompt = true,
    };
    fx_auto(fx_template) template = NULL;
    struct fx_segments text;
    uint32_t at[256];
    struct fx_ids ids = {at, 0, 256};
    fx_arena_reset(&arena_);
    assert_true(fx_template_compile(fx_tokenizer_chat_template(tokenizer), &template, &err));
    assert_true(fx_template_render(template, &input, &arena_, &text, &err));
    assert_true(fx_tokenizer_encode(tokenizer, text, FX_ENCODE_PLAIN, &ids, &err));
    fixture_equal_ids("chat", ids, json_object_get(chat, "ids"));
}

static int setup(void **state) {
    (void)state;
    memory_ = fx_alloc(ARENA_BYTES, 1);
    fx_arena_init(&arena_, memory_, ARENA_BYTES);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    fx_arena_done(&arena_);
    free(memory_);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_oracle_chat),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
