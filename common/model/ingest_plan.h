#pragma once
#include "common/model/ingest_source.h"
#include "common/model/manifest.h"
#include "common/model/pack.h"

/** What an import writes, known before the first byte is read. */

/** Rows of one tensor in one part; `row` is a multiple of 8. */
struct fx_plan_slice {
    uint32_t tensor, part, row, rows;
    uint32_t spec; /* the first of its tensors in the part: one, or .q4 and .scale */
};
struct fx_plan_tensor {
    struct fx_pack_tensor is;
    struct fx_manifest_tensor pack;
    const struct fx_source_tensor *source;
    uint32_t slice_first, slice_count;
};
struct fx_plan {
    struct fx_model_config config;
    enum fx_model_dtype dtype;
    uint32_t part_bytes_max;
    struct fx_plan_tensor *tensors;
    uint32_t count;
    struct fx_plan_slice *slices;
    uint32_t slice_count, slice_cap, part_count;
    uint64_t pack_bytes, source_bytes;
};

/** Finds each tensor of the config in the source and checks its dtype and shape; names one that is
 *  missing or too many. `plan` has config, dtype and part_bytes_max, the rest zeroed.
 *  @own caller, fx_plan__done, also after a failure @err INVALID_ARGUMENT, UNIMPLEMENTED */
FX_MUST bool fx_plan__make(struct fx_plan *plan, struct fx_source *source, fx_error *err);
void fx_plan__done(struct fx_plan *plan);
/** Is this tensor stored as .q4 and .scale? */
bool fx_plan__is_int4(const struct fx_plan *plan, const struct fx_plan_tensor *tensor);
/** What its values are stored as in the parts, int4 aside. */
enum fx_dtype fx_plan__dtype(const struct fx_plan *plan, const struct fx_plan_tensor *tensor);

/** ceil(cols / 64). */
static inline uint32_t fx_plan__blocks(uint32_t cols) {
    return (cols + FX_BLOCK - 1) / FX_BLOCK;
}

/** Cuts the tensors into parts. */
FX_MUST bool fx_plan__cut(struct fx_plan *plan, fx_error *err);
