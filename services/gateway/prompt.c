#include "services/gateway/prompt.h"
#include "common/base/heap.h"
#include "common/http/json.h"
#include "services/gateway/messages.h"

enum {
    /* of a render: virtual, touched as far as it is needed, and freed right after */
    ARENA_BYTES = 8 * 1024 * 1024,
    ARENA_BYTES_PER_BYTE = 8,       /* of the messages */
    ARENA_BYTES_PER_JSON_BYTE = 32, /* of variables and documents */
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

/* `messages`: flat. */
static FX_MUST bool render(const struct gw_request *request, const json_t *messages,
                           const struct gw_vocab *vocab, fx_arena *arena, struct fx_segments *out,
                           struct gw_problem *problem) {
    fx_error err = {0};
    struct fx_template_input input = {
        .objects = messages,
        .bos_token = fx_span_str(fx_tokenizer_bos_text(vocab->tokenizer)),
        .eos_token = fx_span_str(fx_tokenizer_eos_text(vocab->tokenizer)),
        .add_generation_prompt = request->add_generation_prompt,
        .documents = request->documents,
        .variables = request->variables,
    };
    if (fx_template_render(vocab->template, &input, arena, out, &err)) return true;
    return gw_refuse(problem, GW_BAD_PROMPT, "messages", "the model's chat template: %s", err.text);
}

static size_t arena_bytes(const struct gw_request *request) {
    size_t json = json_dumpb(request->variables, NULL, 0, JSON_COMPACT) +
                  json_dumpb(request->documents, NULL, 0, JSON_COMPACT);
    return ARENA_BYTES + gw_messages_bytes(request->messages) * ARENA_BYTES_PER_BYTE +
           json * ARENA_BYTES_PER_JSON_BYTE;
}

static enum fx_encode mode_of(const struct gw_request *request) {
    return request->add_special ? FX_ENCODE_PROMPT : FX_ENCODE_PLAIN;
}

static FX_MUST bool chat_build(const struct gw_request *request, const struct gw_vocab *vocab,
                               struct fx_ids *out, struct gw_problem *problem) {
    fx_arena arena;
    struct fx_segments text; /* borrows from `messages` */
    fx_auto(json_t) messages = NULL;
    if (!vocab->template)
        return gw_refuse(problem, GW_NO_TEMPLATE, "model", "%s%s",
                         *vocab->template_why
                             ? "the model's chat template is not supported: "
                             : "the model has no chat template: use /v1/completions",
                         vocab->template_why);
    size_t size = arena_bytes(request);
    fx_auto(uint8_t) memory = fx_alloc(1, size);
    if (!memory) return gw_refuse(problem, GW_UNAVAILABLE, NULL, "no memory for the prompt");
    if (!gw_messages_flat(request->messages, &messages, problem)) return false;
    fx_arena_init(&arena, memory, size);
    bool ok = render(request, messages, vocab, &arena, &text, problem) &&
              encode(vocab, text, mode_of(request), out, problem);
    fx_arena_done(&arena);
    return ok;
}

bool gw_ids_copy(const json_t *ids, const fx_tokenizer *tokenizer, const char *field,
                 struct fx_ids *out, struct gw_problem *problem) {
    size_t count = json_array_size(ids);
    uint32_t vocabulary = fx_tokenizer_vocabulary(tokenizer);
    struct fx_ids copy;
    if (!ids_alloc(count, &copy, problem)) return false;
    for (; copy.len < count; copy.len++) {
        json_int_t id = json_integer_value(json_array_get(ids, copy.len));
        if (id >= vocabulary) {
            free(copy.at);
            return gw_refuse(problem, GW_BAD_VALUE, field, "%s[%zu]: the vocabulary has %u tokens",
                             field, copy.len, vocabulary);
        }
        copy.at[copy.len] = (uint32_t)id;
    }
    *out = copy;
    return true;
}

static FX_MUST bool text_build(const struct gw_request *request, const struct gw_vocab *vocab,
                               struct fx_ids *out, struct gw_problem *problem) {
    struct fx_segment segment = {
        .text = {(const uint8_t *)json_string_value(request->prompt),
                 json_string_length(request->prompt)}
    };
    struct fx_segments text = {&segment, segment.text.len ? 1 : 0};
    return encode(vocab, text, mode_of(request), out, problem);
}

/* An empty prompt is the model's beginning, where it has one. */
static FX_MUST bool empty_fill(const struct gw_request *request, const struct gw_vocab *vocab,
                               struct fx_ids *ids, struct gw_problem *problem) {
    bool may_begin = request->messages || request->add_special;
    if (ids->len) return true;
    if (!may_begin || !fx_tokenizer_bos_id(vocab->tokenizer, &ids->at[0]))
        return gw_refuse(problem, GW_BAD_VALUE, request->messages ? "messages" : "prompt",
                         "the prompt is empty");
    ids->len = 1;
    return true;
}

static bool has_text(const fx_tokenizer *tokenizer, const struct fx_ids *ids) {
    for (size_t i = 0; i < ids->len; i++)
        if (!fx_tokenizer_is_special(tokenizer, ids->at[i])) return true;
    return false;
}

bool gw_prompt_build(const struct gw_request *request, const struct gw_vocab *vocab,
                     uint32_t context_max, struct gw_prompt *out, struct gw_problem *problem) {
    struct fx_ids ids = {0};
    bool ok = request->messages ? chat_build(request, vocab, &ids, problem)
              : json_is_string(request->prompt)
                  ? text_build(request, vocab, &ids, problem)
                  : gw_ids_copy(request->prompt, vocab->tokenizer, "prompt", &ids, problem);
    if (!ok) return false;
    ok = empty_fill(request, vocab, &ids, problem);
    if (ok && ids.len >= context_max)
        ok = gw_refuse(problem, GW_TOO_LONG, request->messages ? "messages" : "prompt",
                       "the prompt has %zu tokens and the model's context is %u: at least one must "
                       "be left for the answer",
                       ids.len, context_max);
    if (!ok) {
        free(ids.at);
        return false;
    }
    *out = (struct gw_prompt){ids.at, (uint32_t)ids.len,
                              !request->messages && has_text(vocab->tokenizer, &ids)};
    return true;
}
