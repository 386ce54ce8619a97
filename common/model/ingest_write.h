#pragma once
#include "common/model/ingest_plan.h"

/** Told the bytes read from the checkpoint; false stops with CANCELLED. */
struct fx_ingest_tick {
    bool (*step)(void *ctx, uint64_t bytes);
    void *ctx;
};
/** Writes all parts and the pack file into `folder`, both durable, in one pass over the weights. */
FX_MUST bool fx_ingest__write(const struct fx_plan *plan, const char *folder,
                              const struct fx_ingest_tick *tick, fx_error *err);
/** Size of all parts. */
FX_MUST bool fx_ingest__parts_bytes(const struct fx_plan *plan, uint64_t *bytes, fx_error *err);
