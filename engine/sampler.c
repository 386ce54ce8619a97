#include "engine/sampler.h"
#include "engine/adjust.h"
#include "engine/philox.h"
#include "kernels/math.h"
#include <math.h>

static bool in_range(float value, float low, float high) {
    return value >= low && value <= high; /* a NaN is in no range */
}

static FX_MUST bool biases_check(const struct fx_sampling *sampling, uint32_t vocab,
                                 fx_error *err) {
    if (sampling->bias_count > FX_BIASES_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "logit_bias: %u entries, at most %d",
                       sampling->bias_count, FX_BIASES_MAX);
    for (uint32_t i = 0; i < sampling->bias_count; i++) {
        if (sampling->bias[i].id >= vocab)
            return fx_fail(err, FX_INVALID_ARGUMENT, "logit_bias: id %u; the vocabulary has %u",
                           sampling->bias[i].id, vocab);
        if (!in_range(sampling->bias[i].value, -FX_BIAS_MAX, FX_BIAS_MAX))
            return fx_fail(err, FX_INVALID_ARGUMENT, "logit_bias must be -100 to 100");
    }
    return true;
}

bool fx_sampling_check(const struct fx_sampling *sampling, uint32_t vocab, fx_error *err) {
    const struct {
        const char *name;
        float value, low, high;
    } ranges[] = {
        {"temperature",       sampling->temperature, 0,               FX_TEMPERATURE_MAX},
        {"top_p",             sampling->top_p,       0,               1                 },
        {"min_p",             sampling->min_p,       0,               1                 },
        {"typical_p",         sampling->typical_p,   0,               1                 },
        {"presence_penalty",  sampling->presence,    -FX_PENALTY_MAX, FX_PENALTY_MAX    },
        {"frequency_penalty", sampling->frequency,   -FX_PENALTY_MAX, FX_PENALTY_MAX    },
    };
    for (size_t i = 0; i < FX_COUNT(ranges); i++)
        if (!in_range(ranges[i].value, ranges[i].low, ranges[i].high))
            return fx_fail(err, FX_INVALID_ARGUMENT, "%s must be %g to %g", ranges[i].name,
                           (double)ranges[i].low, (double)ranges[i].high);
    if (!in_range(sampling->repetition, 0, 0) &&
        !in_range(sampling->repetition, FX_REPETITION_MIN, FX_REPETITION_MAX))
        return fx_fail(err, FX_INVALID_ARGUMENT, "repetition_penalty must be %g to %g",
                       (double)FX_REPETITION_MIN, (double)FX_REPETITION_MAX);
    return biases_check(sampling, vocab, err);
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

/* Ids that may be drawn. */
struct pool {
    const float *logits;
    float *weights;
    uint32_t *ids;
    uint32_t count;
    float highest, temperature; /* the largest logit's weight is exp(0) = 1 */
};

static bool before(const float *keys, uint32_t a, uint32_t b) {
    return keys[a] > keys[b] || (keys[a] == keys[b] && a < b);
}

static void sift(const float *keys, uint32_t *heap, uint32_t count, uint32_t at) {
    uint32_t moving = heap[at];
    for (uint32_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && before(keys, heap[child + 1], heap[child])) child++;
        if (!before(keys, heap[child], moving)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

/* Takes the first of a heap of `count`; it lands behind the heap that stays. */
static uint32_t heap_pop(const float *keys, uint32_t *heap, uint32_t count) {
    uint32_t first = heap[0];
    heap[0] = heap[count - 1];
    heap[count - 1] = first;
    sift(keys, heap, count - 1, 0);
    return first;
}

static void reverse(uint32_t *ids, uint32_t count) {
    for (uint32_t i = 0, j = count; i + 1 < j; i++) {
        uint32_t kept = ids[--j];
        ids[j] = ids[i];
        ids[i] = kept;
    }
}

/* Keeps the first `keep` of the pool by falling key, or fewer: until their weights reach `share`.
 * Popped ids gather, last first, at the end of the array, where they are turned round. */
static void keep_best(struct pool *pool, const float *keys, uint32_t keep, double share) {
    uint32_t count = pool->count, taken = 0;
    double reached = 0;
    for (uint32_t at = count / 2; at-- > 0;)
        sift(keys, pool->ids, count, at);
    while (taken < keep && reached < share) {
        uint32_t id = heap_pop(keys, pool->ids, count - taken);
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
    if (top_k && top_k < pool->count) keep_best(pool, pool->logits, top_k, INFINITY);
}

static void filter_top_p(struct pool *pool, float top_p) {
    if (top_p > 0 && top_p < 1)
        keep_best(pool, pool->logits, pool->count, (double)top_p * weight_sum(pool));
}

/* The heaviest weighs exp(0) = 1. */
static void filter_min_p(struct pool *pool, float min_p) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < pool->count; i++)
        if (pool->weights[pool->ids[i]] >= min_p) pool->ids[kept++] = pool->ids[i];
    pool->count = kept;
}

/* log(weight) of an id; its distance from the pool's mean is that of -log(probability). */
static float exponent(const struct pool *pool, uint32_t id) {
    return (pool->logits[id] - pool->highest) / pool->temperature;
}

static double exponent_mean(const struct pool *pool) {
    double sum = 0;
    for (uint32_t i = 0; i < pool->count; i++) {
        double weight = (double)pool->weights[pool->ids[i]];
        if (weight > 0) sum += weight * (double)exponent(pool, pool->ids[i]);
    }
    return sum / weight_sum(pool);
}

/* `keys` may be the logits' own memory: they are read here for the last time. */
static void filter_typical(struct pool *pool, float typical_p, float *keys) {
    if (!(typical_p > 0 && typical_p < 1)) return;
    double mean = exponent_mean(pool);
    for (uint32_t i = 0; i < pool->count; i++) {
        uint32_t id = pool->ids[i];
        keys[id] = (float)-fabs((double)exponent(pool, id) - mean);
    }
    keep_best(pool, keys, pool->count, (double)typical_p * weight_sum(pool));
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

static void pool_fill(struct pool *pool) {
    for (uint32_t i = 0; i < pool->count; i++) {
        pool->weights[i] = fx_expf((pool->logits[i] - pool->highest) / pool->temperature);
        pool->ids[i] = i;
    }
}

bool fx_sample(const struct fx_sampling *sampling, const struct fx_sample_row *row,
               const struct fx_sample_scratch *scratch, uint32_t *token, fx_error *err) {
    uint32_t best;
    if (!fx_argmax(row->logits, row->vocab, &best, err)) return false;
    const float *logits = fx_sample__adjust(sampling, row, scratch);
    if (logits != row->logits && !fx_argmax(logits, row->vocab, &best, err)) return false;
    if (sampling->temperature == 0) {
        *token = best;
        return true;
    }
    struct pool pool = {logits,     scratch->weights, scratch->ids,
                        row->vocab, logits[best],     sampling->temperature};
    pool_fill(&pool);
    filter_top_k(&pool, sampling->top_k);
    filter_top_p(&pool, sampling->top_p);
    filter_min_p(&pool, sampling->min_p);
    filter_typical(&pool, sampling->typical_p, scratch->logits);
    *token = draw(&pool, fx_philox_uniform(sampling->seed, sampling->choice, row->number));
    return true;
}
