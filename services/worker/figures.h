#pragma once
#include "common/base/latency.h"
#include "services/worker/status.h"

/** What heartbeats tell of the worker besides its slots: WorkerFigures. Zeroed to begin.
 *  @thread I/O, but the latencies' counts */
struct worker_figures {
    struct fx_latency latencies[STATUS_TIMES];
    uint64_t told_ms; /* the last heartbeat, 0: none yet; and what it told */
    uint64_t decoded, prefilled, steps, rows;
};

enum { WORKER_FIGURES_BYTES_MAX = 16384 };

/** Packs what is to be told now into `out`; the interval begins anew. */
fx_span worker_figures_pack(struct worker_figures *figures, const struct worker_status *status,
                            uint64_t now_ms, uint8_t out[WORKER_FIGURES_BYTES_MAX]);
/** Counts a duration, in `status` too. */
void worker_figures_add(struct worker_figures *figures, struct worker_status *status,
                        enum status_time which, uint64_t us);
/** A duration since `submitted_ms` on another machine's clock: never negative. 0: unknown, not
 *  counted. */
void worker_figures_since(struct worker_figures *figures, struct worker_status *status,
                          enum status_time which, uint64_t submitted_ms);
