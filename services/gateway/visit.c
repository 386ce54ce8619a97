/* How long a visit lives: until its call has ended and no question of its is under way. */
#include "services/gateway/visit.h"
#include "common/base/heap.h"
#include "services/gateway/telemetry.h"

void gw_visit_ref(struct gw_visit *visit) {
    visit->refs++;
}

void gw_visit_unref(struct gw_visit *visit) {
    if (--visit->refs) return;
    if (!visit->rpc) visit->gateway->visit_count--;
    gw_generation_done(visit);
    free(visit);
}

static void on_no_model(void *ctx, const struct gw_problem *problem) {
    gw_visit_refuse(ctx, problem);
}

void gw_visit_want_model(struct gw_visit *visit, const char *name,
                         void (*found)(void *ctx, const struct gw_model *model)) {
    visit->waiter = (struct gw_models_waiter){
        .name = name, .ctx = visit, .found = found, .refused = on_no_model};
    gw_models_want(visit->gateway->models, &visit->waiter);
}

void gw_visit_gone(struct gw_visit *visit) {
    gw_models_leave(visit->gateway->models, &visit->waiter);
    gw_telemetry_left(visit);
    if (gw_alone_begin(visit)) return;
    visit->keeps = visit->rejoin || visit->once.attached; /* not its to cancel */
    if (gw_generation_pending(visit)) visit->hold.counts = true;
    gw_generation_gone(visit);
    gw_visit_unref(visit);
}
