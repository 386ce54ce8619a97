#include "common/base/heap.h"
#include "common/model/tokenizer_load.h"

enum { SHOWN_MAX = 64 };

static bool flag(const json_t *token, const char *key) {
    return json_is_true(json_object_get(token, key));
}

/* What the vocabulary has has to have that id. */
static FX_MUST bool check_known(struct fx_loader *loader, fx_span content, uint32_t id, bool *known,
                                fx_error *err) {
    const json_t *found = json_object_get(loader->vocab, (const char *)content.at);
    *known = found != NULL;
    if (!found || (uint32_t)json_integer_value(found) == id) return true;
    return fx_fail(err, FX_INVALID_ARGUMENT,
                   "added token '%.*s': the vocabulary gives it another id", SHOWN_MAX,
                   (const char *)content.at);
}

/* As text will be when it is searched for the token. In memory of its own with room behind for
 * what it decodes to, twice. */
static FX_MUST bool normal_form(struct fx_tokenizer *tokenizer, fx_span content, fx_span *out,
                                uint8_t **room, fx_error *err) {
    fx_span made;
    if (!fx_normalize(tokenizer, &tokenizer->scratches[0], content, true, &made, err)) return false;
    if (!made.len) return fx_fail(err, FX_UNIMPLEMENTED, "an added token that is normalised away");
    uint8_t *copy = fx_alloc(made.len, 3);
    if (!copy) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for an added token");
    memcpy(copy, made.at, made.len);
    *out = (fx_span){copy, made.len};
    *room = copy + made.len;
    return true;
}

/* Such a token decodes from its normal form, also one of the vocabulary, as in `tokenizers`. */
static FX_MUST bool enter_normalized(struct fx_loader *loader, fx_span content,
                                     struct fx_added *added, fx_error *err) {
    uint8_t *pool = loader->pool_next;
    fx_span text;
    if (!normal_form(loader->tokenizer, content, &text, &loader->pool_next, err)) return false;
    loader->tokenizer->tokens[added->id].at = NULL;
    bool ok = fx_loader__put_token(loader, text, added->id, err);
    loader->pool_next = pool;
    added->text = text;
    return ok;
}

static FX_MUST bool enter(struct fx_loader *loader, fx_span content, bool normalized,
                          struct fx_added *added, fx_error *err) {
    bool known;
    if (!check_known(loader, content, added->id, &known, err)) return false;
    if (!known && loader->tokenizer->tokens[added->id].at)
        return fx_fail(err, FX_INVALID_ARGUMENT, "two tokens have the id %u, one is '%.*s'",
                       added->id, SHOWN_MAX, (const char *)content.at);
    if (normalized) return enter_normalized(loader, content, added, err);
    return known || fx_loader__put_token(loader, content, added->id, err);
}

static FX_MUST bool put_added(struct fx_loader *loader, const json_t *token, fx_error *err) {
    struct fx_tokenizer *tokenizer = loader->tokenizer;
    fx_span content = fx_json__span(json_object_get(token, "content"));
    bool normalized = flag(token, "normalized");
    struct fx_added_set *set = &tokenizer->added[normalized ? FX_ADDED_NORMALIZED : FX_ADDED_RAW];
    struct fx_added *added = &set->at[set->count++];
    *added = (struct fx_added){.id = (uint32_t)json_integer_value(json_object_get(token, "id")),
                               .special = flag(token, "special"),
                               .single_word = flag(token, "single_word"),
                               .strips_left = flag(token, "lstrip"),
                               .strips_right = flag(token, "rstrip")};
    if (!enter(loader, content, normalized, added, err)) return false;
    fx_span name = fx_loader__keep(loader, content);
    if (!normalized) added->text = name;
    tokenizer->tokens[added->id].special = added->special;
    fx_words__put(&tokenizer->added_names, name, added->id);
    return !added->single_word || tokenizer->word_char ||
           fx_regex_new_word_char(&tokenizer->word_char, err);
}

static int compare_added(const void *a, const void *b) {
    fx_span left = ((const struct fx_added *)a)->text, right = ((const struct fx_added *)b)->text;
    int order = memcmp(left.at, right.at, left.len < right.len ? left.len : right.len);
    return order ? order : (left.len > right.len) - (left.len < right.len);
}

static FX_MUST bool sort_added(struct fx_added_set *set, fx_error *err) {
    if (set->count) qsort(set->at, set->count, sizeof *set->at, compare_added);
    for (size_t i = 0; i < set->count; i++) {
        if (i && fx_span_eq(set->at[i - 1].text, set->at[i].text))
            return fx_fail(err, FX_INVALID_ARGUMENT, "added token %u stands twice", set->at[i].id);
        set->begins[set->at[i].text.at[0]] = true;
    }
    return true;
}

bool fx_loader__added(struct fx_loader *loader, fx_error *err) {
    struct fx_added_set *sets = loader->tokenizer->added;
    json_t *token;
    size_t i, count = json_array_size(loader->added);
    if (!fx_words__init(&loader->tokenizer->added_names, count, err)) return false;
    for (i = 0; i < FX_ADDED_SETS; i++) {
        sets[i].at = fx_alloc(count, sizeof *sets[i].at);
        if (!sets[i].at) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for added tokens");
    }
    json_array_foreach(loader->added, i, token) {
        if (!put_added(loader, token, err)) return false;
    }
    for (i = 0; i < FX_ADDED_SETS; i++)
        if (!sort_added(&sets[i], err)) return false;
    return true;
}
