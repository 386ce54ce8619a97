#include "services/worker/load.h"
#include "common/base/heap.h"
#include "common/base/log.h"
#include <pthread.h>

enum {
    PAGE_TOKENS = 64,
    CHUNK_ROWS = 128,      /* of a prefill in one step */
    CONTEXT_MAX = 1 << 17, /* tables grow with it, whatever a model claims */
};

struct worker_load {
    const struct worker_config *config;
    struct worker_status *status;
    struct worker_parts parts;
    pthread_t thread;
    _Atomic bool ended;
    bool ok; /* set before `ended`, as err */
    fx_error err;
};

static void publish(void *ctx, const struct fx_engine_stats *stats) {
    worker_status_engine(ctx, stats);
}

static FX_MUST bool engine_open(worker_load *load, fx_error *err) {
    const struct worker_config *config = load->config;
    const struct engine_thread_opts opts = {
        .engine =
            {
                     .model = load->parts.model,
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
        .ctx = load->status,
    };
    return engine_thread_open(&opts, &load->parts.engine, err);
}

/* A worker without one serves what has no stop strings. */
static void tokenizer_open(worker_load *load) {
    const struct fx_model_info *info = fx_model_get_info(load->parts.model);
    const char *store = load->config->model_dir;
    struct fx_bytes tokenizer = {0}, settings = {0};
    fx_error err = {0};
    if (!info->tokenizer_digest[0]) return;
    bool ok = fx_store_tokenizer(store, info->tokenizer_digest, &tokenizer, &settings, &err);
    const struct fx_tokenizer_files files = {
        {tokenizer.at, tokenizer.len},
        {settings.at,  settings.len }
    };
    if (!ok || !fx_tokenizer_new(&files, &load->parts.tokenizer, &err))
        fx_log(FX_LOG_WARN, FX_EVENT("no_tokenizer"), FX_KS("reason", err.text));
    free(tokenizer.at);
    free(settings.at);
}

static void *run(void *user) {
    worker_load *load = user;
    const struct worker_config *config = load->config;
    (void)pthread_setname_np(pthread_self(), "load");
    load->ok = fx_store_open(config->model_dir, config->model, &load->parts.model, &load->err) &&
               engine_open(load, &load->err);
    if (load->ok) tokenizer_open(load);
    load->ended = true;
    return NULL;
}

bool worker_load_start(const struct worker_config *config, struct worker_status *status,
                       worker_load **out, fx_error *err) {
    worker_load *load = fx_alloc(1, sizeof(*load));
    if (!load) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory to load the model");
    load->config = config;
    load->status = status;
    if (pthread_create(&load->thread, NULL, run, load) != 0) {
        free(load);
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no thread to load the model");
    }
    *out = load;
    return true;
}

bool worker_load_ended(const worker_load *load) {
    return load->ended;
}

bool worker_load_result(const worker_load *load, fx_error *err) {
    if (!load->ok) *err = load->err;
    return load->ok;
}

const struct worker_parts *worker_load_parts(const worker_load *load) {
    return &load->parts;
}

void worker_load_free(worker_load *load) {
    if (!load) return;
    (void)pthread_join(load->thread, NULL);
    engine_thread_free(load->parts.engine);
    fx_tokenizer_free(load->parts.tokenizer);
    fx_model_free(load->parts.model);
    free(load);
}
