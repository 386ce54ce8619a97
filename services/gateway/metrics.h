#pragma once
#include <pthread.h>
#include "common/http/metrics.h"
#include "common/http/server.h"

/** What /metrics shows of one loop, which writes; the admin's thread reads. Zeroed to begin. */
struct gw_metrics {
    atomic_ullong requests, failed_4xx, failed_5xx; /* answers on the public port, by status */
    atomic_ullong generations, tokens, prompt_tokens, cancelled, resubmitted, stalled, worker_lost;
    atomic_ullong finished_stop, finished_length, finished_error;
    atomic_ullong auth_hits, auth_calls, auth_refused, auth_errors, auth_drops;
    atomic_ullong limited, limit_errors, retries;
    atomic_ullong telemetry_listeners, telemetry_events, telemetry_missed;
    atomic_ullong running, models, unread, unread_total, submit_calls, submit_singles;
    atomic_bool redis_ready, listed;
    struct fx_histogram first_token, whole;
    pthread_mutex_t lock; /* http */
    struct fx_http_stats http;
};

static inline void gw_count(atomic_ullong *counter, uint64_t by) {
    atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

struct fx_server_stats;
/** The sums over all loops, and the gRPC API's counters. @thread any */
void gw_metrics_write(struct gw_metrics *const *loops, size_t count,
                      const struct fx_server_stats *rpc, fx_buf *out);
/** Hands the server's counters over. @thread the loop's */
void gw_metrics_http(struct gw_metrics *metrics, const fx_http_server *server);
