#include "kernels/cpu/lanes.h"

/* A register block of ROWS activation rows x TILES weight tiles: each output lane keeps its one fma
 * chain in order of k, and a weight vector is loaded once for all rows. */

enum { ROWS_MAX = 6, TILES_MAX = 8, ACCS_MAX = 12 };

struct block {
    const uint8_t *tile; /* the first tile */
    size_t tile_bytes;   /* from a tile to the next */
    const float *x[ROWS_MAX];
    float *out[ROWS_MAX]; /* at the first tile's first lane */
    uint32_t cols, lanes; /* lanes: of the last tile that exist */
    bool add;
};

FX_INLINE void multiply(const struct block *block, const int rows, const int tiles,
                        const bool half) {
    __m256 acc[ACCS_MAX];
    FX_UNROLL
    for (int i = 0; i < rows * tiles; i++)
        acc[i] = _mm256_setzero_ps();
    const size_t step = half ? FX_LANES * sizeof(uint16_t) : FX_LANES * sizeof(float);
    const uint8_t *at = block->tile;
    for (uint32_t k = 0; k < block->cols; k++, at += step) {
        __m256 weight[TILES_MAX];
        FX_UNROLL
        for (int t = 0; t < tiles; t++) {
            const void *lane = at + (size_t)t * block->tile_bytes;
            weight[t] = half ? fx_avx2_load_f16(lane) : _mm256_loadu_ps(lane);
        }
        FX_UNROLL
        for (int r = 0; r < rows; r++) {
            __m256 x = _mm256_broadcast_ss(block->x[r] + k);
            FX_UNROLL
            for (int t = 0; t < tiles; t++)
                acc[r * tiles + t] = _mm256_fmadd_ps(weight[t], x, acc[r * tiles + t]);
        }
    }
    FX_UNROLL
    for (int r = 0; r < rows; r++) {
        FX_UNROLL
        for (int t = 0; t < tiles; t++)
            fx_avx2_put(block->out[r] + (size_t)t * FX_LANES, acc[r * tiles + t],
                        t + 1 == tiles ? block->lanes : FX_LANES, block->add);
    }
}

#define SHAPE(rows, tiles)                                                                         \
    static void multiply_f32_##rows##x##tiles(const struct block *block) {                         \
        multiply(block, rows, tiles, false);                                                       \
    }                                                                                              \
    static void multiply_f16_##rows##x##tiles(const struct block *block) {                         \
        multiply(block, rows, tiles, true);                                                        \
    }
SHAPE(6, 2)
SHAPE(6, 1)
SHAPE(4, 2)
SHAPE(4, 1)
SHAPE(2, 4)
SHAPE(2, 2)
SHAPE(2, 1)
SHAPE(1, 8)
SHAPE(1, 4)
SHAPE(1, 2)
SHAPE(1, 1)

/* Shapes by rows, wide ones first: the first that fits what is left is taken. */
static const struct shape {
    uint32_t rows, tiles;
    void (*run[2])(const struct block *); /* f32, f16 */
} shapes[] = {
#define ENTRY(rows, tiles)                                                                         \
    {                                                                                              \
        rows, tiles, {                                                                             \
            multiply_f32_##rows##x##tiles, multiply_f16_##rows##x##tiles                           \
        }                                                                                          \
    }
    ENTRY(6, 2), ENTRY(6, 1), ENTRY(4, 2), ENTRY(4, 1), ENTRY(2, 4), ENTRY(2, 2),
    ENTRY(2, 1), ENTRY(1, 8), ENTRY(1, 4), ENTRY(1, 2), ENTRY(1, 1),
};

static const struct shape *shape_for(uint32_t rows, uint32_t tiles) {
    const struct shape *shape = shapes;
    while (shape->rows > rows || shape->tiles > tiles)
        shape++;
    return shape;
}

static uint32_t rows_per_block(uint32_t left) {
    if (left >= 6 && left != 8) return 6;
    return left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

/* A strip of tiles stays in the cache while all rows pass over it. */
static uint32_t strip_tiles(uint32_t rows) {
    return rows >= 6 ? 2 : rows >= 2 ? 4 : 8;
}

static void multiply_strip(const struct fx_mul *mul, uint32_t row, uint32_t rows,
                           uint32_t tile_begin, uint32_t tile_end) {
    const struct fx_weight *weight = mul->weight;
    bool half = weight->layout == FX_LAYOUT_F16_T8;
    struct block block = {.cols = weight->cols, .add = mul->add};
    block.tile_bytes = (size_t)weight->cols * FX_TILE_ROWS * (half ? 2 : 4);
    for (uint32_t tile = tile_begin, tiles = 0; tile < tile_end; tile += tiles) {
        const struct shape *shape = shape_for(rows, tile_end - tile);
        tiles = shape->tiles;
        uint32_t past = (tile + tiles) * FX_TILE_ROWS;
        block.lanes = past > weight->rows ? FX_LANES - (past - weight->rows) : FX_LANES;
        block.tile = (const uint8_t *)weight->data + tile * block.tile_bytes;
        for (uint32_t r = 0; r < rows; r++) {
            block.x[r] = mul->act->x + fx_mul_row(mul, row + r) * mul->act->stride;
            block.out[r] = mul->out + (row + r) * mul->out_stride + (size_t)tile * FX_TILE_ROWS;
        }
        shape->run[half](&block);
    }
}

/** fx_ref_matmul.
 *  @shape act [rows][cols], weight [out][cols] T8 f32 or f16, out [rows][out_stride]  @tol exact */
void fx_avx2_matmul(const struct fx_mul *mul, uint32_t tile_begin, uint32_t tile_end) {
    if (mul->weight->layout == FX_LAYOUT_I4_T8) {
        fx_avx2_matmul_i4(mul, tile_begin, tile_end);
        return;
    }
    uint32_t strip = strip_tiles(mul->rows);
    for (uint32_t tile = tile_begin; tile < tile_end; tile += strip) {
        uint32_t end = tile_end - tile < strip ? tile_end : tile + strip;
        for (uint32_t row = 0, rows = 0; row < mul->rows; row += rows) {
            rows = rows_per_block(mul->rows - row);
            multiply_strip(mul, row, rows, tile, end);
        }
    }
}
