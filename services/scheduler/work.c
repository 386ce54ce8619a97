/* The two loops: tasks to workers, and back from those that fell silent. Every replica runs them;
 * the functions in Redis see to it that each step happens once. */
#include <event2/event.h>
#include "common/base/clock.h"
#include "common/base/log.h"
#include "services/scheduler/app.h"

static void on_dispatched(void *ctx, const struct fx_count_result *result, const fx_error *err) {
    struct model *model = ctx;
    bool again = model->dispatch_again;
    model->dispatching = model->dispatch_again = false;
    if (err) return; /* the tick tries again */
    model->app->dispatched += result->count;
    if (again || (result->more && result->count)) model_dispatch(model);
}

void model_dispatch(struct model *model) {
    fx_error err;
    model->dispatch_again = model->dispatching;
    if (model->dispatching) return;
    model->dispatching =
        fx_queue_dispatch(model->app->queue, model->number, on_dispatched, model, &err);
}

static void on_reclaimed(void *ctx, const struct fx_count_result *result, const fx_error *err) {
    struct model *model = ctx;
    struct scheduler_app *app = model->app;
    model->reclaiming = false;
    if (err || !result->count) return;
    app->reclaimed += result->count - result->failed;
    app->gave_up += result->failed;
    fx_log(FX_LOG_WARN, FX_EVENT("reclaimed"), FX_KS("model", model->name),
           FX_KI("queued_again", result->count - result->failed), FX_KI("ended", result->failed));
    if (result->more) model_reclaim(model);
}

void model_reclaim(struct model *model) {
    fx_error err;
    if (model->reclaiming) return;
    model->reclaiming =
        fx_queue_reclaim(model->app->queue, model->number, on_reclaimed, model, &err);
}

void work_hint(void *ctx, uint32_t number) {
    struct scheduler_app *app = ctx;
    if (!number) {
        models_refresh(app);
        models_each(app, model_dispatch);
        return;
    }
    struct model *model = model_add(app, number, NULL);
    if (!model) return;
    if (!model->stats.waiting && !model->stats.running) model_read(model); /* shown as idle */
    model_dispatch(model);
}

/* ---- ticks ---- */

static void on_dispatch_tick(evutil_socket_t fd, short what, void *ctx) {
    struct scheduler_app *app = ctx;
    (void)fd, (void)what;
    if (app->redis_ready) models_each(app, model_dispatch);
}

static void on_reclaim_tick(evutil_socket_t fd, short what, void *ctx) {
    struct scheduler_app *app = ctx;
    (void)fd, (void)what;
    if (app->redis_ready) models_each(app, model_reclaim);
}

static void on_stats_tick(evutil_socket_t fd, short what, void *ctx) {
    struct scheduler_app *app = ctx;
    (void)fd, (void)what;
    if (app->redis_ready) models_refresh(app);
}

static FX_MUST bool tick_open(struct scheduler_app *app, uint32_t ms, event_callback_fn on_tick,
                              struct event **out, fx_error *err) {
    struct timeval tv = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
    *out = event_new(fx_loop_base(app->loop), -1, EV_PERSIST, on_tick, app);
    if (!*out || event_add(*out, &tv) != 0)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a timer");
    return true;
}

bool work_ticks_open(struct scheduler_app *app, fx_error *err) {
    uint32_t reclaim_ms = app->config->lease_ms / 4;
    if (reclaim_ms > RECLAIM_TICK_MS_MAX) reclaim_ms = RECLAIM_TICK_MS_MAX;
    return tick_open(app, DISPATCH_TICK_MS, on_dispatch_tick, &app->dispatch_tick, err) &&
           tick_open(app, reclaim_ms, on_reclaim_tick, &app->reclaim_tick, err) &&
           tick_open(app, STATS_TICK_MS, on_stats_tick, &app->stats_tick, err);
}

void work_ticks_close(struct scheduler_app *app) {
    struct event *const ticks[] = {app->dispatch_tick, app->reclaim_tick, app->stats_tick};
    for (size_t i = 0; i < FX_COUNT(ticks); i++)
        if (ticks[i]) event_free(ticks[i]);
}
