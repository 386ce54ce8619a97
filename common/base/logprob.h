#pragma once
#include "common/base/error.h"
#include "common/base/span.h"

/** The log probability of one token, finite. */
struct fx_logprob {
    uint32_t id; /* FX_LOGPROB_NONE: no token, the place is empty */
    float value; /* FX_LOGPROB_MIN..0 */
};
#define FX_LOGPROB_NONE UINT32_MAX
#define FX_LOGPROB_MIN (-9999.0F)

enum {
    FX_TOP_LOGPROBS_MAX = 20,                            /* beside the token's own */
    FX_LOGPROBS_MAX = 1 + FX_TOP_LOGPROBS_MAX,           /* of one token */
    FX_LOGPROBS_TEXT_MAX = 8 + 20 * FX_TOP_LOGPROBS_MAX, /* bytes */
};

/** One token's as text, for the log: the bits of its own value (its id stands elsewhere), then
 *  "/id:bits" of the likeliest. Exact. */
void fx_logprobs_write(const struct fx_logprob *logprobs, uint32_t count, fx_buf *out);
/** Fills out[1..] and out[0].value. `count`: how many there are, 1..FX_LOGPROBS_MAX. False:
 *  malformed, or a value is not finite. */
FX_MUST bool fx_logprobs_read(fx_span text, struct fx_logprob out[FX_LOGPROBS_MAX],
                              uint32_t *count);
