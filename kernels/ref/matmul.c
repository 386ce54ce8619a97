#include "common/quant/int4.h"
#include "kernels/ref/ref.h"
#include <math.h>

/* One tile: 8 weight rows against one activation row; acc[lane] is the whole result. */

static void tile_f32(const float *tile, const float *x, uint32_t cols, float *acc) {
    for (uint32_t k = 0; k < cols; k++)
        for (uint32_t lane = 0; lane < FX_TILE_ROWS; lane++)
            acc[lane] = fmaf(tile[(size_t)k * FX_TILE_ROWS + lane], x[k], acc[lane]);
}

static void tile_f16(const uint16_t *tile, const float *x, uint32_t cols, float *acc) {
    for (uint32_t k = 0; k < cols; k++)
        for (uint32_t lane = 0; lane < FX_TILE_ROWS; lane++)
            acc[lane] = fmaf(fx_f16_to_f32(tile[(size_t)k * FX_TILE_ROWS + lane]), x[k], acc[lane]);
}

/* Byte v*32 + lane*4 + c holds k = 4v+c in its low nibble, k = 32+4v+c in its high one. */
static int32_t dot_i4(const uint8_t *nibbles, uint32_t lane, const int8_t *q) {
    int32_t dot = 0;
    for (uint32_t v = 0; v < 8; v++)
        for (uint32_t c = 0; c < 4; c++) {
            int32_t byte = nibbles[v * 32 + lane * 4 + c];
            dot += ((byte & 15) - 8) * q[4 * v + c] + ((byte >> 4) - 8) * q[32 + 4 * v + c];
        }
    return dot;
}

static void tile_i4(const uint8_t *tile, const int8_t *q, const float *scales, uint32_t blocks,
                    float *acc) {
    for (uint32_t block = 0; block < blocks; block++) {
        const uint8_t *at = tile + (size_t)block * FX_I4_TILE_BYTES;
        const float *weight_scales = (const float *)(const void *)at;
        const uint8_t *nibbles = at + FX_TILE_ROWS * sizeof(float);
        for (uint32_t lane = 0; lane < FX_TILE_ROWS; lane++) {
            int32_t dot = dot_i4(nibbles, lane, q + (size_t)block * FX_BLOCK);
            acc[lane] = fmaf((float)dot, weight_scales[lane] * scales[block], acc[lane]);
        }
    }
}

static void tile_row(const struct fx_mul *mul, uint32_t tile, size_t row, float *acc) {
    const struct fx_weight *weight = mul->weight;
    const struct fx_act *act = mul->act;
    const float *x = act->x + row * act->stride;
    size_t values = (size_t)tile * weight->cols * FX_TILE_ROWS;
    if (weight->layout == FX_LAYOUT_F32_T8) {
        tile_f32((const float *)weight->data + values, x, weight->cols, acc);
    } else if (weight->layout == FX_LAYOUT_F16_T8) {
        tile_f16((const uint16_t *)weight->data + values, x, weight->cols, acc);
    } else {
        size_t bytes = (size_t)tile * act->blocks * FX_I4_TILE_BYTES;
        tile_i4((const uint8_t *)weight->data + bytes, act->q + row * act->stride,
                act->scale + row * act->blocks, act->blocks, acc);
    }
}

/** out (+)= act * weight^T. f32 and f16: one fma chain from 0 in order of k. int4: exact int32 per
 *  64-block, then acc = fma(dot, weight_scale * act_scale, acc), blocks in order.
 *  @shape act [rows][cols], weight [out][cols] T8, out [rows][out_stride]  @tol exact */
void fx_ref_matmul(const struct fx_mul *mul, uint32_t tile_begin, uint32_t tile_end) {
    for (uint32_t tile = tile_begin; tile < tile_end; tile++)
        for (uint32_t i = 0; i < mul->rows; i++) {
            float acc[FX_TILE_ROWS] = {0};
            tile_row(mul, tile, fx_mul_row(mul, i), acc);
            uint32_t first = tile * FX_TILE_ROWS, left = mul->weight->rows - first;
            float *out = mul->out + i * mul->out_stride + first;
            for (uint32_t lane = 0; lane < FX_TILE_ROWS && lane < left; lane++)
                out[lane] = mul->add ? out[lane] + acc[lane] : acc[lane];
        }
}
