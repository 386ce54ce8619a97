#include "engine/logprobs.h"
#include "kernels/math.h"

static bool before(const float *logits, uint32_t a, uint32_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

/* The likeliest `top`, best first; returns how many there are. */
static uint32_t best_find(const float *logits, uint32_t vocab, uint32_t top,
                          struct fx_logprob *out) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < vocab; i++) {
        if (count == top && (!top || !before(logits, i, out[top - 1].id))) continue;
        uint32_t at = count < top ? count++ : top - 1;
        for (; at && before(logits, i, out[at - 1].id); at--)
            out[at].id = out[at - 1].id;
        out[at].id = i;
    }
    return count;
}

static double log_sum(const float *logits, uint32_t vocab, float highest) {
    double sum = 0;
    for (uint32_t i = 0; i < vocab; i++)
        sum += (double)fx_expf(logits[i] - highest);
    return (double)highest + fx_log(sum);
}

static float logprob(float logit, double sum) {
    double value = (double)logit - sum;
    if (!(value > (double)FX_LOGPROB_MIN)) return FX_LOGPROB_MIN;
    return value > 0 ? 0 : (float)value;
}

void fx_logprobs(const float *logits, uint32_t vocab, uint32_t token, uint32_t top,
                 struct fx_logprob *out) {
    struct fx_logprob highest;
    (void)best_find(logits, vocab, 1, &highest);
    uint32_t found = best_find(logits, vocab, top, out + 1);
    double sum = log_sum(logits, vocab, logits[highest.id]);
    out[0] = (struct fx_logprob){token, logprob(logits[token], sum)};
    for (uint32_t i = 1; i <= top; i++)
        out[i] = i <= found ? (struct fx_logprob){out[i].id, logprob(logits[out[i].id], sum)}
                            : (struct fx_logprob){FX_LOGPROB_NONE, FX_LOGPROB_MIN};
}
