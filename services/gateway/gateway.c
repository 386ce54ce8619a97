#include "services/gateway/gateway.h"
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/base/log.h"
#include "services/gateway/limits.h"
#include "services/gateway/process.h"
#include "services/gateway/rpc.h"
#include "services/gateway/submit.h"
#include "services/gateway/telemetry.h"
#include "services/gateway/visit.h"

enum {
    INBOX_REST = 64,
    TICK_MS = 250,
    CALLS_MAX = 1024, /* at once of all loops: keys not known yet; submits and cancels */
    CALLS_MIN = 256,  /* of one; further cancels go to Redis */
    SLICER_CALLS_MAX = 8,
    REPLY_BYTES = 4096,
    LOG_LINES_MAX = 200, /* a second, of all loops */
    LIMIT_CALLS_MAX = 16384,
    CHANNELS_MIN = 8192, /* answers followed at once; more where more connections may be open */
    BODIES_MAX = 32,     /* of the largest size in memory, of all loops */
    BODIES_MIN = 4,      /* of one */
    OUTPUT_BYTES_MAX = 4 * 1024 * 1024, /* of a stream: what waits, and a page of its log */
};

/* -- log -- */

void gateway_log_failed(const char *what, const fx_error *err) {
    fx_log(FX_LOG_WARN, FX_EVENT("call_failed"), FX_KS("call", what),
           FX_KS("code", fx_code_name(err->code)), FX_KS("error", err->text));
}

static void on_redis(void *ctx, const struct fx_redis_report *report) {
    struct gateway *gateway = ctx;
    gateway->metrics.redis_ready = report->ready;
    if (!report->ready)
        fx_log(FX_LOG_WARN, FX_EVENT("redis_away"), FX_KS("error", report->err->text),
               FX_KS("remedy", "start Redis, or correct FX_REDIS_URL"));
    else if (report->warning)
        fx_log(FX_LOG_WARN, FX_EVENT("redis_setting"), FX_KS("warning", report->warning));
    else
        fx_log(FX_LOG_INFO, FX_EVENT("redis_ready"));
}

static bool log_allowed(struct gateway *gateway) {
    uint64_t second = fx_clock_ms() / 1000;
    uint64_t max = LOG_LINES_MAX / gateway->process->loop_count;
    if (second != gateway->log_second) {
        if (gateway->log_lines > max)
            fx_log(FX_LOG_WARN, FX_EVENT("requests_not_logged"),
                   FX_KI("count", gateway->log_lines - max));
        gateway->log_second = second;
        gateway->log_lines = 0;
    }
    return ++gateway->log_lines <= max;
}

static void on_done(void *ctx, const struct fx_http_access *access) {
    struct gateway *gateway = ctx;
    char path[129];
    size_t len = access->target.len < sizeof path - 1 ? access->target.len : sizeof path - 1;
    gw_count(&gateway->metrics.requests, 1);
    if (access->status >= 500)
        gw_count(&gateway->metrics.failed_5xx, 1);
    else if (access->status >= 400)
        gw_count(&gateway->metrics.failed_4xx, 1);
    if (!log_allowed(gateway)) return;
    if (len) memcpy(path, access->target.at, len);
    path[len] = 0;
    path[strcspn(path, "?")] = 0; /* a query may hold anything */
    fx_log(FX_LOG_INFO, FX_EVENT("request"), FX_KS("request_id", access->request_id),
           FX_KS("method", fx_http_method_name(access->method)), FX_KS("path", path),
           FX_KI("status", access->status), FX_KI("gone", access->gone),
           FX_KI("us", access->duration_us), FX_KI("bytes", access->body_bytes));
}

void gateway_log_rpc(struct gateway *gateway, const char *request_id, const char *method,
                     enum fx_code code, uint64_t us) {
    if (!log_allowed(gateway)) return;
    fx_log(FX_LOG_INFO, FX_EVENT("call"), FX_KS("request_id", request_id), FX_KS("method", method),
           FX_KS("code", fx_code_name(code)), FX_KI("us", us));
}

/* -- the loop's turn -- */

static void on_tick(evutil_socket_t fd, short what, void *arg) {
    struct gateway *gateway = arg;
    (void)fd, (void)what;
    gw_metrics_http(&gateway->metrics, gateway->server);
    gw_unread_tick(gateway);
    gw_stalls_end(gateway);
    gw_limits_tick(gateway->limits);
}

