#include "common/model/families/families.h"

/* The expert that every token meets, and the gate of its result. */
static const struct fx_family_tensor shared[] = {
    FX_MATRIX("mlp.shared_expert.gate_proj.weight", SHARED, HIDDEN, FX_LAYER(shared.gate)),
    FX_MATRIX("mlp.shared_expert.up_proj.weight", SHARED, HIDDEN, FX_LAYER(shared.up)),
    FX_MATRIX("mlp.shared_expert.down_proj.weight", HIDDEN, SHARED, FX_LAYER(shared.down)),
    FX_ROUTER("mlp.shared_expert_gate.weight", ONE, FX_LAYER(shared_gate)),
};
static const struct fx_family_block shared_block =
    FX_BLOCK_OF(shared, false, fx_family__has_experts);

static FX_MUST bool qkv_biased(const json_t *root, fx_error *err) {
    bool on;
    if (!fx_config__bool(root, "qkv_bias", true, &on, err)) return false;
    return on || fx_fail(err, FX_UNIMPLEMENTED, "qkv_bias false is not supported");
}

static FX_MUST bool read_config(const json_t *root, struct fx_model_config *out, fx_error *err) {
    const struct fx_config_number widths[] = {
        {"moe_intermediate_size",           1408, 1, FX_HIDDEN_MAX, &out->expert_intermediate},
        {"shared_expert_intermediate_size", 5632, 1, FX_HIDDEN_MAX, &out->shared_intermediate},
    };
    return fx_family__experts(root, (struct fx_family_experts){"num_experts", 60, 4}, out, err) &&
           fx_config__numbers(root, widths, FX_COUNT(widths), err) &&
           fx_family__gates(root, out, err) && qkv_biased(root, err) &&
           fx_family__sparse_layers(root, out, err) && fx_family__qwen_window(root, out, err);
}

static const struct fx_family_block *const blocks[] = {
    &fx_block_attention_norm, &fx_block_attention, &fx_block_qkv_bias,
    &fx_block_mlp_norm,       &fx_block_mlp,       &fx_block_router,
    &fx_block_experts,        &shared_block,       NULL};

const struct fx_family fx_family_qwen2_moe = {
    .name = "qwen2_moe",
    .kv_heads = 16,
    .head_dim = 0,
    .context_max = 32768,
    .norm_eps = 1e-6,
    .rope_theta = 1e4,
    .blocks = blocks,
    .read = read_config,
};
