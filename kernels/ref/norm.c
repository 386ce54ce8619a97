#include "kernels/ref/ref.h"
#include <math.h>

/** RMSNorm of a row: 16 chains of x*x, then (x * (1 / sqrt(mean + eps))) * gain.
 *  @shape x, gain, out [cols] f32  @pre cols >= 1  @tol exact */
void fx_ref_norm(const float *x, const float *gain, uint32_t cols, float eps, float *out) {
    float chain[FX_CHAINS] = {0};
    for (uint32_t j = 0; j < cols; j++)
        chain[j % FX_CHAINS] = fmaf(x[j], x[j], chain[j % FX_CHAINS]);
    float mean = fx_ref_merge(chain) / (float)cols;
    float factor = 1.0f / sqrtf(mean + eps);
    for (uint32_t j = 0; j < cols; j++)
        out[j] = x[j] * factor * gain[j];
}
