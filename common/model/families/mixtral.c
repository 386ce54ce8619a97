#include "common/model/families/families.h"

/* The class has names of its own. */
static const struct fx_family_tensor router[] = {
    FX_ROUTER("block_sparse_moe.gate.weight", EXPERTS, FX_LAYER(router)),
};
static const struct fx_family_block router_block = FX_BLOCK_OF(router, false, NULL);

static const struct fx_family_tensor experts[] = {
    FX_MATRIX("block_sparse_moe.experts.%u.w1.weight", EXPERT, HIDDEN, FX_MLP(gate)),
    FX_MATRIX("block_sparse_moe.experts.%u.w3.weight", EXPERT, HIDDEN, FX_MLP(up)),
    FX_MATRIX("block_sparse_moe.experts.%u.w2.weight", HIDDEN, EXPERT, FX_MLP(down)),
};
static const struct fx_family_block experts_block = FX_BLOCK_OF(experts, true, NULL);

static FX_MUST bool read_config(const json_t *root, struct fx_model_config *out, fx_error *err) {
    out->expert_intermediate = out->intermediate;
    fx_family__experts_everywhere(out);
    return fx_family__experts(root, (struct fx_family_experts){"num_local_experts", 8, 2}, out,
                              err) &&
           fx_family__window(root, 0, out, err);
}

static const struct fx_family_block *const blocks[] = {
    &fx_block_attention_norm, &fx_block_attention,
    &fx_block_mlp_norm,       &router_block,
    &experts_block,           NULL};

const struct fx_family fx_family_mixtral = {
    .name = "mixtral",
    .kv_heads = 8,
    .head_dim = 0,
    .context_max = 131072,
    .norm_eps = 1e-5,
    .rope_theta = 1e6,
    .blocks = blocks,
    .read = read_config,
};
