#pragma once
#include <jansson.h>
#include "common/base/arena.h"
#include "common/model/template.h"
#include "services/gateway/errors.h"

enum { GW_VARIABLES_MAX = 64, GW_DOCUMENTS_MAX = 256 };

/** Checks `messages`: roles, and content as a string or an array of text parts. */
FX_MUST bool gw_messages_check(const json_t *messages, struct gw_problem *problem);
/** Checked messages as a chat template gets them: role, content as one string, and the name where
 *  there is one. @own `out`: the caller, json_decref */
FX_MUST bool gw_messages_flat(const json_t *messages, json_t **out, struct gw_problem *problem);
/** How much text checked messages hold, names included. */
size_t gw_messages_bytes(const json_t *messages);
/** Checks `prompt`: a string, an array of ids, or an array of just one of these. `out`: the string
 *  or the array of ids. */
FX_MUST bool gw_prompt_check(json_t *prompt, json_t **out, struct gw_problem *problem);
/** Checks a non-empty array of what may be token ids; the problem names `field`. */
FX_MUST bool gw_ids_check(const json_t *ids, const char *field, struct gw_problem *problem);
/** Checks what a chat template gets beside messages: an object of at most GW_VARIABLES_MAX names,
 *  none of them the template's own; at most GW_DOCUMENTS_MAX objects. */
FX_MUST bool gw_variables_check(json_t *variables, const char *field, struct gw_problem *problem);
FX_MUST bool gw_documents_check(const json_t *documents, const char *field,
                                struct gw_problem *problem);
