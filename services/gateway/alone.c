/* What is followed to its end without its client: an answer that the client may come back for, and
 * one that was made further than the client had read, for it is charged for what was made. */
#include "services/gateway/visit.h"

/* -- nobody to be answered -- */

static void nothing(struct gw_visit *visit) {
    (void)visit;
}

static void nothing_refuse(struct gw_visit *visit, const struct gw_problem *problem) {
    (void)visit, (void)problem;
}

/* The reference is the call's, which has gone. */
static void nobody_fail(struct gw_visit *visit, const struct gw_problem *problem) {
    (void)problem;
    gw_visit_unref(visit);
}

static void nobody_tokens(struct gw_choice *choice, fx_span text, const char *reason,
                          const struct gw_problem *problem) {
    struct gw_visit *visit = choice->visit;
    (void)text;
    gw_logprobs_clear(&choice->logprobs);
    if (problem || (reason && !visit->choices_left)) gw_visit_unref(visit);
}

static const struct gw_front nobody = {
    .refuse = nothing_refuse, .begin = nothing, .tokens = nobody_tokens, .fail = nobody_fail};

/* -- the client left -- */

static bool comes_back(const struct gw_visit *visit) {
    return visit->once.asked && !visit->once.attached && gw_generation_pending(visit);
}

/* Its log was not followed while it waited for the client to read. */
static bool owes(const struct gw_visit *visit) {
    return visit->paused_ms && visit->hold.limits;
}

/* Each choice's log then says how far it came. */
static void cancel_all(struct gw_visit *visit) {
    for (uint32_t i = 0; i < visit->choice_count; i++)
        if (visit->choices[i].submitted)
            gw_cancel(visit->gateway, visit->model.number, &visit->choices[i].id, &visit->trace);
}

bool gw_alone_begin(struct gw_visit *visit) {
    bool keeps = comes_back(visit);
    if (!keeps && !owes(visit)) return false;
    visit->front = &nobody;
    visit->alone = true;
    if (!keeps) cancel_all(visit);
    gw_unread_taken(visit); /* it need not wait any more; perhaps this was its end */
    return true;
}
