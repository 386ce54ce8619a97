#include "engine/engine_internal.h"
#include "common/base/heap.h"
#include <string.h>
#include <sys/mman.h>

/* Zeroed memory of its own, present from the start: nothing can run out of it later. */
static FX_MUST bool map_memory(size_t bytes, const char *what, uint8_t **out, fx_error *err) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
                    -1, 0);
    if (at == MAP_FAILED)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "%zu bytes for the %s", bytes, what);
    *out = at;
    return true;
}

static FX_MUST bool opts_check(const struct fx_engine_opts *opts, fx_error *err) {
    if (strcmp(opts->kv_dtype, "f32") != 0 && strcmp(opts->kv_dtype, "f16") != 0)
        return fx_fail(err, FX_INVALID_ARGUMENT, "KV dtype '%s': f32 or f16", opts->kv_dtype);
    if (opts->page_tokens != 16 && opts->page_tokens != 64)
        return fx_fail(err, FX_INVALID_ARGUMENT, "KV pages of %u tokens: 16 or 64",
                       opts->page_tokens);
    if (opts->threads < 1 || opts->threads > FX_TEAM_THREADS_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%u threads: 1 to %d", opts->threads,
                       FX_TEAM_THREADS_MAX);
    if (opts->slots < 1 || opts->slots > FX_ENGINE_SLOTS_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%u slots: 1 to %d", opts->slots,
                       FX_ENGINE_SLOTS_MAX);
    if (opts->rows_max < opts->slots || opts->rows_max > FX_ROWS_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%u rows a step: %u (slots) to %d", opts->rows_max,
                       opts->slots, FX_ROWS_MAX);
    if (opts->chunk_rows_max < 1 || opts->chunk_rows_max > opts->rows_max)
        return fx_fail(err, FX_INVALID_ARGUMENT, "prefill chunks of %u rows: 1 to %u",
                       opts->chunk_rows_max, opts->rows_max);
    return true;
}

static struct fx_rope rope_of(const struct fx_model_rope *rope) {
    static const enum fx_rope_rule rules[] = {[FX_ROPE_PLAIN] = FX_ROPE_AS_IS,
                                              [FX_ROPE_LINEAR] = FX_ROPE_DIVIDED,
                                              [FX_ROPE_LLAMA3] = FX_ROPE_BANDED};
    return (struct fx_rope){rope->theta,      rules[rope->scaling], rope->factor,
                            rope->low_factor, rope->high_factor,    rope->context};
}

static struct fx_shape shape_of(const struct fx_model_config *config, uint32_t positions) {
    return (struct fx_shape){
        .hidden = config->hidden,
        .heads = config->heads,
        .kv_heads = config->kv_heads,
        .head_dim = config->head_dim,
        .ffn = config->intermediate,
        .experts = config->experts,
        .experts_per_token = config->experts_per_token,
        .expert_ffn = config->expert_intermediate,
        .shared_ffn = config->shared_intermediate,
        .gates_raw = config->gates_raw,
        .vocab = config->vocabulary,
        .positions = positions,
        .norm_eps = config->norm_eps,
        .rope = rope_of(&config->rope),
    };
}

/* The window of the page tables: none as soon as one layer sees everything. */
static uint32_t pool_window(const struct fx_model_config *config) {
    for (uint32_t layer = 0; layer < config->layers; layer++)
        if (!fx_layer_set_has(&config->window_layers, layer)) return 0;
    return config->window;
}

/* How long a sequence may get: the model's context, and what the pool holds of one sequence. */
static uint32_t context_of(const fx_engine *engine, uint32_t pages) {
    const struct fx_model_config *config = engine->config;
    const struct fx_engine_opts *opts = &engine->opts;
    uint32_t context = config->context_max;
    if (opts->context_max && opts->context_max < context) context = opts->context_max;
    uint64_t pool_tokens = (uint64_t)pages * opts->page_tokens;
    uint32_t window = pool_window(config);
    uint64_t seen = (uint64_t)window + opts->chunk_rows_max + 2ULL * opts->page_tokens;
    if (window && seen <= pool_tokens) return context;
    return pool_tokens < context ? (uint32_t)pool_tokens : context;
}

