#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Functions of our own, so that every machine and backend gives the same bits: only IEEE basic
 * operations and fused multiply-add, in a fixed order. Round to nearest must be in force. */

#define FX_EXP_LOW (-104.0f) /* below, exp is 0 */
#define FX_EXP_HIGH 89.0f    /* above, exp is infinity */
#define FX_LOG2E 0x1.715476p+0f
#define FX_LN2_HIGH 0x1.62e4p-1f
#define FX_LN2_LOW 0x1.7f7d1cp-20f
#define FX_ROUND_MAGIC 0x1.8p23f /* adding it rounds to an integer, in the low mantissa bits */

static inline float fx_math_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline uint32_t fx_math_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/** e^x in f32, at most 1 ulp off; subnormal results kept, NaN in NaN out. The vector form in
 *  kernels/cpu/avx2.h does the same operations in the same order. */
static inline float fx_expf(float x) {
    x = FX_EXP_LOW > x ? FX_EXP_LOW : x;
    x = FX_EXP_HIGH < x ? FX_EXP_HIGH : x;
    float shifted = fmaf(x, FX_LOG2E, FX_ROUND_MAGIC);
    float n = shifted - FX_ROUND_MAGIC;
    float r = fmaf(n, -FX_LN2_HIGH, x);
    r = fmaf(n, -FX_LN2_LOW, r);
    float p = fmaf(r, 1.0f / 5040, 1.0f / 720);
    p = fmaf(p, r, 1.0f / 120);
    p = fmaf(p, r, 1.0f / 24);
    p = fmaf(p, r, 1.0f / 6);
    p = fmaf(p, r, 0.5f);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    /* 2^n in two factors, so that only the last product can round or overflow */
    int32_t power = (int32_t)(fx_math_bits(shifted) - fx_math_bits(FX_ROUND_MAGIC));
    int32_t half = power >> 1;
    float low = fx_math_float((uint32_t)(half + 127) << 23);
    float high = fx_math_float((uint32_t)(power - half + 127) << 23);
    return p * low * high;
}

/** In f64: exp, natural log (x > 0, finite), sin and cos for |x| < 2^27; at most 2 ulp off. */
double fx_exp(double x);
double fx_log(double x);
double fx_sin(double x);
double fx_cos(double x);
/** x^y in f32 for x > 0, at most 1 ulp off. */
float fx_powf(float x, float y);
