#include "engine/engine_internal.h"
#include <string.h>

static FX_MUST bool ids_check(const fx_engine *engine, const uint32_t *ids, uint32_t count,
                              const char *what, fx_error *err) {
    for (uint32_t i = 0; i < count; i++)
        if (ids[i] >= engine->config->vocabulary)
            return fx_fail(err, FX_INVALID_ARGUMENT, "%s id %u at %u: the vocabulary has %u", what,
                           ids[i], i, engine->config->vocabulary);
    return true;
}

static FX_MUST bool sequence_check(const fx_engine *engine, const struct fx_sequence *sequence,
                                   fx_error *err) {
    uint32_t context_max = engine->opts.context_max;
    if (!sequence->prompt_count) return fx_fail(err, FX_INVALID_ARGUMENT, "an empty prompt");
    if (!sequence->max_tokens) return fx_fail(err, FX_INVALID_ARGUMENT, "max_tokens is 0");
    if (sequence->prompt_count >= context_max)
        return fx_fail(err, FX_OUT_OF_RANGE, "a prompt of %u tokens; the context holds %u",
                       sequence->prompt_count, context_max);
    if (sequence->logged_count > context_max - sequence->prompt_count)
        return fx_fail(err, FX_OUT_OF_RANGE, "%u + %u tokens; the context holds %u",
                       sequence->prompt_count, sequence->logged_count, context_max);
    if (sequence->stop_count > FX_ENGINE_STOPS_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%u stop ids: at most %d", sequence->stop_count,
                       FX_ENGINE_STOPS_MAX);
    if (sequence->logprobs > FX_LOGPROBS_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "top_logprobs must be 0 to %d",
                       FX_TOP_LOGPROBS_MAX);
    return fx_sampling_check(&sequence->sampling, engine->config->vocabulary, err) &&
           ids_check(engine, sequence->prompt, sequence->prompt_count, "prompt", err) &&
           ids_check(engine, sequence->logged, sequence->logged_count, "logged", err);
}

static bool slot_find(const fx_engine *engine, uint32_t *out) {
    for (uint32_t i = 0; i < engine->opts.slots; i++)
        if (engine->slots[i].state == SLOT_FREE) {
            *out = i;
            return true;
        }
    return false;
}

static void copy_ids(uint32_t *to, const uint32_t *from, uint32_t count) {
    if (count) memcpy(to, from, count * sizeof(*to));
}

/* The sum of two counts, at most `ceiling`. */
static uint32_t sum_capped(uint32_t a, uint32_t b, uint32_t ceiling) {
    return b > ceiling - a ? ceiling : a + b;
}

static void slot_fill(const fx_engine *engine, struct fx_engine__slot *slot,
                      const struct fx_sequence *sequence) {
    slot->state = SLOT_WAITING;
    slot->prompt_count = sequence->prompt_count;
    slot->logged_count = sequence->logged_count;
    slot->count = sequence->prompt_count + sequence->logged_count;
    slot->cached = 0;
    slot->rows = 0;
    slot->count_max =
        sum_capped(sequence->prompt_count, sequence->max_tokens, engine->opts.context_max);
    slot->stop_count = sequence->stop_count;
    slot->logprob_count = sequence->logprobs;
    slot->sampling = sequence->sampling;
    slot->sampling.bias = slot->biases;
    for (uint32_t i = 0; i < sequence->sampling.bias_count; i++)
        slot->biases[i] = sequence->sampling.bias[i];
    copy_ids(slot->ids, sequence->prompt, sequence->prompt_count);
    copy_ids(slot->ids + sequence->prompt_count, sequence->logged, sequence->logged_count);
    copy_ids(slot->stops, sequence->stops, sequence->stop_count);
    slot->over = fx_engine__end_of(slot);
}

enum fx_engine_end fx_engine__end_of(const struct fx_engine__slot *slot) {
    uint32_t last = slot->ids[slot->count - 1];
    bool generated = slot->count > slot->prompt_count;
    for (uint32_t i = 0; generated && i < slot->stop_count; i++)
        if (slot->stops[i] == last) return FX_ENGINE_STOP;
    return slot->count >= slot->count_max ? FX_ENGINE_LENGTH : FX_ENGINE_RUNS;
}

bool fx_engine_add(fx_engine *engine, const struct fx_sequence *sequence, uint32_t *out,
                   fx_error *err) {
    uint32_t slot;
    if (!sequence_check(engine, sequence, err)) return false;
    if (!slot_find(engine, &slot))
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "all %u slots are taken", engine->opts.slots);
    slot_fill(engine, &engine->slots[slot], sequence);
    engine->order[engine->order_count++] = slot;
    *out = slot;
    return true;
}

void fx_engine__release(fx_engine *engine, uint32_t slot) {
    fx_kv_clear(engine->kv, slot);
    engine->slots[slot].state = SLOT_FREE;
    uint32_t at = 0;
    while (engine->order[at] != slot)
        at++;
    engine->order_count--;
    memmove(engine->order + at, engine->order + at + 1,
            (engine->order_count - at) * sizeof(*engine->order));
}

void fx_engine_remove(fx_engine *engine, uint32_t sequence) {
    FX_ASSERT(sequence < engine->opts.slots && engine->slots[sequence].state != SLOT_FREE);
    fx_engine__release(engine, sequence);
}

bool fx_engine_busy(const fx_engine *engine) {
    return engine->order_count > 0;
}

uint32_t fx_engine_context_max(const fx_engine *engine) {
    return engine->opts.context_max;
}

uint32_t fx_engine_vocab(const fx_engine *engine) {
    return engine->config->vocabulary;
}

uint64_t fx_engine_progress(const fx_engine *engine) {
    return atomic_load_explicit(&engine->exec.progress, memory_order_relaxed);
}

const char *fx_engine_level(const fx_engine *engine) {
    return strcmp(engine->ops->name, "cpu") == 0 ? fx_ops_cpu_level() : engine->ops->name;
}

struct fx_engine_stats fx_engine_stats(const fx_engine *engine) {
    struct fx_engine_stats stats = engine->stats;
    const struct fx_counts *counts = &engine->exec.counts;
    stats.dense_matmuls = counts->dense_matmuls;
    stats.dense_rows = counts->dense_rows;
    stats.expert_matmuls = counts->expert_matmuls;
    stats.expert_rows = counts->expert_rows;
    stats.weight_bytes = counts->weight_bytes;
    stats.slots = engine->opts.slots;
    stats.slots_free = engine->opts.slots - engine->order_count;
    for (uint32_t i = 0; i < engine->order_count; i++)
        stats.running += engine->slots[engine->order[i]].state == SLOT_RUNNING;
    stats.waiting = engine->order_count - stats.running;
    stats.pages = fx_kv_pages(engine->kv);
    stats.pages_free = fx_kv_pages_free(engine->kv);
    return stats;
}
