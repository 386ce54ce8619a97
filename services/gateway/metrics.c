#include "services/gateway/metrics.h"
#include <stddef.h>
#include <stdio.h>
#include "common/base/auto.h"
#include "common/rpc/server.h"
#include "services/gateway/config.h"

struct row {
    const char *name, *help;
    enum fx_metric_type type;
    size_t offset;
};

#define AT(member) offsetof(struct gw_metrics, member)

static const struct row rows[] = {
    {"fx_gateway_requests_total",         "Answers on the HTTP port.",                              FX_METRIC_COUNTER, AT(requests)        },
    {"fx_gateway_requests_4xx_total",     "Answers 400 to 499.",                                    FX_METRIC_COUNTER, AT(failed_4xx)      },
    {"fx_gateway_requests_5xx_total",     "Answers from 500 on.",                                   FX_METRIC_COUNTER, AT(failed_5xx)      },
    {"fx_gateway_generations_total",      "Generations the scheduler took.",                        FX_METRIC_COUNTER,
     AT(generations)                                                                                                                       },
    {"fx_gateway_generations_running",    "Generations being followed.",                            FX_METRIC_GAUGE,   AT(running)         },
    {"fx_gateway_generated_tokens_total", "Tokens received.",                                       FX_METRIC_COUNTER, AT(tokens)          },
    {"fx_gateway_prompt_tokens_total",    "Prompt tokens submitted.",                               FX_METRIC_COUNTER,
     AT(prompt_tokens)                                                                                                                     },
    {"fx_gateway_cancelled_total",        "Generations cancelled: their client left, or asked.",
     FX_METRIC_COUNTER,                                                                                                AT(cancelled)       },
    {"fx_gateway_resubmitted_total",      "Generations Redis had lost, submitted again.",
     FX_METRIC_COUNTER,                                                                                                AT(resubmitted)     },
    {"fx_gateway_stalled_total",          "Generations given up without a new token for too long.",
     FX_METRIC_COUNTER,                                                                                                AT(stalled)         },
    {"fx_gateway_worker_lost_total",      "Generations given up while their model had no worker.",
     FX_METRIC_COUNTER,                                                                                                AT(worker_lost)     },
    {"fx_gateway_finished_stop_total",    "Generations ended by the model.",                        FX_METRIC_COUNTER,
     AT(finished_stop)                                                                                                                     },
    {"fx_gateway_finished_length_total",  "Generations ended by their ceiling.",                    FX_METRIC_COUNTER,
     AT(finished_length)                                                                                                                   },
    {"fx_gateway_finished_error_total",   "Generations ended by an error.",                         FX_METRIC_COUNTER,
     AT(finished_error)                                                                                                                    },
    {"fx_gateway_auth_cache_hits_total",  "Keys answered by the cache.",                            FX_METRIC_COUNTER,
     AT(auth_hits)                                                                                                                         },
    {"fx_gateway_auth_calls_total",       "Keys asked of the tenant service.",                      FX_METRIC_COUNTER,
     AT(auth_calls)                                                                                                                        },
    {"fx_gateway_auth_refused_total",     "Keys that are nobody's.",                                FX_METRIC_COUNTER,
     AT(auth_refused)                                                                                                                      },
    {"fx_gateway_auth_errors_total",      "Keys refused since nobody could be asked.",              FX_METRIC_COUNTER,
     AT(auth_errors)                                                                                                                       },
    {"fx_gateway_auth_drops_total",       "Times the key cache was dropped.",                       FX_METRIC_COUNTER,
     AT(auth_drops)                                                                                                                        },
    {"fx_gateway_limited_total",          "Requests refused by a rate limit.",                      FX_METRIC_COUNTER,
     AT(limited)                                                                                                                           },
    {"fx_gateway_retries_total",          "Requests a client sent again of itself.",                FX_METRIC_COUNTER,
     AT(retries)                                                                                                                           },
    {"fx_gateway_limit_errors_total",     "Times Redis did not answer for a rate limit.",
     FX_METRIC_COUNTER,                                                                                                AT(limit_errors)    },
    {"fx_gateway_telemetry_listeners",    "Open telemetry streams.",                                FX_METRIC_GAUGE,
     AT(telemetry_listeners)                                                                                                               },
    {"fx_gateway_telemetry_events_total", "Snapshots sent to them.",                                FX_METRIC_COUNTER,
     AT(telemetry_events)                                                                                                                  },
    {"fx_gateway_telemetry_missed_total", "Snapshots that slow readers of them missed.",
     FX_METRIC_COUNTER,                                                                                                AT(telemetry_missed)},
    {"fx_gateway_unread",                 "Answers that wait for their client to read.",            FX_METRIC_GAUGE,
     AT(unread)                                                                                                                            },
    {"fx_gateway_unread_total",           "Times an answer had to wait for its client.",            FX_METRIC_COUNTER,
     AT(unread_total)                                                                                                                      },
    {"fx_gateway_submit_calls_total",
     "Calls of SubmitGenerations: what one turn of a loop asks for.",                               FX_METRIC_COUNTER,
     AT(submit_calls)                                                                                                                      },
    {"fx_gateway_submit_singles_total",   "Calls of SubmitGeneration, of an older scheduler.",
     FX_METRIC_COUNTER,                                                                                                AT(submit_singles)  },
};

