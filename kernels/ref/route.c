#include "kernels/math.h"
#include "kernels/ref/ref.h"

/* The largest logit not yet chosen; the lower index wins a tie. */
static uint32_t best_of(const float *logits, const bool *used, uint32_t experts) {
    uint32_t best = 0;
    while (used[best])
        best++;
    for (uint32_t e = best + 1; e < experts; e++)
        if (!used[e] && logits[e] > logits[best]) best = e;
    return best;
}

/** Softmax over all experts (sum in 16 chains), the `count` largest logits, their probabilities,
 *  unless `raw` divided by their sum in order of choice.
 *  @shape logits [experts]; chosen, weight [count]  @pre count <= experts <= FX_EXPERTS_MAX
 *  @tol exact */
void fx_ref_route(const float *logits, uint32_t experts, uint32_t count, bool raw, int32_t *chosen,
                  float *weight) {
    bool used[FX_EXPERTS_MAX] = {false};
    float chain[FX_CHAINS] = {0}, max = logits[best_of(logits, used, experts)], total = 0.0f;
    for (uint32_t e = 0; e < experts; e++)
        chain[e % FX_CHAINS] += fx_expf(logits[e] - max);
    float sum = fx_ref_merge(chain);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t best = best_of(logits, used, experts);
        used[best] = true;
        chosen[k] = (int32_t)best;
        weight[k] = fx_expf(logits[best] - max) / sum;
        total += weight[k];
    }
    for (uint32_t k = 0; k < count && !raw; k++)
        weight[k] /= total;
}
