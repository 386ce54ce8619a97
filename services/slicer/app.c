#include "services/slicer/app.h"
#include <stdio.h>
#include <stdlib.h>
#include "common/base/clock.h"
#include "common/http/admin.h"
#include "common/model/store.h"

bool slicer_post(fx_loop *loop, fx_call *call, const void *request, struct slicer_app *app,
                 void (*run)(void *job)) {
    struct slicer_job *job = fx_arena_alloc(fx_call_arena(call), sizeof *job);
    if (job) {
        *job = (struct slicer_job){app, call, request};
        if (fx_loop_post(loop, run, job)) return true;
    }
    fx_call_trailer(call, "retry-after-ms", "1000");
    fx_call_fail(call, FX_RESOURCE_EXHAUSTED, "too many calls wait for the model store");
    return false;
}

bool slicer_count_models(struct slicer_app *app, fx_error *err) {
    struct fx_model_list list;
    if (!fx_store_list(app->model_dir, &list, err)) return false;
    app->models = list.count;
    free(list.at);
    return true;
}

bool slicer_stops(const struct slicer_app *app) {
    uint64_t at_ms = app->stop_at_ms;
    return at_ms && fx_clock_ms() >= at_ms;
}

bool slicer_ready(void *ctx, char *reason) {
    struct slicer_app *app = ctx;
    if (!app->stop_at_ms) return true;
    (void)snprintf(reason, FX_ADMIN_REASON_MAX, "draining");
    return false;
}

void slicer_metrics(void *ctx, fx_buf *out) {
    struct slicer_app *app = ctx;
    struct fx_server_stats stats = fx_server_stats(app->server);
    fx_metric_gauge(out, "fx_slicer_models", "Models of the store.", app->models);
    fx_metric_counter(out, "fx_slicer_imports_total", "Imports that made a version.",
                      app->imports_done);
    fx_metric_counter(out, "fx_slicer_imports_failed_total",
                      "Imports that were refused or stopped.", app->imports_failed);
    fx_metric_gauge(out, "fx_slicer_importing", "Whether an import runs.", app->importing);
    fx_metric_gauge(out, "fx_slicer_import_done_bytes", "Bytes done of the import that runs.",
                    app->import_done_bytes);
    fx_metric_gauge(out, "fx_slicer_import_total_bytes", "Bytes to do of the import that runs.",
                    app->import_total_bytes);
    fx_metric_counter(out, "fx_slicer_verified_total", "Models found whole.", app->verified);
    fx_metric_counter(out, "fx_slicer_verify_failed_total", "Models found damaged.",
                      app->verify_failed);
    fx_metric_counter(out, "fx_slicer_calls_total", "RPC calls.", stats.calls);
    fx_metric_counter(out, "fx_slicer_calls_failed_total", "RPC calls that ended with an error.",
                      stats.calls_failed);
    fx_metric_counter(out, "fx_slicer_calls_refused_total", "RPC calls without a free slot.",
                      stats.calls_refused);
    fx_metric_gauge(out, "fx_slicer_calls_active", "RPC calls that run.", stats.calls_active);
}
