#include "kernels/cpu/avx2.h"

static uint32_t best_of(const float *logits, const bool *used, uint32_t experts) {
    uint32_t best = 0;
    while (used[best])
        best++;
    for (uint32_t e = best + 1; e < experts; e++)
        if (!used[e] && logits[e] > logits[best]) best = e;
    return best;
}

/* exp(logit - max) of every expert into `out`, 0 in the padding; returns their sum. */
static float exponentials(const float *logits, uint32_t experts, float max, float *out) {
    const __m256 maxes = _mm256_set1_ps(max);
    __m256 chain[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (uint32_t e = 0, odd = 0; e < experts; e += FX_LANES, odd ^= 1) {
        uint32_t left = experts - e < FX_LANES ? experts - e : FX_LANES;
        __m256i mask = fx_avx2_mask(left);
        __m256 value = fx_avx2_exp(_mm256_sub_ps(_mm256_maskload_ps(logits + e, mask), maxes));
        value = _mm256_and_ps(value, _mm256_castsi256_ps(mask));
        _mm256_storeu_ps(out + e, value);
        chain[odd] = _mm256_add_ps(chain[odd], value);
    }
    return fx_avx2_merge(chain[0], chain[1]);
}

/** fx_ref_route.
 *  @shape logits [experts]; chosen, weight [count]  @pre count <= experts <= FX_EXPERTS_MAX  @tol
 * exact */
void fx_avx2_route(const float *logits, uint32_t experts, uint32_t count, bool raw, int32_t *chosen,
                   float *weight) {
    FX_ASSERT(count <= experts && experts <= FX_EXPERTS_MAX && experts > 0);
    float value[FX_EXPERTS_MAX + FX_LANES];
    bool used[FX_EXPERTS_MAX] = {false};
    float max = logits[best_of(logits, used, experts)], total = 0.0f;
    float sum = exponentials(logits, experts, max, value);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t best = best_of(logits, used, experts);
        used[best] = true;
        chosen[k] = (int32_t)best;
        weight[k] = value[best] / sum;
        total += weight[k];
    }
    for (uint32_t k = 0; k < count && !raw; k++)
        weight[k] /= total;
}
