#pragma once
#include "services/gateway/request.h"
#include "services/gateway/vocab.h"

/** Token ids of a prompt. @own caller, free(at) */
struct gw_prompt {
    uint32_t *at;
    uint32_t len;
    bool is_continued; /* its answer goes on with its text, and begins none of its own */
};

/** Renders and tokenises; a prompt that leaves no room for one token in `context_max` is refused.
 *  User text never becomes a control token. */
FX_MUST bool gw_prompt_build(const struct gw_request *request, const struct gw_vocab *vocab,
                             uint32_t context_max, struct gw_prompt *out,
                             struct gw_problem *problem);
/** Copies checked ids; one past the vocabulary is refused, naming `field`.
 *  @own out->at: caller, free() */
FX_MUST bool gw_ids_copy(const json_t *ids, const fx_tokenizer *tokenizer, const char *field,
                         struct fx_ids *out, struct gw_problem *problem);
