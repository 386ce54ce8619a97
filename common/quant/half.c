#include "common/quant/int4.h"
#include <string.h>

static float f32_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

float fx_f16_to_f32(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u) { /* infinity; NaN, made quiet as F16C does */
        uint32_t quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
        return f32_of(sign | 0x7f800000u | quiet | (magnitude & 0x3ffu) << 13);
    }
    if (magnitude < 0x400u) { /* zero and subnormals: magnitude * 2^-24, exact */
        return f32_of(sign | bits_of((float)magnitude * 0x1p-24f));
    }
    return f32_of(sign | ((magnitude << 13) + ((127u - 15u) << 23)));
}

uint16_t fx_f32_to_f16(float value) {
    uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffffu;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x47800000u) return (uint16_t)(sign | 0x7c00u); /* >= 2^16 */
    if (magnitude < 0x38800000u) { /* subnormal half: adding 0.5 rounds at 2^-24 */
        uint32_t rounded = bits_of(f32_of(magnitude) + 0.5f) - 0x3f000000u;
        return (uint16_t)(sign | rounded);
    }
    uint32_t odd = magnitude >> 13 & 1u;
    return (uint16_t)(sign | (magnitude - ((127u - 15u) << 23) + 0xfffu + odd) >> 13);
}

float fx_bf16_to_f32(uint16_t value) {
    return f32_of((uint32_t)value << 16);
}
