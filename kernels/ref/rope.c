#include "kernels/ref/ref.h"
#include <math.h>

/** a' = a cos - b sin, b' = b cos + a sin of the pairs (a, b) = (i, i + half).
 *  @shape head [2*half], cos, sin [half]  @tol exact */
void fx_ref_rope(float *head, const float *cos, const float *sin, uint32_t half) {
    for (uint32_t i = 0; i < half; i++) {
        float a = head[i], b = head[i + half];
        head[i] = fmaf(a, cos[i], -(b * sin[i]));
        head[i + half] = fmaf(b, cos[i], a * sin[i]);
    }
}
