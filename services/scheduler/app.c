#include "services/scheduler/app.h"
#include <stdio.h>
#include "common/base/log.h"
#include "common/http/admin.h"

static void log_report(const struct fx_redis_report *report) {
    if (!report->ready)
        fx_log(FX_LOG_WARN, FX_EVENT("redis_lost"),
               FX_KS("reason", report->err ? report->err->text : "unknown"),
               FX_KS("remedy", "start Redis, or set FX_REDIS_URL"));
    else
        fx_log(FX_LOG_INFO, FX_EVENT("redis_ready"), FX_KI("reconnects", report->reconnects));
    if (report->ready && report->warning)
        fx_log(FX_LOG_WARN, FX_EVENT("redis_settings"), FX_KS("warning", report->warning));
}

static void on_report(void *ctx, const struct fx_redis_report *report) {
    struct scheduler_app *app = ctx;
    app->redis_ready = report->ready;
    app->redis_reconnects = report->reconnects;
    fx_server_set_serving(app->server, report->ready);
    log_report(report);
    if (report->ready) work_hint(app, 0);
}

static FX_MUST bool queue_open(struct scheduler_app *app, fx_error *err) {
    const struct scheduler_config *config = app->config;
    struct fx_queue_opts opts = {.redis = app->redis,
                                 .lease_ms = config->lease_ms,
                                 .retain_s = config->retain_s,
                                 .model_max = config->model_max,
                                 .tenant_max = config->tenant_max,
                                 .fruitless_max = config->fruitless_max};
    return fx_queue_open(&opts, &app->queue, err) &&
           fx_queue_hints_open(app->queue, work_hint, app, &app->hints, err);
}

bool scheduler_app_open(struct scheduler_app *app, fx_error *err) {
    struct fx_redis_opts opts = {.base = fx_loop_base(app->loop),
                                 .url = app->config->redis_url,
                                 .tls = app->config->redis_tls,
                                 .library = fx_queue_library(),
                                 .on_report = on_report,
                                 .ctx = app};
    if (!models_add_cold(app, app->config->cold_models, err)) return fx_wrap(err, "FX_COLD_MODELS");
    return fx_redis_open(&opts, &app->redis, err) && queue_open(app, err) &&
           work_ticks_open(app, err);
}

void scheduler_app_close(struct scheduler_app *app) {
    work_ticks_close(app);
    fx_queue_hints_free(app->hints);
    fx_queue_free(app->queue);
    fx_redis_free(app->redis);
}

static bool turned_within(struct scheduler_app *app, uint64_t ms, char *reason) {
    return fx_loop_turned_within(app->loop, ms, "the dispatch loop", reason, FX_ADMIN_REASON_MAX);
}

bool scheduler_app_live(void *ctx, char *reason) {
    struct scheduler_app *app = ctx;
    return turned_within(app, app->config->health.dead_ms, reason);
}

bool scheduler_app_ready(void *ctx, char *reason) {
    struct scheduler_app *app = ctx;
    const char *why = app->draining       ? "draining"
                      : !app->redis_ready ? "Redis does not answer"
                                          : NULL;
    if (!why) return turned_within(app, app->config->health.unready_ms, reason);
    (void)snprintf(reason, FX_ADMIN_REASON_MAX, "%s", why);
    return false;
}

void scheduler_app_follow(void *ctx, bool ready, const char *reason) {
    struct scheduler_app *app = ctx;
    if (ready == fx_server_serving(app->server)) return;
    fx_server_set_serving(app->server, ready);
    if (ready)
        fx_log(FX_LOG_INFO, FX_EVENT("ready"));
    else
        fx_log(FX_LOG_WARN, FX_EVENT("not_ready"), FX_KS("reason", reason));
}

static void queue_gauge(struct scheduler_app *app, fx_buf *out, const char *name, const char *help,
                        uint64_t (*of)(const struct fx_queue_stats *stats)) {
    fx_metric_family(out, FX_METRIC_GAUGE, name, help);
    for (uint32_t i = 0; i < FX_QUEUE_MODELS_MAX; i++)
        if (app->shown[i].used)
            fx_metric_sample(out, name, "model", app->shown[i].name, of(&app->shown[i].stats));
}

static uint64_t waiting_of(const struct fx_queue_stats *stats) {
    return stats->waiting;
}
static uint64_t running_of(const struct fx_queue_stats *stats) {
    return stats->running;
}
static uint64_t demand_of(const struct fx_queue_stats *stats) {
    return stats->waiting + stats->running;
}
static uint64_t workers_of(const struct fx_queue_stats *stats) {
    return stats->workers;
}
static uint64_t slots_free_of(const struct fx_queue_stats *stats) {
    return stats->slots_free;
}

static void queue_metrics(struct scheduler_app *app, fx_buf *out) {
    (void)pthread_mutex_lock(&app->lock);
    queue_gauge(app, out, "fx_queue_waiting", "Generations that no worker has taken.", waiting_of);
    queue_gauge(app, out, "fx_queue_running", "Generations that a worker runs.", running_of);
    queue_gauge(app, out, "fx_queue_demand", "Both: what workers are needed for.", demand_of);
    queue_gauge(app, out, "fx_queue_workers", "Live workers.", workers_of);
    queue_gauge(app, out, "fx_queue_slots_free", "Free slots of live workers.", slots_free_of);
    (void)pthread_mutex_unlock(&app->lock);
}

static void refused_metrics(struct scheduler_app *app, fx_buf *out) {
    static const char name[] = "fx_scheduler_refused_total";
    fx_metric_family(out, FX_METRIC_COUNTER, name, "Generations that were not admitted.");
    fx_metric_sample(out, name, "reason", "full", app->refused_full);
    fx_metric_sample(out, name, "reason", "no_worker", app->refused_no_worker);
    fx_metric_sample(out, name, "reason", "invalid", app->refused_invalid);
}

void scheduler_app_metrics(void *ctx, fx_buf *out) {
    struct scheduler_app *app = ctx;
    struct fx_server_stats stats = fx_server_stats(app->server);
    queue_metrics(app, out);
    fx_metric_counter(out, "fx_scheduler_admitted_total", "Generations admitted.", app->admitted);
    fx_metric_counter(out, "fx_scheduler_repeated_total", "Submissions of a known id.",
                      app->repeated);
    refused_metrics(app, out);
    fx_metric_counter(out, "fx_scheduler_cancelled_total", "Cancel calls that found their id.",
                      app->cancelled);
    fx_metric_counter(out, "fx_scheduler_dispatched_total", "Tasks handed to workers.",
                      app->dispatched);
    fx_metric_counter(out, "fx_scheduler_reclaimed_total", "Expired leases queued again.",
                      app->reclaimed);
    fx_metric_counter(out, "fx_scheduler_gave_up_total", "Expired leases that ended there.",
                      app->gave_up);
    fx_metric_counter(out, "fx_scheduler_calls_total", "RPC calls.", stats.calls);
    fx_metric_counter(out, "fx_scheduler_calls_failed_total", "RPC calls that ended in an error.",
                      stats.calls_failed);
    fx_metric_counter(out, "fx_scheduler_calls_refused_total", "RPC calls without a free slot.",
                      stats.calls_refused);
    fx_metric_gauge(out, "fx_scheduler_calls_active", "RPC calls that run.", stats.calls_active);
    fx_metric_counter(out, "fx_scheduler_redis_reconnects_total", "Connections to Redis lost.",
                      app->redis_reconnects);
    fx_metric_gauge(out, "fx_scheduler_redis_up", "Whether Redis answers.", app->redis_ready);
}
