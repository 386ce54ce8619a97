#include <stdlib.h>
#include "common/base/heap.h"
#include "common/model/store.h"
#include "services/slicer/app.h"
#include "services/slicer/message.h"

static void reply_list(fx_call *call, const struct fx_model_list *list) {
    Fractal__V1__ListModelsReply reply = FRACTAL__V1__LIST_MODELS_REPLY__INIT;
    fx_auto(void) memory = fx_alloc(list->count, sizeof(struct slicer_model));
    fx_auto(void) pointers = fx_alloc(list->count, sizeof(Fractal__V1__Model *));
    struct slicer_model *models = memory;
    reply.models = pointers;
    if (!models || !reply.models) {
        fx_call_fail(call, FX_RESOURCE_EXHAUSTED, "memory for %zu models", list->count);
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        slicer_model_fill(&models[i], &list->at[i]);
        reply.models[i] = &models[i].message;
    }
    reply.n_models = list->count;
    fx_call_reply(call, &reply);
}

static void run_list(void *user) {
    struct slicer_job *job = user;
    struct fx_model_list list;
    fx_error err = {0};
    if (!fx_store_list(job->app->model_dir, &list, &err)) {
        fx_call_fail_error(job->call, &err);
        return;
    }
    job->app->models = list.count;
    reply_list(job->call, &list);
    free(list.at);
}

static void run_manifest(void *user) {
    struct slicer_job *job = user;
    const Fractal__V1__GetManifestRequest *request = job->request;
    Fractal__V1__GetManifestReply reply = FRACTAL__V1__GET_MANIFEST_REPLY__INIT;
    struct fx_bytes manifest;
    fx_error err = {0};
    if (!fx_store_manifest(job->app->model_dir, request->name, &manifest, &err)) {
        fx_call_fail_error(job->call, &err);
        return;
    }
    reply.manifest_json = (ProtobufCBinaryData){manifest.len, manifest.at};
    fx_call_reply(job->call, &reply);
    free(manifest.at);
}

static void run_tokenizer(void *user) {
    struct slicer_job *job = user;
    const Fractal__V1__GetTokenizerRequest *request = job->request;
    Fractal__V1__GetTokenizerReply reply = FRACTAL__V1__GET_TOKENIZER_REPLY__INIT;
    struct fx_bytes tokenizer, config;
    fx_error err = {0};
    if (!fx_store_tokenizer(job->app->model_dir, request->digest, &tokenizer, &config, &err)) {
        fx_call_fail_error(job->call, &err);
        return;
    }
    reply.tokenizer_json = (ProtobufCBinaryData){tokenizer.len, tokenizer.at};
    reply.tokenizer_config_json = (ProtobufCBinaryData){config.len, config.at};
    fx_call_reply(job->call, &reply);
    free(tokenizer.at);
    free(config.at);
}

void slicer_list(fx_call *call, const void *request, void *context) {
    struct slicer_app *app = context;
    (void)slicer_post(app->reads, call, request, app, run_list);
}

void slicer_manifest(fx_call *call, const void *request, void *context) {
    struct slicer_app *app = context;
    (void)slicer_post(app->reads, call, request, app, run_manifest);
}

void slicer_tokenizer(fx_call *call, const void *request, void *context) {
    struct slicer_app *app = context;
    (void)slicer_post(app->reads, call, request, app, run_tokenizer);
}
