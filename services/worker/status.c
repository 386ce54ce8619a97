#include "services/worker/status.h"
#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/http/admin.h"
#include "common/rpc/pb.h"
#include "fractal/v1/worker.pb-c.h"
#include <stdio.h>

static const struct {
    enum status_number number;
    enum fx_metric_type type;
    const char *name, *help;
} metrics[] = {
    {STATUS_SLOTS,            FX_METRIC_GAUGE,   "fx_worker_slots",                       "generations at once"              },
    {STATUS_SLOTS_FREE,       FX_METRIC_GAUGE,   "fx_worker_slots_free",                  "slots without one"                },
    {STATUS_RUNNING,          FX_METRIC_GAUGE,   "fx_worker_running",                     "sequences in the batch"           },
    {STATUS_WAITING,          FX_METRIC_GAUGE,   "fx_worker_waiting",                     "sequences that wait for KV blocks"},
    {STATUS_KV_BLOCKS,        FX_METRIC_GAUGE,   "fx_worker_kv_blocks",                   "KV blocks in the pool"            },
    {STATUS_KV_BLOCKS_FREE,   FX_METRIC_GAUGE,   "fx_worker_kv_blocks_free",              "KV blocks nobody holds"           },
    {STATUS_STEPS,            FX_METRIC_COUNTER, "fx_worker_steps_total",                 "steps of the batch"               },
    {STATUS_ROWS,             FX_METRIC_COUNTER, "fx_worker_rows_total",                  "rows over all steps"              },
    {STATUS_TOKENS_PREFILLED, FX_METRIC_COUNTER, "fx_worker_tokens_prefilled_total",
     "prompt tokens computed"                                                                                                },
    {STATUS_TOKENS_DECODED,   FX_METRIC_COUNTER, "fx_worker_tokens_decoded_total",
     "tokens generated"                                                                                                      },
    {STATUS_LOGGED_PREFILLED, FX_METRIC_COUNTER, "fx_worker_logged_prefilled_total",
     "tokens an earlier worker logged, computed again"                                                                       },
    {STATUS_LOGGED_SAMPLED,   FX_METRIC_COUNTER, "fx_worker_logged_sampled_total",
     "tokens an earlier worker logged, drawn again: always 0"                                                                },
    {STATUS_PREEMPTIONS,      FX_METRIC_COUNTER, "fx_worker_preemptions_total",
     "sequences set back for want of KV blocks"                                                                              },
    {STATUS_ROWS_FAILED,      FX_METRIC_COUNTER, "fx_worker_rows_failed_total",
     "rows whose logits were not numbers"                                                                                    },
    {STATUS_DENSE_MATMULS,    FX_METRIC_COUNTER, "fx_worker_dense_matmuls_total",
     "dense weight matrices read"                                                                                            },
    {STATUS_DENSE_ROWS,       FX_METRIC_COUNTER, "fx_worker_dense_rows_total",
     "rows over all dense matmuls"                                                                                           },
    {STATUS_EXPERT_MATMULS,   FX_METRIC_COUNTER, "fx_worker_expert_matmuls_total",
     "expert weight matrices read"                                                                                           },
    {STATUS_EXPERT_ROWS,      FX_METRIC_COUNTER, "fx_worker_expert_rows_total",
     "rows over all expert matmuls"                                                                                          },
    {STATUS_WEIGHT_BYTES,     FX_METRIC_COUNTER, "fx_worker_weight_bytes_read_total",
     "bytes of weights read"                                                                                                 },
    {STATUS_TAKEN,            FX_METRIC_COUNTER, "fx_worker_generations_taken_total",     "generations taken"                },
    {STATUS_RESUMED,          FX_METRIC_COUNTER, "fx_worker_generations_resumed_total",
     "of them with tokens of an earlier worker"                                                                              },
    {STATUS_FINISHED,         FX_METRIC_COUNTER, "fx_worker_generations_finished_total",
     "generations ended by stop or length"                                                                                   },
    {STATUS_CANCELLED,        FX_METRIC_COUNTER, "fx_worker_generations_cancelled_total",
     "generations cancelled"                                                                                                 },
    {STATUS_FAILED,           FX_METRIC_COUNTER, "fx_worker_generations_failed_total",
     "generations ended by an error"                                                                                         },
    {STATUS_LEASES_LOST,      FX_METRIC_COUNTER, "fx_worker_leases_lost_total",
     "generations dropped because another owns them"                                                                         },
    {STATUS_APPEND_WRITES,    FX_METRIC_COUNTER, "fx_worker_append_writes_total",
     "pipelined writes to the logs"                                                                                          },
    {STATUS_APPENDS,          FX_METRIC_COUNTER, "fx_worker_appends_total",               "appends in them"                  },
    {STATUS_GAPS,             FX_METRIC_COUNTER, "fx_worker_gaps_total",
     "appends sent again because Redis had fewer tokens"                                                                     },
    {STATUS_RESTORED,         FX_METRIC_COUNTER, "fx_worker_restored_total",
     "generations given back to this worker when Redis had lost them"                                                        },
    {STATUS_KEPT,             FX_METRIC_GAUGE,   "fx_worker_kept",
     "ended generations kept until Redis has them on disk"                                                                   },
    {STATUS_KEPT_DROPPED,     FX_METRIC_COUNTER, "fx_worker_kept_dropped_total",
     "of them let go before, for want of room"                                                                               },
    {STATUS_REDIS_RECONNECTS, FX_METRIC_COUNTER, "fx_worker_redis_reconnects_total",
     "connections to Redis lost or refused"                                                                                  },
    {STATUS_REDIS_READY,      FX_METRIC_GAUGE,   "fx_worker_redis_ready",                 "1: Redis answers"                 },
    {STATUS_REGISTERED,       FX_METRIC_GAUGE,   "fx_worker_registered",
     "1: the scheduler took the last heartbeat"                                                                              },
    {STATUS_SOUND_MS,         FX_METRIC_GAUGE,   "fx_worker_stalled_seconds",
     "how long work has waited without progress"                                                                             },
};

