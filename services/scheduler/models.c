#include "services/scheduler/app.h"
#include <stdio.h>
#include <string.h>
#include "common/base/clock.h"
#include "common/model/store.h"

struct model *model_find(struct scheduler_app *app, uint32_t number) {
    for (uint32_t i = 0; i < FX_QUEUE_MODELS_MAX; i++)
        if (app->models[i].used && app->models[i].number == number) return &app->models[i];
    return NULL;
}

static struct model *model_new(struct scheduler_app *app, uint32_t number) {
    for (uint32_t i = 0; i < FX_QUEUE_MODELS_MAX; i++) {
        struct model *model = &app->models[i];
        if (model->used) continue;
        *model =
            (struct model){.app = app, .number = number, .used = true, .busy_ms = fx_clock_ms()};
        return model;
    }
    return NULL;
}

struct model *model_add(struct scheduler_app *app, uint32_t number, const char *name) {
    struct model *model = model_find(app, number);
    if (!model) model = model_new(app, number);
    if (model && name) (void)snprintf(model->name, sizeof model->name, "%s", name);
    return model;
}

static FX_MUST bool add_cold(struct scheduler_app *app, const char *at, size_t len, fx_error *err) {
    char name[FX_QUEUE_NAME_MAX + 1];
    if (len >= sizeof name)
        return fx_fail(err, FX_INVALID_ARGUMENT, "a name of %zu characters", len);
    (void)snprintf(name, sizeof name, "%.*s", (int)len, at);
    if (!fx_model_name_check(name, err)) return false;
    struct model *model = model_add(app, fx_model_number(name), name);
    if (!model) return fx_fail(err, FX_INVALID_ARGUMENT, "more than %d", FX_QUEUE_MODELS_MAX);
    model->cold = true;
    return true;
}

bool models_add_cold(struct scheduler_app *app, const char *list, fx_error *err) {
    while (*list) {
        size_t len = strcspn(list, ",");
        if (!add_cold(app, list, len, err)) return false;
        list += len + (list[len] == ',');
    }
    return true;
}

void models_each(struct scheduler_app *app, void (*fn)(struct model *model)) {
    for (uint32_t i = 0; i < FX_QUEUE_MODELS_MAX; i++)
        if (app->models[i].used) fn(&app->models[i]);
}

bool model_is_fresh(const struct model *model) {
    return model->read_ms && fx_clock_ms() - model->read_ms < STATS_FRESH_MS;
}

static void show(const struct model *model) {
    struct scheduler_app *app = model->app;
    struct shown *shown = &app->shown[model - app->models];
    (void)pthread_mutex_lock(&app->lock);
    shown->used = model->used && model->name[0]; /* of a hint: its name is not known yet */
    shown->stats = model->stats;
    (void)snprintf(shown->name, sizeof shown->name, "%s", model->name);
    (void)pthread_mutex_unlock(&app->lock);
}

void model_keep(struct model *model, const struct fx_queue_stats *stats) {
    model->stats = *stats;
    model->stats.live = NULL;
    model->stats.live_count = 0;
    model->read_ms = fx_clock_ms();
    if (stats->live_count || stats->waiting || stats->running) model->busy_ms = model->read_ms;
    show(model);
}

static void on_forgotten(void *ctx, const fx_error *err) {
    (void)ctx, (void)err; /* still listed: it will be forgotten again */
}

/* Its place is free again, here and in the list of Redis. */
static void forget_if_idle(struct model *model) {
    fx_error err;
    bool in_use = model->dispatching || model->reclaiming || model->reading;
    if (in_use || model->cold || model->read_ms - model->busy_ms < FORGET_MS) return;
    if (!fx_queue_forget(model->app->queue, model->number, on_forgotten, NULL, &err)) return;
    model->used = false;
    show(model);
}

static void on_stats(void *ctx, const struct fx_queue_stats *stats, const fx_error *err) {
    struct model *model = ctx;
    model->reading = false;
    if (err) return;
    model_keep(model, stats);
    forget_if_idle(model);
}

/* What can't be read now is read by the next tick. */
void model_read(struct model *model) {
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
    models_each(app, model_read);
}

void models_refresh(struct scheduler_app *app) {
    fx_error err;
    if (app->listing) return;
    app->listing = fx_queue_models(app->queue, on_models, app, &err);
}
