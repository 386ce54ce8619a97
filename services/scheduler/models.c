#include "services/scheduler/app.h"
#include <stdio.h>
#include "common/base/clock.h"

struct model *model_find(struct scheduler_app *app, uint32_t number) {
    for (uint32_t i = 0; i < app->model_count; i++)
        if (app->models[i].number == number) return &app->models[i];
    return NULL;
}

struct model *model_add(struct scheduler_app *app, uint32_t number, const char *name) {
    struct model *model = model_find(app, number);
    if (!model && app->model_count == FX_QUEUE_MODELS_MAX) return NULL;
    if (!model) {
        model = &app->models[app->model_count++];
        *model = (struct model){.number = number, .app = app};
    }
    if (name) (void)snprintf(model->name, sizeof model->name, "%s", name);
    return model;
}

bool model_is_fresh(const struct model *model) {
    return model->read_ms && fx_clock_ms() - model->read_ms < STATS_FRESH_MS;
}

void model_keep(struct model *model, const struct fx_queue_stats *stats) {
    struct scheduler_app *app = model->app;
    size_t at = (size_t)(model - app->models);
    model->stats = *stats;
    model->stats.live = NULL;
    model->stats.live_count = 0;
    model->read_ms = fx_clock_ms();
    (void)pthread_mutex_lock(&app->lock);
    app->shown[at].stats = model->stats;
    (void)snprintf(app->shown[at].name, sizeof app->shown[at].name, "%s", model->name);
    app->shown_count = app->model_count;
    (void)pthread_mutex_unlock(&app->lock);
}

static void on_stats(void *ctx, const struct fx_queue_stats *stats, const fx_error *err) {
    struct model *model = ctx;
    model->reading = false;
    if (!err) model_keep(model, stats);
}

/* What can't be read now is read by the next tick. */
static void model_read(struct model *model) {
    fx_error err;
    if (model->reading) return;
    model->reading = fx_queue_stats(model->app->queue, model->number, on_stats, model, &err);
}

static void on_models(void *ctx, const struct fx_queue_model *models, size_t count,
                      const fx_error *err) {
    struct scheduler_app *app = ctx;
    app->listing = false;
    for (size_t i = 0; !err && i < count; i++) {
        bool known = model_find(app, models[i].number) != NULL;
        struct model *model = model_add(app, models[i].number, models[i].name);
        if (model && !known) model_dispatch(model);
    }
    for (uint32_t i = 0; i < app->model_count; i++)
        model_read(&app->models[i]);
}

void models_refresh(struct scheduler_app *app) {
    fx_error err;
    if (app->listing) return;
    app->listing = fx_queue_models(app->queue, on_models, app, &err);
}
