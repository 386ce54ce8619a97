#include "engine/engine_internal.h"
#include "engine/logprobs.h"
#include <stdio.h>

static void result_add(fx_engine *engine, struct fx_engine_result result) {
    engine->results[engine->result_count++] = result;
    if (result.end != FX_ENGINE_RUNS) fx_engine__release(engine, result.sequence);
}

/* Sequences that were over when they were added: resumed behind their last token. */
static void results_of_ended(fx_engine *engine) {
    for (uint32_t age = engine->order_count; age-- > 0;) {
        uint32_t number = engine->order[age];
        if (engine->slots[number].over != FX_ENGINE_RUNS)
            result_add(engine, (struct fx_engine_result){number, 0, 0, engine->slots[number].over,
                                                         "", NULL});
    }
}

static const float *logits_at(const fx_engine *engine, uint32_t index) {
    return engine->exec.logits + (size_t)index * engine->config->vocabulary;
}

static void tell_rows(const fx_engine *engine) {
    size_t chosen = (size_t)engine->config->layers * engine->config->experts_per_token;
    for (uint32_t i = 0; i < engine->step.logit_rows; i++) {
        uint32_t row = engine->step.logit_of[i];
        struct fx_engine_row told = {engine->sequences[row], engine->positions[row],
                                     logits_at(engine, i),
                                     chosen ? engine->traced + row * chosen : NULL};
        engine->opts.on_row(engine->opts.ctx, &told);
    }
}

static struct fx_sample_row row_of(const fx_engine *engine, const struct fx_engine__slot *slot,
                                   const float *logits) {
    return (struct fx_sample_row){
        .logits = logits,
        .vocab = engine->config->vocabulary,
        .number = slot->count - slot->prompt_count + 1,
        .ids = slot->ids,
        .prompt_count = slot->prompt_count,
        .stops = slot->stops,
        .stop_count = slot->stop_count,
    };
}

static const struct fx_logprob *logprobs_of(const fx_engine *engine,
                                            const struct fx_engine__slot *slot, uint32_t token,
                                            const float *logits) {
    if (!slot->logprob_count) return NULL;
    fx_logprobs(logits, engine->config->vocabulary, token, slot->logprob_count - 1, slot->logprobs);
    return slot->logprobs;
}

/* Draws the next token of a sequence from its logits. */
static void sample_row(fx_engine *engine, uint32_t number, const float *logits) {
    struct fx_engine__slot *slot = &engine->slots[number];
    struct fx_sample_row row = row_of(engine, slot, logits);
    uint32_t place = row.number, token;
    fx_error why = {0};
    if (!fx_sample(&slot->sampling, &row, &engine->scratch, &token, &why)) {
        char *detail = engine->details[number];
        (void)snprintf(detail, FX_ENGINE_DETAIL_MAX, "token %u: %.100s", place, why.text);
        engine->stats.rows_failed++;
        result_add(engine, (struct fx_engine_result){number, 0, 0, FX_ENGINE_FAILED, detail, NULL});
        return;
    }
    slot->ids[slot->count++] = token;
    engine->stats.tokens_decoded++;
    engine->stats.logged_sampled += place <= slot->logged_count;
    enum fx_engine_end end = fx_engine__end_of(slot);
    result_add(engine, (struct fx_engine_result){number, place, token, end, "",
                                                 logprobs_of(engine, slot, token, logits)});
}

static void results_of_rows(fx_engine *engine) {
    for (uint32_t i = 0; i < engine->step.logit_rows; i++) {
        uint32_t row = engine->step.logit_of[i], number = engine->sequences[row];
        if (engine->positions[row] + 1 == engine->slots[number].count)
            sample_row(engine, number, logits_at(engine, i));
    }
}

/* How many rows of the step are of tokens that were logged before the sequence came. */
static uint32_t logged_rows(const struct fx_engine__slot *slot) {
    uint32_t begin = slot->cached, end = slot->cached + slot->rows;
    uint32_t logged_end = slot->prompt_count + slot->logged_count;
    if (begin < slot->prompt_count) begin = slot->prompt_count;
    if (end > logged_end) end = logged_end;
    return end > begin ? end - begin : 0;
}

/* What was computed is in the cache. */
static void advance(fx_engine *engine) {
    for (uint32_t age = 0; age < engine->order_count; age++) {
        struct fx_engine__slot *slot = &engine->slots[engine->order[age]];
        bool prefills = slot->count - slot->cached > 1;
        engine->stats.tokens_prefilled += prefills ? slot->rows : 0;
        engine->stats.logged_prefilled += logged_rows(slot);
        engine->stats.rows += slot->rows;
        slot->cached += slot->rows;
    }
    engine->stats.steps++;
}

void fx_engine_step(fx_engine *engine, const struct fx_engine_result **results, size_t *count) {
    engine->result_count = 0;
    results_of_ended(engine);
    if (fx_engine__plan(engine)) {
        fx_engine__forward(engine);
        advance(engine);
        if (engine->opts.on_row) tell_rows(engine);
        results_of_rows(engine);
    }
    *results = engine->results;
    *count = engine->result_count;
}
