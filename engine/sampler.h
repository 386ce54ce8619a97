#pragma once
#include "common/base/error.h"
#include <stdint.h>

#define FX_TEMPERATURE_MAX 2.0F
#define FX_PENALTY_MAX 2.0F /* presence and frequency: either sign */
#define FX_REPETITION_MIN 0.1F
#define FX_REPETITION_MAX 10.0F
#define FX_BIAS_MAX 100.0F /* either sign */

enum { FX_BIASES_MAX = 1024 }; /* of a sequence */

/** Added to one id's logit. */
struct fx_bias {
    uint32_t id;
    float value;
};

/** How a token is drawn from a row of logits. In this order, each step on what the one before left;
 *  a step whose parameter is "off" changes nothing:
 *  1. min_tokens: while fewer are generated, the sequence's stop ids can't be drawn (-infinity);
 *  2. biases: added to their logits;
 *  3. repetition: the logits of ids in the prompt or generated: divided where positive, else
 *     multiplied by it;
 *  4. frequency: logit -= frequency * how often the id was generated;
 *  5. presence: logit -= presence where the id was generated at all; 4 and 5 don't see the prompt;
 *  6. temperature: weight w[i] = exp((logit[i] - max) / temperature); 0 = greedy, nothing else
 *     applies: the largest logit, the lowest id among equals;
 *  7. top_k: the k heaviest stay (0 = off);
 *  8. top_p: of those, by falling weight, the shortest prefix whose weights reach top_p of their
 *     sum stays (0 or >= 1 = off);
 *  9. min_p: what is lighter than min_p times the heaviest goes (0 = off);
 * 10. typical_p: of what stayed, sorted by how far -log(probability) lies from its mean (the
 *     entropy), the shortest prefix whose weights reach typical_p of their sum stays (0 or >= 1 =
 *     off);
 * 11. draw: by the weights of what stayed, in the order in which the last filter left it, with
 *     fx_philox_uniform(seed, choice, number of the token).
 *  Ties go to the lower id; logits and weights are f32, weights by kernels/math.h, sums f64 in one
 *  fixed order. Nothing depends on earlier draws but through the ids themselves, so a resumed
 *  sequence draws what it would have drawn. */
struct fx_sampling {
    float temperature; /* 0..FX_TEMPERATURE_MAX */
    uint32_t top_k;
    float top_p, min_p; /* 0..1 */
    uint64_t seed;
    uint32_t choice;            /* index of the answer among those of one request */
    float typical_p;            /* 0..1 */
    float presence, frequency;  /* -FX_PENALTY_MAX..FX_PENALTY_MAX, 0 = off */
    float repetition;           /* FX_REPETITION_MIN..FX_REPETITION_MAX; 0 or 1 = off */
    uint32_t min_tokens;        /* generated before a stop id may come; 0 = off */
    const struct fx_bias *bias; /* borrowed; each id at most once */
    uint32_t bias_count;        /* <= FX_BIASES_MAX */
};

/** What a token is drawn from. */
struct fx_sample_row {
    const float *logits; /* [vocab] */
    uint32_t vocab;
    uint32_t number;     /* of the token to draw, from 1 */
    const uint32_t *ids; /* the prompt and the number - 1 generated ones, each < vocab; read only by
                            penalties */
    uint32_t prompt_count;
    const uint32_t *stops; /* ids that min_tokens holds back */
    uint32_t stop_count;
};

/** Room for one row: `vocab` of each. */
struct fx_sample_scratch {
    float *weights, *logits;
    uint32_t *ids;
};

/** @err INVALID_ARGUMENT names the parameter that is out of its range (or NaN) */
FX_MUST bool fx_sampling_check(const struct fx_sampling *sampling, uint32_t vocab, fx_error *err);

/** Draws one token. Pure. @err DATA_LOSS: a logit is NaN, or none is finite; this row fails alone
 */
FX_MUST bool fx_sample(const struct fx_sampling *sampling, const struct fx_sample_row *row,
                       const struct fx_sample_scratch *scratch, uint32_t *token, fx_error *err);
/** The largest logit's id, the lowest among equals. @pre vocab >= 1 @err as fx_sample */
FX_MUST bool fx_argmax(const float *logits, uint32_t vocab, uint32_t *id, fx_error *err);
