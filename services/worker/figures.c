#include "services/worker/figures.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/queue/queue.h"
#include "fractal/v1/worker.pb-c.h"

_Static_assert((int)WORKER_FIGURES_BYTES_MAX <= (int)FX_QUEUE_FIGURES_MAX, "a heartbeat takes it");

/* One latency's counts as they travel. */
struct packed {
    uint32_t buckets[FX_LATENCY_BUCKETS], counts[FX_LATENCY_BUCKETS];
    Fractal__V1__LatencyCounts message;
};

static void latency_fill(const struct fx_latency *latency, struct packed *out) {
    uint64_t counts[FX_LATENCY_BUCKETS] = {0};
    size_t n = 0;
    fx_latency_sum(latency, counts);
    for (uint32_t i = 0; i < FX_LATENCY_BUCKETS; i++) {
        if (!counts[i]) continue;
        out->buckets[n] = i;
        out->counts[n++] = counts[i] < UINT32_MAX ? (uint32_t)counts[i] : UINT32_MAX;
    }
    fractal__v1__latency_counts__init(&out->message);
    out->message.n_buckets = out->message.n_counts = n;
    out->message.buckets = out->buckets;
    out->message.counts = out->counts;
}

/* What was counted since the last call, which is noted. */
static uint64_t grown(uint64_t *told, uint64_t now) {
    uint64_t by = now - *told;
    *told = now;
    return by;
}

static void interval_fill(struct worker_figures *figures, const struct worker_status *status,
                          uint64_t now_ms, Fractal__V1__WorkerFigures *out) {
    if (!figures->told_ms) figures->told_ms = now_ms;
    out->interval_ms = (uint32_t)grown(&figures->told_ms, now_ms);
    out->tokens_decoded = status_get(status, STATUS_TOKENS_DECODED);
    out->tokens_prefilled = status_get(status, STATUS_TOKENS_PREFILLED);
    out->interval_decoded = grown(&figures->decoded, out->tokens_decoded);
    out->interval_prefilled = grown(&figures->prefilled, out->tokens_prefilled);
    out->interval_steps = grown(&figures->steps, status_get(status, STATUS_STEPS));
    out->interval_rows = grown(&figures->rows, status_get(status, STATUS_ROWS));
}

fx_span worker_figures_pack(struct worker_figures *figures, const struct worker_status *status,
                            uint64_t now_ms, uint8_t out[WORKER_FIGURES_BYTES_MAX]) {
    struct packed packed[STATUS_TIMES];
    Fractal__V1__WorkerFigures message = FRACTAL__V1__WORKER_FIGURES__INIT;
    interval_fill(figures, status, now_ms, &message);
    message.running = (uint32_t)status_get(status, STATUS_RUNNING);
    message.kv_waiting = (uint32_t)status_get(status, STATUS_WAITING);
    message.kv_pages = (uint32_t)status_get(status, STATUS_KV_BLOCKS);
    message.kv_pages_free = (uint32_t)status_get(status, STATUS_KV_BLOCKS_FREE);
    for (size_t i = 0; i < STATUS_TIMES; i++) {
        fx_latency_turn(&figures->latencies[i], now_ms);
        latency_fill(&figures->latencies[i], &packed[i]);
    }
    message.first_token = &packed[STATUS_FIRST_TOKEN].message;
    message.inter_token = &packed[STATUS_INTER_TOKEN].message;
    message.queue_time = &packed[STATUS_QUEUE_TIME].message;
    FX_ASSERT(fractal__v1__worker_figures__get_packed_size(&message) <= WORKER_FIGURES_BYTES_MAX);
    return (fx_span){out, fractal__v1__worker_figures__pack(&message, out)};
}

void worker_figures_add(struct worker_figures *figures, struct worker_status *status,
                        enum status_time which, uint64_t us) {
    fx_latency_add(&figures->latencies[which], us);
    fx_histogram_add(&status->times[which], us);
}

void worker_figures_since(struct worker_figures *figures, struct worker_status *status,
                          enum status_time which, uint64_t submitted_ms) {
    uint64_t now_ms = fx_wall_ms();
    if (!submitted_ms) return;
    worker_figures_add(figures, status, which,
                       now_ms > submitted_ms ? (now_ms - submitted_ms) * 1000 : 0);
}
