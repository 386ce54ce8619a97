#include <stdio.h>
#include <string.h>
#include "common/base/clock.h"
#include "fractal/v1/slicer.pb-c.h"
#include "services/gateway/models_internal.h"

static void model_copy(const Fractal__V1__Model *from, struct gw_model *to) {
    *to = (struct gw_model){.number = from->number,
                            .context_max = from->context_max,
                            .vocabulary = from->vocabulary,
                            .created_s = from->created_s};
    (void)snprintf(to->name, sizeof to->name, "%s", from->name);
    (void)snprintf(to->digest, sizeof to->digest, "%s", from->tokenizer_digest);
    for (size_t i = 0; i < from->n_eos_ids && to->eos_count < GW_MODEL_EOS_MAX; i++)
        to->eos_ids[to->eos_count++] = from->eos_ids[i];
}

static void list_take(struct gw_models *models, const Fractal__V1__ListModelsReply *reply) {
    models->count = 0;
    for (size_t i = 0; i < reply->n_models && models->count < GW_MODELS_MAX; i++)
        model_copy(reply->models[i], &models->list[models->count++]);
    models->listed = true;
    models->list_failed = false;
    models->listed_ms = fx_clock_ms();
    models->opts.metrics->listed = true;
    models->opts.metrics->models = models->count;
    gw_models__bind(models);
}

static void asked_clear(struct gw_models *models) {
    struct gw_models_waiter *waiter;
    TAILQ_FOREACH(waiter, &models->waiters, entry) waiter->asked = false;
}

/* Told once, not with every poll. */
static void failed(struct gw_models *models, const fx_error *err) {
    if (!models->list_failed) models->opts.on_error("list_models", err);
    models->list_failed = true;
}

static void list_fail(struct gw_models *models, const struct fx_client_result *result) {
    fx_error err = {0};
    fx_error_set(&err, result->code, "%s", result->text);
    failed(models, &err);
}

static void on_list(void *user, const struct fx_client_result *result) {
    struct gw_models *models = user;
    models->listing = false;
    bool again = models->list_again;
    models->list_again = false;
    if (result->code == FX_CANCELLED) return; /* the client closes: nobody is left */
    if (result->code == FX_OK)
        list_take(models, result->reply);
    else
        list_fail(models, result);
    fx_arena_reset(&models->reply);
    if (again) {
        gw_models__list(models);
    } else {
        asked_clear(models);
    }
    gw_models__settle(models);
}

void gw_models__list(struct gw_models *models) {
    Fractal__V1__ListModelsRequest message = FRACTAL__V1__LIST_MODELS_REQUEST__INIT;
    struct fx_client_request request = {
        .method = "/fractal.v1.SlicerService/ListModels",
        .message = &message,
        .reply = &fractal__v1__list_models_reply__descriptor,
        .deadline_ms = GW_MODELS_LIST_DEADLINE_MS,
        .arena = &models->reply,
        .user = models,
        .on_done = on_list,
    };
    fx_error err = {0};
    if (models->listing) {
        models->list_again = true;
        return;
    }
    models->listing = fx_client_start(models->opts.slicer, &request, NULL, &err);
    if (models->listing) return;
    failed(models, &err);
    asked_clear(models);
    gw_models__settle(models);
}