static const struct row http_rows[] = {
    {"fx_http_connections_total",         "Connections accepted.",                        FX_METRIC_COUNTER,
     offsetof(struct fx_http_stats,                                                                                                         accepted)    },
    {"fx_http_connections_refused_total", "Connections past the limit.",                  FX_METRIC_COUNTER,
     offsetof(struct fx_http_stats,                                                                                                         refused_full)},
    {"fx_http_connections",               "Open connections.",                            FX_METRIC_GAUGE,
     offsetof(struct fx_http_stats,                                                                                                         open)        },
    {"fx_http_streams",                   "Open streams.",                                FX_METRIC_GAUGE,   offsetof(struct fx_http_stats, streams)     },
    {"fx_http_malformed_total",           "Requests that broke the grammar.",             FX_METRIC_COUNTER,
     offsetof(struct fx_http_stats,                                                                                                         malformed)   },
    {"fx_http_too_large_total",           "Requests past a size limit.",                  FX_METRIC_COUNTER,
     offsetof(struct fx_http_stats,                                                                                                         too_large)   },
    {"fx_http_timed_out_total",           "Requests that did not arrive in time.",        FX_METRIC_COUNTER,
     offsetof(struct fx_http_stats,                                                                                                         timed_out)   },
    {"fx_http_slow_readers_cut_total",    "Clients that did not read.",                   FX_METRIC_COUNTER,
     offsetof(struct fx_http_stats,                                                                                                         cut_slow)    },
    {"fx_http_gone_total",                "Clients that left before their answer ended.", FX_METRIC_COUNTER,
     offsetof(struct fx_http_stats,                                                                                                         gone)        },
};

/* -- sums -- */

static uint64_t sum(struct gw_metrics *const *loops, size_t count, size_t offset) {
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++) {
        atomic_ullong *at = (atomic_ullong *)((char *)loops[i] + offset);
        all += atomic_load_explicit(at, memory_order_relaxed);
    }
    return all;
}

static uint64_t sum_http(const struct fx_http_stats *stats, size_t count, size_t offset) {
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += *(const uint64_t *)((const char *)&stats[i] + offset);
    return all;
}

static void sum_histogram(struct gw_metrics *const *loops, size_t count, size_t offset,
                          struct fx_histogram *out) {
    *out = (struct fx_histogram){0};
    for (size_t i = 0; i < count; i++) {
        struct fx_histogram *from = (struct fx_histogram *)((char *)loops[i] + offset);
        for (size_t j = 0; j < FX_COUNT(from->buckets); j++)
            gw_count(&out->buckets[j], from->buckets[j]);
        gw_count(&out->sum_us, from->sum_us);
    }
}

