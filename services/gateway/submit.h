#pragma once
#include "fractal/v1/generation.pb-c.h"
#include "services/gateway/visit.h"

/** How generations get to a scheduler: what one turn of the loop asks for goes in one call
 *  (SubmitGenerations), the choices of a request admitted together or not at all. @thread the
 *  loop's */

enum {
    GW_SUBMIT_CALLS_MAX = 8,          /* at once; what comes meanwhile shares the next */
    GW_SUBMIT_GROUPS_MAX = 64,        /* of one call, as the scheduler takes */
    GW_SUBMIT_BYTES_MAX = 512 * 1024, /* of one call, unless a request alone has more */
    GW_SUBMIT_DEADLINE_MS = 10000,    /* a scheduler waits 7 s for Redis, whose disk may stall */
    GW_SUBMIT_OLD_MS = 60000,         /* a scheduler without SubmitGenerations is remembered */
};

/** @own caller, gw_submits_free @err RESOURCE_EXHAUSTED */
FX_MUST bool gw_submits_open(struct gateway *gateway, struct gw_submits **out, fx_error *err);
/** Ends what was not sent. Before the scheduler's client is freed. */
void gw_submits_drop(struct gw_submits *submits);
/** After that. NULL is fine. */
void gw_submits_free(struct gw_submits *submits);

/** A task's parts, borrowed from a visit; `memory` keeps them until they are packed.
 *  NULL: it is full. */
Fractal__V1__GenerationTask *gw_task(const struct gw_choice *first, uint32_t count,
                                     fx_arena *memory);

/** Nobody knows whether the scheduler has it. */
bool gw_submit_perhaps_done(enum fx_code code);
/** The choices of one submission, each by a call of its own, for a scheduler that knows no other;
 *  ends it as the one call would. */
void gw_submit_each(struct gw_submission *submission);
/** Tells the visit and gives its reference back. `seeds` [count] with OK. */
void gw_submission_end(struct gw_submission *submission, const struct fx_client_result *result,
                       const uint64_t *seeds);