void worker_status_engine(struct worker_status *status, const struct fx_engine_stats *stats) {
    status_set(status, STATUS_RUNNING, stats->running);
    status_set(status, STATUS_WAITING, stats->waiting);
    status_set(status, STATUS_KV_BLOCKS, stats->pages);
    status_set(status, STATUS_KV_BLOCKS_FREE, stats->pages_free);
    status_set(status, STATUS_STEPS, stats->steps);
    status_set(status, STATUS_ROWS, stats->rows);
    status_set(status, STATUS_TOKENS_PREFILLED, stats->tokens_prefilled);
    status_set(status, STATUS_LOGGED_PREFILLED, stats->logged_prefilled);
    status_set(status, STATUS_LOGGED_SAMPLED, stats->logged_sampled);
    status_set(status, STATUS_TOKENS_DECODED, stats->tokens_decoded);
    status_set(status, STATUS_PREEMPTIONS, stats->preemptions);
    status_set(status, STATUS_ROWS_FAILED, stats->rows_failed);
    status_set(status, STATUS_DENSE_MATMULS, stats->dense_matmuls);
    status_set(status, STATUS_DENSE_ROWS, stats->dense_rows);
    status_set(status, STATUS_EXPERT_MATMULS, stats->expert_matmuls);
    status_set(status, STATUS_EXPERT_ROWS, stats->expert_rows);
    status_set(status, STATUS_WEIGHT_BYTES, stats->weight_bytes);
}

static uint64_t since(const struct worker_status *status, enum status_number which) {
    uint64_t then_ms = status_get(status, which), now_ms = fx_clock_ms();
    return status_get(status, STATUS_LOADED) && now_ms > then_ms ? now_ms - then_ms : 0;
}

/* Written by the I/O thread: it grows as well when that does not turn. */
static uint64_t stalled_ms(const struct worker_status *status) {
    return since(status, STATUS_SOUND_MS);
}

bool worker_is_mute(const struct worker_status *status) {
    return since(status, STATUS_TURNED_MS) >= status->unready_ms;
}

bool worker_is_stuck(const struct worker_status *status) {
    return stalled_ms(status) >= status->unready_ms;
}

static const char *why_stuck(const struct worker_status *status) {
    return worker_is_mute(status) ? "the I/O loop does not turn"
                                  : "work waits and no step makes progress";
}

static bool unready(char *reason, const char *why) {
    (void)snprintf(reason, FX_ADMIN_REASON_MAX, "%s", why);
    return false;
}

