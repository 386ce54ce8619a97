#pragma once
#include "common/model/ingest_plan.h"

/** A band of a tensor's rows on its way from the checkpoint to parts and pack: the only buffers an
 *  import has for weights. @thread one owner */
struct fx_band {
    uint32_t cells_max, code_bytes_max, scales_max; /* of the largest band */
    uint64_t tile_bytes_max;
    uint8_t *raw;     /* as in the checkpoint */
    float *values;    /* f32 and int4 */
    uint16_t *halves; /* f16 */
    uint8_t *codes;   /* int4 */
    float *scales;
    uint8_t *tiles; /* packed */
};

/** @own caller, fx_band__done, also after a failure */
FX_MUST bool fx_band__init(const struct fx_plan *plan, struct fx_band *band, fx_error *err);
void fx_band__done(struct fx_band *band);
/** How many rows of a tensor make a band: a multiple of 8 of about 1 MiB in f32. */
uint32_t fx_band__rows(const struct fx_plan_tensor *tensor);
/** Reads the rows and brings them to the plan's dtype: values, halves or codes and scales.
 *  @err INVALID_ARGUMENT naming tensor, row and column of a value that can't be stored */
FX_MUST bool fx_band__read(const struct fx_plan *plan, const struct fx_plan_tensor *tensor,
                           uint32_t row, uint32_t rows, struct fx_band *band, fx_error *err);
/** Packs what was read into band->tiles; `row` is a multiple of 8. */
fx_span fx_band__pack(const struct fx_plan_tensor *tensor, uint32_t rows, struct fx_band *band);
