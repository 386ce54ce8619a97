/* Every template of template-vectors.json renders as Jinja2 renders it, or fails where it fails. */
#include "tests/unit/model/text_fixture.h"
#include "common/model/template.h"

/* test_template [FILE] reads the rows of FILE instead and counts what differs. */

enum { ARENA_BYTES = 64 << 20, MESSAGES_MAX = 16, NOW_S = 1718454896 };
#define MARK "\xee\x80\x80" /* U+E000, which is only in what users say */

static uint8_t *memory_;
static fx_arena arena_;

/* False where a message has more than role and content, both strings. */
static bool plain_messages(const json_t *list, struct fx_message *out) {
    json_t *message;
    size_t i;
    if (json_array_size(list) > MESSAGES_MAX) return false;
    json_array_foreach(list, i, message) {
        const json_t *role = json_object_get(message, "role");
        const json_t *content = json_object_get(message, "content");
        if (json_object_size(message) != 2 || !json_is_string(role) || !json_is_string(content))
            return false;
        out[i] = (struct fx_message){fixture_span(role), fixture_span(content)};
    }
    return true;
}

static fx_span token(const json_t *row, const char *name, const char *fallback) {
    const json_t *value = json_object_get(row, name);
    const char *text = json_is_null(value) ? "" : json_string_value(value);
    return fx_span_str(text ? text : fallback);
}

static const json_t *given(const json_t *row, const char *name) {
    const json_t *value = json_object_get(row, name);
    return json_is_null(value) ? NULL : value;
}

static struct fx_template_input input_of(const json_t *row) {
    return (struct fx_template_input){
        .objects = json_object_get(row, "messages"),
        .bos_token = token(row, "bos_token", "<|bos|>"),
        .eos_token = token(row, "eos_token", "<|eos|>"),
        .add_generation_prompt = json_is_true(json_object_get(row, "prompt")),
        .tools = given(row, "tools"),
        .documents = given(row, "documents"),
        .variables = given(row, "variables"),
        .now_s = NOW_S,
    };
}

static bool has_mark(fx_span text) {
    return text.len && memmem(text.at, text.len, MARK, strlen(MARK));
}

/* What is wrong with these segments, NULL: nothing. */
static const char *compare(struct fx_segments got, fx_span want, bool marked) {
    size_t at = 0;
    for (size_t i = 0; i < got.count; at += got.at[i++].text.len) {
        fx_span text = got.at[i].text;
        if (!text.len) return "an empty segment";
        if (text.len > want.len - at || memcmp(want.at + at, text.at, text.len) != 0)
            return "the text differs";
        if (i && got.at[i].is_template == got.at[i - 1].is_template)
            return "two segments of one origin";
        if (!marked && got.at[i].is_template && has_mark(text)) return "user text became template";
    }
    return at == want.len ? NULL : "the text is too short";
}

static bool complain(const json_t *row, const char *what, struct fx_segments got) {
    const char *output = json_string_value(json_object_get(row, "output"));
    print_error("%s: %s\nwant: '%s'\ngot:  '", json_string_value(json_object_get(row, "name")),
                what, output ? output : "(a failure)");
    for (size_t i = 0; i < got.count; i++)
        print_error("%.*s|", (int)got.at[i].text.len, (const char *)got.at[i].text.at);
    print_error("'\n");
    return false;
}

static bool check_failure(const json_t *row, const fx_error *err) {
    const char *message = json_string_value(json_object_get(row, "message"));
    if (json_is_string(json_object_get(row, "output")))
        return complain(row, err->text, (struct fx_segments){0});
    if (json_is_true(json_object_get(row, "limit"))) return true;
    bool refused = err->code == FX_INVALID_ARGUMENT;
    bool said = message ? strcmp(err->text, message) == 0
                        : strstr(err->text, "chat template: line ") || strstr(err->text, "role");
    return (refused && said) || complain(row, err->text, (struct fx_segments){0});
}

