#include "kernels/rope.h"
#include "kernels/math.h"

#define FX_TWO_PI 6.283185307179586

static float banded(const struct fx_rope *rope, float frequency) {
    float length = (float)FX_TWO_PI / frequency, context = (float)rope->context;
    float low = (float)rope->low, high = (float)rope->high, slow = frequency / (float)rope->factor;
    if (length > context / low) return slow;
    if (length < context / high) return frequency;
    float share = (context / length - low) / (high - low);
    return (1.0f - share) * slow + share * frequency;
}

static float frequency_of(const struct fx_rope *rope, uint32_t i, uint32_t head_dim) {
    float exponent = (float)(2 * i) / (float)head_dim;
    float frequency = 1.0f / fx_powf((float)rope->theta, exponent);
    if (rope->rule == FX_ROPE_DIVIDED) return frequency / (float)rope->factor;
    return rope->rule == FX_ROPE_BANDED ? banded(rope, frequency) : frequency;
}

void fx_rope_table(const struct fx_rope *rope, uint32_t head_dim, uint32_t positions, float *cos,
                   float *sin) {
    uint32_t half = head_dim / 2;
    for (uint32_t i = 0; i < half; i++) {
        float frequency = frequency_of(rope, i, head_dim);
        for (uint32_t position = 0; position < positions; position++) {
            float angle = (float)position * frequency;
            cos[(uint64_t)position * half + i] = (float)fx_cos(angle);
            sin[(uint64_t)position * half + i] = (float)fx_sin(angle);
        }
    }
}
