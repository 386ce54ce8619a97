#pragma once
#include "common/base/latency.h"
#include "common/queue/queue.h"

/** A snapshot is written model by model, as their figures come. */

enum gw_fleet_latency { GW_FIRST_TOKEN, GW_INTER_TOKEN, GW_QUEUE_TIME, GW_FLEET_LATENCIES };

/** Of a worker, or the sum of several. */
struct gw_fleet {
    bool known; /* somebody told figures; else only the slots are */
    uint32_t slots, slots_free;
    double decode_per_s, prefill_per_s;
    uint64_t steps, rows; /* in the last second or so */
    uint64_t decoded, prefilled;
    uint64_t running, kv_waiting, kv_pages, kv_pages_free;
    uint64_t latencies[GW_FLEET_LATENCIES][FX_LATENCY_BUCKETS];
};

/** What a worker told. Figures that can't be read, or an old build's, are not known. */
void gw_fleet_read(const struct fx_worker_info *worker, struct gw_fleet *out);
/** Adds a worker to a sum that was zeroed. */
void gw_fleet_add(struct gw_fleet *sum, const struct gw_fleet *worker);
/** One element of "models". */
void gw_fleet_model_write(const char *name, const struct fx_queue_stats *stats, fx_buf *out);
