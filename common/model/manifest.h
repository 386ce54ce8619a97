#pragma once
#include <jansson.h>
#include "common/model/store.h"

/** manifest.json of a version: schema 1. */
enum { FX_MANIFEST_SCHEMA = 1, FX_MANIFEST_FILE_MAX = 64 };
#define FX_MANIFEST_FILE "manifest.json"
/** In sha256sum's format, written beside it. */
#define FX_MANIFEST_DIGEST_FILE "manifest.sha256"

/** A tensor in the pack file. */
struct fx_manifest_tensor {
    uint64_t offset, bytes;
    enum fx_layout layout;
    uint32_t rows, cols;
};
/** The rows [row, row + rows) of a tensor in a part. */
struct fx_manifest_slice {
    uint32_t part, row, rows;
};
struct fx_manifest_file {
    char name[FX_MANIFEST_FILE_MAX];
    uint64_t bytes;
    char sha256[FX_SHA256_HEX];
};

/** "f32", "f16", "int4-b64": what the stored values are. */
const char *fx_manifest_codec(enum fx_model_dtype dtype);
/** "part-007.safetensors". */
void fx_manifest_part_name(uint32_t part, char out[FX_MANIFEST_FILE_MAX]);

/* Writing. */

/** Everything but tensors and files. NULL: out of memory. @own caller, json_decref */
json_t *fx_manifest_new(const struct fx_model_info *info, const char *config_digest);
FX_MUST bool fx_manifest_add_tensor(json_t *manifest, const char *name,
                                    const struct fx_manifest_tensor *tensor,
                                    const struct fx_manifest_slice *slices, uint32_t count,
                                    fx_error *err);
FX_MUST bool fx_manifest_add_file(json_t *manifest, const struct fx_manifest_file *file,
                                  fx_error *err);
/** Writes manifest.json and its digest into `folder`. */
FX_MUST bool fx_manifest_write(const json_t *manifest, const char *folder, fx_error *err);

/* Reading; every error is DATA_LOSS and names the member. */

/** @own caller, json_decref */
FX_MUST bool fx_manifest_parse(fx_span text, json_t **out, fx_error *err);
/** manifest.json of a version's folder. @own caller, json_decref */
FX_MUST bool fx_manifest_load(const char *folder, json_t **out, fx_error *err);
FX_MUST bool fx_manifest_info(const json_t *manifest, struct fx_model_info *out, fx_error *err);
FX_MUST bool fx_manifest_tensor(const json_t *manifest, const char *name,
                                struct fx_manifest_tensor *out, fx_error *err);
size_t fx_manifest_file_count(const json_t *manifest);
/** @pre i < count */
FX_MUST bool fx_manifest_file_at(const json_t *manifest, size_t i, struct fx_manifest_file *out,
                                 fx_error *err);
