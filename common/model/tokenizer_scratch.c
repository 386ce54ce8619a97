#include "common/model/tokenizer_internal.h"
#include "common/base/heap.h"

static FX_MUST bool made_init(struct fx_made *made, fx_error *err) {
    return fx_made__room(made, FX_TEXT_BYTES_FIRST, err);
}

static FX_MUST bool scratch_init(struct fx_scratch *scratch, fx_error *err) {
    atomic_flag_clear(&scratch->busy);
    scratch->cache = fx_alloc(FX_CACHE_SLOTS, sizeof *scratch->cache);
    scratch->symbols = fx_alloc(FX_WORD_SYMBOLS_MAX, sizeof *scratch->symbols);
    scratch->heap = fx_alloc((size_t)2 * FX_WORD_SYMBOLS_MAX, sizeof *scratch->heap);
    if (!scratch->cache || !scratch->symbols || !scratch->heap)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory to tokenise");
    return fx_regex_work_new(&scratch->match, err);
}

/* The texts that this tokenizer's steps make, so that a prompt of usual size allocates nothing. */
static FX_MUST bool texts_init(const struct fx_tokenizer *tokenizer, struct fx_scratch *scratch,
                               fx_error *err) {
    for (size_t i = 0; i < 2 && i < tokenizer->normal_count; i++)
        if (!made_init(&scratch->normal[i], err)) return false;
    for (size_t i = 0; i < tokenizer->stage_count; i++)
        if (tokenizer->stages[i].mark_len && !made_init(&scratch->marked[i], err)) return false;
    return true;
}

static void made_done(struct fx_made *made) {
    free(made->at);
    *made = (struct fx_made){0};
}

static void scratch_done(struct fx_scratch *scratch) {
    free(scratch->cache);
    free(scratch->symbols);
    free(scratch->heap);
    fx_regex_work_free(scratch->match);
    made_done(&scratch->repaired);
    for (size_t i = 0; i < FX_COUNT(scratch->normal); i++)
        made_done(&scratch->normal[i]);
    for (size_t i = 0; i < FX_COUNT(scratch->marked); i++)
        made_done(&scratch->marked[i]);
}

bool fx_scratches__init(struct fx_tokenizer *tokenizer, fx_error *err) {
    tokenizer->scratches = fx_alloc(FX_TOKENIZER_SCRATCHES, sizeof *tokenizer->scratches);
    if (!tokenizer->scratches) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory to tokenise");
    for (size_t i = 0; i < FX_TOKENIZER_SCRATCHES; i++)
        if (!scratch_init(&tokenizer->scratches[i], err) ||
            !texts_init(tokenizer, &tokenizer->scratches[i], err))
            return false;
    return true;
}

void fx_scratches__done(struct fx_tokenizer *tokenizer) {
    for (size_t i = 0; tokenizer->scratches && i < FX_TOKENIZER_SCRATCHES; i++)
        scratch_done(&tokenizer->scratches[i]);
    free(tokenizer->scratches);
}

bool fx_scratch__take(const struct fx_tokenizer *tokenizer, struct fx_scratch **out,
                      fx_error *err) {
    for (size_t i = 0; i < FX_TOKENIZER_SCRATCHES; i++) {
        *out = &tokenizer->scratches[i];
        if (!atomic_flag_test_and_set_explicit(&(*out)->busy, memory_order_acquire)) return true;
    }
    struct fx_scratch *own = fx_alloc(1, sizeof *own);
    if (!own) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory to tokenise");
    *out = own;
    if (scratch_init(own, err)) return true;
    scratch_done(own);
    free(own);
    return false;
}

static void trim(struct fx_made *made) {
    if (made->cap > FX_TEXT_BYTES_KEPT) made_done(made);
}

void fx_scratch__give(const struct fx_tokenizer *tokenizer, struct fx_scratch *scratch) {
    bool is_ours =
        scratch >= tokenizer->scratches && scratch < tokenizer->scratches + FX_TOKENIZER_SCRATCHES;
    if (!is_ours) {
        scratch_done(scratch);
        free(scratch);
        return;
    }
    trim(&scratch->repaired);
    for (size_t i = 0; i < FX_COUNT(scratch->normal); i++)
        trim(&scratch->normal[i]);
    for (size_t i = 0; i < FX_COUNT(scratch->marked); i++)
        trim(&scratch->marked[i]);
    atomic_flag_clear_explicit(&scratch->busy, memory_order_release);
}

bool fx_made__room(struct fx_made *made, size_t more, fx_error *err) {
    size_t cap = made->cap ? made->cap : FX_TEXT_BYTES_FIRST;
    if (made->cap - made->len >= more) return true;
    while (cap - made->len < more)
        cap *= 2;
    uint8_t *at = fx_realloc(made->at, cap, 1);
    if (!at) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a text of %zu bytes", cap);
    made->at = at;
    made->cap = cap;
    return true;
}

bool fx_made__put(struct fx_made *made, fx_span bytes, fx_error *err) {
    if (!fx_made__room(made, bytes.len, err)) return false;
    if (bytes.len) memcpy(made->at + made->len, bytes.at, bytes.len);
    made->len += bytes.len;
    return true;
}
