#include "common/model/families/families.h"

static const struct fx_family_block *const blocks[] = {
    &fx_block_attention_norm, &fx_block_attention, &fx_block_head_norms,
    &fx_block_mlp_norm,       &fx_block_mlp,       NULL};

const struct fx_family fx_family_qwen3 = {
    .name = "qwen3",
    .kv_heads = 32,
    .head_dim = 128,
    .context_max = 32768,
    .norm_eps = 1e-6,
    .rope_theta = 1e4,
    .blocks = blocks,
    .read = fx_family__qwen_window,
};