bool worker_live(void *ctx, char *reason) {
    const struct worker_status *status = ctx;
    if (stalled_ms(status) < status->dead_ms) return true;
    return unready(reason, why_stuck(status));
}

bool worker_ready(void *ctx, char *reason) {
    const struct worker_status *status = ctx;
    if (status_get(status, STATUS_DRAINING)) return unready(reason, "draining");
    if (!status_get(status, STATUS_LOADED)) return unready(reason, "the model is being loaded");
    if (!status_get(status, STATUS_REDIS_READY)) return unready(reason, "Redis does not answer");
    if (!status_get(status, STATUS_REGISTERED))
        return unready(reason, "the scheduler does not answer");
    if (worker_is_stuck(status)) return unready(reason, why_stuck(status));
    return true;
}

void worker_follow(void *ctx, bool ready, const char *reason) {
    const struct worker_status *status = ctx;
    if (ready == fx_server_serving(status->server)) return;
    fx_server_set_serving(status->server, ready);
    if (ready)
        fx_log(FX_LOG_INFO, FX_EVENT("ready"));
    else
        fx_log(FX_LOG_WARN, FX_EVENT("not_ready"), FX_KS("reason", reason));
}

static double shown(const struct worker_status *status, enum status_number number) {
    if (number == STATUS_SOUND_MS) return (double)stalled_ms(status) / 1000;
    return (double)status_get(status, number);
}

static const struct {
    const char *name, *help;
} times[STATUS_TIMES] = {
    [STATUS_FIRST_TOKEN] = {"fx_worker_first_token_seconds",
                            "From the submission to the first token in the log."                 },
    [STATUS_INTER_TOKEN] = {"fx_worker_inter_token_seconds", "Between tokens in the log."        },
    [STATUS_QUEUE_TIME] = {"fx_worker_queue_seconds",       "From the submission to its taking."},
};

void worker_metrics(void *ctx, fx_buf *out) {
    const struct worker_status *status = ctx;
    for (size_t i = 0; i < FX_COUNT(metrics); i++) {
        fx_metric_family(out, metrics[i].type, metrics[i].name, metrics[i].help);
        fx_metric_sample_f64(out, metrics[i].name, "model", status->model,
                             shown(status, metrics[i].number));
    }
    for (size_t i = 0; i < STATUS_TIMES; i++)
        fx_metric_histogram(out, times[i].name, times[i].help, &status->times[i]);
}

static void get_worker(fx_call *call, const void *request, void *context) {
    (void)request;
    const struct worker_status *status = context;
    Fractal__V1__WorkerStatus reply = FRACTAL__V1__WORKER_STATUS__INIT;
    reply.worker = fx_pb_text(status->worker);
    reply.model_name = fx_pb_text(status->model);
    reply.backend = fx_pb_text(status->backend);
    reply.slots = (uint32_t)status_get(status, STATUS_SLOTS);
    reply.slots_free = (uint32_t)status_get(status, STATUS_SLOTS_FREE);
    reply.kv_blocks = (uint32_t)status_get(status, STATUS_KV_BLOCKS);
    reply.kv_blocks_free = (uint32_t)status_get(status, STATUS_KV_BLOCKS_FREE);
    reply.steps = status_get(status, STATUS_STEPS);
    reply.tokens_prefilled = status_get(status, STATUS_TOKENS_PREFILLED);
    reply.tokens_decoded = status_get(status, STATUS_TOKENS_DECODED);
    reply.dense_matmuls = status_get(status, STATUS_DENSE_MATMULS);
    reply.dense_rows = status_get(status, STATUS_DENSE_ROWS);
    reply.expert_matmuls = status_get(status, STATUS_EXPERT_MATMULS);
    reply.expert_rows = status_get(status, STATUS_EXPERT_ROWS);
    reply.weight_bytes_read = status_get(status, STATUS_WEIGHT_BYTES);
    fx_call_reply(call, &reply);
}

const struct fx_method worker_methods[] = {
    {"/fractal.v1.WorkerService/GetWorker", get_worker,
     &fractal__v1__get_worker_request__descriptor, FX_RPC_UNARY, 2000, 1024},
};
const size_t worker_methods_count = FX_COUNT(worker_methods);
