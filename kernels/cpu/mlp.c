#include "kernels/cpu/avx2.h"

/** fx_ref_swiglu.
 *  @shape all [n]  @tol exact */
void fx_avx2_swiglu(const float *gate, const float *up, uint32_t n, float *out) {
    const __m256 sign = _mm256_set1_ps(-0.0f), one = _mm256_set1_ps(1.0f);
    uint32_t i = 0;
    for (; i + FX_LANES <= n; i += FX_LANES) {
        __m256 g = _mm256_loadu_ps(gate + i);
        __m256 below = _mm256_add_ps(one, fx_avx2_exp(_mm256_xor_ps(g, sign)));
        __m256 silu = _mm256_div_ps(g, below);
        _mm256_storeu_ps(out + i, _mm256_mul_ps(silu, _mm256_loadu_ps(up + i)));
    }
    for (; i < n; i++)
        out[i] = gate[i] / (1.0f + fx_expf(-gate[i])) * up[i];
}

static float combined(const float *rows, const uint32_t *slot, const int32_t *chosen,
                      const float *weight, uint32_t count, uint32_t n, uint32_t i) {
    float acc = 0.0f;
    for (uint32_t k = 0; k < count; k++)
        if (chosen[k] != FX_EXPERT_NONE) acc = fmaf(weight[k], rows[(size_t)slot[k] * n + i], acc);
    return acc;
}

/** fx_ref_combine.
 *  @shape rows [..][n]; slot, chosen, weight [count]; x [n]  @tol exact */
void fx_avx2_combine(const float *rows, const uint32_t *slot, const int32_t *chosen,
                     const float *weight, uint32_t count, uint32_t n, float *x) {
    uint32_t i = 0;
    for (; i + FX_LANES <= n; i += FX_LANES) {
        __m256 acc = _mm256_setzero_ps();
        for (uint32_t k = 0; k < count; k++)
            if (chosen[k] != FX_EXPERT_NONE) {
                __m256 row = _mm256_loadu_ps(rows + (size_t)slot[k] * n + i);
                acc = _mm256_fmadd_ps(_mm256_set1_ps(weight[k]), row, acc);
            }
        _mm256_storeu_ps(x + i, _mm256_add_ps(_mm256_loadu_ps(x + i), acc));
    }
    for (; i < n; i++)
        x[i] += combined(rows, slot, chosen, weight, count, n, i);
}
