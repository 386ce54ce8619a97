#include "common/model/tokenizer_load.h"
#include "common/base/heap.h"

enum { SHOWN_MAX = 64 }; /* bytes of a token in an error */

static FX_MUST bool check_id(const json_t *number, const char *name, fx_error *err) {
    json_int_t value = json_integer_value(number);
    if (!json_is_integer(number) || value < 0 || value >= FX_TOKENIZER_VOCABULARY_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "token '%.*s': bad id, want 0 to %d", SHOWN_MAX,
                       name, FX_TOKENIZER_VOCABULARY_MAX - 1);
    return true;
}

static uint32_t id_of(const json_t *checked) {
    return (uint32_t)json_integer_value(checked);
}

struct sizes {
    uint32_t vocabulary;
    size_t pool;
};

static FX_MUST bool count_token(const char *name, const json_t *id, struct sizes *sizes,
                                fx_error *err) {
    if (!check_id(id, name, err)) return false;
    if (id_of(id) >= sizes->vocabulary) sizes->vocabulary = id_of(id) + 1;
    sizes->pool += 2 * strlen(name); /* as text, and decoded */
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

static fx_span pool_copy(struct fx_loader *loader, fx_span text) {
    fx_span copy = {loader->pool_next, text.len};
    if (text.len) memcpy(loader->pool_next, text.at, text.len);
    loader->pool_next += text.len;
    return copy;
}

static FX_MUST bool put_token(struct fx_loader *loader, fx_span text, uint32_t id, fx_error *err) {
    struct fx_token *token = &loader->tokenizer->tokens[id];
    if (token->at)
        return fx_fail(err, FX_INVALID_ARGUMENT, "two tokens have the id %u, one is '%.*s'", id,
                       SHOWN_MAX, (const char *)text.at);
    int64_t len = fx_alphabet__decode(&loader->alphabet, text, loader->pool_next);
    *token = (struct fx_token){.at = loader->pool_next, .is_word = len >= 0};
    if (len < 0)
        len = (int64_t)pool_copy(loader, text).len;
    else
        loader->pool_next += len;
    token->len = (uint32_t)len;
    if (token->len > loader->tokenizer->bytes_max) loader->tokenizer->bytes_max = token->len;
    return true;
}

bool fx_loader__tokens(struct fx_loader *loader, fx_error *err) {
    struct fx_tokenizer *tokenizer = loader->tokenizer;
    struct sizes sizes = {0};
    const char *name;
    json_t *id;
    if (!count_tokens(loader, &sizes, err)) return false;
    tokenizer->vocabulary = sizes.vocabulary;
    tokenizer->tokens = fx_alloc(sizes.vocabulary, sizeof *tokenizer->tokens);
    tokenizer->pool = loader->pool_next = fx_alloc(sizes.pool, 1);
    if (!tokenizer->tokens || !tokenizer->pool)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for %u tokens", sizes.vocabulary);
    json_object_foreach(loader->vocab, name, id) {
        if (!put_token(loader, fx_span_str(name), id_of(id), err)) return false;
    }
    return true;
}

static FX_MUST bool check_added(const json_t *token, const char *content, fx_error *err) {
    static const char *const flags[] = {"single_word", "lstrip", "rstrip"};
    for (size_t i = 0; i < FX_COUNT(flags); i++)
        if (json_is_true(json_object_get(token, flags[i])))
            return fx_fail(err, FX_UNIMPLEMENTED, "added token '%.*s': %s is not supported",
                           SHOWN_MAX, content, flags[i]);
    return true;
}

static FX_MUST bool put_added(struct fx_loader *loader, const json_t *token, fx_error *err) {
    const json_t *content = json_object_get(token, "content");
    const char *name = json_string_value(content);
    const json_t *known = json_object_get(loader->vocab, name);
    uint32_t id = id_of(json_object_get(token, "id"));
    bool special = json_is_true(json_object_get(token, "special"));
    bool normalized = json_is_true(json_object_get(token, "normalized"));
    struct fx_added_set *set =
        &loader->tokenizer->added[normalized ? FX_ADDED_NORMALIZED : FX_ADDED_RAW];
    if (!check_added(token, name, err)) return false;
    if (known && id_of(known) != id)
        return fx_fail(err, FX_INVALID_ARGUMENT,
                       "added token '%.*s': the vocabulary gives it another id", SHOWN_MAX, name);
    if (!known) {
        if (!put_token(loader, fx_json__span(content), id, err)) return false;
        loader->tokenizer->tokens[id].is_word = false;
    }
    loader->tokenizer->tokens[id].special = special;
    set->at[set->count++] =
        (struct fx_added){pool_copy(loader, fx_json__span(content)), id, special};
    return true;
}

static int compare_added(const void *a, const void *b) {
    fx_span left = ((const struct fx_added *)a)->text, right = ((const struct fx_added *)b)->text;
    int order = memcmp(left.at, right.at, left.len < right.len ? left.len : right.len);
    return order ? order : (left.len > right.len) - (left.len < right.len);
}

static FX_MUST bool sort_added(struct fx_added_set *set, fx_error *err) {
    if (set->count) qsort(set->at, set->count, sizeof *set->at, compare_added);
    for (size_t i = 1; i < set->count; i++)
        if (fx_span_eq(set->at[i - 1].text, set->at[i].text))
            return fx_fail(err, FX_INVALID_ARGUMENT, "added token %u stands twice", set->at[i].id);
    return true;
}

bool fx_loader__added(struct fx_loader *loader, fx_error *err) {
    struct fx_added_set *sets = loader->tokenizer->added;
    json_t *token;
    size_t i;
    for (i = 0; i < FX_ADDED_SETS; i++) {
        sets[i].at = fx_alloc(json_array_size(loader->added), sizeof *sets[i].at);
        if (!sets[i].at) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for added tokens");
    }
    json_array_foreach(loader->added, i, token) {
        if (!put_added(loader, token, err)) return false;
    }
    for (i = 0; i < FX_ADDED_SETS; i++)
        if (!sort_added(&sets[i], err)) return false;
    return true;
}
