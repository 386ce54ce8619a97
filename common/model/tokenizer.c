#include "common/model/tokenizer_internal.h"
#include "common/base/heap.h"

void fx_tokenizer_free(fx_tokenizer *tokenizer) {
    if (!tokenizer) return;
    free(tokenizer->tokens);
    free(tokenizer->pool);
    free(tokenizer->merges.slots);
    free(tokenizer->words.ids);
    for (size_t i = 0; i < FX_ADDED_SETS; i++)
        free(tokenizer->added[i].at);
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
    struct fx_found found;
    for (size_t i = 0; i < FX_ADDED_SETS; i++) {
        if (!fx_tokenizer__find_added(&tokenizer->added[i], text, 0, &found)) continue;
        if (found.at != 0 || found.added->text.len != text.len) continue;
        *id = found.added->id;
        return true;
    }
    return false;
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