static FX_MUST bool pool_open(fx_engine *engine, fx_error *err) {
    const struct fx_model_config *config = engine->config;
    enum fx_kv_type type = strcmp(engine->opts.kv_dtype, "f16") == 0 ? FX_KV_F16 : FX_KV_F32;
    struct fx_shape shape = shape_of(config, 1);
    uint64_t half = fx_kv_page_bytes(&shape, engine->opts.page_tokens, type);
    uint64_t page_bytes = half * 2 * config->layers, pages = engine->opts.kv_bytes / page_bytes;
    if (pages < 1 || pages > UINT32_MAX - 1)
        return fx_fail(err, FX_INVALID_ARGUMENT, "a KV pool of %llu bytes; a page has %llu",
                       (unsigned long long)engine->opts.kv_bytes, (unsigned long long)page_bytes);
    engine->opts.context_max = context_of(engine, (uint32_t)pages);
    if (engine->opts.context_max < 2)
        return fx_fail(err, FX_INVALID_ARGUMENT, "a context of %u tokens",
                       engine->opts.context_max);
    struct fx_kv_pool_opts opts = {(uint32_t)pages, engine->opts.page_tokens, engine->opts.slots,
                                   engine->opts.context_max, pool_window(config)};
    engine->pool_bytes = pages * page_bytes;
    if (!map_memory(engine->pool_bytes, "KV pool", &engine->pool, err)) return false;
    for (uint32_t layer = 0; layer < config->layers; layer++) {
        uint8_t *k = engine->pool + (size_t)layer * 2 * half;
        engine->layers[layer].kv = (struct fx_kv){k, k + half, page_bytes, type};
    }
    return fx_kv_pool_open(&opts, &engine->kv, err);
}

static struct fx_mlp mlp_of(const struct fx_mlp_weights *weights) {
    return (struct fx_mlp){weights->gate, weights->up, weights->down};
}

static FX_MUST bool layers_open(fx_engine *engine, fx_error *err) {
    uint32_t layers = engine->config->layers, experts = engine->config->experts;
    engine->layers = fx_alloc(layers, sizeof(*engine->layers));
    engine->experts = fx_alloc((size_t)layers * experts, sizeof(*engine->experts));
    if (!engine->layers || !engine->experts)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "tables of %u layers", layers);
    for (uint32_t l = 0; l < layers; l++) {
        const struct fx_layer_weights *weights = &engine->weights->layers[l];
        struct fx_engine__layer *layer = &engine->layers[l];
        layer->weights = weights;
        layer->qkv =
            (struct fx_qkv){weights->q,      weights->k,      weights->v,      weights->q_bias,
                            weights->k_bias, weights->v_bias, weights->q_norm, weights->k_norm};
        layer->window =
            fx_layer_set_has(&engine->config->window_layers, l) ? engine->config->window : 0;
        layer->mlp = mlp_of(&weights->mlp);
        layer->shared = mlp_of(&weights->shared);
        layer->experts = engine->experts + (size_t)l * experts;
        for (uint32_t e = 0; e < experts; e++)
            layer->experts[e] = mlp_of(&weights->experts[e]);
    }
    return true;
}

static FX_MUST bool exec_open(fx_engine *engine, fx_error *err) {
    const struct fx_engine_opts *opts = &engine->opts;
    struct fx_shape shape = shape_of(engine->config, opts->context_max);
    uint32_t logit_rows = opts->on_row ? opts->rows_max : opts->slots;
    if (!fx_shape_check(&shape, err)) return false;
    engine->ops = fx_ops_pick(opts->backend, err);
    if (!engine->ops) return false;
    if (!fx_team_open(opts->threads, &engine->team, err)) return false;
    engine->workspace_bytes = fx_ops_workspace(&shape, opts->rows_max, logit_rows);
    if (!map_memory(engine->workspace_bytes, "workspace", &engine->workspace, err)) return false;
    fx_exec_init(&engine->exec, &shape, opts->rows_max, logit_rows, engine->workspace,
                 engine->team);
    return true;
}

