#include "common/model/families/families.h"

/* The norms stand behind attention and MLP, none before them. */
static const struct fx_family_tensor norms[] = {
    FX_VECTOR("post_attention_layernorm.weight", HIDDEN, FX_LAYER(attn_post_norm)),
    FX_VECTOR("post_feedforward_layernorm.weight", HIDDEN, FX_LAYER(mlp_post_norm)),
};
static const struct fx_family_block norms_block = FX_BLOCK_OF(norms, false, NULL);

static const struct fx_family_block *const blocks[] = {&fx_block_attention, &fx_block_row_norms,
                                                       &norms_block, &fx_block_mlp, NULL};

const struct fx_family fx_family_olmo2 = {
    .name = "olmo2",
    .kv_heads = 0,
    .head_dim = 0,
    .context_max = 2048,
    .norm_eps = 1e-5,
    .rope_theta = 1e4,
    .blocks = blocks,
    .read = NULL,
};
