#include "engine/sampler.h"
#include "engine/philox.h"
#include "kernels/math.h"
#include <math.h>

static bool in_range(float value, float low, float high) {
    return value >= low && value <= high; /* a NaN is in no range */
}

bool fx_sampling_check(const struct fx_sampling *sampling, fx_error *err) {
    if (!in_range(sampling->temperature, 0, FX_TEMPERATURE_MAX))
        return fx_fail(err, FX_INVALID_ARGUMENT, "temperature must be 0 to 2");
    if (!in_range(sampling->top_p, 0, 1))
        return fx_fail(err, FX_INVALID_ARGUMENT, "top_p must be 0 to 1");
    if (!in_range(sampling->min_p, 0, 1))
        return fx_fail(err, FX_INVALID_ARGUMENT, "min_p must be 0 to 1");
    return true;
}

bool fx_argmax(const float *logits, uint32_t vocab, uint32_t *id, fx_error *err) {
    uint32_t best = 0;
    for (uint32_t i = 0; i < vocab; i++) {
        if (isnan(logits[i])) return fx_fail(err, FX_DATA_LOSS, "logit %u is not a number", i);
        if (logits[i] > logits[best]) best = i;
    }
    if (!isfinite(logits[best])) return fx_fail(err, FX_DATA_LOSS, "no logit is finite");
    *id = best;
    return true;
}

/* Ids that may be drawn, and the sum of their weights. sorted: by falling logit. */
struct pool {
    const float *logits;
    float *weights;
    uint32_t *ids;
    uint32_t count;
};

static bool before(const float *logits, uint32_t a, uint32_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

static void sift(const float *logits, uint32_t *heap, uint32_t count, uint32_t at) {
    uint32_t moving = heap[at];
    for (uint32_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && before(logits, heap[child + 1], heap[child])) child++;
        if (!before(logits, heap[child], moving)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

/* Takes the first of a heap of `count`; it lands behind the heap that stays. */
static uint32_t heap_pop(const float *logits, uint32_t *heap, uint32_t count) {
    uint32_t first = heap[0];
    heap[0] = heap[count - 1];
    heap[count - 1] = first;
    sift(logits, heap, count - 1, 0);
    return first;
}

static void reverse(uint32_t *ids, uint32_t count) {
    for (uint32_t i = 0, j = count; i + 1 < j; i++) {
        uint32_t kept = ids[--j];
        ids[j] = ids[i];
        ids[i] = kept;
    }
}

/* Keeps the first `keep` of the pool by falling logit, or fewer: until their weights reach `share`
 * of `sum`. Popped ids gather, last first, at the end of the array, where they are turned round. */
static void keep_best(struct pool *pool, uint32_t keep, double share) {
    uint32_t count = pool->count, taken = 0;
    double reached = 0;
    for (uint32_t at = count / 2; at-- > 0;)
        sift(pool->logits, pool->ids, count, at);
    while (taken < keep && reached < share) {
        uint32_t id = heap_pop(pool->logits, pool->ids, count - taken);
        reached += (double)pool->weights[id];
        taken++;
    }
    pool->ids += count - taken;
    pool->count = taken;
    reverse(pool->ids, taken);
}

static double weight_sum(const struct pool *pool) {
    double sum = 0;
    for (uint32_t i = 0; i < pool->count; i++)
        sum += (double)pool->weights[pool->ids[i]];
    return sum;
}

static void filter_top_k(struct pool *pool, uint32_t top_k) {
    if (top_k && top_k < pool->count) keep_best(pool, top_k, INFINITY);
}

static void filter_top_p(struct pool *pool, float top_p) {
    if (top_p > 0 && top_p < 1) keep_best(pool, pool->count, (double)top_p * weight_sum(pool));
}

/* The heaviest weighs exp(0) = 1. */
static void filter_min_p(struct pool *pool, float min_p) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < pool->count; i++)
        if (pool->weights[pool->ids[i]] >= min_p) pool->ids[kept++] = pool->ids[i];
    pool->count = kept;
}

static uint32_t draw(const struct pool *pool, double uniform) {
    double target = uniform * weight_sum(pool), reached = 0;
    uint32_t last = pool->ids[0];
    for (uint32_t i = 0; i < pool->count; i++) {
        double weight = (double)pool->weights[pool->ids[i]];
        if (weight > 0) last = pool->ids[i];
        reached += weight;
        if (reached > target) return pool->ids[i];
    }
    return last;
}

static void pool_fill(struct pool *pool, float highest, float temperature) {
    for (uint32_t i = 0; i < pool->count; i++) {
        pool->weights[i] = fx_expf((pool->logits[i] - highest) / temperature);
        pool->ids[i] = i;
    }
}

bool fx_sample(const struct fx_sampling *sampling, uint32_t position, const float *logits,
               uint32_t vocab, const struct fx_sample_scratch *scratch, uint32_t *token,
               fx_error *err) {
    uint32_t best;
    if (!fx_argmax(logits, vocab, &best, err)) return false;
    if (sampling->temperature == 0) {
        *token = best;
        return true;
    }
    struct pool pool = {logits, scratch->weights, scratch->ids, vocab};
    pool_fill(&pool, logits[best], sampling->temperature);
    filter_top_k(&pool, sampling->top_k);
    filter_top_p(&pool, sampling->top_p);
    filter_min_p(&pool, sampling->min_p);
    *token = draw(&pool, fx_philox_uniform(sampling->seed, sampling->choice, position));
    return true;
}
