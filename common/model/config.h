#pragma once
#include <stdint.h>
#include "common/base/error.h"
#include "common/base/span.h"

/** What weights are stored as. */
enum fx_model_dtype {
    FX_MODEL_F32 = 1,
    FX_MODEL_F16 = 2,
    FX_MODEL_INT4 = 3,
};
/** "f32", "f16", "int4". */
const char *fx_model_dtype_name(enum fx_model_dtype dtype);
/** 0: none of these. */
enum fx_model_dtype fx_model_dtype_of(const char *name);

/** One architecture: family.h. */
struct fx_family;

enum {
    FX_EOS_MAX = 16,
    FX_CONFIG_FILE_BYTES_MAX = 1 << 20,
    FX_HIDDEN_MAX = 1 << 16, /* also of intermediate, heads * head_dim */
    FX_LAYERS_MAX = 1024,
    FX_HEADS_MAX = 1024,
    FX_MODEL_EXPERTS_MAX = 1024,
    FX_VOCABULARY_MAX = 1 << 20,
    FX_CONTEXT_MAX = 1 << 24,
};

/** A set of layers. */
struct fx_layer_set {
    uint64_t bits[FX_LAYERS_MAX / 64];
};
static inline bool fx_layer_set_has(const struct fx_layer_set *set, uint32_t layer) {
    return set->bits[layer / 64] >> layer % 64 & 1;
}
static inline void fx_layer_set_add(struct fx_layer_set *set, uint32_t layer) {
    set->bits[layer / 64] |= 1ULL << layer % 64;
}

/** How rotary frequencies differ from theta^(-2i/head_dim). */
enum fx_rope_scaling {
    FX_ROPE_PLAIN,
    FX_ROPE_LINEAR, /* divided by factor */
    FX_ROPE_LLAMA3, /* long waves divided by factor, short ones kept, smooth between */
};
struct fx_model_rope {
    double theta;
    enum fx_rope_scaling scaling;
    double factor, low_factor, high_factor; /* LLAMA3: bounds of the wave length, in shares of */
    uint32_t context;                       /* the context it was trained with */
};

/** A decoder from Hugging Face's config.json; the defaults are those of transformers' classes. */
struct fx_model_config {
    const struct fx_family *family; /* static */
    uint32_t vocabulary, hidden, layers;
    uint32_t heads, kv_heads, head_dim;  /* heads % kv_heads == 0, head_dim is even */
    uint32_t intermediate;               /* of a dense layer's MLP */
    uint32_t experts, experts_per_token; /* 0: every layer is dense */
    uint32_t expert_intermediate;        /* of an expert's MLP; 0: no experts */
    uint32_t shared_intermediate;        /* of the expert that every token meets; 0: none */
    bool gates_raw;                      /* gates are the softmax's, not divided by their sum */
    struct fx_layer_set expert_layers;
    uint32_t window; /* of windowed layers, in positions with the own; 0: none is windowed */
    struct fx_layer_set window_layers;
    uint32_t context_max;
    float norm_eps;
    struct fx_model_rope rope;
    bool tied; /* lm_head is embed */
    bool has_bos;
    uint32_t bos_id;
    uint32_t eos_count; /* generation_config.json's, else config.json's */
    uint32_t eos_ids[FX_EOS_MAX];
};

/** Both files' bytes, borrowed; an empty generation_config is fine. What we would compute otherwise
 *  than transformers (another model_type, another rope_scaling, hidden_act, ...) is refused by the
 *  field's name. @err INVALID_ARGUMENT, UNIMPLEMENTED, RESOURCE_EXHAUSTED */
FX_MUST bool fx_model_config_parse(fx_span config_json, fx_span generation_config_json,
                                   struct fx_model_config *out, fx_error *err);
