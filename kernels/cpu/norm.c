#include "kernels/cpu/avx2.h"

static float sum_of_squares(const float *x, uint32_t cols) {
    __m256 low = _mm256_setzero_ps(), high = low;
    uint32_t j = 0;
    for (; j + FX_CHAINS <= cols; j += FX_CHAINS) {
        __m256 a = _mm256_loadu_ps(x + j), b = _mm256_loadu_ps(x + j + FX_LANES);
        low = _mm256_fmadd_ps(a, a, low);
        high = _mm256_fmadd_ps(b, b, high);
    }
    if (j < cols) { /* chains past the end gain 0 * 0 */
        uint32_t left = cols - j, left_high = left > FX_LANES ? left - FX_LANES : 0;
        __m256 a = _mm256_maskload_ps(x + j, fx_avx2_mask(left < FX_LANES ? left : FX_LANES));
        low = _mm256_fmadd_ps(a, a, low);
        if (left_high) {
            __m256 b = _mm256_maskload_ps(x + j + FX_LANES, fx_avx2_mask(left_high));
            high = _mm256_fmadd_ps(b, b, high);
        }
    }
    return fx_avx2_merge(low, high);
}

/** fx_ref_norm.
 *  @shape x, gain, out [cols] f32  @pre cols >= 1  @tol exact */
void fx_avx2_norm(const float *x, const float *gain, uint32_t cols, float eps, float *out) {
    float mean = sum_of_squares(x, cols) / (float)cols;
    float factor = 1.0f / sqrtf(mean + eps);
    const __m256 factors = _mm256_set1_ps(factor);
    uint32_t j = 0;
    for (; j + FX_LANES <= cols; j += FX_LANES) {
        __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + j), factors);
        _mm256_storeu_ps(out + j, _mm256_mul_ps(scaled, _mm256_loadu_ps(gain + j)));
    }
    for (; j < cols; j++)
        out[j] = x[j] * factor * gain[j];
}
