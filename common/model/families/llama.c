#include "common/model/families/families.h"

static const struct fx_family_block *const blocks[] = {
    &fx_block_attention_norm, &fx_block_attention, &fx_block_mlp_norm, &fx_block_mlp, NULL};

const struct fx_family fx_family_llama = {
    .name = "llama",
    .kv_heads = 0,
    .head_dim = 0,
    .context_max = 2048,
    .norm_eps = 1e-6,
    .rope_theta = 1e4,
    .blocks = blocks,
    .read = NULL,
};
