#pragma once
#include <stdint.h>
#include "common/base/span.h"

/** A run of prompt text with one origin. Special tokens are recognised in template text only, so
 *  that a user's "<|eos|>" stays text. */
struct fx_segment {
    fx_span text;
    bool is_template; /* written by the model's template, not by the user */
};

/** Borrowed, in reading order. */
struct fx_segments {
    const struct fx_segment *at;
    size_t count;
};

/** Token ids in an array the caller sized: at[0..len) of cap. */
struct fx_ids {
    uint32_t *at;
    size_t len, cap;
};