static bool check_render(const json_t *row, const fx_template *template,
                         const struct fx_template_input *input) {
    const json_t *output = json_object_get(row, "output");
    struct fx_segments got = {0};
    fx_error err = {0};
    fx_arena_reset(&arena_);
    if (!fx_template_render(template, input, &arena_, &got, &err)) return check_failure(row, &err);
    if (!json_is_string(output)) return complain(row, "rendered, should fail", got);
    bool marked = has_mark(fixture_span(json_object_get(row, "template")));
    const char *wrong = compare(got, fixture_span(output), marked);
    return !wrong || complain(row, wrong, got);
}

/* Twice, as the second must find no trace of the first, and by both ways to give messages. */
static bool check_row(const json_t *row) {
    struct fx_template_input input = input_of(row);
    struct fx_message messages[MESSAGES_MAX];
    fx_auto(fx_template) template = NULL;
    fx_error err = {0};
    if (!fx_template_compile(fixture_span(json_object_get(row, "template")), &template, &err))
        return check_failure(row, &err);
    if (!check_render(row, template, &input) || !check_render(row, template, &input)) return false;
    if (!plain_messages(input.objects, messages)) return true;
    input.count = json_array_size(input.objects);
    input.messages = messages;
    input.objects = NULL;
    return check_render(row, template, &input);
}

static size_t check_file(const char *path, size_t *count, size_t *failing) {
    fx_auto(json_t) rows = fixture_json(path);
    json_t *row;
    size_t i, different = 0;
    *count = json_array_size(rows);
    *failing = 0;
    json_array_foreach(rows, i, row) {
        different += !check_row(row);
        *failing += json_is_null(json_object_get(row, "output"));
    }
    return different;
}

static void test_vectors(void **state) {
    size_t count, failing;
    (void)state;
    assert_int_equal(check_file(FX_VECTORS_FOLDER "template-vectors.json", &count, &failing), 0);
    assert_true(count >= 300);
    assert_true(failing >= 15 && failing < 100);
}

static size_t count_of(struct fx_ids ids, uint32_t id) {
    size_t count = 0;
    for (size_t i = 0; i < ids.len; i++)
        count += ids.at[i] == id;
    return count;
}

/* The bundled model's own chat: template, segments, tokens; one BOS, which the template writes. */
static void test_oracle_chat(void **state) {
    (void)state;
    fx_error err = {0};
    fx_auto(fx_tokenizer) tokenizer = fixture_bundled();
    fx_auto(json_t) oracle = fixture_json(FX_MODEL_FOLDER "oracle.json");
    const json_t *chat = json_object_get(oracle, "chat");
    struct fx_template_input input = {
        .objects = json_object_get(chat, "messages"),
        .bos_token = fx_span_str(fx_tokenizer_bos_text(tokenizer)),
        .eos_token = fx_span_str(fx_tokenizer_eos_text(tokenizer)),
        .add_generation_prompt = true,
    };
    fx_auto(fx_template) template = NULL;
    struct fx_segments text;
    uint32_t at[256], bos;
    struct fx_ids ids = {at, 0, 256};
    fx_arena_reset(&arena_);
    assert_true(fx_template_compile(fx_tokenizer_chat_template(tokenizer), &template, &err));
    assert_true(fx_template_render(template, &input, &arena_, &text, &err));
    assert_true(fx_tokenizer_encode(tokenizer, text, FX_ENCODE_PLAIN, &ids, &err));
    fixture_equal_ids("chat", ids, json_object_get(chat, "ids"));
    assert_true(fx_tokenizer_bos_id(tokenizer, &bos));
    assert_int_equal(ids.at[0], bos);
    assert_int_equal(count_of(ids, bos), 1);
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

static int report(const char *path) {
    size_t count, failing, different;
    (void)setup(NULL);
    different = check_file(path, &count, &failing);
    printf("%zu renderings, %zu of them refused by both, %zu differences\n", count,
           failing - (different < failing ? different : failing), different);
    (void)teardown(NULL);
    return different != 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_oracle_chat),
    };
    (void)setenv("TZ", "UTC", 1);
    return argc > 1 ? report(argv[1]) : cmocka_run_group_tests(tests, setup, teardown);
}
