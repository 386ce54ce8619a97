#include <errno.h>
#include <sys/stat.h>
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/http/admin.h"
#include "common/model/store.h"
#include "services/slicer/app.h"
#include "services/slicer/config.h"

enum { STOP_MS = 2000 }; /* for what is told to stop: it looks at each chunk */

static FX_MUST bool server_open(const struct slicer_config *config, struct slicer_app *app,
                                fx_server **out, fx_error *err) {
    struct fx_server_opts opts;
    fx_service_server_opts(&config->service, &opts);
    opts.calls_max = SLICER_CALLS_MAX;
    opts.arena_bytes = SLICER_ARENA_BYTES;
    opts.message_bytes_max = SLICER_MESSAGE_BYTES_MAX;
    opts.context = app;
    return fx_server_open(&opts, slicer_methods, slicer_method_count, out, err);
}

static FX_MUST bool admin_open(const struct slicer_config *config, struct slicer_app *app,
                               fx_admin **out, fx_error *err) {
    const struct fx_admin_opts opts = {.addr = config->service.admin_addr,
                                       .ctx = app,
                                       .ready = slicer_ready,
                                       .metrics = slicer_metrics};
    return fx_admin_open(&opts, out, err);
}

static FX_MUST bool thread_open(uint32_t inbox_max, fx_loop **out, fx_error *err) {
    return fx_loop_open(inbox_max, out, err) && fx_loop_start(*out, err);
}

/* The store's folder is made when it is missing; what a killed import left goes. */
static FX_MUST bool store_open(const struct slicer_config *config, struct slicer_app *app,
                               fx_error *err) {
    app->model_dir = config->model_dir;
    if (mkdir(config->model_dir, 0755) != 0 && errno != EEXIST)
        return fx_fail_errno(err, "create '%.150s'", config->model_dir);
    fx_store_clean(config->model_dir);
    return slicer_count_models(app, err);
}

/* Freed in reverse: the server's calls end before the threads that answer them. */
static FX_MUST bool serve(const struct slicer_config *config, fx_error *err) {
    struct slicer_app app = {0};
    fx_auto(fx_loop) reads = NULL;
    fx_auto(fx_loop) imports = NULL;
    fx_auto(fx_loop) verifies = NULL;
    fx_auto(fx_server) server = NULL;
    fx_auto(fx_admin) admin = NULL;
    if (!fx_token_read(config->token_file, app.token, err))
        return fx_wrap(err, "FX_BOOTSTRAP_TOKEN_FILE");
    if (!store_open(config, &app, err)) return fx_wrap(err, "FX_MODEL_DIR");
    if (!thread_open(SLICER_CALLS_MAX, &reads, err) || !thread_open(1, &imports, err) ||
        !thread_open(SLICER_VERIFIES_MAX, &verifies, err))
        return false;
    app.reads = reads;
    app.imports = imports;
    app.verifies = verifies;
    if (!server_open(config, &app, &server, err)) return fx_wrap(err, "FX_GRPC_ADDR");
    app.server = server;
    if (!admin_open(config, &app, &admin, err)) return fx_wrap(err, "FX_ADMIN_ADDR");
    fx_server_set_serving(server, true);
    fx_log(FX_LOG_INFO, FX_EVENT("ready"), FX_KI("port", fx_server_port(server)),
           FX_KI("admin_port", fx_admin_port(admin)), FX_KI("models", app.models));
    int signal = fx_signal_wait();
    fx_log(FX_LOG_INFO, FX_EVENT("draining"), FX_KI("signal", signal));
    app.stop_at_ms = fx_clock_ms() + config->health.drain_ms;
    return fx_server_stop(server, config->health.drain_ms + STOP_MS, err);
}

static FX_MUST bool run(int argc, char **argv, fx_error *err) {
    struct slicer_config config;
    bool helped = false;
    if (!fx_service_args(argc, argv, "fractal-slicer", "the model store", slicer_env,
                         slicer_env_count, &helped, err))
        return false;
    if (helped) return true;
    if (!slicer_config_load(&config, err)) return false;
    fx_service_log("slicer", &config.service);
    return serve(&config, err);
}

int main(int argc, char **argv) {
    fx_error err = {0};
    fx_signal_block();
    return fx_exit(run(argc, argv, &err), &err);
}
