#pragma once
#include <sys/queue.h>
#include "common/http/server.h"
#include "common/queue/queue.h"
#include "common/rpc/client.h"
#include "common/rpc/loop.h"
#include "services/gateway/auth.h"
#include "services/gateway/config.h"
#include "services/gateway/metrics.h"
#include "services/gateway/models.h"

struct gw_limits;
struct gw_process;
struct gw_submits;
struct gw_telemetry;
struct gw_visit;
TAILQ_HEAD(gw_visits, gw_visit);

/** One of the process's loops (process.h): a whole gateway that shares nothing with the others but
 *  what `process` holds. All but `loop`, `metrics` and `config` belongs to the loop's thread. */
struct gateway {
    struct gw_process *process;
    const struct gw_config *config;
    uint32_t index; /* among the process's loops */
    fx_loop *loop;
    fx_redis *redis, *ledger; /* of the queue; of keys and rate limits */
    fx_queue *queue;
    fx_client *tenant, *scheduler, *slicer;
    struct gw_models *models;
    struct gw_auth *auth;
    struct gw_limits *limits;
    struct gw_submits *submits;
    struct gw_telemetry *telemetry;
    fx_http_server *server; /* a listener of its own on the port of all */
    struct event *tick;
    struct gw_visits visits; /* generations in flight */
    struct gw_metrics metrics;
    uint32_t visit_count;           /* HTTP requests that have not ended */
    bool answered, drained;         /* see gateway_drain_check */
    uint64_t log_second, log_lines; /* the access log's rate */
};

/** Opens a zeroed gateway whose `process` and `index` are set; it serves once the loop runs. What a
 *  failure leaves is for gateway_close. @err as the parts, naming the part */
FX_MUST bool gateway_open(struct gateway *gateway, fx_error *err);
/** A call of ours to another service failed. @thread any */
void gateway_log_failed(const char *what, const fx_error *err);
/** A line of the access log. @thread the loop's */
void gateway_log_rpc(struct gateway *gateway, const char *request_id, const char *method,
                     enum fx_code code, uint64_t us);
/* In turn; each is a job for fx_loop_call. */
/** Each answer closes its connection; new requests are refused, for the process drains. */
void gateway_drain_begin(void *gateway);
/** Sets `answered` when no request is open, `drained` when no connection is, and nothing runs. */
void gateway_drain_check(void *gateway);
/** Ends running answers with an error. */
void gateway_drain_end(void *gateway);
/** Refuses new connections. */
void gateway_unlisten(void *gateway);
/** Ends everything; a half-opened one is fine. @thread the opener's, after fx_loop_stop */
void gateway_close(struct gateway *gateway);
