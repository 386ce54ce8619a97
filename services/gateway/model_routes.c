/* GET /v1/models and /v1/models/{id}. */
#include "common/http/json.h"
#include "services/gateway/visit.h"

static void model_write(const struct gw_model *model, fx_buf *out) {
    fx_json_put(out, "{\"id\":");
    fx_json_put_text(out, model->name);
    fx_json_put(out, ",\"object\":\"model\",\"created\":");
    fx_json_put_u64(out, model->created_s);
    fx_json_put(out, ",\"owned_by\":\"fractal\",\"max_model_len\":");
    fx_json_put_u64(out, model->context_max);
    fx_json_put(out, "}");
}

static void list_write(const void *what, fx_buf *out) {
    const struct gw_models *models = what;
    fx_json_put(out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < gw_models_count(models); i++) {
        if (i) fx_json_put(out, ",");
        model_write(gw_models_at(models, i), out);
    }
    fx_json_put(out, "]}");
}

void gw_serve_models(struct gw_visit *visit) {
    const struct gw_models *models = visit->gateway->models;
    struct gw_problem problem;
    if (!gw_models_listed(models)) {
        gw_problem_set(&problem, GW_UNAVAILABLE, NULL, "the model store is away");
        gw_visit_refuse(visit, &problem);
        return;
    }
    gw_visit_reply_written(visit, list_write, models);
}

static void on_found(void *ctx, const struct gw_model *model) {
    struct gw_visit *visit = ctx;
    uint8_t json[GW_MODEL_TEXT_MAX * 6 + 256]; /* a name of escapes fits */
    fx_buf out = {json, 0, sizeof json};
    model_write(model, &out);
    gw_visit_reply(visit, (fx_span){json, out.len});
}

void gw_serve_model(struct gw_visit *visit) {
    const struct gw_model *model = gw_models_find(visit->gateway->models, visit->name);
    if (model) { /* also before its tokenizer is here */
        on_found(visit, model);
        return;
    }
    gw_visit_want_model(visit, visit->name, on_found);
}
