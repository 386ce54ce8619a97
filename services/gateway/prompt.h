#pragma once
#include "services/gateway/request.h"
#include "services/gateway/vocab.h"

/** Token ids of a prompt. @own caller, free(at) */
struct gw_prompt {
    uint32_t *at;
    uint32_t len;
};

/** Renders and tokenises; a prompt that leaves no room for one token in `context_max` is refused.
 *  User text never becomes a control token. */
FX_MUST bool gw_prompt_build(const struct gw_request *request, const struct gw_vocab *vocab,
                             uint32_t context_max, struct gw_prompt *out,
                             struct gw_problem *problem);
