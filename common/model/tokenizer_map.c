#include "common/model/tokenizer_internal.h"
#include "common/base/heap.h"

/* splitmix64's finaliser */
static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

static uint64_t hash_bytes(fx_span bytes) {
    uint64_t hash = 0xcbf29ce484222325U;
    for (size_t i = 0; i < bytes.len; i++)
        hash = (hash ^ bytes.at[i]) * 0x100000001b3U;
    return mix(hash);
}

static size_t slots_for(size_t count) {
    size_t slots = 16;
    while (slots < 2 * count)
        slots *= 2;
    return slots;
}

bool fx_merges__init(struct fx_merges *merges, size_t count_max, fx_error *err) {
    size_t slots = slots_for(count_max);
    merges->slots = fx_alloc(slots, sizeof *merges->slots);
    if (!merges->slots) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for %zu merges", slots);
    for (size_t i = 0; i < slots; i++)
        merges->slots[i].id = FX_ID_NONE;
    merges->mask = slots - 1;
    return true;
}

void fx_merges__put(struct fx_merges *merges, struct fx_merge merge) {
    size_t i = mix(merge.pair) & merges->mask;
    while (merges->slots[i].id != FX_ID_NONE && merges->slots[i].pair != merge.pair)
        i = (i + 1) & merges->mask;
    if (merges->slots[i].id == FX_ID_NONE) merges->count++;
    merges->slots[i] = merge;
}

const struct fx_merge *fx_merges__get(const struct fx_merges *merges, uint32_t left,
                                      uint32_t right) {
    uint64_t pair = (uint64_t)left << 32 | right;
    size_t i = mix(pair) & merges->mask;
    while (merges->slots[i].id != FX_ID_NONE) {
        if (merges->slots[i].pair == pair) return &merges->slots[i];
        i = (i + 1) & merges->mask;
    }
    return NULL;
}

bool fx_words__init(struct fx_tokenizer *tokenizer, fx_error *err) {
    size_t slots = slots_for(tokenizer->vocabulary);
    struct fx_words *words = &tokenizer->words;
    words->ids = fx_alloc(slots, sizeof *words->ids);
    if (!words->ids) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for %zu words", slots);
    memset(words->ids, 0xff, slots * sizeof *words->ids);
    words->mask = slots - 1;
    for (uint32_t id = 0; id < tokenizer->vocabulary; id++) {
        if (!tokenizer->tokens[id].is_word) continue;
        size_t i = hash_bytes(fx_tokenizer_bytes(tokenizer, id)) & words->mask;
        while (words->ids[i] != FX_ID_NONE)
            i = (i + 1) & words->mask;
        words->ids[i] = id;
    }
    return true;
}

bool fx_words__get(const struct fx_tokenizer *tokenizer, fx_span bytes, uint32_t *id) {
    const struct fx_words *words = &tokenizer->words;
    size_t i = hash_bytes(bytes) & words->mask;
    for (; words->ids[i] != FX_ID_NONE; i = (i + 1) & words->mask) {
        if (!fx_span_eq(fx_tokenizer_bytes(tokenizer, words->ids[i]), bytes)) continue;
        *id = words->ids[i];
        return true;
    }
    return false;
}
