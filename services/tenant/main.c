#include "common/base/log.h"
#include "common/http/admin.h"
#include "services/tenant/app.h"
#include "services/tenant/config.h"

static FX_MUST bool server_open(const struct tenant_config *config, struct tenant_app *app,
                                fx_server **out, fx_error *err) {
    struct fx_server_opts opts;
    fx_service_server_opts(&config->service, &opts);
    opts.calls_max = TENANT_CALLS_MAX;
    opts.arena_bytes = TENANT_ARENA_BYTES;
    opts.context = app;
    return fx_server_open(&opts, tenant_methods, tenant_method_count, out, err);
}

static FX_MUST bool admin_open(const struct tenant_config *config, struct tenant_app *app,
                               fx_admin **out, fx_error *err) {
    const struct fx_admin_opts opts = {.addr = config->service.admin_addr,
                                       .ctx = app,
                                       .live = tenant_app_live,
                                       .ready = tenant_app_ready,
                                       .metrics = tenant_app_metrics,
                                       .follow = tenant_app_follow};
    return fx_admin_open(&opts, out, err);
}

/* Freed in reverse: the loop's thread ends first, the loop itself goes last. */
static FX_MUST bool serve(const struct tenant_config *config, fx_error *err) {
    struct tenant_app app = {.health = config->health};
    fx_auto(fx_loop) loop = NULL;
    fx_auto(fx_server) server = NULL;
    fx_auto(fx_redis) redis = NULL;
    fx_auto(fx_admin) admin = NULL;
    if (!fx_token_read(config->token_file, app.token, err))
        return fx_wrap(err, "FX_BOOTSTRAP_TOKEN_FILE");
    if (!fx_loop_open(TENANT_CALLS_MAX, &loop, err)) return false;
    app.loop = loop;
    if (!server_open(config, &app, &server, err)) return fx_wrap(err, "FX_GRPC_ADDR");
    app.server = server;
    if (!tenant_app_redis(&app, config, &redis, err)) return false;
    app.redis = redis;
    if (!admin_open(config, &app, &admin, err)) return fx_wrap(err, "FX_ADMIN_ADDR");
    if (!fx_loop_start(loop, err)) return false;
    fx_log(FX_LOG_INFO, FX_EVENT("started"), FX_KI("port", fx_server_port(server)),
           FX_KI("admin_port", fx_admin_port(admin)));
    int signal = fx_signal_wait();
    fx_log(FX_LOG_INFO, FX_EVENT("draining"), FX_KI("signal", signal));
    app.draining = true;
    bool stopped = fx_server_stop(server, config->health.drain_ms, err);
    fx_loop_stop(loop);
    return stopped;
}

static FX_MUST bool run(int argc, char **argv, fx_error *err) {
    struct tenant_config config;
    bool helped = false;
    if (!fx_service_args(argc, argv, "fractal-tenant", "tenants and their API keys", tenant_env,
                         tenant_env_count, &helped, err))
        return false;
    if (helped) return true;
    if (!tenant_config_load(&config, err)) return false;
    fx_service_log("tenant", &config.service);
    return serve(&config, err);
}

int main(int argc, char **argv) {
    fx_error err = {0};
    fx_signal_block();
    return fx_exit(run(argc, argv, &err), &err);
}
