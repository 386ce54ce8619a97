#include "common/model/family.h"

bool fx_family__is_dense(const struct fx_model_config *config, uint32_t layer) {
    return !fx_layer_set_has(&config->expert_layers, layer);
}

bool fx_family__has_experts(const struct fx_model_config *config, uint32_t layer) {
    return fx_layer_set_has(&config->expert_layers, layer);
}

static const struct fx_family_tensor attention_norm[] = {
    FX_VECTOR("input_layernorm.weight", HIDDEN, FX_LAYER(attn_norm)),
};
const struct fx_family_block fx_block_attention_norm = FX_BLOCK_OF(attention_norm, false, NULL);

static const struct fx_family_tensor attention[] = {
    FX_MATRIX("self_attn.q_proj.weight", QUERY, HIDDEN, FX_LAYER(q)),
    FX_MATRIX("self_attn.k_proj.weight", KEY, HIDDEN, FX_LAYER(k)),
    FX_MATRIX("self_attn.v_proj.weight", KEY, HIDDEN, FX_LAYER(v)),
    FX_MATRIX("self_attn.o_proj.weight", HIDDEN, QUERY, FX_LAYER(o)),
};
const struct fx_family_block fx_block_attention = FX_BLOCK_OF(attention, false, NULL);

static const struct fx_family_tensor qkv_bias[] = {
    FX_VECTOR("self_attn.q_proj.bias", QUERY, FX_LAYER(q_bias)),
    FX_VECTOR("self_attn.k_proj.bias", KEY, FX_LAYER(k_bias)),
    FX_VECTOR("self_attn.v_proj.bias", KEY, FX_LAYER(v_bias)),
};
const struct fx_family_block fx_block_qkv_bias = FX_BLOCK_OF(qkv_bias, false, NULL);

static const struct fx_family_tensor head_norms[] = {
    FX_VECTOR("self_attn.q_norm.weight", HEAD, FX_LAYER(q_norm)),
    FX_VECTOR("self_attn.k_norm.weight", HEAD, FX_LAYER(k_norm)),
};
const struct fx_family_block fx_block_head_norms = FX_BLOCK_OF(head_norms, false, NULL);

static const struct fx_family_tensor row_norms[] = {
    FX_VECTOR("self_attn.q_norm.weight", QUERY, FX_LAYER(q_norm)),
    FX_VECTOR("self_attn.k_norm.weight", KEY, FX_LAYER(k_norm)),
};
const struct fx_family_block fx_block_row_norms = FX_BLOCK_OF(row_norms, false, NULL);

static const struct fx_family_tensor mlp_norm[] = {
    FX_VECTOR("post_attention_layernorm.weight", HIDDEN, FX_LAYER(mlp_norm)),
};
const struct fx_family_block fx_block_mlp_norm = FX_BLOCK_OF(mlp_norm, false, NULL);

static const struct fx_family_tensor mlp[] = {
    FX_MATRIX("mlp.gate_proj.weight", FFN, HIDDEN, FX_LAYER(mlp.gate)),
    FX_MATRIX("mlp.up_proj.weight", FFN, HIDDEN, FX_LAYER(mlp.up)),
    FX_MATRIX("mlp.down_proj.weight", HIDDEN, FFN, FX_LAYER(mlp.down)),
};
const struct fx_family_block fx_block_mlp = FX_BLOCK_OF(mlp, false, fx_family__is_dense);

static const struct fx_family_tensor router[] = {
    FX_ROUTER("mlp.gate.weight", EXPERTS, FX_LAYER(router)),
};
const struct fx_family_block fx_block_router = FX_BLOCK_OF(router, false, fx_family__has_experts);

static const struct fx_family_tensor experts[] = {
    FX_MATRIX("mlp.experts.%u.gate_proj.weight", EXPERT, HIDDEN, FX_MLP(gate)),
    FX_MATRIX("mlp.experts.%u.up_proj.weight", EXPERT, HIDDEN, FX_MLP(up)),
    FX_MATRIX("mlp.experts.%u.down_proj.weight", HIDDEN, EXPERT, FX_MLP(down)),
};
const struct fx_family_block fx_block_experts = FX_BLOCK_OF(experts, true, fx_family__has_experts);
