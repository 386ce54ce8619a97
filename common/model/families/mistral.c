#include "common/model/families/families.h"

static FX_MUST bool read_config(const json_t *root, struct fx_model_config *out, fx_error *err) {
    return fx_family__window(root, 4096, out, err);
}

static const struct fx_family_block *const blocks[] = {
    &fx_block_attention_norm, &fx_block_attention, &fx_block_mlp_norm, &fx_block_mlp, NULL};

const struct fx_family fx_family_mistral = {
    .name = "mistral",
    .kv_heads = 8,
    .head_dim = 0,
    .context_max = 131072,
    .norm_eps = 1e-6,
    .rope_theta = 1e4,
    .blocks = blocks,
    .read = read_config,
};
