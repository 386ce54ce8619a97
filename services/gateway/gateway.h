#pragma once
#include <sys/queue.h>
#include "common/http/admin.h"
#include "common/http/server.h"
#include "common/queue/queue.h"
#include "common/rpc/client.h"
#include "common/rpc/loop.h"
#include "common/rpc/server.h"
#include "services/gateway/auth.h"
#include "services/gateway/config.h"
#include "services/gateway/metrics.h"
#include "services/gateway/models.h"

struct gw_limits;
struct gw_visit;
TAILQ_HEAD(gw_visits, gw_visit);

/** Everything of one process. All but `admin`, `rpc`, `loop` and `metrics` belongs to the loop's
 * thread.
 */
struct gateway {
    const struct gw_config *config;
    fx_loop *loop;
    SSL_CTX *tls;
    fx_redis *redis, *ledger; /* of the queue; of keys and rate limits */
    fx_queue *queue;
    fx_client *tenant, *scheduler, *slicer;
    struct gw_models *models;
    struct gw_auth *auth;
    struct gw_limits *limits;
    fx_http_server *server;
    fx_server *rpc;
    fx_admin *admin;
    struct event *tick;
    struct gw_visits visits; /* generations in flight */
    struct gw_metrics metrics;
    bool drained;
    uint64_t log_second, log_lines; /* the access log's rate */
};

/** Opens all of it and serves. @own caller, gateway_close @err as the parts, naming the part */
FX_MUST bool gateway_open(const struct gw_config *config, struct gateway **out, fx_error *err);
uint16_t gateway_port(const struct gateway *gateway);
uint16_t gateway_rpc_port(const struct gateway *gateway);
/** A line of the access log. @thread the loop's */
void gateway_log_rpc(struct gateway *gateway, const char *request_id, const char *method,
                     enum fx_code code, uint64_t us);
/** Refuses new requests, lets running answers end for drain_ms_max, then ends them with an error.
 *  @thread the opener's */
void gateway_drain(struct gateway *gateway);
/** Ends everything; NULL is fine. @thread the opener's */
void gateway_close(struct gateway *gateway);