static FX_MUST bool tables_open(fx_engine *engine, fx_error *err) {
    const struct fx_engine_opts *opts = &engine->opts;
    const struct fx_model_config *config = engine->config;
    size_t chosen = (size_t)config->layers * config->experts_per_token;
    engine->slots = fx_alloc(opts->slots, sizeof(*engine->slots));
    engine->ids = fx_alloc((size_t)opts->slots * opts->context_max, sizeof(*engine->ids));
    engine->biases = fx_alloc((size_t)opts->slots * FX_BIASES_MAX, sizeof(*engine->biases));
    engine->logprobs = fx_alloc((size_t)opts->slots * FX_LOGPROBS_MAX, sizeof(*engine->logprobs));
    engine->order = fx_alloc(opts->slots, sizeof(*engine->order));
    engine->tokens = fx_alloc(opts->rows_max, sizeof(*engine->tokens));
    engine->positions = fx_alloc(opts->rows_max, sizeof(*engine->positions));
    engine->sequences = fx_alloc(opts->rows_max, sizeof(*engine->sequences));
    engine->logit_of = fx_alloc(opts->rows_max, sizeof(*engine->logit_of));
    engine->traced = fx_alloc(opts->on_row ? opts->rows_max * chosen : 0, sizeof(*engine->traced));
    engine->scratch.weights = fx_alloc(config->vocabulary, sizeof(float));
    engine->scratch.logits = fx_alloc(config->vocabulary, sizeof(float));
    engine->scratch.ids = fx_alloc(config->vocabulary, sizeof(uint32_t));
    engine->results = fx_alloc(opts->slots, sizeof(*engine->results));
    engine->details = fx_alloc(opts->slots, sizeof(*engine->details));
    if (!engine->slots || !engine->ids || !engine->order || !engine->tokens || !engine->positions ||
        !engine->sequences || !engine->logit_of || !engine->traced || !engine->scratch.weights ||
        !engine->scratch.logits || !engine->scratch.ids || !engine->biases || !engine->logprobs ||
        !engine->results || !engine->details)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "tables of %u sequences", opts->slots);
    for (uint32_t i = 0; i < opts->slots; i++) {
        engine->slots[i].ids = engine->ids + (size_t)i * opts->context_max;
        engine->slots[i].logprobs = engine->logprobs + (size_t)i * FX_LOGPROBS_MAX;
        engine->slots[i].biases = engine->biases + (size_t)i * FX_BIASES_MAX;
    }
    return true;
}

bool fx_engine_open(const struct fx_engine_opts *opts, fx_engine **out, fx_error *err) {
    if (!opts_check(opts, err)) return false;
    fx_auto(fx_engine) engine = fx_alloc(1, sizeof(*engine));
    if (!engine) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "the engine");
    engine->opts = *opts;
    engine->config = fx_model_get_config(opts->model);
    engine->weights = fx_model_get_weights(opts->model);
    engine->codes = fx_model_get_info(opts->model)->dtype == FX_MODEL_INT4;
    if (!layers_open(engine, err) || !pool_open(engine, err) || !exec_open(engine, err) ||
        !tables_open(engine, err))
        return false;
    *out = fx_take(engine);
    return true;
}

static void buffers_free(fx_engine *engine) {
    void *const buffers[] = {engine->layers,    engine->experts,         engine->slots,
                             engine->ids,       engine->order,           engine->tokens,
                             engine->positions, engine->sequences,       engine->logit_of,
                             engine->traced,    engine->scratch.weights, engine->scratch.ids,
                             engine->results,   engine->details,         engine->scratch.logits,
                             engine->biases,    engine->logprobs};
    for (size_t i = 0; i < FX_COUNT(buffers); i++)
        free(buffers[i]);
}

void fx_engine_free(fx_engine *engine) {
    if (!engine) return;
    fx_team_free(engine->team);
    fx_kv_pool_free(engine->kv);
    if (engine->pool) (void)munmap(engine->pool, engine->pool_bytes);
    if (engine->workspace) (void)munmap(engine->workspace, engine->workspace_bytes);
    buffers_free(engine);
    free(engine);
}
