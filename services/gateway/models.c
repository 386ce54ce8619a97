#include "services/gateway/models.h"
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "services/gateway/models_internal.h"

bool gw_models_listed(const struct gw_models *models) {
    return models->listed;
}

size_t gw_models_count(const struct gw_models *models) {
    return models->count;
}

const struct gw_model *gw_models_at(const struct gw_models *models, size_t index) {
    return index < models->count ? &models->list[index] : NULL;
}

const struct gw_model *gw_models_find(const struct gw_models *models, const char *name) {
    for (size_t i = 0; i < models->count; i++)
        if (strcmp(models->list[i].name, name) == 0) return &models->list[i];
    return NULL;
}

/* -- waiters -- */

static void refuse(struct gw_models_waiter *waiter, enum gw_reason reason, const char *fmt,
                   const char *arg) {
    struct gw_problem problem;
    waiter->waiting = false;
    gw_problem_set(&problem, reason, "model", fmt, arg);
    waiter->refused(waiter->ctx, &problem);
}

/* Settles a waiter, or says that it has to go on waiting. */
static bool settle(struct gw_models *models, struct gw_models_waiter *waiter,
                   const struct gw_model *model) {
    if (model && model->vocab) {
        waiter->waiting = false;
        waiter->found(waiter->ctx, model);
    } else if (model && gw_models__vocab_failed(models, model->digest)) {
        refuse(waiter, GW_UNAVAILABLE, "the tokenizer of model '%.128s' can't be loaded",
               waiter->name);
    } else if (model && fx_clock_ms() - waiter->since_ms >= GW_MODELS_WAIT_MS) {
        refuse(waiter, GW_UNAVAILABLE, "the tokenizer of model '%.128s' is still being loaded",
               waiter->name);
    } else if (model || waiter->asked) {
        return false;
    } else if (models->list_failed) {
        refuse(waiter, GW_UNAVAILABLE, "the model store is away: '%.128s' can't be looked up",
               waiter->name);
    } else {
        refuse(waiter, GW_NO_MODEL, "the model '%.128s' does not exist", waiter->name);
    }
    return true;
}

void gw_models__settle(struct gw_models *models) {
    struct gw_models_waiters queue = TAILQ_HEAD_INITIALIZER(queue);
    TAILQ_CONCAT(&queue, &models->waiters, entry);
    struct gw_models_waiter *waiter;
    while ((waiter = TAILQ_FIRST(&queue))) {
        TAILQ_REMOVE(&queue, waiter, entry);
        models->waiter_count--;
        if (settle(models, waiter, gw_models_find(models, waiter->name))) continue;
        TAILQ_INSERT_TAIL(&models->waiters, waiter, entry);
        models->waiter_count++;
    }
}

void gw_models_want(struct gw_models *models, struct gw_models_waiter *waiter) {
    const struct gw_model *model = gw_models_find(models, waiter->name);
    waiter->waiting = true;
    waiter->since_ms = fx_clock_ms();
    waiter->asked = !model && waiter->since_ms - models->listed_ms >= GW_MODELS_FRESH_MS;
    if (model && !model->vocab) gw_models__vocabs(models);
    if (settle(models, waiter, model)) return;
    if (models->waiter_count >= GW_MODELS_WAITERS_MAX) {
        refuse(waiter, GW_UNAVAILABLE, "too many requests wait for model '%.128s'", waiter->name);
        return;
    }
    TAILQ_INSERT_TAIL(&models->waiters, waiter, entry);
    models->waiter_count++;
    if (!model) gw_models__list(models);
}

void gw_models_leave(struct gw_models *models, struct gw_models_waiter *waiter) {
    if (!waiter->waiting) return;
    waiter->waiting = false;
    TAILQ_REMOVE(&models->waiters, waiter, entry);
    models->waiter_count--;
}

void gw_models_vocabs_changed(struct gw_models *models) {
    gw_models__vocabs(models);
    gw_models__settle(models);
}

/* -- life -- */

static void on_poll(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what;
    gw_models__list(arg);
    gw_models_vocabs_changed(arg);
}

bool gw_models_open(const struct gw_models_opts *opts, struct gw_models **out, fx_error *err) {
    struct timeval every = {GW_MODELS_POLL_MS / 1000, 0};
    struct gw_models *models = fx_alloc(1, sizeof *models);
    if (!models) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for the models");
    models->opts = *opts;
    TAILQ_INIT(&models->waiters);
    models->reply_memory = fx_alloc(1, GW_MODELS_REPLY_BYTES);
    models->poll = event_new(opts->base, -1, EV_PERSIST, on_poll, models);
    if (!models->reply_memory || !models->poll || event_add(models->poll, &every) != 0) {
        gw_models_free(models);
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for the models");
    }
    fx_arena_init(&models->reply, models->reply_memory, GW_MODELS_REPLY_BYTES);
    gw_models__list(models);
    *out = models;
    return true;
}

void gw_models_free(struct gw_models *models) {
    if (!models) return;
    if (models->poll) event_free(models->poll);
    for (size_t i = 0; i < models->vocab_count; i++)
        gw_vocab_unref(models->vocabs[i].vocab);
    fx_arena_done(&models->reply);
    free(models->reply_memory);
    free(models);
}
