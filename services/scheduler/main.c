#include <stdlib.h>
#include <unistd.h>
#include "common/base/heap.h"
#include "common/base/log.h"
#include "common/http/admin.h"
#include "services/scheduler/app.h"

static FX_MUST bool server_open(struct scheduler_app *app, fx_server **out, fx_error *err) {
    struct fx_server_opts opts;
    fx_service_server_opts(&app->config->service, &opts);
    opts.calls_max = SCHEDULER_CALLS_MAX;
    opts.arena_bytes = SCHEDULER_ARENA_BYTES;
    opts.context = app;
    if (fx_server_open(&opts, scheduler_methods, scheduler_method_count, out, err)) return true;
    return fx_wrap(err, "FX_GRPC_ADDR");
}

static FX_MUST bool admin_open(struct scheduler_app *app, fx_admin **out, fx_error *err) {
    const struct fx_admin_opts opts = {.addr = app->config->service.admin_addr,
                                       .ctx = app,
                                       .live = scheduler_app_live,
                                       .ready = scheduler_app_ready,
                                       .metrics = scheduler_app_metrics,
                                       .follow = scheduler_app_follow};
    if (fx_admin_open(&opts, out, err)) return true;
    return fx_wrap(err, "FX_ADMIN_ADDR");
}

/* A loop that does not turn can't be waited for; all it had is in Redis. */
static void leave_if_stuck(struct scheduler_app *app) {
    if (fx_loop_silence_ms(app->loop) < app->config->health.unready_ms) return;
    fx_log(FX_LOG_ERROR, FX_EVENT("ended_stuck"));
    _exit(EXIT_FAILURE);
}

/* The server stops first, then the loop that answers its calls. */
static FX_MUST bool until_signal(struct scheduler_app *app, fx_admin *admin, fx_error *err) {
    if (!fx_loop_start(app->loop, err)) return false;
    fx_log(FX_LOG_INFO, FX_EVENT("started"), FX_KI("port", fx_server_port(app->server)),
           FX_KI("admin_port", fx_admin_port(admin)));
    int signal = fx_signal_wait();
    fx_log(FX_LOG_INFO, FX_EVENT("draining"), FX_KI("signal", signal));
    app->draining = true;
    bool stopped = fx_server_stop(app->server, app->config->health.drain_ms, err);
    leave_if_stuck(app);
    fx_loop_stop(app->loop);
    return stopped;
}

static FX_MUST bool serve_app(struct scheduler_app *app, fx_error *err) {
    fx_auto(fx_loop) loop = NULL;
    fx_auto(fx_server) server = NULL;
    fx_auto(fx_admin) admin = NULL;
    if (!fx_loop_open(SCHEDULER_INBOX_MAX, &loop, err)) return false;
    app->loop = loop;
    if (!server_open(app, &server, err)) return false;
    app->server = server;
    bool ok = scheduler_app_open(app, err) && admin_open(app, &admin, err) &&
              until_signal(app, admin, err);
    scheduler_app_close(app);
    return ok;
}

static FX_MUST bool serve(const struct scheduler_config *config, fx_error *err) {
    struct scheduler_app *app = fx_alloc(1, sizeof *app);
    if (!app) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory to start");
    app->config = config;
    (void)pthread_mutex_init(&app->lock, NULL);
    bool ok = serve_app(app, err);
    (void)pthread_mutex_destroy(&app->lock);
    free(app);
    return ok;
}

static FX_MUST bool run(int argc, char **argv, fx_error *err) {
    struct scheduler_config config;
    bool helped = false;
    if (!fx_service_args(argc, argv, "fractal-scheduler", "admission, fair dispatch, leases",
                         scheduler_env, scheduler_env_count, &helped, err))
        return false;
    if (helped) return true;
    if (!scheduler_config_load(&config, err)) return false;
    fx_service_log("scheduler", &config.service);
    return serve(&config, err);
}

int main(int argc, char **argv) {
    fx_error err = {0};
    fx_signal_block();
    return fx_exit(run(argc, argv, &err), &err);
}
