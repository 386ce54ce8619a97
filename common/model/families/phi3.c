#include "common/model/families/families.h"

/* q, k and v are rows of one tensor, gate and up of another. */
static const struct fx_family_tensor attention[] = {
    FX_FUSED("self_attn.q_proj.weight", QUERY, HIDDEN, FX_LAYER(q), "self_attn.qkv_proj.weight",
             ZERO, QUERY_KEY_VALUE),
    FX_FUSED("self_attn.k_proj.weight", KEY, HIDDEN, FX_LAYER(k), "self_attn.qkv_proj.weight",
             QUERY, QUERY_KEY_VALUE),
    FX_FUSED("self_attn.v_proj.weight", KEY, HIDDEN, FX_LAYER(v), "self_attn.qkv_proj.weight",
             QUERY_KEY, QUERY_KEY_VALUE),
    FX_MATRIX("self_attn.o_proj.weight", HIDDEN, QUERY, FX_LAYER(o)),
};
static const struct fx_family_block attention_block = FX_BLOCK_OF(attention, false, NULL);

static const struct fx_family_tensor mlp[] = {
    FX_FUSED("mlp.gate_proj.weight", FFN, HIDDEN, FX_LAYER(mlp.gate), "mlp.gate_up_proj.weight",
             ZERO, FFN_TWICE),
    FX_FUSED("mlp.up_proj.weight", FFN, HIDDEN, FX_LAYER(mlp.up), "mlp.gate_up_proj.weight", FFN,
             FFN_TWICE),
    FX_MATRIX("mlp.down_proj.weight", HIDDEN, FFN, FX_LAYER(mlp.down)),
};
static const struct fx_family_block mlp_block = FX_BLOCK_OF(mlp, false, NULL);

static FX_MUST bool read_config(const json_t *root, struct fx_model_config *out, fx_error *err) {
    return fx_family__window(root, 0, out, err);
}

static const struct fx_family_block *const blocks[] = {&fx_block_attention_norm, &attention_block,
                                                       &fx_block_mlp_norm, &mlp_block, NULL};

const struct fx_family fx_family_phi3 = {
    .name = "phi3",
    .kv_heads = 0,
    .head_dim = 0,
    .context_max = 4096,
    .norm_eps = 1e-5,
    .rope_theta = 1e4,
    .blocks = blocks,
    .read = read_config,
};
