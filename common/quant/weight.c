#include "common/quant/weight.h"
#include "common/base/error.h"
#include "common/quant/int4.h"
#include <string.h>

static uint64_t tiles_of(uint32_t rows) {
    return ((uint64_t)rows + FX_TILE_ROWS - 1) / FX_TILE_ROWS;
}
static uint64_t blocks_of(uint32_t cols) {
    return ((uint64_t)cols + FX_BLOCK - 1) / FX_BLOCK;
}

uint64_t fx_weight_bytes(enum fx_layout layout, uint32_t rows, uint32_t cols) {
    switch (layout) {
    case FX_LAYOUT_F32_ROW: return (uint64_t)rows * cols * sizeof(float);
    case FX_LAYOUT_F32_T8: return tiles_of(rows) * cols * FX_TILE_ROWS * sizeof(float);
    case FX_LAYOUT_F16_T8: return tiles_of(rows) * cols * FX_TILE_ROWS * sizeof(uint16_t);
    case FX_LAYOUT_I4_T8: return tiles_of(rows) * blocks_of(cols) * FX_I4_TILE_BYTES;
    }
    return 0;
}

static const struct {
    enum fx_layout layout;
    const char *name;
} names[] = {
    {FX_LAYOUT_F32_ROW, "f32-row"},
    {FX_LAYOUT_F32_T8,  "f32-t8" },
    {FX_LAYOUT_F16_T8,  "f16-t8" },
    {FX_LAYOUT_I4_T8,   "i4-t8"  },
};

const char *fx_layout_name(enum fx_layout layout) {
    for (size_t i = 0; i < FX_COUNT(names); i++)
        if (names[i].layout == layout) return names[i].name;
    return NULL;
}

enum fx_layout fx_layout_of(const char *name) {
    for (size_t i = 0; i < FX_COUNT(names); i++)
        if (strcmp(names[i].name, name) == 0) return names[i].layout;
    return (enum fx_layout)0;
}

void fx_pack_tile_f32(const float *rows_in, uint32_t n, uint32_t cols, float *tile) {
    for (size_t k = 0; k < cols; k++)
        for (size_t row = 0; row < FX_TILE_ROWS; row++)
            tile[k * FX_TILE_ROWS + row] = row < n ? rows_in[row * cols + k] : 0.0f;
}

void fx_pack_tile_f16(const uint16_t *rows_in, uint32_t n, uint32_t cols, uint16_t *tile) {
    for (size_t k = 0; k < cols; k++)
        for (size_t row = 0; row < FX_TILE_ROWS; row++)
            tile[k * FX_TILE_ROWS + row] = row < n ? rows_in[row * cols + k] : 0;
}

/* A row's 64 codes of a block, as stored in the tile: byte v*32 + row*4 + c holds k = 4v+c in its
 * low nibble and k = 32+4v+c in its high one, each as q+8. */
static void pack_block_i4(const uint8_t *codes, size_t row, uint8_t *nibbles) {
    for (size_t k = 0; k < FX_BLOCK; k++) {
        unsigned code = k % 2 ? codes[k / 2] >> 4 : codes[k / 2] & 15u;
        unsigned stored = code ^ 8u; /* two's complement + 8 */
        uint8_t *byte = &nibbles[k % 32 / 4 * 32 + row * 4 + k % 4];
        *byte = (uint8_t)(*byte | (k < 32 ? stored : stored << 4));
    }
}

void fx_pack_tile_i4(const uint8_t *codes, const float *scales, uint32_t n, uint32_t blocks,
                     uint8_t *tile) {
    static const uint8_t zeros[FX_BLOCK / 2];
    for (size_t block = 0; block < blocks; block++) {
        float lane_scales[FX_TILE_ROWS] = {0};
        uint8_t *out = tile + block * FX_I4_TILE_BYTES, *nibbles = out + sizeof lane_scales;
        memset(nibbles, 0, FX_I4_TILE_BYTES - sizeof lane_scales);
        for (size_t row = 0; row < FX_TILE_ROWS; row++) {
            size_t at = row * blocks + block;
            if (row < n) lane_scales[row] = scales[at];
            pack_block_i4(row < n ? codes + at * (FX_BLOCK / 2) : zeros, row, nibbles);
        }
        memcpy(out, lane_scales, sizeof lane_scales);
    }
}

static void row_i4(const struct fx_weight *weight, uint32_t row, float *out) {
    uint64_t blocks = blocks_of(weight->cols);
    const uint8_t *tile = weight->data;
    tile += row / FX_TILE_ROWS * blocks * FX_I4_TILE_BYTES;
    size_t lane = row % FX_TILE_ROWS;
    for (size_t k = 0; k < weight->cols; k++) {
        const uint8_t *block = tile + k / FX_BLOCK * FX_I4_TILE_BYTES;
        float scale;
        memcpy(&scale, block + lane * sizeof scale, sizeof scale);
        unsigned byte = block[FX_TILE_ROWS * sizeof scale + k % 32 / 4 * 32 + lane * 4 + k % 4];
        int code = (int)(k % FX_BLOCK < 32 ? byte & 15u : byte >> 4) - 8;
        out[k] = (float)code * scale;
    }
}

void fx_weight_row(const struct fx_weight *weight, uint32_t row, float *out) {
    FX_ASSERT(row < weight->rows);
    size_t cols = weight->cols, lane = row % FX_TILE_ROWS;
    size_t tile = row / FX_TILE_ROWS * cols * FX_TILE_ROWS;
    const float *f32 = weight->data;
    const uint16_t *f16 = weight->data;
    switch (weight->layout) {
    case FX_LAYOUT_F32_ROW: memcpy(out, f32 + row * cols, cols * sizeof *out); return;
    case FX_LAYOUT_F32_T8:
        for (size_t k = 0; k < cols; k++)
            out[k] = f32[tile + k * FX_TILE_ROWS + lane];
        return;
    case FX_LAYOUT_F16_T8:
        for (size_t k = 0; k < cols; k++)
            out[k] = fx_f16_to_f32(f16[tile + k * FX_TILE_ROWS + lane]);
        return;
    case FX_LAYOUT_I4_T8: row_i4(weight, row, out); return;
    }
    fx_assert_failed("a layout", __FILE__, __LINE__);
}
