#include "common/model/tokenizer_internal.h"
#include "common/base/heap.h"

static uint64_t hash_bytes(fx_span bytes) {
    uint64_t hash = 0xcbf29ce484222325U;
    for (size_t i = 0; i < bytes.len; i++)
        hash = (hash ^ bytes.at[i]) * 0x100000001b3U;
    return fx_mix(hash);
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
    size_t i = fx_mix(merge.pair) & merges->mask;
    while (merges->slots[i].id != FX_ID_NONE && merges->slots[i].pair != merge.pair)
        i = (i + 1) & merges->mask;
    if (merges->slots[i].id == FX_ID_NONE) merges->count++;
    merges->slots[i] = merge;
}

bool fx_words__init(struct fx_words *words, size_t count_max, fx_error *err) {
    size_t slots = slots_for(count_max);
    words->slots = fx_alloc(slots, sizeof *words->slots);
    if (!words->slots) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for %zu words", slots);
    for (size_t i = 0; i < slots; i++)
        words->slots[i].id = FX_ID_NONE;
    words->mask = slots - 1;
    return true;
}

void fx_words__put(struct fx_words *words, fx_span bytes, uint32_t id) {
    size_t i = hash_bytes(bytes) & words->mask;
    while (words->slots[i].id != FX_ID_NONE)
        i = (i + 1) & words->mask;
    words->slots[i] = (struct fx_word){bytes.at, (uint32_t)bytes.len, id};
}

bool fx_words__get(const struct fx_words *words, fx_span bytes, uint32_t *id) {
    size_t i = hash_bytes(bytes) & words->mask;
    for (; words->slots[i].id != FX_ID_NONE; i = (i + 1) & words->mask) {
        if (!fx_span_eq((fx_span){words->slots[i].at, words->slots[i].len}, bytes)) continue;
        *id = words->slots[i].id;
        return true;
    }
    return false;
}

bool fx_numbers__init(struct fx_numbers *numbers, size_t count_max, fx_error *err) {
    size_t slots = slots_for(count_max);
    numbers->slots = fx_alloc(slots, sizeof *numbers->slots);
    if (!numbers->slots) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for %zu slots", slots);
    numbers->mask = slots - 1;
    return true;
}

static size_t number_slot(const struct fx_numbers *numbers, uint64_t key) {
    size_t i = fx_mix(key) & numbers->mask;
    while (numbers->slots[i].key && numbers->slots[i].key != key)
        i = (i + 1) & numbers->mask;
    return i;
}

void fx_numbers__put(struct fx_numbers *numbers, uint64_t key, uint32_t value) {
    numbers->slots[number_slot(numbers, key)] = (struct fx_number){key, value};
}

bool fx_numbers__get(const struct fx_numbers *numbers, uint64_t key, uint32_t *value) {
    const struct fx_number *slot = &numbers->slots[number_slot(numbers, key)];
    if (slot->key && value) *value = slot->value;
    return slot->key != 0;
}
