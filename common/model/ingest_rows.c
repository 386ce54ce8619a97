#include "common/model/ingest_rows.h"
#include <math.h>
#include "common/base/heap.h"
#include "common/quant/int4.h"

enum { BAND_CELLS = (1 << 20) / 4 };

uint32_t fx_band__rows(const struct fx_plan_tensor *tensor) {
    uint32_t rows = BAND_CELLS / tensor->is.cols / FX_TILE_ROWS * FX_TILE_ROWS;
    return rows ? rows : FX_TILE_ROWS;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static uint32_t most(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

static void measure(const struct fx_plan_tensor *tensor, struct fx_band *band) {
    uint32_t rows = least(fx_band__rows(tensor), tensor->is.rows);
    uint32_t blocks = fx_plan__blocks(tensor->is.cols);
    uint64_t tiles = fx_weight_bytes(tensor->pack.layout, rows, tensor->is.cols);
    band->cells_max = most(band->cells_max, rows * tensor->is.cols);
    band->scales_max = most(band->scales_max, rows * blocks);
    band->code_bytes_max = most(band->code_bytes_max, rows * blocks * (FX_BLOCK / 2));
    if (tiles > band->tile_bytes_max) band->tile_bytes_max = tiles;
}

bool fx_band__init(const struct fx_plan *plan, struct fx_band *band, fx_error *err) {
    *band = (struct fx_band){0};
    for (uint32_t i = 0; i < plan->count; i++)
        measure(&plan->tensors[i], band);
    band->raw = fx_alloc(band->cells_max, sizeof(float));
    band->values = fx_alloc(band->cells_max, sizeof(float));
    band->halves = fx_alloc(band->cells_max, sizeof(uint16_t));
    band->codes = fx_alloc(band->code_bytes_max, 1);
    band->scales = fx_alloc(band->scales_max, sizeof(float));
    band->tiles = fx_alloc(band->tile_bytes_max, 1);
    return (band->raw && band->values && band->halves && band->codes && band->scales &&
            band->tiles) ||
           fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for %u weights", band->cells_max);
}

void fx_band__done(struct fx_band *band) {
    free(band->raw);
    free(band->values);
    free(band->halves);
    free(band->codes);
    free(band->scales);
    free(band->tiles);
    *band = (struct fx_band){0};
}

static void widen(enum fx_dtype dtype, const uint8_t *raw, size_t count, float *out) {
    const uint16_t *halves = (const uint16_t *)(const void *)raw;
    if (dtype == FX_DTYPE_F32)
        memcpy(out, raw, count * sizeof *out);
    else if (dtype == FX_DTYPE_F16)
        for (size_t i = 0; i < count; i++)
            out[i] = fx_f16_to_f32(halves[i]);
    else
        for (size_t i = 0; i < count; i++)
            out[i] = fx_bf16_to_f32(halves[i]);
}

/* Where in the tensor a cell of the band lies. */
struct cell {
    const struct fx_plan_tensor *tensor;
    uint32_t row;
    size_t at;
};

static FX_MUST bool refuse(struct cell cell, const char *why, float value, fx_error *err) {
    return fx_fail(err, FX_INVALID_ARGUMENT, "tensor '%s': row %zu, column %zu: %g %s",
                   cell.tensor->is.name, cell.row + cell.at / cell.tensor->is.cols,
                   cell.at % cell.tensor->is.cols, (double)value, why);
}

static FX_MUST bool check_finite(const struct fx_plan_tensor *tensor, uint32_t row, size_t count,
                                 const float *values, fx_error *err) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return refuse((struct cell){tensor, row, i}, "is not finite", values[i], err);
    return true;
}

/* What was f16 keeps its bits. */
static FX_MUST bool to_halves(const struct fx_plan_tensor *tensor, uint32_t row, size_t count,
                              struct fx_band *band, fx_error *err) {
    if (tensor->source->tensor->dtype == FX_DTYPE_F16) {
        memcpy(band->halves, band->raw, count * sizeof *band->halves);
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        band->halves[i] = fx_f32_to_f16(band->values[i]);
        if ((band->halves[i] & 0x7c00) == 0x7c00)
            return refuse((struct cell){tensor, row, i}, "is beyond f16", band->values[i], err);
    }
    return true;
}

static FX_MUST bool to_int4(const struct fx_plan_tensor *tensor, uint32_t row, uint32_t rows,
                            struct fx_band *band, fx_error *err) {
    size_t cols = tensor->is.cols, blocks = fx_plan__blocks(tensor->is.cols);
    for (uint32_t i = 0; i < rows; i++)
        if (!fx_int4_encode(band->values + i * cols, cols,
                            band->codes + i * blocks * (FX_BLOCK / 2), band->scales + i * blocks,
                            err))
            return fx_wrap(err, "tensor '%s': row %u", tensor->is.name, row + i);
    return true;
}

bool fx_band__read(const struct fx_plan *plan, const struct fx_plan_tensor *tensor, uint32_t row,
                   uint32_t rows, struct fx_band *band, fx_error *err) {
    const struct fx_tensor *from = tensor->source->tensor;
    size_t count = (size_t)rows * tensor->is.cols, each = fx_dtype_bytes(from->dtype);
    FX_ASSERT(count <= band->cells_max);
    uint64_t at = ((uint64_t)tensor->is.source_row + row) * tensor->is.cols * each;
    if (!fx_safetensors_read(tensor->source->file, from, at, band->raw, count * each, err))
        return false;
    widen(from->dtype, band->raw, count, band->values);
    if (!check_finite(tensor, row, count, band->values, err)) return false;
    if (fx_plan__is_int4(plan, tensor)) return to_int4(tensor, row, rows, band, err);
    if (fx_plan__dtype(plan, tensor) == FX_DTYPE_F16)
        return to_halves(tensor, row, count, band, err);
    return true;
}

static void pack_tile(enum fx_layout layout, uint32_t row, uint32_t rows, uint32_t cols,
                      struct fx_band *band) {
    size_t cells = (size_t)row * cols, blocks = fx_plan__blocks(cols);
    uint8_t *tile = band->tiles + (row ? fx_weight_bytes(layout, row, cols) : 0);
    if (layout == FX_LAYOUT_F32_T8)
        fx_pack_tile_f32(band->values + cells, rows, cols, (float *)(void *)tile);
    else if (layout == FX_LAYOUT_F16_T8)
        fx_pack_tile_f16(band->halves + cells, rows, cols, (uint16_t *)(void *)tile);
    else
        fx_pack_tile_i4(band->codes + row * blocks * (FX_BLOCK / 2), band->scales + row * blocks,
                        rows, (uint32_t)blocks, tile);
}

fx_span fx_band__pack(const struct fx_plan_tensor *tensor, uint32_t rows, struct fx_band *band) {
    enum fx_layout layout = tensor->pack.layout;
    uint32_t cols = tensor->is.cols;
    if (layout == FX_LAYOUT_F32_ROW)
        return (fx_span){(const uint8_t *)band->values, (size_t)rows * cols * sizeof(float)};
    for (uint32_t row = 0; row < rows; row += FX_TILE_ROWS)
        pack_tile(layout, row, least(FX_TILE_ROWS, rows - row), cols, band);
    return (fx_span){band->tiles, fx_weight_bytes(layout, rows, cols)};
}
