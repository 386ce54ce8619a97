#pragma once
#include <jansson.h>
#include "common/model/safetensors.h"

struct fx_safetensors {
    int fd;
    void *map;
    uint64_t bytes;   /* of the file */
    uint64_t data_at; /* where the data begins in the file */
    json_t *root;     /* the header: owns the names */
    struct fx_tensor *tensors;
    size_t count;
    const struct fx_tensor **by_name;
};

/** Bytes of a tensor of this shape; false when the product overflows. */
bool fx_safetensors__bytes(enum fx_dtype dtype, uint32_t dims, const uint64_t *shape,
                           uint64_t *bytes);
/** 0: not one of ours. */
enum fx_dtype fx_safetensors__dtype_of(const char *name);
/** Fills everything but fd, map, bytes from the header. */
FX_MUST bool fx_safetensors__header(struct fx_safetensors *file, fx_error *err);
