#pragma once
#include "common/base/error.h"
#include <stdint.h>

/** How a token is drawn from a row of logits. Filters apply in this order:
 *  1. temperature: weight w[i] = exp((logit[i] - max) / temperature); 0 = greedy, nothing else
 *     applies: the largest logit, the lowest id among equals;
 *  2. top_k: the k heaviest stay (0 = off);
 *  3. top_p: of those, by falling weight, the shortest prefix whose weights reach top_p of their
 *     sum stays (0 or >= 1 = off);
 *  4. min_p: what is lighter than min_p times the heaviest goes (0 = off);
 *  5. draw: by the weights of what stayed, with fx_philox_uniform(seed, choice, position).
 *  Ties go to the lower id; weights are f32 by kernels/math.h, sums f64 in one fixed order. */
struct fx_sampling {
    float temperature; /* 0..FX_TEMPERATURE_MAX */
    uint32_t top_k;
    float top_p, min_p; /* 0..1 */
    uint64_t seed;
    uint32_t choice; /* index of the answer among those of one request */
};
#define FX_TEMPERATURE_MAX 2.0F

/** Room for one row: `vocab` of each. */
struct fx_sample_scratch {
    float *weights;
    uint32_t *ids;
};

/** @err INVALID_ARGUMENT names the parameter that is out of its range (or NaN) */
FX_MUST bool fx_sampling_check(const struct fx_sampling *sampling, fx_error *err);

/** Draws generated token number `position` (from 1). Pure.
 *  @shape logits [vocab] @err DATA_LOSS: a logit is NaN, or none is finite; this row fails alone */
FX_MUST bool fx_sample(const struct fx_sampling *sampling, uint32_t position, const float *logits,
                       uint32_t vocab, const struct fx_sample_scratch *scratch, uint32_t *token,
                       fx_error *err);
/** The largest logit's id, the lowest among equals. @pre vocab >= 1 @err as fx_sample */
FX_MUST bool fx_argmax(const float *logits, uint32_t vocab, uint32_t *id, fx_error *err);
