#include "common/base/hash.h"
#include "common/base/heap.h"
#include "common/base/log.h"
#include "common/http/admin.h"
#include "services/worker/io.h"

enum {
    ID_BYTES = 16,
    CALLS_MAX = 64,
    STOP_MS = 2000,
    PAGE_TOKENS = 64,
    CHUNK_ROWS = 128,      /* of a prefill in one step */
    CONTEXT_MAX = 1 << 17, /* tables grow with it, whatever a model claims */
};

static void status_init(struct worker_status *status, const struct worker_config *config,
                        char worker[2 * ID_BYTES + 1]) {
    uint8_t id[ID_BYTES];
    fx_random(id, sizeof(id));
    fx_hex((fx_span){id, sizeof(id)}, worker);
    status->worker = worker;
    status->model = config->model;
    status->backend = config->backend;
}

static void publish(void *ctx, const struct fx_engine_stats *stats) {
    worker_status_engine(ctx, stats);
}

static FX_MUST bool engine_open(const struct worker_config *config, const fx_model *model,
                                struct worker_status *status, engine_thread **out, fx_error *err) {
    const struct engine_thread_opts opts = {
        .engine =
            {
                     .model = model,
                     .backend = config->backend,
                     .kv_dtype = config->kv_dtype,
                     .threads = worker_threads(config),
                     .kv_bytes = config->kv_mib << 20,
                     .page_tokens = PAGE_TOKENS,
                     .slots = config->slots_max,
                     .rows_max = config->slots_max + CHUNK_ROWS,
                     .chunk_rows_max = CHUNK_ROWS,
                     .context_max = CONTEXT_MAX,
                     },
        .publish = publish,
        .ctx = status,
    };
    return engine_thread_open(&opts, out, err);
}

/* A worker without one serves what has no stop strings. */
static void tokenizer_open(const struct worker_config *config, const struct fx_model_info *info,
                           fx_tokenizer **out) {
    struct fx_bytes tokenizer = {0}, settings = {0};
    fx_error err = {0};
    if (!info->tokenizer_digest[0]) return;
    bool ok =
        fx_store_tokenizer(config->model_dir, info->tokenizer_digest, &tokenizer, &settings, &err);
    const struct fx_tokenizer_files files = {
        {tokenizer.at, tokenizer.len},
        {settings.at,  settings.len }
    };
    if (!ok || !fx_tokenizer_new(&files, out, &err))
        fx_log(FX_LOG_WARN, FX_EVENT("no_tokenizer"), FX_KS("reason", err.text));
    free(tokenizer.at);
    free(settings.at);
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
        .ready = worker_ready,
        .metrics = worker_metrics,
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

static FX_MUST bool serve(const struct worker_config *config, fx_error *err) {
    struct worker_status status = {0};
    char worker[2 * ID_BYTES + 1];
    fx_auto(fx_model) model = NULL; /* freed in reverse: each outlives what uses it */
    fx_auto(fx_tokenizer) tokenizer = NULL;
    fx_auto(engine_thread) engine = NULL;
    fx_auto(fx_server) server = NULL;
    fx_auto(fx_admin) admin = NULL;
    fx_auto(worker_io) io = NULL;
    status_init(&status, config, worker);
    if (!fx_store_open(config->model_dir, config->model, &model, err)) return false;
    const struct fx_model_info *info = fx_model_get_info(model);
    if (!engine_open(config, model, &status, &engine, err) ||
        !server_open(config, &status, &server, err) || !admin_open(config, &status, &admin, err))
        return false;
    tokenizer_open(config, info, &tokenizer);
    const struct worker_io_opts opts = {config, info, tokenizer, engine, &status, server, worker};
    if (!worker_io_open(&opts, &io, err)) return false;
    log_start(engine, info, &status, server);
    int signal = fx_signal_wait();
    fx_log(FX_LOG_INFO, FX_EVENT("draining"), FX_KI("signal", signal));
    worker_io_drain(io, config->drain_ms);
    return fx_server_stop(server, STOP_MS, err);
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
