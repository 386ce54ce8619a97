#pragma once
#include "common/model/store.h"
#include "fractal/v1/slicer.pb-c.h"

/** A model as a message: points into itself and into `info`, so it stays where it is. */
struct slicer_model {
    Fractal__V1__Model message;
    char numerics_id[FX_NUMERICS_ID_MAX];
};
/** `info` is borrowed for the message's life. The numerics id is that of an f32 KV cache. */
void slicer_model_fill(struct slicer_model *model, const struct fx_model_info *info);
