#include "common/model/family.h"

bool fx_family__experts(const json_t *root, struct fx_family_experts names,
                        struct fx_model_config *out, fx_error *err) {
    struct fx_config_number experts = {names.field, names.experts, 1, FX_MODEL_EXPERTS_MAX,
                                       &out->experts};
    if (!fx_config__number(root, experts, err)) return false;
    struct fx_config_number chosen = {"num_experts_per_tok", names.chosen, 1, out->experts,
                                      &out->experts_per_token};
    return fx_config__number(root, chosen, err);
}

bool fx_family__gates(const json_t *root, struct fx_model_config *out, fx_error *err) {
    bool divided;
    if (!fx_config__bool(root, "norm_topk_prob", false, &divided, err)) return false;
    out->gates_raw = !divided;
    return true;
}

void fx_family__experts_everywhere(struct fx_model_config *out) {
    for (uint32_t layer = 0; layer < out->layers; layer++)
        fx_layer_set_add(&out->expert_layers, layer);
}

static bool names_layer(const json_t *list, uint32_t layer) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_integer_value(json_array_get(list, i)) == layer) return true;
    return false;
}

bool fx_family__sparse_layers(const json_t *root, struct fx_model_config *out, fx_error *err) {
    uint32_t every;
    const json_t *dense = fx_config__get(root, "mlp_only_layers");
    struct fx_config_number step = {"decoder_sparse_step", 1, 1, FX_LAYERS_MAX, &every};
    if (!fx_config__number(root, step, err)) return false;
    if (dense && !json_is_array(dense))
        return fx_fail(err, FX_INVALID_ARGUMENT, "mlp_only_layers is not a list");
    for (uint32_t layer = 0; layer < out->layers; layer++)
        if ((layer + 1) % every == 0 && !names_layer(dense, layer))
            fx_layer_set_add(&out->expert_layers, layer);
    return true;
}

bool fx_family__window(const json_t *root, uint32_t fallback, struct fx_model_config *out,
                       fx_error *err) {
    const json_t *window = json_object_get(root, "sliding_window");
    if (json_is_null(window) || (!window && !fallback)) return true;
    struct fx_config_number field = {"sliding_window", fallback, 0, FX_CONTEXT_MAX, &out->window};
    if (!fx_config__number(root, field, err)) return false;
    if (!out->window) return fx_fail(err, FX_INVALID_ARGUMENT, "sliding_window is 0");
    for (uint32_t layer = 0; layer < out->layers; layer++)
        fx_layer_set_add(&out->window_layers, layer);
    return true;
}

/* layer_types says it of each layer; without, those from max_window_layers on are windowed. */
static FX_MUST bool window_layer(const json_t *types, uint32_t first, uint32_t layer,
                                 struct fx_model_config *out, fx_error *err) {
    const char *type = json_string_value(json_array_get(types, layer));
    if (types && !type)
        return fx_fail(err, FX_INVALID_ARGUMENT, "layer_types does not name %u layers",
                       out->layers);
    bool windowed = type ? strcmp(type, "sliding_attention") == 0 : layer >= first;
    if (type && !windowed && strcmp(type, "full_attention") != 0)
        return fx_fail(err, FX_UNIMPLEMENTED, "layer_types '%.40s' is not supported", type);
    if (windowed) fx_layer_set_add(&out->window_layers, layer);
    return true;
}

bool fx_family__qwen_window(const json_t *root, struct fx_model_config *out, fx_error *err) {
    bool on;
    uint32_t first;
    struct fx_config_number window = {"sliding_window", 4096, 1, FX_CONTEXT_MAX, &out->window};
    struct fx_config_number from = {"max_window_layers", 28, 0, FX_CONTEXT_MAX, &first};
    if (!fx_config__bool(root, "use_sliding_window", false, &on, err)) return false;
    if (!on) return true;
    if (!fx_config__number(root, window, err) || !fx_config__number(root, from, err)) return false;
    const json_t *types = fx_config__get(root, "layer_types");
    for (uint32_t layer = 0; layer < out->layers; layer++)
        if (!window_layer(types, first, layer, out, err)) return false;
    return true;
}
