/* ListModels and CountTokens. */
#include "common/base/heap.h"
#include "common/rpc/pb.h"
#include "fractal/v1/inference.pb-c.h"
#include "services/gateway/rpc.h"

static void end(struct gw_visit *visit, const void *message) {
    gw_rpc_reply(visit, message);
    gw_visit_unref(visit); /* the call's */
}

struct listing {
    Fractal__V1__ServedModel models[GW_MODELS_MAX], *at[GW_MODELS_MAX];
};

static void listing_reply(struct gw_visit *visit, struct listing *listing) {
    const struct gw_models *models = visit->gateway->models;
    Fractal__V1__InferenceServiceListModelsResponse reply =
        FRACTAL__V1__INFERENCE_SERVICE_LIST_MODELS_RESPONSE__INIT;
    reply.n_models = gw_models_count(models);
    reply.models = listing->at;
    for (size_t i = 0; i < reply.n_models; i++) {
        const struct gw_model *from = gw_models_at(models, i);
        Fractal__V1__ServedModel *to = listing->at[i] = &listing->models[i];
        *to = (Fractal__V1__ServedModel)FRACTAL__V1__SERVED_MODEL__INIT;
        to->name = fx_pb_text(from->name);
        to->created_s = from->created_s;
        to->context_max = from->context_max;
        to->vocabulary = from->vocabulary;
    }
    end(visit, &reply);
}

void gw_rpc_serve_models(struct gw_visit *visit) {
    struct gw_problem problem;
    bool listed = gw_models_listed(visit->gateway->models);
    fx_auto(uint8_t) memory = listed ? fx_alloc(1, sizeof(struct listing)) : NULL;
    if (memory) {
        listing_reply(visit, (struct listing *)(void *)memory);
        return;
    }
    gw_problem_set(&problem, GW_UNAVAILABLE, NULL, "%s",
                   listed ? "no memory" : "the model store is away");
    gw_visit_refuse(visit, &problem);
}

static void on_model(void *ctx, const struct gw_model *model) {
    struct gw_visit *visit = ctx;
    struct gw_problem problem = {0};
    struct gw_prompt prompt;
    Fractal__V1__CountTokensResponse reply = FRACTAL__V1__COUNT_TOKENS_RESPONSE__INIT;
    if (!gw_prompt_build(&visit->request, model->vocab, UINT32_MAX, &prompt, &problem)) {
        gw_visit_refuse(visit, &problem);
        return;
    }
    reply.tokens = prompt.len;
    reply.context_max = model->context_max;
    free(prompt.at);
    end(visit, &reply);
}

void gw_rpc_serve_count(struct gw_visit *visit) {
    gw_visit_want_model(visit, visit->request.model, on_model);
}