/* -- open -- */

struct client_row {
    const char *target;
    uint32_t calls_max;
    fx_client **out;
};

static FX_MUST bool client_open(struct gateway *gateway, const struct client_row *row,
                                fx_error *err) {
    struct fx_client_opts opts = {
        .target = row->target,
        .base = fx_loop_base(gateway->loop),
        .tls = gw_config_tls(gateway->config),
        .calls_max = row->calls_max,
        .arena_bytes = REPLY_BYTES,
    };
    return fx_client_open(&opts, row->out, err) || fx_wrap(err, "client of %.64s", row->target);
}

static FX_MUST bool clients_open(struct gateway *gateway, fx_error *err) {
    const struct gw_config *config = gateway->config;
    uint32_t calls = CALLS_MAX / gateway->process->loop_count;
    if (calls < CALLS_MIN) calls = CALLS_MIN;
    const struct client_row rows[] = {
        {config->tenant_addr,    calls,            &gateway->tenant   },
        {config->scheduler_addr, calls,            &gateway->scheduler},
        {config->slicer_addr,    SLICER_CALLS_MAX, &gateway->slicer   },
    };
    for (size_t i = 0; i < FX_COUNT(rows); i++)
        if (!client_open(gateway, &rows[i], err)) return false;
    return true;
}

/* Each choice of an answer is followed on a channel of its own. */
static uint32_t channels_max(const struct gw_config *config) {
    uint32_t wanted = 2 * config->connections_max;
    return wanted > CHANNELS_MIN ? wanted : CHANNELS_MIN;
}

static FX_MUST bool redis_open(struct gateway *gateway, fx_error *err) {
    const struct gw_config *config = gateway->config;
    struct fx_redis_opts opts = {.base = fx_loop_base(gateway->loop),
                                 .url = config->redis_url,
                                 .tls = config->redis_tls,
                                 .library = fx_queue_library(),
                                 .channels_max = channels_max(config),
                                 .on_report = on_redis,
                                 .ctx = gateway};
    if (!fx_redis_open(&opts, &gateway->redis, err)) return fx_wrap(err, "FX_REDIS_URL");
    if (!fx_queue_open(&(struct fx_queue_opts){.redis = gateway->redis}, &gateway->queue, err))
        return fx_wrap(err, "queue");
    opts = (struct fx_redis_opts){.base = opts.base,
                                  .url = gw_config_ledger_url(config),
                                  .tls = config->redis_tls,
                                  .library = gw_limits_library(),
                                  .inflight_max = LIMIT_CALLS_MAX};
    return fx_redis_open(&opts, &gateway->ledger, err) || fx_wrap(err, "FX_REDIS_LEDGER_URL");
}

static FX_MUST bool caches_open(struct gateway *gateway, fx_error *err) {
    struct gw_models_opts models = {.base = fx_loop_base(gateway->loop),
                                    .slicer = gateway->slicer,
                                    .vocabs = gateway->process->vocabs,
                                    .metrics = &gateway->metrics,
                                    .on_error = gateway_log_failed};
    struct gw_auth_opts auth = {
        .tenant = gateway->tenant, .redis = gateway->ledger, .metrics = &gateway->metrics};
    struct gw_limits_opts limits = {.redis = gateway->ledger,
                                    .lease_ms = gateway->config->limit_lease_ms,
                                    .metrics = &gateway->metrics};
    return gw_limits_open(&limits, &gateway->limits, err) &&
           gw_submits_open(gateway, &gateway->submits, err) &&
           gw_models_open(&models, &gateway->models, err) &&
           gw_auth_open(&auth, &gateway->auth, err);
}

static FX_MUST bool telemetry_open(struct gateway *gateway, fx_error *err) {
    struct gw_telemetry_opts opts = {.base = fx_loop_base(gateway->loop),
                                     .queue = gateway->queue,
                                     .auth = gateway->auth,
                                     .metrics = &gateway->metrics};
    return gw_telemetry_open(&opts, &gateway->telemetry, err);
}

