#include "common/base/heap.h"
#include "common/model/tokenizer_load.h"

enum {
    SHOWN_MAX = 64, /* bytes of a token in an error */
    COPIES = 4, /* of a token's text in the pool: as spelt, decoded, decoded at the begin, added */
};

static FX_MUST bool check_id(const json_t *number, const char *name, fx_error *err) {
    json_int_t value = json_integer_value(number);
    if (!json_is_integer(number) || value < 0 || value >= FX_TOKENIZER_VOCABULARY_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "token '%.*s': bad id, want 0 to %d", SHOWN_MAX,
                       name, FX_TOKENIZER_VOCABULARY_MAX - 1);
    return true;
}

struct sizes {
    uint32_t vocabulary;
    size_t pool;
};

static FX_MUST bool count_token(const char *name, const json_t *id, struct sizes *sizes,
                                fx_error *err) {
    if (!check_id(id, name, err)) return false;
    uint32_t value = (uint32_t)json_integer_value(id);
    if (value >= sizes->vocabulary) sizes->vocabulary = value + 1;
    sizes->pool += COPIES * strlen(name);
    return true;
}

static FX_MUST bool count_tokens(struct fx_loader *loader, struct sizes *sizes, fx_error *err) {
    const char *name;
    json_t *id, *token;
    size_t i;
    json_object_foreach(loader->vocab, name, id) {
        if (!count_token(name, id, sizes, err)) return false;
    }
    json_array_foreach(loader->added, i, token) {
        const json_t *content = json_object_get(token, "content");
        if (!json_is_string(content) || !json_string_length(content))
            return fx_fail(err, FX_INVALID_ARGUMENT, "added_tokens[%zu]: no content", i);
        if (!count_token(json_string_value(content), json_object_get(token, "id"), sizes, err))
            return false;
    }
    return true;
}

fx_span fx_loader__keep(struct fx_loader *loader, fx_span text) {
    fx_span copy = {loader->pool_next, text.len};
    if (text.len) memcpy(loader->pool_next, text.at, text.len);
    loader->pool_next += text.len;
    return copy;
}

/* Decodes into the pool. `is_spelt`: in the byte alphabet, where that is the vocabulary's. */
static fx_span decode(struct fx_loader *loader, fx_span text, bool *is_spelt) {
    fx_span out = {loader->pool_next, text.len};
    *is_spelt = true;
    if (loader->tokenizer->is_byte_level) {
        int64_t len = fx_alphabet__decode(&loader->alphabet, text, loader->pool_next);
        *is_spelt = len >= 0;
        if (len < 0) return fx_loader__keep(loader, text);
        out.len = (size_t)len;
    } else {
        out.len = fx_decoder__decode(&loader->decoder, text, false, loader->pool_next);
    }
    loader->pool_next += out.len;
    return out;
}

/* What the token decodes to at the begin of a text, where that makes a difference. */
static void put_first(struct fx_loader *loader, fx_span text, uint32_t id) {
    fx_span *first = loader->tokenizer->decoding.first;
    if (!first) return;
    first[id].at = loader->pool_next;
    first[id].len = fx_decoder__decode(&loader->decoder, text, true, loader->pool_next);
    loader->pool_next += first[id].len;
}

static FX_MUST bool put(struct fx_loader *loader, fx_span text, uint32_t id, bool is_word,
                        fx_error *err) {
    struct fx_tokenizer *tokenizer = loader->tokenizer;
    bool is_spelt;
    if (tokenizer->tokens[id].at)
        return fx_fail(err, FX_INVALID_ARGUMENT, "two tokens have the id %u, one is '%.*s'", id,
                       SHOWN_MAX, (const char *)text.at);
    fx_span bytes = decode(loader, text, &is_spelt);
    tokenizer->tokens[id] = (struct fx_token){.at = bytes.at, .len = (uint32_t)bytes.len};
    if (bytes.len > tokenizer->bytes_max) tokenizer->bytes_max = bytes.len;
    put_first(loader, text, id);
    if (!is_word || !is_spelt || !tokenizer->ignore_merges) return true;
    fx_words__put(&tokenizer->words,
                  tokenizer->is_byte_level ? bytes : fx_loader__keep(loader, text), id);
    return true;
}

bool fx_loader__put_token(struct fx_loader *loader, fx_span text, uint32_t id, fx_error *err) {
    return put(loader, text, id, false, err);
}

static FX_MUST bool reserve(struct fx_loader *loader, fx_error *err) {
    struct fx_tokenizer *tokenizer = loader->tokenizer;
    struct sizes sizes = {0};
    if (!count_tokens(loader, &sizes, err)) return false;
    tokenizer->vocabulary = sizes.vocabulary;
    tokenizer->tokens = fx_alloc(sizes.vocabulary, sizeof *tokenizer->tokens);
    tokenizer->pool = loader->pool_next = fx_alloc(sizes.pool, 1);
    if (!tokenizer->tokens || !tokenizer->pool)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for %u tokens", sizes.vocabulary);
    for (size_t i = 0; i < loader->decoder.replace_count; i++) {
        if (!loader->decoder.replaces[i].drops_at_first || tokenizer->decoding.first) continue;
        tokenizer->decoding.first = fx_alloc(sizes.vocabulary, sizeof(fx_span));
        if (!tokenizer->decoding.first)
            return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for %u tokens", sizes.vocabulary);
    }
    return !tokenizer->ignore_merges ||
           fx_words__init(&tokenizer->words, json_object_size(loader->vocab), err);
}

bool fx_loader__tokens(struct fx_loader *loader, fx_error *err) {
    const char *name;
    json_t *id;
    if (!reserve(loader, err)) return false;
    json_object_foreach(loader->vocab, name, id) {
        if (!put(loader, fx_span_str(name), (uint32_t)json_integer_value(id), true, err))
            return false;
    }
    return true;
}
