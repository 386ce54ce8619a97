#pragma once
#include "fractal/v1/inference.pb-c.h"
#include "services/gateway/logprobs.h"

/** The first log probabilities of a choice as messages, which share one block. */
struct gw_rpc_logprobs {
    Fractal__V1__TokenLogprob **at; /* [count] */
    size_t count;
    uint8_t *block; /* owned */
};

/** `count` <= logprobs->count. @own caller, gw_rpc_logprobs_done() False: no memory. */
FX_MUST bool gw_rpc_logprobs_make(const struct gw_logprobs *logprobs, uint32_t count,
                                  struct gw_rpc_logprobs *out);
void gw_rpc_logprobs_done(struct gw_rpc_logprobs *logprobs);
/** The room that gw_rpc_text() needs for `len` bytes. */
static inline size_t gw_rpc_text_room(size_t len) {
    return 3 * len + 1;
}
/** NUL-terminates what no C string could hold: a NUL becomes U+FFFD. */
void gw_rpc_text(fx_span text, char *out);