static FX_MUST bool server_open(struct gateway *gateway, fx_error *err) {
    const struct gw_config *config = gateway->config;
    struct gw_process *process = gateway->process;
    uint32_t bodies = BODIES_MAX / process->loop_count;
    struct fx_http_server_opts opts = {
        .base = fx_loop_base(gateway->loop),
        .addr = process->http_addr,
        .tls = process->tls,
        .ctx = gateway,
        .request = gw_routes_serve,
        .admit = gw_routes_admit,
        .done = on_done,
        .output_bytes_max = OUTPUT_BYTES_MAX,
        .stall_ms_max = config->unread_ms_max,
        .share = gateway->index ? FX_LISTEN_JOIN : FX_LISTEN_FIRST,
        .connections = &process->connections,
        .cors = gw_config_cors(config),
        .connections_max = config->connections_max,
        .body_bytes_max = config->body_bytes_max,
        .bodies_bytes_max =
            (uint64_t)config->body_bytes_max * (bodies < BODIES_MIN ? BODIES_MIN : bodies),
    };
    return fx_http_server_open(&opts, &gateway->server, err) || fx_wrap(err, "FX_HTTP_ADDR");
}

static FX_MUST bool tick_open(struct gateway *gateway, fx_error *err) {
    struct timeval tick = {0, TICK_MS * 1000L};
    gateway->tick = event_new(fx_loop_base(gateway->loop), -1, EV_PERSIST, on_tick, gateway);
    if (gateway->tick && event_add(gateway->tick, &tick) == 0) return true;
    return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a timer");
}

bool gateway_open(struct gateway *gateway, fx_error *err) {
    gateway->config = gateway->process->config;
    TAILQ_INIT(&gateway->visits);
    (void)pthread_mutex_init(&gateway->metrics.lock, NULL);
    return fx_loop_open(GW_RPC_INBOX + INBOX_REST, &gateway->loop, err) &&
           redis_open(gateway, err) && clients_open(gateway, err) && caches_open(gateway, err) &&
           telemetry_open(gateway, err) && server_open(gateway, err) && tick_open(gateway, err);
}

/* -- drain and close -- */

void gateway_drain_begin(void *user) {
    struct gateway *gateway = user;
    gw_telemetry_drain(gateway->telemetry);
    fx_http_server_drain(gateway->server);
}

void gateway_drain_check(void *user) {
    struct gateway *gateway = user;
    struct fx_http_stats stats;
    fx_http_server_stats(gateway->server, &stats);
    gateway->answered = !gateway->visit_count;
    gateway->drained = !stats.open && !fx_client_calls_active(gateway->scheduler);
}

void gateway_unlisten(void *user) {
    fx_http_server_unlisten(((struct gateway *)user)->server);
}

/* The generation of a stream goes on: another gateway has the rest. */
static void hand_over(struct gw_visit *visit) {
    struct gw_problem problem;
    bool is_stream = visit->rpc || (visit->call && visit->request.stream);
    gw_problem_set(&problem, GW_SHUTTING_DOWN, NULL, "the gateway is shutting down");
    if (is_stream) {
        visit->keeps = true;
        gw_problem_set(&problem, GW_SHUTTING_DOWN, NULL,
                       "the gateway is shutting down; the answer goes on: %sGET "
                       "/v1/generations/%s/events",
                       visit->call ? "" : "Follow, or ", visit->answer.id);
    }
    gw_generation_fail(visit, &problem);
}

void gateway_drain_end(void *user) {
    struct gateway *gateway = user;
    struct gw_visit *visit;
    while ((visit = TAILQ_FIRST(&gateway->visits)))
        hand_over(visit);
}

void gateway_close(struct gateway *gateway) {
    if (!gateway->loop) return;
    if (gateway->tick) event_free(gateway->tick);
    fx_http_server_free(gateway->server); /* its clients are gone: cancels go out */
    fx_client_free(gateway->tenant);
    gw_submits_drop(gateway->submits);
    fx_client_free(gateway->scheduler);
    gateway_drain_end(gateway); /* what goes on without a client */
    gw_submits_free(gateway->submits);
    fx_client_free(gateway->slicer);
    gw_auth_free(gateway->auth);
    gw_models_free(gateway->models);
    fx_queue_free(gateway->queue);
    fx_redis_free(gateway->ledger);
    gw_limits_free(gateway->limits);
    gw_telemetry_free(gateway->telemetry);
    fx_redis_free(gateway->redis);
    (void)event_base_loop(fx_loop_base(gateway->loop), EVLOOP_NONBLOCK);
    fx_loop_free(gateway->loop);
    gateway->loop = NULL;
    (void)pthread_mutex_destroy(&gateway->metrics.lock);
}
