#include "engine/adjust.h"
#include <math.h>
#include <string.h>

#define IN_PROMPT 0x80000000U /* in an id's count of generated tokens */

static bool on(float value, float off) {
    return value < off || value > off;
}

static bool repeats(const struct fx_sampling *sampling) {
    return on(sampling->repetition, 0) && on(sampling->repetition, 1);
}

static bool penalises(const struct fx_sampling *sampling) {
    return repeats(sampling) || on(sampling->frequency, 0) || on(sampling->presence, 0);
}

static bool holds_back(const struct fx_sampling *sampling, const struct fx_sample_row *row) {
    return row->number <= sampling->min_tokens && row->stop_count;
}

/* How often each id was generated, and whether the prompt has it. */
static void count_ids(const struct fx_sample_row *row, uint32_t *counts) {
    memset(counts, 0, row->vocab * sizeof(*counts));
    for (uint32_t i = 0; i < row->prompt_count; i++)
        counts[row->ids[i]] = IN_PROMPT;
    for (uint32_t i = 0; i + 1 < row->number; i++)
        counts[row->ids[row->prompt_count + i]]++;
}

static float penalised(const struct fx_sampling *sampling, uint32_t count, float logit) {
    uint32_t generated = count & ~IN_PROMPT;
    if (repeats(sampling))
        logit = logit > 0 ? logit / sampling->repetition : logit * sampling->repetition;
    if (!generated) return logit;
    logit -= sampling->frequency * (float)generated;
    return logit - sampling->presence;
}

static void penalise(const struct fx_sampling *sampling, const struct fx_sample_row *row,
                     uint32_t *counts, float *logits) {
    count_ids(row, counts);
    for (uint32_t i = 0; i < row->vocab; i++)
        if (counts[i]) logits[i] = penalised(sampling, counts[i], logits[i]);
}

const float *fx_sample__adjust(const struct fx_sampling *sampling, const struct fx_sample_row *row,
                               const struct fx_sample_scratch *scratch) {
    float *logits = scratch->logits;
    bool holds = holds_back(sampling, row), penalties = penalises(sampling);
    if (!holds && !penalties && !sampling->bias_count) return row->logits;
    memcpy(logits, row->logits, row->vocab * sizeof(*logits));
    for (uint32_t i = 0; holds && i < row->stop_count; i++)
        if (row->stops[i] < row->vocab) logits[row->stops[i]] = -INFINITY;
    for (uint32_t i = 0; i < sampling->bias_count; i++)
        logits[sampling->bias[i].id] += sampling->bias[i].value;
    if (penalties) penalise(sampling, row, scratch->ids, logits);
    return logits;
}
