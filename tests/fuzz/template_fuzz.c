/* A chat template, then after a NUL what the user says: what compiles renders within its limits,
 * and segments alternate in origin. */
#include <string.h>
#include "tests/fuzz/fuzz.h"
#include "common/model/template.h"

enum { ARENA_BYTES = 1 << 20 };

static uint8_t memory_[ARENA_BYTES];

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
    fx_span content = {nul ? nul + 1 : NULL, nul ? size - first - 1 : 0};
    struct fx_message messages[] = {
        {fx_span_str("system"), fx_span_str("Be <|eos|>.")},
        {fx_span_str("user"),   content                   }
    };
    struct fx_template_input input = {
        .messages = messages,
        .count = 2,
        .bos_token = fx_span_str("<s>"),
        .add_generation_prompt = true,
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
