#include "services/tenant/app.h"
#include <stdio.h>
#include "common/base/log.h"
#include "common/http/admin.h"

extern const unsigned char tenant_lua[];
extern const unsigned long tenant_lua_len;

static void log_report(const struct fx_redis_report *report) {
    if (!report->ready)
        fx_log(FX_LOG_WARN, FX_EVENT("redis_lost"),
               FX_KS("reason", report->err ? report->err->text : "unknown"),
               FX_KS("remedy", "start Redis, or set FX_REDIS_LEDGER_URL or FX_REDIS_URL"));
    else
        fx_log(FX_LOG_INFO, FX_EVENT("redis_ready"), FX_KI("reconnects", report->reconnects));
    if (report->ready && report->warning)
        fx_log(FX_LOG_WARN, FX_EVENT("redis_settings"), FX_KS("warning", report->warning));
}

static void on_report(void *ctx, const struct fx_redis_report *report) {
    struct tenant_app *app = ctx;
    app->redis_ready = report->ready;
    app->redis_reconnects = report->reconnects;
    fx_server_set_serving(app->server, report->ready);
    log_report(report);
}

bool tenant_app_redis(struct tenant_app *app, const struct tenant_config *config, fx_redis **out,
                      fx_error *err) {
    struct fx_redis_opts opts = {
        .base = fx_loop_base(app->loop),
        .url = config->ledger_url,
        .tls = config->redis_tls,
        .library = {tenant_lua, tenant_lua_len},
        .on_report = on_report,
        .ctx = app
    };
    return fx_redis_open(&opts, out, err);
}

static bool turned_within(const struct tenant_app *app, uint64_t ms, char *reason) {
    return fx_loop_turned_within(app->loop, ms, "the loop", reason, FX_ADMIN_REASON_MAX);
}

bool tenant_app_live(void *ctx, char *reason) {
    struct tenant_app *app = ctx;
    return turned_within(app, app->health.dead_ms, reason);
}

bool tenant_app_ready(void *ctx, char *reason) {
    struct tenant_app *app = ctx;
    const char *why = app->draining       ? "draining"
                      : !app->redis_ready ? "Redis does not answer"
                                          : NULL;
    if (!why) return turned_within(app, app->health.unready_ms, reason);
    (void)snprintf(reason, FX_ADMIN_REASON_MAX, "%s", why);
    return false;
}

void tenant_app_follow(void *ctx, bool ready, const char *reason) {
    struct tenant_app *app = ctx;
    (void)reason;
    if (ready != fx_server_serving(app->server)) fx_server_set_serving(app->server, ready);
}

void tenant_app_metrics(void *ctx, fx_buf *out) {
    struct tenant_app *app = ctx;
    struct fx_server_stats stats = fx_server_stats(app->server);
    fx_metric_counter(out, "fx_tenant_authenticated_total", "Keys that were found good.",
                      app->authenticated);
    fx_metric_counter(out, "fx_tenant_refused_total", "Keys that were nobody's or revoked.",
                      app->refused);
    fx_metric_counter(out, "fx_tenant_tenants_created_total", "Tenants created.",
                      app->tenants_created);
    fx_metric_counter(out, "fx_tenant_keys_created_total", "Keys created.", app->keys_created);
    fx_metric_counter(out, "fx_tenant_keys_revoked_total", "Keys revoked.", app->keys_revoked);
    fx_metric_counter(out, "fx_tenant_calls_total", "RPC calls.", stats.calls);
    fx_metric_counter(out, "fx_tenant_calls_failed_total", "RPC calls that ended with an error.",
                      stats.calls_failed);
    fx_metric_counter(out, "fx_tenant_calls_refused_total", "RPC calls without a free slot.",
                      stats.calls_refused);
    fx_metric_gauge(out, "fx_tenant_calls_active", "RPC calls that run.", stats.calls_active);
    fx_metric_counter(out, "fx_tenant_redis_reconnects_total", "Connections to Redis lost.",
                      app->redis_reconnects);
    fx_metric_gauge(out, "fx_tenant_redis_up", "Whether Redis answers.", app->redis_ready);
}
