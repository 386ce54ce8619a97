#include "services/gateway/telemetry_json.h"
#include <stdio.h>
#include "common/base/heap.h"
#include "common/http/json.h"
#include "common/rpc/pb.h"
#include "fractal/v1/worker.pb-c.h"

enum { ARENA_BYTES = 32768, NUMBER_MAX = 40 };

/* -- reading -- */

static FX_MUST bool counts_read(const Fractal__V1__LatencyCounts *from,
                                uint64_t out[FX_LATENCY_BUCKETS]) {
    if (!from) return true;
    if (from->n_buckets != from->n_counts) return false;
    for (size_t i = 0; i < from->n_buckets; i++) {
        if (from->buckets[i] >= FX_LATENCY_BUCKETS) return false;
        out[from->buckets[i]] += from->counts[i];
    }
    return true;
}

static double per_s(uint64_t count, uint32_t ms) {
    return ms ? (double)count * 1000 / ms : 0;
}

static FX_MUST bool figures_take(const Fractal__V1__WorkerFigures *from, struct gw_fleet *out) {
    out->known = true;
    out->decode_per_s = per_s(from->interval_decoded, from->interval_ms);
    out->prefill_per_s = per_s(from->interval_prefilled, from->interval_ms);
    out->steps = from->interval_steps;
    out->rows = from->interval_rows;
    out->decoded = from->tokens_decoded;
    out->prefilled = from->tokens_prefilled;
    out->running = from->running;
    out->kv_waiting = from->kv_waiting;
    out->kv_pages = from->kv_pages;
    out->kv_pages_free = from->kv_pages_free;
    return from->kv_pages_free <= from->kv_pages &&
           counts_read(from->first_token, out->latencies[GW_FIRST_TOKEN]) &&
           counts_read(from->inter_token, out->latencies[GW_INTER_TOKEN]) &&
           counts_read(from->queue_time, out->latencies[GW_QUEUE_TIME]);
}

void gw_fleet_read(const struct fx_worker_info *worker, struct gw_fleet *out) {
    uint8_t memory[ARENA_BYTES];
    fx_arena arena;
    Fractal__V1__WorkerFigures *figures = NULL;
    *out = (struct gw_fleet){.slots = worker->slots, .slots_free = worker->slots_free};
    if (!worker->figures.len) return;
    fx_arena_init(&arena, memory, sizeof memory);
    if (!fx_pb_unpack(&fractal__v1__worker_figures__descriptor, worker->figures, &arena, &figures,
                      &(fx_error){0}) ||
        !figures_take(figures, out))
        *out = (struct gw_fleet){.slots = worker->slots, .slots_free = worker->slots_free};
    fx_arena_done(&arena);
}

void gw_fleet_add(struct gw_fleet *sum, const struct gw_fleet *worker) {
    sum->known = sum->known || worker->known;
    sum->slots += worker->slots;
    sum->slots_free += worker->slots_free;
    sum->decode_per_s += worker->decode_per_s;
    sum->prefill_per_s += worker->prefill_per_s;
    sum->steps += worker->steps;
    sum->rows += worker->rows;
    sum->decoded += worker->decoded;
    sum->prefilled += worker->prefilled;
    sum->running += worker->running;
    sum->kv_waiting += worker->kv_waiting;
    sum->kv_pages += worker->kv_pages;
    sum->kv_pages_free += worker->kv_pages_free;
    for (size_t i = 0; i < GW_FLEET_LATENCIES; i++)
        for (size_t bucket = 0; bucket < FX_LATENCY_BUCKETS; bucket++)
            sum->latencies[i][bucket] += worker->latencies[i][bucket];
}

/* -- writing -- */

static void put_u64(fx_buf *out, const char *before, uint64_t number) {
    fx_json_put(out, before);
    fx_json_put_u64(out, number);
}

static void put_real(fx_buf *out, const char *before, double number, int digits) {
    char text[NUMBER_MAX];
    (void)snprintf(text, sizeof text, "%.*f", digits, number);
    fx_json_put(out, before);
    fx_json_put(out, text);
}

