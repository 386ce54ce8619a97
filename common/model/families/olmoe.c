#include "common/model/families/families.h"

static FX_MUST bool read_config(const json_t *root, struct fx_model_config *out, fx_error *err) {
    out->expert_intermediate = out->intermediate;
    fx_family__experts_everywhere(out);
    return fx_family__experts(root, (struct fx_family_experts){"num_experts", 64, 8}, out, err) &&
           fx_family__gates(root, out, err) && fx_config__absent(root, "clip_qkv", err);
}

static const struct fx_family_block *const blocks[] = {&fx_block_attention_norm,
                                                       &fx_block_attention,
                                                       &fx_block_row_norms,
                                                       &fx_block_mlp_norm,
                                                       &fx_block_router,
                                                       &fx_block_experts,
                                                       NULL};

const struct fx_family fx_family_olmoe = {
    .name = "olmoe",
    .kv_heads = 0,
    .head_dim = 0,
    .context_max = 4096,
    .norm_eps = 1e-5,
    .rope_theta = 1e4,
    .blocks = blocks,
    .read = read_config,
};
