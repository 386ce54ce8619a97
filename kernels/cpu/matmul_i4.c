#include "kernels/cpu/lanes.h"

/* int4 x int8: a 32-byte vector of the tile holds 4 k of 8 rows, so a broadcast of 4 activation
 * codes meets all 8 rows in one maddubs. Unsigned weights (q+8 <= 15) against codes of at most 127
 * give pairs of at most 3810, and 8 of them fit 16 bits: nothing saturates. What the +8 added, 8
 * times the sum of the codes, is taken off again, exactly. */

enum { ROWS_MAX = 4, VECTORS = 8, STRIP_BYTES = 16 * 1024 };
_Static_assert(VECTORS * 2 * 15 * FX_CODE_MAX <= INT16_MAX, "the 16-bit sums must not overflow");

/* Some activation rows against a strip of tiles. */
struct block {
    const uint8_t *tile;
    uint32_t tiles, blocks;
    uint32_t lanes; /* of the last tile that exist */
    bool add;
    const int8_t *q[ROWS_MAX];
    const float *scale[ROWS_MAX];
    const int32_t *offset[ROWS_MAX];
    float *out[ROWS_MAX];
};

FX_INLINE __m256i codes_at(const int8_t *q) {
    int32_t four;
    memcpy(&four, q, sizeof four);
    return _mm256_set1_epi32(four);
}

/* The exact dot products of one 64-block: low nibbles are k 0..31, high ones k 32..63. */
FX_INLINE void dot_block(const uint8_t *nibbles, const int8_t *const *q, size_t k, const int rows,
                         __m256i *dot) {
    const __m256i mask = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
    __m256i low[ROWS_MAX], high[ROWS_MAX];
    FX_UNROLL
    for (int r = 0; r < rows; r++)
        low[r] = high[r] = _mm256_setzero_si256();
    FX_UNROLL
    for (size_t v = 0; v < VECTORS; v++) {
        __m256i packed = _mm256_loadu_si256((const __m256i *)(const void *)(nibbles + v * 32));
        __m256i weight_low = _mm256_and_si256(packed, mask);
        __m256i weight_high = _mm256_and_si256(_mm256_srli_epi16(packed, 4), mask);
        FX_UNROLL
        for (int r = 0; r < rows; r++) {
            const int8_t *codes = q[r] + k + 4 * v;
            __m256i a = _mm256_maddubs_epi16(weight_low, codes_at(codes));
            __m256i b = _mm256_maddubs_epi16(weight_high, codes_at(codes + 32));
            low[r] = _mm256_add_epi16(low[r], a);
            high[r] = _mm256_add_epi16(high[r], b);
        }
    }
    FX_UNROLL
    for (int r = 0; r < rows; r++)
        dot[r] =
            _mm256_add_epi32(_mm256_madd_epi16(low[r], ones), _mm256_madd_epi16(high[r], ones));
}

/* acc = all blocks of one tile. */
FX_INLINE void multiply_tile(const struct block *block, const uint8_t *at, const int rows,
                             __m256 *acc) {
    FX_UNROLL
    for (int r = 0; r < rows; r++)
        acc[r] = _mm256_setzero_ps();
    for (uint32_t b = 0; b < block->blocks; b++, at += FX_I4_TILE_BYTES) {
        __m256 weight_scale = _mm256_loadu_ps((const float *)(const void *)at);
        __m256i dot[ROWS_MAX];
        dot_block(at + sizeof weight_scale, block->q, (size_t)b * FX_BLOCK, rows, dot);
        FX_UNROLL
        for (int r = 0; r < rows; r++) {
            __m256i exact = _mm256_sub_epi32(dot[r], _mm256_set1_epi32(block->offset[r][b]));
            __m256 scale = _mm256_mul_ps(weight_scale, _mm256_broadcast_ss(block->scale[r] + b));
            acc[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(exact), scale, acc[r]);
        }
    }
}

FX_INLINE void multiply(const struct block *block, const int rows) {
    size_t tile_bytes = (size_t)block->blocks * FX_I4_TILE_BYTES;
    for (uint32_t tile = 0; tile < block->tiles; tile++) {
        __m256 acc[ROWS_MAX];
        multiply_tile(block, block->tile + tile * tile_bytes, rows, acc);
        uint32_t lanes = tile + 1 == block->tiles ? block->lanes : FX_LANES;
        FX_UNROLL
        for (int r = 0; r < rows; r++)
            fx_avx2_put(block->out[r] + (size_t)tile * FX_LANES, acc[r], lanes, block->add);
    }
}

FX_NOINLINE void multiply_4(const struct block *block) {
    multiply(block, 4);
}
FX_NOINLINE void multiply_2(const struct block *block) {
    multiply(block, 2);
}
FX_NOINLINE void multiply_1(const struct block *block) {
    multiply(block, 1);
}

static void multiply_rows(const struct fx_mul *mul, struct block *block, uint32_t row,
                          uint32_t rows, uint32_t tile) {
    const struct fx_act *act = mul->act;
    for (uint32_t r = 0; r < rows; r++) {
        size_t from = fx_mul_row(mul, row + r);
        block->q[r] = act->q + from * act->stride;
        block->scale[r] = act->scale + from * act->blocks;
        block->offset[r] = act->offset + from * act->blocks;
        block->out[r] = mul->out + (row + r) * mul->out_stride + (size_t)tile * FX_TILE_ROWS;
    }
    if (rows == 4)
        multiply_4(block);
    else if (rows == 2)
        multiply_2(block);
    else
        multiply_1(block);
}

/** fx_ref_matmul over int4 weights.
 *  @shape act codes [rows][blocks*64], weight [out][cols] I4_T8, out [rows][out_stride]
 *  @tol exact */
void fx_avx2_matmul_i4(const struct fx_mul *mul, uint32_t tile_begin, uint32_t tile_end) {
    struct block block = {.blocks = mul->act->blocks, .add = mul->add};
    size_t tile_bytes = (size_t)block.blocks * FX_I4_TILE_BYTES;
    uint32_t strip = tile_bytes < STRIP_BYTES ? (uint32_t)(STRIP_BYTES / tile_bytes) : 1;
    for (uint32_t tile = tile_begin; tile < tile_end; tile += block.tiles) {
        block.tiles = tile_end - tile < strip ? tile_end - tile : strip;
        uint32_t past = (tile + block.tiles) * FX_TILE_ROWS;
        block.lanes = past > mul->weight->rows ? FX_LANES - (past - mul->weight->rows) : FX_LANES;
        block.tile = (const uint8_t *)mul->weight->data + tile * tile_bytes;
        for (uint32_t row = 0, rows = 0; row < mul->rows; row += rows) {
            uint32_t left = mul->rows - row;
            rows = left >= 4 ? 4 : left >= 2 ? 2 : 1;
            multiply_rows(mul, &block, row, rows, tile);
        }
    }
}