static void latency_write(const uint64_t counts[FX_LATENCY_BUCKETS], fx_buf *out) {
    static const struct {
        const char *name;
        uint32_t percent;
    } told[] = {
        {",\"p50\":", 50},
        {",\"p95\":", 95},
        {",\"p99\":", 99},
    };
    uint64_t total = fx_latency_total(counts);
    put_u64(out, "{\"count\":", total);
    for (size_t i = 0; i < FX_COUNT(told); i++) {
        double us = (double)fx_latency_percentile_us(counts, told[i].percent);
        fx_json_put(out, told[i].name);
        if (total)
            put_real(out, "", us / 1000, 3);
        else
            fx_json_put(out, "null");
    }
    fx_json_put(out, "}");
}

static void latencies_write(const struct gw_fleet *fleet, fx_buf *out) {
    static const char *const names[] = {"{\"first_token\":", ",\"inter_token\":", ",\"queue\":"};
    _Static_assert(FX_COUNT(names) == GW_FLEET_LATENCIES, "one name each");
    fx_json_put(out, ",\"latency_ms\":");
    for (size_t i = 0; i < FX_COUNT(names); i++) {
        fx_json_put(out, names[i]);
        latency_write(fleet->latencies[i], out);
    }
    fx_json_put(out, "}");
}

static void known_write(const struct gw_fleet *fleet, fx_buf *out) {
    double mean_rows = fleet->steps ? (double)fleet->rows / (double)fleet->steps : 0;
    put_real(out, ",\"tokens_per_s\":{\"decode\":", fleet->decode_per_s, 1);
    put_real(out, ",\"prefill\":", fleet->prefill_per_s, 1);
    put_u64(out, "},\"tokens\":{\"decode\":", fleet->decoded);
    put_u64(out, ",\"prefill\":", fleet->prefilled);
    put_u64(out, "},\"batch\":{\"running\":", fleet->running);
    put_real(out, ",\"mean_rows\":", mean_rows, 2);
    put_u64(out, "},\"kv_pages\":{\"used\":", fleet->kv_pages - fleet->kv_pages_free);
    put_u64(out, ",\"total\":", fleet->kv_pages);
    put_u64(out, ",\"waiting\":", fleet->kv_waiting);
    fx_json_put(out, "}");
    latencies_write(fleet, out);
}

static void fleet_write(const struct gw_fleet *fleet, fx_buf *out) {
    put_u64(out, ",\"slots\":{\"total\":", fleet->slots);
    put_u64(out, ",\"free\":", fleet->slots_free);
    fx_json_put(out, "}");
    if (fleet->known)
        known_write(fleet, out);
    else
        fx_json_put(out, ",\"tokens_per_s\":null,\"tokens\":null,\"batch\":null,"
                         "\"kv_pages\":null,\"latency_ms\":null");
}

static void worker_write(const struct fx_worker_info *worker, const struct gw_fleet *fleet,
                         fx_buf *out) {
    fx_json_put(out, "{\"worker\":");
    fx_json_put_text(out, worker->worker);
    fx_json_put(out, worker->leaving ? ",\"leaving\":true" : ",\"leaving\":false");
    fleet_write(fleet, out);
    fx_json_put(out, "}");
}

static void workers_write(const struct fx_queue_stats *stats, struct gw_fleet *sum, fx_buf *out) {
    struct gw_fleet fleet;
    fx_json_put(out, ",\"workers\":[");
    for (size_t i = 0; i < stats->live_count; i++) {
        gw_fleet_read(&stats->live[i], &fleet);
        gw_fleet_add(sum, &fleet);
        if (i) fx_json_put(out, ",");
        worker_write(&stats->live[i], &fleet, out);
    }
    fx_json_put(out, "]");
}

void gw_fleet_model_write(const char *name, const struct fx_queue_stats *stats, fx_buf *out) {
    struct gw_fleet sum = {0};
    fx_json_put(out, "{\"model\":");
    fx_json_put_text(out, name);
    put_u64(out, ",\"queue\":{\"waiting\":", stats->waiting);
    put_u64(out, ",\"running\":", stats->running);
    fx_json_put(out, "}");
    workers_write(stats, &sum, out);
    sum.slots = stats->slots; /* of those that take work; free ones less what is on its way */
    sum.slots_free = stats->slots_free;
    fleet_write(&sum, out);
    fx_json_put(out, "}");
}
