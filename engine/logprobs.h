#pragma once
#include "common/base/logprob.h"

/** Log probabilities by the raw logits, before any parameter: out[0] is the token's, out[1..top]
 *  the likeliest, ties by the lower id; places beyond the vocabulary are FX_LOGPROB_NONE. Logits
 *  of -infinity, and what lies below, give FX_LOGPROB_MIN.
 *  @shape logits [vocab], no NaN and one finite; out [1 + top] @pre top <= FX_TOP_LOGPROBS_MAX */
void fx_logprobs(const float *logits, uint32_t vocab, uint32_t token, uint32_t top,
                 struct fx_logprob *out);
