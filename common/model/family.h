#pragma once
#include "common/model/config_field.h"
#include "common/model/pack.h"

/** An architecture: what its config.json may say and which tensors its checkpoints have. Adding one
 *  is a file in families/, a row in families/families.c and a golden. */

/** Widths by the config. */
enum fx_width {
    FX_WIDTH_ZERO,
    FX_WIDTH_ONE,
    FX_WIDTH_HIDDEN,
    FX_WIDTH_HEAD,  /* head_dim */
    FX_WIDTH_QUERY, /* heads * head_dim */
    FX_WIDTH_KEY,   /* kv_heads * head_dim */
    FX_WIDTH_QUERY_KEY,
    FX_WIDTH_QUERY_KEY_VALUE,
    FX_WIDTH_FFN,
    FX_WIDTH_FFN_TWICE,
    FX_WIDTH_EXPERT,
    FX_WIDTH_SHARED,
    FX_WIDTH_EXPERTS,
    FX_WIDTH_VOCABULARY,
};

/** One tensor. */
struct fx_family_tensor {
    const char *name; /* behind "model.layers.<n>."; an expert's has %u for its number */
    enum fx_pack_kind kind;
    enum fx_width rows, cols;
    size_t place; /* of its fx_weight in fx_layer_weights, or an expert's in fx_mlp_weights */
    /* Where checkpoints fuse several: the rows [first, first + rows) of `fused`, which has `all`.
     */
    const char *fused; /* NULL: it stands alone */
    enum fx_width first, all;
};
/* Rows of a table of tensors; widths without their prefix, `place` by FX_LAYER or FX_MLP. */
#define FX_FUSED(name, rows, cols, place, fused, first, all)                                       \
    {                                                                                              \
        name, FX_PACK_MATRIX, FX_WIDTH_##rows, FX_WIDTH_##cols, place, fused, FX_WIDTH_##first,    \
            FX_WIDTH_##all                                                                         \
    }
#define FX_MATRIX(name, rows, cols, place) FX_FUSED(name, rows, cols, place, NULL, ZERO, ZERO)
#define FX_ROUTER(name, rows, place)                                                               \
    {                                                                                              \
        name, FX_PACK_ROUTER, FX_WIDTH_##rows, FX_WIDTH_HIDDEN, place, NULL, FX_WIDTH_ZERO,        \
            FX_WIDTH_ZERO                                                                          \
    }
#define FX_VECTOR(name, width, place)                                                              \
    {                                                                                              \
        name, FX_PACK_VECTOR, FX_WIDTH_ONE, FX_WIDTH_##width, place, NULL, FX_WIDTH_ZERO,          \
            FX_WIDTH_ZERO                                                                          \
    }
#define FX_LAYER(member) offsetof(struct fx_layer_weights, member)
#define FX_MLP(member) offsetof(struct fx_mlp_weights, member)

/** Tensors that a layer has together, or not at all. */
struct fx_family_block {
    const struct fx_family_tensor *tensors;
    uint32_t count;
    bool of_expert; /* once for each expert */
    /* NULL: every layer. */
    bool (*has)(const struct fx_model_config *config, uint32_t layer);
};

struct fx_family {
    const char *name; /* model_type */
    /* Defaults. */
    uint32_t kv_heads; /* 0: as many as heads */
    uint32_t head_dim; /* 0: hidden / heads */
    uint32_t context_max;
    double norm_eps, rope_theta;
    const struct fx_family_block *const *blocks; /* in the order of the store; ends with NULL */
    /** What this family alone has; NULL: nothing. `out` has the common fields already.
     *  @err INVALID_ARGUMENT, UNIMPLEMENTED */
    bool (*read)(const json_t *root, struct fx_model_config *out, fx_error *err);
};

/** NULL: none of that name. */
const struct fx_family *fx_family_find(const char *name);
/** "llama, mistral, ...": for messages. */
const char *fx_family_names(void);

#define FX_BLOCK_OF(tensors, of_expert, has)                                                       \
    { tensors, FX_COUNT(tensors), of_expert, has }

/* Blocks that several families share, by the names of the Llama class unless said. */
extern const struct fx_family_block fx_block_attention_norm, fx_block_attention, fx_block_qkv_bias,
    fx_block_head_norms /* q_norm, k_norm over each head */,
    fx_block_row_norms /* over all heads of a row */, fx_block_mlp_norm, fx_block_mlp,
    fx_block_router /* mlp.gate */, fx_block_experts /* mlp.experts.<n> */;

/* When a layer has a block. */
bool fx_family__is_dense(const struct fx_model_config *config, uint32_t layer);
bool fx_family__has_experts(const struct fx_model_config *config, uint32_t layer);

/* Parts of `read` that several families share. */

/** How many there are, by `field`, and are chosen, by num_experts_per_tok. */
struct fx_family_experts {
    const char *field;
    uint32_t experts, chosen; /* defaults */
};
FX_MUST bool fx_family__experts(const json_t *root, struct fx_family_experts names,
                                struct fx_model_config *out, fx_error *err);
/** norm_topk_prob: are gates divided by their sum? Default: no. */
FX_MUST bool fx_family__gates(const json_t *root, struct fx_model_config *out, fx_error *err);
/** Every layer has experts. */
void fx_family__experts_everywhere(struct fx_model_config *out);
/** Layers whose number + 1 is a multiple of decoder_sparse_step and not in mlp_only_layers. */
FX_MUST bool fx_family__sparse_layers(const json_t *root, struct fx_model_config *out,
                                      fx_error *err);
/** sliding_window: a number, of every layer; absent: `fallback`; 0 and null: none. */
FX_MUST bool fx_family__window(const json_t *root, uint32_t fallback, struct fx_model_config *out,
                               fx_error *err);
/** use_sliding_window, sliding_window, max_window_layers, layer_types of the Qwen classes. */
FX_MUST bool fx_family__qwen_window(const json_t *root, struct fx_model_config *out, fx_error *err);
