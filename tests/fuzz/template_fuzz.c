/* A chat template, then after a NUL what the user says: what compiles renders within its limits,
 * and segments alternate in origin. The conversation has a tool, a call and its answer. */
#include <string.h>
#include <jansson.h>
#include "tests/fuzz/fuzz.h"
#include "common/model/template.h"

enum { ARENA_BYTES = 1 << 20 };

static uint8_t memory_[ARENA_BYTES];
static const char conversation_[] =
    "[{\"role\": \"system\", \"content\": \"Be <|eos|>.\"}, {\"role\": \"user\", \"content\": "
    "null},"
    "{\"role\": \"assistant\", \"content\": [{\"type\": \"text\", \"text\": \"b\"}], "
    "\"tool_calls\":"
    "[{\"function\": {\"name\": \"f\", \"arguments\": {\"x\": [1, 2.5, true, null, {}]}}}]},"
    "{\"role\": \"tool\", \"content\": \"\\u00e9\\n\"}]";
static const char tools_[] = "[{\"type\": \"function\", \"function\": {\"name\": \"f\", "
                             "\"parameters\": {\"items\": {\"x\": []}}}}]";

FX_DEFINE_AUTO(json_t, json_decref)

static void check(struct fx_segments text) {
    size_t bytes = 0;
    for (size_t i = 0; i < text.count; i++) {
        FX_ASSERT(text.at[i].text.len > 0);
        FX_ASSERT(!i || text.at[i].is_template != text.at[i - 1].is_template);
        bytes += text.at[i].text.len;
    }
    FX_ASSERT(bytes <= FX_TEMPLATE_OUTPUT_BYTES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    size_t first = nul ? (size_t)(nul - data) : size;
    const char *content = nul ? (const char *)nul + 1 : "";
    fx_auto(json_t) messages = json_loads(conversation_, 0, NULL);
    fx_auto(json_t) tools = json_loads(tools_, 0, NULL);
    FX_ASSERT(messages && tools);
    json_t *text_said = json_stringn_nocheck(content, nul ? size - first - 1 : 0);
    FX_ASSERT(!json_object_set_new(json_array_get(messages, 1), "content", text_said));
    struct fx_template_input input = {
        .objects = messages,
        .tools = tools,
        .bos_token = fx_span_str("<s>"),
        .add_generation_prompt = true,
        .now_s = 1718454896,
    };
    struct fx_segments text;
    fx_auto(fx_template) template = NULL;
    fx_error err = {0};
    fx_arena arena;
    if (!fx_template_compile((fx_span){data, first}, &template, &err)) {
        FX_ASSERT(err.code != FX_OK && err.text[0]);
        return 0;
    }
    fx_arena_init(&arena, memory_, sizeof memory_);
    if (fx_template_render(template, &input, &arena, &text, &err))
        check(text);
    else
        FX_ASSERT(err.code != FX_OK);
    fx_arena_done(&arena);
    return 0;
}
