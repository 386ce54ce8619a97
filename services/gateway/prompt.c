#include "services/gateway/prompt.h"
#include "common/base/heap.h"
#include "services/gateway/messages.h"

enum {
    /* of a render: virtual, touched as far as it is needed, and freed right after */
    ARENA_BYTES = 8 * 1024 * 1024,
    ARENA_BYTES_PER_BYTE = 8, /* of the messages */
};

static FX_MUST bool ids_alloc(size_t cap, struct fx_ids *out, struct gw_problem *problem) {
    *out = (struct fx_ids){.at = fx_alloc(cap, sizeof(uint32_t)), .cap = cap};
    if (out->at) return true;
    return gw_refuse(problem, GW_UNAVAILABLE, NULL, "no memory for the prompt");
}

static FX_MUST bool encode(const struct gw_vocab *vocab, struct fx_segments text,
                           enum fx_encode mode, struct fx_ids *out, struct gw_problem *problem) {
    size_t bytes = 0;
    fx_error err = {0};
    for (size_t i = 0; i < text.count; i++)
        bytes += text.at[i].text.len;
    if (!ids_alloc(fx_tokenizer_ids_max(bytes), out, problem)) return false;
    if (fx_tokenizer_encode(vocab->tokenizer, text, mode, out, &err)) return true;
    free(out->at);
    if (err.code == FX_RESOURCE_EXHAUSTED)
        return gw_refuse(problem, GW_UNAVAILABLE, NULL, "%s", err.text);
    return gw_refuse(problem, err.code == FX_OUT_OF_RANGE ? GW_TOO_LONG : GW_BAD_PROMPT, NULL, "%s",
                     err.text);
}

static FX_MUST bool render(const struct gw_request *request, const struct gw_vocab *vocab,
                           fx_arena *arena, struct fx_segments *out, struct gw_problem *problem) {
    struct fx_message *messages;
    fx_error err = {0};
    if (!gw_messages_build(request->messages, arena, &messages, problem)) return false;
    struct fx_template_input input = {
        .messages = messages,
        .count = json_array_size(request->messages),
        .bos_token = fx_span_str(fx_tokenizer_bos_text(vocab->tokenizer)),
        .eos_token = fx_span_str(fx_tokenizer_eos_text(vocab->tokenizer)),
        .add_generation_prompt = true,
    };
    if (fx_template_render(vocab->template, &input, arena, out, &err)) return true;
    return gw_refuse(problem, GW_BAD_PROMPT, "messages", "the model's chat template: %s", err.text);
}

static FX_MUST bool chat_build(const struct gw_request *request, const struct gw_vocab *vocab,
                               struct fx_ids *out, struct gw_problem *problem) {
    fx_arena arena;
    struct fx_segments text;
    if (!vocab->template)
        return gw_refuse(problem, GW_NO_TEMPLATE, "model", "%s%s",
                         *vocab->template_why
                             ? "the model's chat template is not supported: "
                             : "the model has no chat template: use /v1/completions",
                         vocab->template_why);
    size_t size = ARENA_BYTES + gw_messages_bytes(request->messages) * ARENA_BYTES_PER_BYTE;
    fx_auto(uint8_t) memory = fx_alloc(1, size);
    if (!memory) return gw_refuse(problem, GW_UNAVAILABLE, NULL, "no memory for the prompt");
    fx_arena_init(&arena, memory, size);
    bool ok = render(request, vocab, &arena, &text, problem) &&
              encode(vocab, text, FX_ENCODE_PLAIN, out, problem);
    fx_arena_done(&arena);
    return ok;
}

static FX_MUST bool ids_copy(const json_t *ids, uint32_t vocabulary, struct fx_ids *out,
                             struct gw_problem *problem) {
    size_t count = json_array_size(ids);
    if (!ids_alloc(count, out, problem)) return false;
    for (size_t i = 0; i < count; i++) {
        json_int_t id = json_integer_value(json_array_get(ids, i));
        if (id >= vocabulary) {
            free(out->at);
            return gw_refuse(problem, GW_BAD_VALUE, "prompt",
                             "prompt[%zu]: the vocabulary has %u tokens", i, vocabulary);
        }
        out->at[out->len++] = (uint32_t)id;
    }
    return true;
}

static FX_MUST bool text_build(const json_t *prompt, const struct gw_vocab *vocab,
                               struct fx_ids *out, struct gw_problem *problem) {
    struct fx_segment segment = {
        .text = {(const uint8_t *)json_string_value(prompt), json_string_length(prompt)}
    };
    struct fx_segments text = {&segment, segment.text.len ? 1 : 0};
    return encode(vocab, text, FX_ENCODE_PROMPT, out, problem);
}

/* An empty prompt is the model's beginning, where it has one. */
static FX_MUST bool empty_fill(const struct gw_vocab *vocab, const char *param, struct fx_ids *ids,
                               struct gw_problem *problem) {
    if (ids->len) return true;
    if (!fx_tokenizer_bos_id(vocab->tokenizer, &ids->at[0]))
        return gw_refuse(problem, GW_BAD_VALUE, param, "the prompt is empty");
    ids->len = 1;
    return true;
}

bool gw_prompt_build(const struct gw_request *request, const struct gw_vocab *vocab,
                     uint32_t context_max, struct gw_prompt *out, struct gw_problem *problem) {
    const char *param = request->kind == GW_CHAT ? "messages" : "prompt";
    struct fx_ids ids = {0};
    bool ok =
        request->kind == GW_CHAT ? chat_build(request, vocab, &ids, problem)
        : json_is_string(request->prompt)
            ? text_build(request->prompt, vocab, &ids, problem)
            : ids_copy(request->prompt, fx_tokenizer_vocabulary(vocab->tokenizer), &ids, problem);
    if (!ok) return false;
    ok = empty_fill(vocab, param, &ids, problem);
    if (ok && ids.len >= context_max)
        ok = gw_refuse(problem, GW_TOO_LONG, param,
                       "the prompt has %zu tokens and the model's context is %u: at least one must "
                       "be left for the answer",
                       ids.len, context_max);
    if (!ok) {
        free(ids.at);
        return false;
    }
    *out = (struct gw_prompt){ids.at, (uint32_t)ids.len};
    return true;
}
