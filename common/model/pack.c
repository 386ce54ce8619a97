#include "common/model/pack.h"
#include <stdio.h>
#include "common/model/family.h"

/* The tensors outside the layers, of every family. */
#define MODEL(member) offsetof(struct fx_model_weights, member)
static const struct fx_family_tensor model_head[] = {
    FX_MATRIX("model.embed_tokens.weight", VOCABULARY, HIDDEN, MODEL(embed)),
};
static const struct fx_family_tensor model_tail[] = {
    FX_VECTOR("model.norm.weight", HIDDEN, MODEL(norm)),
    FX_MATRIX("lm_head.weight", VOCABULARY, HIDDEN, MODEL(lm_head)),
};

/* Where index i falls. */
enum part { PART_MODEL, PART_LAYER, PART_EXPERT };
struct place {
    const struct fx_family_tensor *tensor;
    enum part part;
    uint32_t layer, expert;
};

static uint32_t block_count(const struct fx_model_config *config,
                            const struct fx_family_block *block, uint32_t layer) {
    if (block->has && !block->has(config, layer)) return 0;
    return block->count * (block->of_expert ? config->experts : 1);
}

static uint32_t layer_count(const struct fx_model_config *config, uint32_t layer) {
    uint32_t count = 0;
    for (const struct fx_family_block *const *at = config->family->blocks; *at; at++)
        count += block_count(config, *at, layer);
    return count;
}

uint32_t fx_pack_count(const struct fx_model_config *config) {
    uint32_t count = FX_COUNT(model_head) + FX_COUNT(model_tail) - (config->tied ? 1 : 0);
    for (uint32_t layer = 0; layer < config->layers; layer++)
        count += layer_count(config, layer);
    return count;
}

static struct place place_in_layer(const struct fx_model_config *config, uint32_t layer,
                                   uint32_t i) {
    const struct fx_family_block *const *at = config->family->blocks;
    for (uint32_t count; i >= (count = block_count(config, *at, layer)); at++)
        i -= count;
    const struct fx_family_block *block = *at;
    return (struct place){&block->tensors[i % block->count],
                          block->of_expert ? PART_EXPERT : PART_LAYER, layer, i / block->count};
}

static struct place place_of(const struct fx_model_config *config, uint32_t i) {
    if (i < FX_COUNT(model_head)) return (struct place){&model_head[i], PART_MODEL, 0, 0};
    i -= (uint32_t)FX_COUNT(model_head);
    for (uint32_t layer = 0; layer < config->layers; layer++) {
        uint32_t count = layer_count(config, layer);
        if (i < count) return place_in_layer(config, layer, i);
        i -= count;
    }
    FX_ASSERT(i < FX_COUNT(model_tail));
    return (struct place){&model_tail[i], PART_MODEL, 0, 0};
}

static uint32_t width_of(const struct fx_model_config *config, enum fx_width width) {
    uint32_t query = config->heads * config->head_dim, key = config->kv_heads * config->head_dim;
    switch (width) {
    case FX_WIDTH_ZERO: return 0;
    case FX_WIDTH_ONE: return 1;
    case FX_WIDTH_HIDDEN: return config->hidden;
    case FX_WIDTH_HEAD: return config->head_dim;
    case FX_WIDTH_QUERY: return query;
    case FX_WIDTH_KEY: return key;
    case FX_WIDTH_QUERY_KEY: return query + key;
    case FX_WIDTH_QUERY_KEY_VALUE: return query + 2 * key;
    case FX_WIDTH_FFN: return config->intermediate;
    case FX_WIDTH_FFN_TWICE: return 2 * config->intermediate;
    case FX_WIDTH_EXPERT: return config->expert_intermediate;
    case FX_WIDTH_SHARED: return config->shared_intermediate;
    case FX_WIDTH_EXPERTS: return config->experts;
    case FX_WIDTH_VOCABULARY: return config->vocabulary;
    }
    FX_ASSERT(false);
}

static void name_of(struct place place, const char *suffix, char out[FX_PACK_NAME_MAX]) {
    const char *hole = strstr(suffix, "%u");
    if (place.part == PART_MODEL)
        (void)snprintf(out, FX_PACK_NAME_MAX, "%s", suffix);
    else if (place.part == PART_LAYER)
        (void)snprintf(out, FX_PACK_NAME_MAX, "model.layers.%u.%s", place.layer, suffix);
    else
        (void)snprintf(out, FX_PACK_NAME_MAX, "model.layers.%u.%.*s%u%s", place.layer,
                       (int)(hole - suffix), suffix, place.expert, hole + 2);
}

void fx_pack_tensor(const struct fx_model_config *config, uint32_t i, struct fx_pack_tensor *out) {
    struct place place = place_of(config, i);
    const struct fx_family_tensor *tensor = place.tensor;
    *out = (struct fx_pack_tensor){.kind = tensor->kind,
                                   .rows = width_of(config, tensor->rows),
                                   .cols = width_of(config, tensor->cols),
                                   .source_row = width_of(config, tensor->first)};
    out->source_rows = tensor->fused ? width_of(config, tensor->all) : out->rows;
    name_of(place, tensor->name, out->name);
    name_of(place, tensor->fused ? tensor->fused : tensor->name, out->source);
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
    return (struct fx_weight *)(void *)(holder + place.tensor->place);
}