/* -- text -- */

static void row_write(const struct row *row, uint64_t number, fx_buf *out) {
    fx_metric_family(out, row->type, row->name, row->help);
    fx_metric_sample(out, row->name, NULL, NULL, number);
}

static void histograms_write(struct gw_metrics *const *loops, size_t count, fx_buf *out) {
    struct fx_histogram all;
    sum_histogram(loops, count, AT(first_token), &all);
    fx_metric_histogram(out, "fx_gateway_first_token_seconds",
                        "From the request to its first token.", &all);
    sum_histogram(loops, count, AT(whole), &all);
    fx_metric_histogram(out, "fx_gateway_generation_seconds",
                        "From the request to the end of its answer.", &all);
}

static void http_write(struct gw_metrics *const *loops, size_t count, fx_buf *out) {
    struct fx_http_stats stats[GW_LOOPS_MAX];
    FX_ASSERT(count <= GW_LOOPS_MAX);
    for (size_t i = 0; i < count; i++) {
        pthread_mutex_lock(&loops[i]->lock);
        stats[i] = loops[i]->http;
        pthread_mutex_unlock(&loops[i]->lock);
    }
    for (size_t i = 0; i < FX_COUNT(http_rows); i++)
        row_write(&http_rows[i], sum_http(stats, count, http_rows[i].offset), out);
}

static void rpc_write(const struct fx_server_stats *rpc, fx_buf *out) {
    fx_metric_counter(out, "fx_gateway_rpc_calls_total", "Calls of the gRPC API.", rpc->calls);
    fx_metric_counter(out, "fx_gateway_rpc_failed_total", "Of them, with another status than OK.",
                      rpc->calls_failed);
    fx_metric_counter(out, "fx_gateway_rpc_refused_total", "Of them, for want of a call slot.",
                      rpc->calls_refused);
    fx_metric_counter(out, "fx_gateway_rpc_slow_readers_cut_total",
                      "Of them, of clients that did not read.", rpc->cut_slow);
    fx_metric_gauge(out, "fx_gateway_rpc_active", "Of them, running.", rpc->calls_active);
}

static void loops_write(struct gw_metrics *const *loops, size_t count, fx_buf *out) {
    static const char name[] = "fx_gateway_loop_requests_total";
    bool up = true;
    uint64_t models = 0;
    fx_metric_family(out, FX_METRIC_COUNTER, name, "Answers on the HTTP port, by loop.");
    for (size_t i = 0; i < count; i++) {
        char index[12];
        (void)snprintf(index, sizeof index, "%zu", i);
        fx_metric_sample(out, name, "loop", index, loops[i]->requests);
        up = up && loops[i]->redis_ready;
        models = loops[i]->models > models ? loops[i]->models : models;
    }
    fx_metric_gauge(out, "fx_gateway_redis_up", "Whether Redis answers.", up);
    fx_metric_gauge(out, "fx_gateway_models", "Models listed.", models);
}

void gw_metrics_write(struct gw_metrics *const *loops, size_t count,
                      const struct fx_server_stats *rpc, fx_buf *out) {
    for (size_t i = 0; i < FX_COUNT(rows); i++)
        row_write(&rows[i], sum(loops, count, rows[i].offset), out);
    loops_write(loops, count, out);
    rpc_write(rpc, out);
    histograms_write(loops, count, out);
    http_write(loops, count, out);
}

void gw_metrics_http(struct gw_metrics *metrics, const fx_http_server *server) {
    struct fx_http_stats stats;
    fx_http_server_stats(server, &stats);
    pthread_mutex_lock(&metrics->lock);
    metrics->http = stats;
    pthread_mutex_unlock(&metrics->lock);
}
