#pragma once
/* Steps 1 to 5 of sampler.h, on the logits themselves: private to engine/. */
#include "engine/sampler.h"

/** The row's logits as the parameters change them: in scratch->logits, or the row's own where
 *  nothing does. Uses scratch->ids. */
const float *fx_sample__adjust(const struct fx_sampling *sampling, const struct fx_sample_row *row,
                               const struct fx_sample_scratch *scratch);
