#include "common/base/latency.h"
#include "common/base/error.h"

enum {
    SUB_BITS = 4,
    SUBS = 1 << SUB_BITS, /* buckets of a power of two; below it each duration has its own */
    BITS_MAX = 32,
};
_Static_assert(FX_LATENCY_BUCKETS == SUBS + (BITS_MAX - SUB_BITS) * SUBS, "one row a power of two");

uint32_t fx_latency_bucket(uint64_t us) {
    if (us >> BITS_MAX) return FX_LATENCY_BUCKETS - 1;
    if (us < SUBS) return (uint32_t)us;
    uint32_t shift = 63 - (uint32_t)__builtin_clzll(us) - SUB_BITS;
    return shift * SUBS + (uint32_t)(us >> shift);
}

uint64_t fx_latency_middle_us(uint32_t bucket) {
    FX_ASSERT(bucket < FX_LATENCY_BUCKETS);
    if (bucket < 2 * SUBS) return bucket;
    uint32_t shift = bucket / SUBS - 1;
    uint64_t first = (uint64_t)(bucket % SUBS + SUBS) << shift;
    return first + (1ULL << shift) / 2;
}

void fx_latency_add(struct fx_latency *latency, uint64_t us) {
    uint32_t window = atomic_load_explicit(&latency->current, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&latency->counts[window][fx_latency_bucket(us)], 1,
                                    memory_order_relaxed);
}

static void window_next(struct fx_latency *latency) {
    uint32_t next =
        (atomic_load_explicit(&latency->current, memory_order_relaxed) + 1) % FX_LATENCY_WINDOWS;
    for (size_t i = 0; i < FX_LATENCY_BUCKETS; i++)
        atomic_store_explicit(&latency->counts[next][i], 0, memory_order_relaxed);
    atomic_store_explicit(&latency->current, next, memory_order_relaxed);
}

void fx_latency_turn(struct fx_latency *latency, uint64_t now_ms) {
    if (!latency->since_ms) latency->since_ms = now_ms;
    uint64_t passed = (now_ms - latency->since_ms) / FX_LATENCY_WINDOW_MS;
    for (uint64_t i = 0; i < passed && i < FX_LATENCY_WINDOWS; i++)
        window_next(latency);
    latency->since_ms += passed * FX_LATENCY_WINDOW_MS;
}

void fx_latency_sum(const struct fx_latency *latency, uint64_t counts[FX_LATENCY_BUCKETS]) {
    for (size_t window = 0; window < FX_LATENCY_WINDOWS; window++)
        for (size_t i = 0; i < FX_LATENCY_BUCKETS; i++)
            counts[i] += atomic_load_explicit(&latency->counts[window][i], memory_order_relaxed);
}

uint64_t fx_latency_total(const uint64_t counts[FX_LATENCY_BUCKETS]) {
    uint64_t total = 0;
    for (size_t i = 0; i < FX_LATENCY_BUCKETS; i++)
        total += counts[i];
    return total;
}

uint64_t fx_latency_percentile_us(const uint64_t counts[FX_LATENCY_BUCKETS], uint32_t percent) {
    uint64_t rank = (fx_latency_total(counts) * percent + 99) / 100, seen = 0;
    FX_ASSERT(percent >= 1 && percent <= 100);
    for (uint32_t i = 0; i < FX_LATENCY_BUCKETS; i++) {
        seen += counts[i];
        if (seen && seen >= rank) return fx_latency_middle_us(i);
    }
    return 0;
}
