#include "kernels/math.h"
#include "kernels/ref/ref.h"

/** out = gate / (1 + exp(-gate)) * up. @shape all [n]  @tol exact */
void fx_ref_swiglu(const float *gate, const float *up, uint32_t n, float *out) {
    for (uint32_t i = 0; i < n; i++)
        out[i] = gate[i] / (1.0f + fx_expf(-gate[i])) * up[i];
}

/** x += the fma chain over k, from 0, of weight[k] * rows[slot[k]]; padding choices are left out.
 *  @shape rows [..][n]; slot, chosen, weight [count]; x [n]  @tol exact */
void fx_ref_combine(const float *rows, const uint32_t *slot, const int32_t *chosen,
                    const float *weight, uint32_t count, uint32_t n, float *x) {
    for (uint32_t i = 0; i < n; i++) {
        float acc = 0.0f;
        for (uint32_t k = 0; k < count; k++)
            if (chosen[k] != FX_EXPERT_NONE)
                acc = fmaf(weight[k], rows[(size_t)slot[k] * n + i], acc);
        x[i] += acc;
    }
}
