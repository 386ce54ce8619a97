#include <stdlib.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/http/admin.h"
#include "services/worker/io.h"
#include "services/worker/load.h"

enum {
    ID_BYTES = 16,
    CALLS_MAX = 64,
    STOP_MS = 2000,
    LOAD_POLL_MS = 20,
};

static void status_init(struct worker_status *status, const struct worker_config *config,
                        char worker[2 * ID_BYTES + 1]) {
    uint8_t id[ID_BYTES];
    fx_random(id, sizeof(id));
    fx_hex((fx_span){id, sizeof(id)}, worker);
    status->worker = worker;
    status->model = config->model;
    status->backend = config->backend;
    status->unready_ms = config->health.unready_ms;
    status->dead_ms = config->health.dead_ms;
}

static FX_MUST bool server_open(const struct worker_config *config, struct worker_status *status,
                                fx_server **out, fx_error *err) {
    struct fx_server_opts opts;
    fx_service_server_opts(&config->service, &opts);
    opts.calls_max = CALLS_MAX;
    opts.context = status;
    return fx_server_open(&opts, worker_methods, worker_methods_count, out, err);
}

static FX_MUST bool admin_open(const struct worker_config *config, struct worker_status *status,
                               fx_admin **out, fx_error *err) {
    const struct fx_admin_opts opts = {
        .addr = config->service.admin_addr,
        .ctx = status,
        .live = worker_live,
        .ready = worker_ready,
        .metrics = worker_metrics,
        .follow = worker_follow,
    };
    return fx_admin_open(&opts, out, err);
}

static void log_start(const engine_thread *engine, const struct fx_model_info *info,
                      const struct worker_status *status, const fx_server *server) {
    fx_log(FX_LOG_INFO, FX_EVENT("started"), FX_KS("worker", status->worker),
           FX_KS("model", info->name), FX_KS("version", info->version),
           FX_KS("dtype", fx_model_dtype_name(info->dtype)), FX_KS("backend", status->backend),
           FX_KS("level", engine_thread_level(engine)),
           FX_KI("context", engine_thread_context_max(engine)),
           FX_KI("kv_blocks", status_get(status, STATUS_KV_BLOCKS)),
           FX_KI("port", fx_server_port(server)));
}

/* False: a signal came first. Nothing was begun that others would miss, so the process may go, with
 * the loading thread wherever it is. */
static bool load_wait(worker_load *load) {
    int signal = 0;
    while (!worker_load_ended(load))
        if ((signal = fx_signal_wait_ms(LOAD_POLL_MS))) break;
    if (!signal) return true;
    fx_log(FX_LOG_INFO, FX_EVENT("ended_while_loading"), FX_KI("signal", signal));
    return false;
}

/* A thread that is stuck can't be waited for, and has nothing that was not given back. */
static void leave_if_stuck(const struct worker_status *status) {
    if (!worker_is_stuck(status)) return;
    fx_log(FX_LOG_ERROR, FX_EVENT("ended_stuck"));
    _exit(EXIT_FAILURE);
}

static FX_MUST bool until_signal(const struct worker_config *config, const worker_load *load,
                                 struct worker_status *status, fx_error *err) {
    const struct worker_parts *parts = worker_load_parts(load);
    const struct fx_model_info *info = fx_model_get_info(parts->model);
    const struct worker_io_opts opts = {config,        info,   parts->tokenizer,
                                        parts->engine, status, status->worker};
    fx_auto(worker_io) io = NULL;
    status_set(status, STATUS_SOUND_MS, fx_clock_ms());
    status_set(status, STATUS_TURNED_MS, fx_clock_ms());
    if (!worker_io_open(&opts, &io, err)) return false;
    status_set(status, STATUS_LOADED, 1);
    log_start(parts->engine, info, status, status->server);
    int signal = fx_signal_wait();
    fx_log(FX_LOG_INFO, FX_EVENT("draining"), FX_KI("signal", signal));
    fx_server_set_serving(status->server, false);
    worker_io_drain(io, config->health.drain_ms);
    leave_if_stuck(status);
    return fx_server_stop(status->server, STOP_MS, err);
}

static FX_MUST bool serve(const struct worker_config *config, fx_error *err) {
    struct worker_status status = {0};
    char worker[2 * ID_BYTES + 1];
    fx_auto(worker_load) load = NULL; /* freed in reverse: each outlives what uses it */
    fx_auto(fx_server) server = NULL;
    fx_auto(fx_admin) admin = NULL;
    status_init(&status, config, worker);
    if (!server_open(config, &status, &server, err)) return false;
    status.server = server;
    if (!admin_open(config, &status, &admin, err) ||
        !worker_load_start(config, &status, &load, err))
        return false;
    if (!load_wait(load)) _exit(EXIT_SUCCESS);
    return worker_load_result(load, err) && until_signal(config, load, &status, err);
}

static FX_MUST bool run(int argc, char **argv, fx_error *err) {
    struct worker_config config;
    bool helped = false;
    if (!fx_service_args(argc, argv, "fractal-worker", "runs generations of one model", worker_env,
                         worker_env_count, &helped, err))
        return false;
    if (helped) return true;
    if (!fx_env_load(worker_env, worker_env_count, &config, err) ||
        !worker_config_check(&config, err))
        return false;
    fx_service_log("worker", &config.service);
    return serve(&config, err);
}

int main(int argc, char **argv) {
    fx_error err = {0};
    fx_signal_block();
    return fx_exit(run(argc, argv, &err), &err);
}
