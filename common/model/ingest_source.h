#pragma once
#include "common/model/safetensors.h"

/** The tensors of a checkpoint, from model.safetensors or from the files that
 *  model.safetensors.index.json names. @thread one owner */
struct fx_source_tensor {
    const struct fx_tensor *tensor;
    const fx_safetensors *file;
    bool used;
};
struct fx_source {
    fx_safetensors **files;
    size_t file_count;
    struct fx_source_tensor *tensors; /* by name */
    size_t count;
};

enum { FX_SHARDS_MAX = 512 };

/** @own caller, fx_source__done, also after a failure; `source` begins zeroed */
FX_MUST bool fx_source__open(const char *folder, struct fx_source *source, fx_error *err);
void fx_source__done(struct fx_source *source);
/** NULL: none of that name. */
struct fx_source_tensor *fx_source__find(const struct fx_source *source, const char *name);
