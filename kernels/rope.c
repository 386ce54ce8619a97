#include "kernels/rope.h"
#include "kernels/math.h"

void fx_rope_table(double theta, uint32_t head_dim, uint32_t positions, float *cos, float *sin) {
    uint32_t half = head_dim / 2;
    for (uint32_t i = 0; i < half; i++) {
        float exponent = (float)(2 * i) / (float)head_dim;
        float frequency = 1.0f / fx_powf((float)theta, exponent);
        for (uint32_t position = 0; position < positions; position++) {
            float angle = (float)position * frequency;
            cos[(uint64_t)position * half + i] = (float)fx_cos(angle);
            sin[(uint64_t)position * half + i] = (float)fx_sin(angle);
        }
    }
}
