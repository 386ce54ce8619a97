#pragma once
#include "common/queue/queue.h"
#include "services/gateway/shapes.h"

/** How an answer is named outside: `chatcmpl-` or `cmpl-`, then 40 hex digits: the id of its first
 *  generation and the model's number, so that any gateway finds it in the queue. The name is no
 *  secret's place: whose the answer is says the queue. */
struct gw_public_id {
    const struct gw_shape *shape;
    uint32_t model;
    fx_gen_id id;
};

void gw_public_id_write(const struct gw_public_id *name, char out[GW_ANSWER_ID_MAX]);
/** False: it can't be a name of ours. */
bool gw_public_id_read(fx_span text, struct gw_public_id *out);
/** The generation of choice `index` (< GW_CHOICES_MAX): the first one's id with the index in its
 *  last four bits. */
fx_gen_id gw_choice_id(const fx_gen_id *first, uint32_t index);
