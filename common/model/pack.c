#include "common/model/pack.h"
#include <stdio.h>

/* A size by the config. */
enum size { ONE, HIDDEN, QUERY, KEY, INTERMEDIATE, EXPERTS, VOCABULARY };

struct shape {
    const char *suffix; /* experts': with %u for the expert */
    enum fx_pack_kind kind;
    enum size rows, cols;
    size_t place; /* in the struct that holds it */
};

static const struct shape model_head[] = {
    {"model.embed_tokens.weight", FX_PACK_MATRIX, VOCABULARY, HIDDEN,
     offsetof(struct fx_model_weights, embed)},
};
static const struct shape model_tail[] = {
    {"model.norm.weight", FX_PACK_VECTOR, ONE,        HIDDEN, offsetof(struct fx_model_weights, norm)   },
    {"lm_head.weight",    FX_PACK_MATRIX, VOCABULARY, HIDDEN,
     offsetof(struct fx_model_weights,                                                          lm_head)},
};
#define LAYER(member) offsetof(struct fx_layer_weights, member)
static const struct shape attention[] = {
    {"input_layernorm.weight",          FX_PACK_VECTOR, ONE,    HIDDEN, LAYER(attn_norm)},
    {"self_attn.q_proj.weight",         FX_PACK_MATRIX, QUERY,  HIDDEN, LAYER(q)        },
    {"self_attn.k_proj.weight",         FX_PACK_MATRIX, KEY,    HIDDEN, LAYER(k)        },
    {"self_attn.v_proj.weight",         FX_PACK_MATRIX, KEY,    HIDDEN, LAYER(v)        },
    {"self_attn.o_proj.weight",         FX_PACK_MATRIX, HIDDEN, QUERY,  LAYER(o)        },
    {"post_attention_layernorm.weight", FX_PACK_VECTOR, ONE,    HIDDEN, LAYER(mlp_norm) },
};
static const struct shape dense[] = {
    {"mlp.gate_proj.weight", FX_PACK_MATRIX, INTERMEDIATE, HIDDEN,       LAYER(mlp.gate)},
    {"mlp.up_proj.weight",   FX_PACK_MATRIX, INTERMEDIATE, HIDDEN,       LAYER(mlp.up)  },
    {"mlp.down_proj.weight", FX_PACK_MATRIX, HIDDEN,       INTERMEDIATE, LAYER(mlp.down)},
};
static const struct shape router[] = {
    {"block_sparse_moe.gate.weight", FX_PACK_ROUTER, EXPERTS, HIDDEN, LAYER(router)},
};
#define MLP(member) offsetof(struct fx_mlp_weights, member)
static const struct shape expert[] = {
    {"block_sparse_moe.experts.%u.w1.weight", FX_PACK_MATRIX, INTERMEDIATE, HIDDEN,       MLP(gate)},
    {"block_sparse_moe.experts.%u.w3.weight", FX_PACK_MATRIX, INTERMEDIATE, HIDDEN,       MLP(up)  },
    {"block_sparse_moe.experts.%u.w2.weight", FX_PACK_MATRIX, HIDDEN,       INTERMEDIATE, MLP(down)},
};

/* Where index i falls. */
enum part { PART_MODEL, PART_LAYER, PART_EXPERT };
struct place {
    const struct shape *shape;
    enum part part;
    uint32_t layer, expert;
};

static uint32_t layer_count(const struct fx_model_config *config) {
    size_t mlp =
        config->experts ? FX_COUNT(router) + FX_COUNT(expert) * config->experts : FX_COUNT(dense);
    return (uint32_t)(FX_COUNT(attention) + mlp);
}

uint32_t fx_pack_count(const struct fx_model_config *config) {
    size_t tail = FX_COUNT(model_tail) - (config->tied ? 1 : 0);
    return (uint32_t)(FX_COUNT(model_head) + tail) + config->layers * layer_count(config);
}

static struct place place_in_layer(const struct fx_model_config *config, uint32_t layer,
                                   uint32_t i) {
    if (i < FX_COUNT(attention)) return (struct place){&attention[i], PART_LAYER, layer, 0};
    i -= (uint32_t)FX_COUNT(attention);
    if (!config->experts) return (struct place){&dense[i], PART_LAYER, layer, 0};
    if (i < FX_COUNT(router)) return (struct place){&router[i], PART_LAYER, layer, 0};
    i -= (uint32_t)FX_COUNT(router);
    return (struct place){&expert[i % FX_COUNT(expert)], PART_EXPERT, layer,
                          i / (uint32_t)FX_COUNT(expert)};
}

static struct place place_of(const struct fx_model_config *config, uint32_t i) {
    FX_ASSERT(i < fx_pack_count(config));
    if (i < FX_COUNT(model_head)) return (struct place){&model_head[i], PART_MODEL, 0, 0};
    i -= (uint32_t)FX_COUNT(model_head);
    uint32_t each = layer_count(config);
    if (i / each < config->layers) return place_in_layer(config, i / each, i % each);
    return (struct place){&model_tail[i - config->layers * each], PART_MODEL, 0, 0};
}

static uint32_t size_of(const struct fx_model_config *config, enum size size) {
    switch (size) {
    case ONE: return 1;
    case HIDDEN: return config->hidden;
    case QUERY: return config->heads * config->head_dim;
    case KEY: return config->kv_heads * config->head_dim;
    case INTERMEDIATE: return config->intermediate;
    case EXPERTS: return config->experts;
    case VOCABULARY: return config->vocabulary;
    }
    FX_ASSERT(false);
}

void fx_pack_tensor(const struct fx_model_config *config, uint32_t i, struct fx_pack_tensor *out) {
    struct place place = place_of(config, i);
    const char *suffix = place.shape->suffix, *hole = strstr(suffix, "%u");
    out->kind = place.shape->kind;
    out->rows = size_of(config, place.shape->rows);
    out->cols = size_of(config, place.shape->cols);
    if (place.part == PART_MODEL)
        (void)snprintf(out->name, sizeof out->name, "%s", suffix);
    else if (place.part == PART_LAYER)
        (void)snprintf(out->name, sizeof out->name, "model.layers.%u.%s", place.layer, suffix);
    else
        (void)snprintf(out->name, sizeof out->name, "model.layers.%u.%.*s%u%s", place.layer,
                       (int)(hole - suffix), suffix, place.expert, hole + 2);
}

enum fx_layout fx_pack_layout(enum fx_pack_kind kind, enum fx_model_dtype dtype) {
    if (kind == FX_PACK_VECTOR) return FX_LAYOUT_F32_ROW;
    if (kind == FX_PACK_ROUTER || dtype == FX_MODEL_F32) return FX_LAYOUT_F32_T8;
    return dtype == FX_MODEL_F16 ? FX_LAYOUT_F16_T8 : FX_LAYOUT_I4_T8;
}

struct fx_weight *fx_pack_slot(const struct fx_model_config *config, uint32_t i,
                               struct fx_pack_home *home) {
    struct place place = place_of(config, i);
    size_t nth = (size_t)place.layer * config->experts + place.expert;
    char *holder = (char *)&home->weights;
    if (place.part == PART_LAYER) holder = (char *)&home->layers[place.layer];
    if (place.part == PART_EXPERT) holder = (char *)&home->experts[nth];
    return (struct fx_weight *)(void *)(holder + place.shape->place);
}
