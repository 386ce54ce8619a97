#pragma once
#include "common/base/logprob.h"
#include "common/model/tokenizer.h"

/** Log probabilities of a choice's tokens that were not sent yet. Zeroed: empty. */
struct gw_logprobs {
    const fx_tokenizer *tokenizer; /* borrowed; NULL: not asked for */
    uint32_t each;                 /* places of a token: its own, then the likeliest */
    struct fx_logprob *at;         /* [count][each] */
    uint32_t *offsets;             /* [count] characters of the answer before the token */
    uint32_t count, cap;
};

/** `text`: as the log has it; empty or malformed: unknown, FX_LOGPROB_MIN. False: no memory. */
FX_MUST bool gw_logprobs_add(struct gw_logprobs *logprobs, uint32_t token, fx_span text,
                             uint32_t offset);
/** They were sent. */
void gw_logprobs_clear(struct gw_logprobs *logprobs);
/** The first `count` (<= logprobs->count) of them were. */
void gw_logprobs_drop(struct gw_logprobs *logprobs, uint32_t count);
/** Frees; may be called twice. */
void gw_logprobs_done(struct gw_logprobs *logprobs);

/** What a token decodes to as a JSON string; bytes that are no text become U+FFFD. */
void gw_token_text(const fx_tokenizer *tokenizer, uint32_t id, fx_buf *out);

/** `{"content":[...],"refusal":null}`; `null` where not asked for. */
void gw_logprobs_chat(const struct gw_logprobs *logprobs, fx_buf *out);
/** `{"tokens":[...],"token_logprobs":[...],"top_logprobs":[...],"text_offset":[...]}`, or `null`.
 */
void gw_logprobs_completion(const struct gw_logprobs *logprobs, fx_buf *out);
