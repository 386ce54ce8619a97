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

enum fx_model_type {
    FX_MODEL_LLAMA = 1,
    FX_MODEL_MISTRAL = 2,
    FX_MODEL_MIXTRAL = 3,
};

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

/** A decoder of the Llama family from Hugging Face's config.json; the defaults are transformers'.
 */
struct fx_model_config {
    enum fx_model_type type;
    uint32_t vocabulary, hidden, intermediate, layers;
    uint32_t heads, kv_heads, head_dim;  /* heads % kv_heads == 0, head_dim is even */
    uint32_t experts, experts_per_token; /* 0: dense */
    uint32_t window;                     /* of every layer, in positions with the own; 0: none */
    uint32_t context_max;
    float norm_eps;
    double rope_theta;
    bool tied; /* lm_head is embed */
    bool has_bos;
    uint32_t bos_id;
    uint32_t eos_count; /* generation_config.json's, else config.json's */
    uint32_t eos_ids[FX_EOS_MAX];
};

/** Both files' bytes, borrowed; an empty generation_config is fine. What we would compute otherwise
 *  than transformers (another model_type, rope_scaling, attention_bias, hidden_act, ...) is refused
 *  by the field's name. @err INVALID_ARGUMENT, UNIMPLEMENTED, RESOURCE_EXHAUSTED */
FX_MUST bool fx_model_config_parse(fx_span config_json, fx_span generation_config_json,
                                   struct fx_model_config *out, fx_error *err);
