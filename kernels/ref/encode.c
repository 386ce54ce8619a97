#include "kernels/math.h"
#include "kernels/ref/ref.h"

/* Positive floats order as their bits; NaN and infinity come out on top. */
static uint32_t largest_bits(const float *x) {
    uint32_t largest = 0;
    for (uint32_t i = 0; i < FX_BLOCK; i++) {
        uint32_t bits = fx_math_bits(x[i]) & 0x7fffffffu;
        if (bits > largest) largest = bits;
    }
    return largest;
}

static int32_t encode_block(const float *x, float scale, int8_t *q) {
    int32_t sum = 0;
    for (uint32_t i = 0; i < FX_BLOCK; i++) {
        float code = rintf(x[i] / scale);
        code = code > FX_CODE_MAX ? FX_CODE_MAX : code;
        code = code < -FX_CODE_MAX ? -FX_CODE_MAX : code;
        q[i] = (int8_t)code;
        sum += q[i];
    }
    return sum;
}

/** int8 codes of one row; the rule stands at struct fx_act.
 *  @shape x, q [blocks*64], scale, offset [blocks]  @pre x is 0 past cols  @tol exact */
void fx_ref_encode(const struct fx_act *act, uint32_t row) {
    for (uint32_t block = 0; block < act->blocks; block++) {
        size_t at = (size_t)row * act->stride + (size_t)block * FX_BLOCK;
        size_t index = (size_t)row * act->blocks + block;
        uint32_t bits = largest_bits(act->x + at);
        bool finite = bits < 0x7f800000u;
        float scale = finite ? fx_math_float(bits) / (float)FX_CODE_MAX : NAN;
        int32_t sum = 0;
        if (finite && scale > 0.0f)
            sum = encode_block(act->x + at, scale, act->q + at);
        else
            memset(act->q + at, 0, FX_BLOCK);
        act->scale[index] = scale;
        act->offset[index] = 8 * sum;
    }
}
