/* Generations without a new token: given up after FX_STALL_MS, and after FX_RESUME_DEADLINE_MS when
 * nobody is left to make one. */
#include "common/base/clock.h"
#include "services/gateway/visit.h"

enum { ASK_MS_MIN = 1000, ASKS_A_DEADLINE = 4 };

static void stalled(struct gw_visit *visit) {
    struct gateway *gateway = visit->gateway;
    struct gw_problem problem;
    gw_count(&gateway->metrics.stalled, 1);
    gw_problem_set(&problem, GW_STALLED, NULL, "no token came for %u ms",
                   gateway->config->stall_ms_max);
    gw_generation_fail(visit, &problem);
}

static void worker_lost(struct gw_visit *visit) {
    struct gateway *gateway = visit->gateway;
    struct gw_problem problem;
    gw_count(&gateway->metrics.worker_lost, 1);
    gw_problem_set(&problem, GW_WORKER_LOST, NULL,
                   "no worker of this model is left, and none came for %u ms",
                   gateway->config->resume_ms_max);
    gw_generation_fail(visit, &problem);
}

static bool silent_for(const struct gw_visit *visit, uint64_t ms) {
    return fx_clock_ms() - visit->token_ms >= ms;
}

/* While Redis does not answer nobody knows; it is asked again. */
static void on_workers(void *ctx, const struct fx_queue_stats *stats, const fx_error *err) {
    struct gw_visit *visit = ctx;
    bool waits = visit->listed && silent_for(visit, visit->gateway->config->resume_ms_max);
    if (!err && !stats->live_count && waits) worker_lost(visit);
    gw_visit_unref(visit); /* the question's */
}

static void ask(struct gw_visit *visit) {
    fx_error err = {0};
    visit->workers_ms = fx_clock_ms();
    gw_visit_ref(visit); /* the question's */
    if (!fx_queue_stats(visit->gateway->queue, visit->model.number, on_workers, visit, &err))
        gw_visit_unref(visit);
}

/* Long queues are silent too: each visit asks seldom. */
static uint32_t ask_ms(const struct gw_config *config) {
    uint32_t ms = config->resume_ms_max / ASKS_A_DEADLINE;
    return ms > ASK_MS_MIN ? ms : ASK_MS_MIN;
}

void gw_stalls_end(struct gateway *gateway) {
    const struct gw_config *config = gateway->config;
    struct gw_visit *visit, *next;
    for (visit = TAILQ_FIRST(&gateway->visits); visit; visit = next) {
        next = TAILQ_NEXT(visit, entry);
        if (silent_for(visit, config->stall_ms_max))
            stalled(visit);
        else if (silent_for(visit, config->resume_ms_max) &&
                 fx_clock_ms() - visit->workers_ms >= ask_ms(config))
            ask(visit);
    }
}
