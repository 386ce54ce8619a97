/* A client that reads slower than its answer comes. From FX_UNREAD_BYTES on the answer waits: its
 * log is not followed, so that nothing more piles up, until the client has taken all. A client that
 * does not for FX_UNREAD_MS is cut. */
#include "common/base/clock.h"
#include "services/gateway/visit.h"

void gw_unread_end(struct gw_visit *visit) {
    if (visit->paused_ms) visit->gateway->metrics.unread--;
    visit->paused_ms = 0;
}

void gw_unread_check(struct gw_visit *visit) {
    struct gateway *gateway = visit->gateway;
    if (!visit->call || !visit->listed || visit->paused_ms || !fx_http_stream_open(visit->call) ||
        fx_http_stream_unsent(visit->call) < gateway->config->unread_bytes)
        return;
    visit->paused_ms = fx_clock_ms();
    gateway->metrics.unread++;
    gw_count(&gateway->metrics.unread_total, 1);
    for (uint32_t i = 0; i < visit->choice_count; i++)
        gw_choice_unwatch(&visit->choices[i]);
}

void gw_unread_taken(void *user) {
    struct gw_visit *visit = user;
    struct gw_problem problem;
    fx_error err = {0};
    if (!visit->paused_ms) return;
    gw_unread_end(visit);
    visit->token_ms = fx_clock_ms();
    for (uint32_t i = 0; i < visit->choice_count; i++) {
        struct gw_choice *choice = &visit->choices[i];
        if (choice->ended || gw_choice_watch(choice, &err)) continue;
        gw_problem_set(&problem, GW_UNAVAILABLE, NULL, "the answer can't be followed: %s",
                       err.text);
        gw_generation_fail(visit, &problem);
        return;
    }
}

/* Meanwhile a new token is not expected. */
void gw_unread_tick(struct gateway *gateway) {
    uint64_t now_ms = fx_clock_ms();
    struct gw_visit *visit;
    TAILQ_FOREACH(visit, &gateway->visits, entry) {
        if (!visit->paused_ms) continue;
        visit->token_ms = now_ms;
        if (now_ms - visit->paused_ms >= gateway->config->unread_ms_max)
            fx_http_stream_cut(visit->call); /* gone follows, and with it the cancel */
    }
}
