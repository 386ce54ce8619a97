#include "common/model/families/families.h"

static FX_MUST bool read_config(const json_t *root, struct fx_model_config *out, fx_error *err) {
    struct fx_config_number width = {"moe_intermediate_size", 768, 1, FX_HIDDEN_MAX,
                                     &out->expert_intermediate};
    return fx_family__experts(root, (struct fx_family_experts){"num_experts", 128, 8}, out, err) &&
           fx_config__number(root, width, err) && fx_family__gates(root, out, err) &&
           fx_family__sparse_layers(root, out, err) && fx_family__qwen_window(root, out, err);
}

static const struct fx_family_block *const blocks[] = {&fx_block_attention_norm,
                                                       &fx_block_attention,
                                                       &fx_block_head_norms,
                                                       &fx_block_mlp_norm,
                                                       &fx_block_mlp,
                                                       &fx_block_router,
                                                       &fx_block_experts,
                                                       NULL};

const struct fx_family fx_family_qwen3_moe = {
    .name = "qwen3_moe",
    .kv_heads = 4,
    .head_dim = 0,
    .context_max = 32768,
    .norm_eps = 1e-6,
    .rope_theta = 1e4,
    .blocks = blocks,
    .read = read_config,
};
