#include "kernels/cpu/avx2.h"

/** fx_ref_rope.
 *  @shape head [2*half], cos, sin [half]  @tol exact */
void fx_avx2_rope(float *head, const float *cos, const float *sin, uint32_t half) {
    uint32_t i = 0;
    for (; i + FX_LANES <= half; i += FX_LANES) {
        __m256 a = _mm256_loadu_ps(head + i), b = _mm256_loadu_ps(head + half + i);
        __m256 c = _mm256_loadu_ps(cos + i), s = _mm256_loadu_ps(sin + i);
        _mm256_storeu_ps(head + i, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
        _mm256_storeu_ps(head + half + i, _mm256_fmadd_ps(b, c, _mm256_mul_ps(a, s)));
    }
    for (; i < half; i++) {
        float a = head[i], b = head[i + half];
        head[i] = fmaf(a, cos[i], -(b * sin[i]));
        head[i + half] = fmaf(b, cos[i], a * sin[i]);
    }
}
