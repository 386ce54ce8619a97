#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** How a tensor lies in a pack file. Tiles interleave 8 output rows, so that rows are SIMD lanes
 *  and k ascends; rows past the last are zero. Packing permutes, it never rounds. */
enum fx_layout {
    FX_LAYOUT_F32_ROW = 1, /* vectors: [rows][cols] f32 (norm weights, biases; rows = 1) */
    FX_LAYOUT_F32_T8 = 2,  /* [ceil(rows/8)][cols][8] f32 */
    FX_LAYOUT_F16_T8 = 3,  /* [ceil(rows/8)][cols][8] IEEE binary16 */
    FX_LAYOUT_I4_T8 = 4,   /* [ceil(rows/8)][ceil(cols/64)] tiles of 288 bytes: 8 f32 scales, then
                              256 bytes of nibbles q+8 (0..15) of 8 rows x 64 k */
};

/** One matrix [rows = out, cols = in] in kernel layout, mapped read-only. */
struct fx_weight {
    const void *data; /* 64-byte aligned */
    uint32_t rows, cols;
    enum fx_layout layout;
};

enum { FX_TILE_ROWS = 8, FX_BLOCK = 64, FX_I4_TILE_BYTES = 288 };

/** Bytes of a tensor in its layout. @pre rows, cols >= 1 and the product of sizes < 2^63 */
uint64_t fx_weight_bytes(enum fx_layout layout, uint32_t rows, uint32_t cols);
/** "f32-row", "f32-t8", "f16-t8", "i4-t8": the ids in a manifest; NULL / 0 for none. */
const char *fx_layout_name(enum fx_layout layout);
enum fx_layout fx_layout_of(const char *name);

/** Packs the rows [tile*8, tile*8+8) of a matrix (fewer in the last tile). `tile` of T8 layouts is
 *  cols*8 values. @shape rows_in [n][cols], n = min(8, rows - tile*8) */
void fx_pack_tile_f32(const float *rows_in, uint32_t n, uint32_t cols, float *tile);
void fx_pack_tile_f16(const uint16_t *rows_in, uint32_t n, uint32_t cols, uint16_t *tile);
/** @shape codes [n][blocks*32] two codes a byte, even index in the low nibble, two's complement;
 *  scales [n][blocks]; tile [blocks][288] */
void fx_pack_tile_i4(const uint8_t *codes, const float *scales, uint32_t n, uint32_t blocks,
                     uint8_t *tile);
/** The exact inverse of the above for one row, f32 values as the kernels see them: for f16 the
 *  value, for int4 q*scale. @shape out [cols] */
void fx_weight_row(const struct fx_weight *weight, uint32_t row, float *out);
