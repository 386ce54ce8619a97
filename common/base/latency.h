#pragma once
#include <stdatomic.h>
#include <stdint.h>
#include "common/base/span.h"

/** Durations counted over a sliding minute, for percentiles. Buckets are as fine as 1/16 of their
 *  value, so a percentile is off by 1/32 at most; counts of several workers add up to those of all
 *  of them. Fixed in size, without locks or allocation. The buckets travel in WorkerFigures: their
 *  bounds never change. */
enum {
    FX_LATENCY_BUCKETS = 464, /* from 0 us to 2^32 us, 71 minutes; what is longer counts as that */
    FX_LATENCY_WINDOWS = 6,   /* the minute's parts; the oldest is forgotten in one piece */
    FX_LATENCY_WINDOW_MS = 10000,
};

/** Zeroed to begin. */
struct fx_latency {
    _Atomic uint32_t counts[FX_LATENCY_WINDOWS][FX_LATENCY_BUCKETS];
    _Atomic uint32_t current; /* the window being filled */
    uint64_t since_ms;        /* when it was begun; 0: never */
};

/** @thread any */
void fx_latency_add(struct fx_latency *latency, uint64_t us);
/** Moves on to the window of now; call it once a window or more often. @thread one */
void fx_latency_turn(struct fx_latency *latency, uint64_t now_ms);
/** Adds what all windows hold to `counts`. @thread any */
void fx_latency_sum(const struct fx_latency *latency, uint64_t counts[FX_LATENCY_BUCKETS]);

/** The bucket of a duration, and the middle of a bucket in us. */
uint32_t fx_latency_bucket(uint64_t us);
uint64_t fx_latency_middle_us(uint32_t bucket);
uint64_t fx_latency_total(const uint64_t counts[FX_LATENCY_BUCKETS]);
/** The duration that `percent` (1 to 100) of those counted do not pass: that at rank
 *  ceil(percent / 100 * total). 0 when nothing was counted. */
uint64_t fx_latency_percentile_us(const uint64_t counts[FX_LATENCY_BUCKETS], uint32_t percent);
