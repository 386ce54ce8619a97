#pragma once
#include "common/model/store.h"

/** Which tensors a model of a config has, in the order of the parts and of the pack file. */

enum {
    FX_PACK_NAME_MAX = 96, /* of a tensor, with its NUL */
    FX_PACK_ALIGN = 64,
};
#define FX_PACK_FILE "pack-t8.bin"
#define FX_PACK_ID "t8"

enum fx_pack_kind {
    FX_PACK_VECTOR, /* f32 whatever the dtype; the checkpoint's shape is [cols] */
    FX_PACK_ROUTER, /* f32 matrix whatever the dtype */
    FX_PACK_MATRIX, /* in the model's dtype */
};
struct fx_pack_tensor {
    char name[FX_PACK_NAME_MAX]; /* in the store */
    enum fx_pack_kind kind;
    uint32_t rows, cols;
    char
        source[FX_PACK_NAME_MAX]; /* the checkpoint's, of `source_rows` rows: another than `name` */
    uint32_t source_row, source_rows; /* where several lie in one */
};

uint32_t fx_pack_count(const struct fx_model_config *config);
/** @pre i < count */
void fx_pack_tensor(const struct fx_model_config *config, uint32_t i, struct fx_pack_tensor *out);
enum fx_layout fx_pack_layout(enum fx_pack_kind kind, enum fx_model_dtype dtype);

/** Where the weights of a model stand; layers and experts are the caller's arrays. */
struct fx_pack_home {
    struct fx_model_weights weights;
    struct fx_layer_weights *layers; /* [layers] */
    struct fx_mlp_weights *experts;  /* [layers * experts] */
};
/** The place of tensor i. lm_head of a tied model has none: copy embed. */
struct fx_weight *fx_pack_slot(const struct fx_model_config *config, uint32_t i,
                               struct fx_pack_home *home);
