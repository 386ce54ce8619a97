#include "common/model/tokenizer_internal.h"
#include "common/base/heap.h"

static void added_free(struct fx_tokenizer *tokenizer) {
    struct fx_added_set *normalized = &tokenizer->added[FX_ADDED_NORMALIZED];
    for (size_t i = 0; i < normalized->count; i++)
        free((void *)normalized->at[i].text.at);
    for (size_t i = 0; i < FX_ADDED_SETS; i++)
        free(tokenizer->added[i].at);
    free(tokenizer->added_names.slots);
    fx_regex_free(tokenizer->word_char);
}

static void steps_free(struct fx_tokenizer *tokenizer) {
    for (size_t i = 0; i < tokenizer->normal_count; i++) {
        fx_regex_free(tokenizer->normals[i].regex);
        free(tokenizer->normals[i].content);
    }
    for (size_t i = 0; i < tokenizer->stage_count; i++)
        fx_regex_free(tokenizer->stages[i].regex);
}

void fx_tokenizer_free(fx_tokenizer *tokenizer) {
    if (!tokenizer) return;
    fx_scratches__done(tokenizer);
    added_free(tokenizer);
    steps_free(tokenizer);
    free(tokenizer->tokens);
    free(tokenizer->pool);
    free(tokenizer->decoding.first);
    free(tokenizer->merges.slots);
    free(tokenizer->words.slots);
    free(tokenizer->chars.slots);
    free(tokenizer->joined.slots);
    free(tokenizer->bos_text);
    free(tokenizer->eos_text);
    free(tokenizer->chat_template);
    free(tokenizer);
}

uint32_t fx_tokenizer_vocabulary(const fx_tokenizer *tokenizer) {
    return tokenizer->vocabulary;
}

fx_span fx_tokenizer_bytes(const fx_tokenizer *tokenizer, uint32_t id) {
    if (id >= tokenizer->vocabulary) return (fx_span){0};
    return (fx_span){tokenizer->tokens[id].at, tokenizer->tokens[id].len};
}

size_t fx_tokenizer_bytes_max(const fx_tokenizer *tokenizer) {
    return tokenizer->bytes_max;
}

bool fx_tokenizer_is_special(const fx_tokenizer *tokenizer, uint32_t id) {
    return id < tokenizer->vocabulary && tokenizer->tokens[id].special;
}

bool fx_tokenizer_added_id(const fx_tokenizer *tokenizer, fx_span text, uint32_t *id) {
    return fx_words__get(&tokenizer->added_names, text, id);
}

const char *fx_tokenizer_bos_text(const fx_tokenizer *tokenizer) {
    return tokenizer->bos_text;
}

const char *fx_tokenizer_eos_text(const fx_tokenizer *tokenizer) {
    return tokenizer->eos_text;
}

static bool id_of(uint32_t known, uint32_t *id) {
    if (known != FX_ID_NONE) *id = known;
    return known != FX_ID_NONE;
}

bool fx_tokenizer_bos_id(const fx_tokenizer *tokenizer, uint32_t *id) {
    return id_of(tokenizer->bos_id, id);
}

bool fx_tokenizer_eos_id(const fx_tokenizer *tokenizer, uint32_t *id) {
    return id_of(tokenizer->eos_id, id);
}

fx_span fx_tokenizer_chat_template(const fx_tokenizer *tokenizer) {
    if (!tokenizer->chat_template) return (fx_span){0};
    return fx_span_str(tokenizer->chat_template);
}
