#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/heap.h"
#include "engine/engine.h"
#include "services/cli/cli.h"

/* `fractal logits`: the engine without services. */

enum { IDS_MAX = 65536, CHUNK_DEFAULT = 64, TOP = 5, PATH_BYTES_MAX = 4096 };

struct options {
    const char *ids, *backend, *dtype, *kv_dtype, *raw, *router;
    struct cli_u64 threads, page, chunk;
};
#define AT(member) offsetof(struct options, member)
static const struct cli_option options_table[] = {
    {"ids",      CLI_TEXT,   AT(ids),      0,  0,    "1,2,3",        NULL,           "the token ids"              },
    {"raw",      CLI_TEXT,   AT(raw),      0,  0,    "FILE",         NULL,
     "write the logits: little-endian f32 [n, vocab]"                                                             },
    {"router",   CLI_TEXT,   AT(router),   0,  0,    "FILE",         NULL,
     "write the chosen experts per layer and position, as JSON"                                                   },
    {"backend",  CLI_ONE_OF, AT(backend),  0,  0,    "ref|cpu",      "ref|cpu",      "the same bits; cpu"         },
    {"dtype",    CLI_ONE_OF, AT(dtype),    0,  0,    "f32|f16|int4", "f32|f16|int4",
     "weights of a folder's import; f32. A stored model has its own"                                              },
    {"kv-dtype", CLI_ONE_OF, AT(kv_dtype), 0,  0,    "f32|f16",      "f32|f16",      "KV cache; f32"              },
    {"threads",  CLI_U64,    AT(threads),  1,  256,  "N",            NULL,           "compute threads; 1"         },
    {"page",     CLI_U64,    AT(page),     16, 64,   "16|64",        NULL,           "tokens of a KV page; 64"    },
    {"chunk",    CLI_U64,    AT(chunk),    1,  4096, "N",            NULL,           "rows of a prefill chunk; 64"},
};

/* What a run collects. */
struct job {
    struct options options;
    const char *model_name;
    uint32_t *ids, count;
    fx_model *model;
    FILE *raw;
    int32_t *experts; /* [positions][layers][experts_per_token] */
    uint32_t vocab;
    size_t chosen; /* layers * experts_per_token */
    int write_errno;
};

static void job_done(struct job *job) {
    if (job->raw) (void)fclose(job->raw);
    fx_model_free(job->model);
    free(job->ids);
    free(job->experts);
}

static int show_help(void) {
    (void)printf(
        "usage: fractal logits MODEL --ids 1,2,3 [OPTIONS]\n\n"
        "f32 logits of every position, by the engine without services. MODEL is a name in\n"
        "the store (FX_MODEL_DIR) or a Hugging Face folder. Without --raw the largest\n"
        "logits of each position are printed.\n\n");
    for (size_t i = 0; i < FX_COUNT(options_table); i++) {
        char left[64];
        (void)snprintf(left, sizeof left, "--%s %s", options_table[i].name,
                       options_table[i].placeholder);
        (void)printf("  %-24s %s\n", left, options_table[i].help);
    }
    return CLI_OK;
}

static FX_MUST bool parse_ids(struct job *job, fx_error *err) {
    const char *at = job->options.ids;
    job->ids = fx_alloc(IDS_MAX, sizeof(*job->ids));
    if (!job->ids) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "token ids");
    while (true) {
        char *end;
        errno = 0;
        unsigned long id = strtoul(at, &end, 10);
        if (*at < '0' || *at > '9' || errno || id > UINT32_MAX || (*end && *end != ','))
            return fx_fail(err, FX_INVALID_ARGUMENT, "--ids: want numbers like 1,2,3 at '%.20s'",
                           at);
        if (job->count == IDS_MAX)
            return fx_fail(err, FX_INVALID_ARGUMENT, "--ids: at most %d", IDS_MAX);
        job->ids[job->count++] = (uint32_t)id;
        if (!*end) return true;
        at = end + 1;
    }
}

static FX_MUST bool parse(struct job *job, int argc, char **argv, fx_error *err) {
    job->options = (struct options){
        .backend = "cpu",
        .kv_dtype = "f32",
        .threads = {1,             false},
        .page = {64,            false},
        .chunk = {CHUNK_DEFAULT, false}
    };
    int left =
        cli_options(options_table, FX_COUNT(options_table), argc - 1, argv + 1, &job->options, err);
    if (left < 0) return false;
    if (left != 1) return fx_fail(err, FX_INVALID_ARGUMENT, "want one MODEL, got %d", left);
    if (!job->options.ids) return fx_fail(err, FX_INVALID_ARGUMENT, "--ids is missing");
    job->model_name = argv[1];
    return parse_ids(job, err);
}

static bool is_folder(const char *name) {
    char path[PATH_BYTES_MAX];
    int len = snprintf(path, sizeof path, "%s/config.json", name);
    return len > 0 && len < PATH_BYTES_MAX && access(path, F_OK) == 0;
}

struct store_settings {
    const char *dir;
};
static const struct fx_env_row store_env[] = {
    {"FX_MODEL_DIR", FX_ENV_TEXT, offsetof(struct store_settings, dir), 0, 0, "", NULL,
     "folder of the model store"},
};

static FX_MUST bool open_stored(struct job *job, fx_error *err) {
    struct store_settings settings;
    if (!fx_env_load(store_env, FX_COUNT(store_env), &settings, err)) return false;
    if (!*settings.dir)
        return fx_fail(err, FX_NOT_FOUND,
                       "'%s' is no folder with a config.json, and FX_MODEL_DIR names no store",
                       job->model_name);
    if (!fx_store_open(settings.dir, job->model_name, &job->model, err)) return false;
    const char *has = fx_model_dtype_name(fx_model_get_info(job->model)->dtype);
    if (job->options.dtype && strcmp(job->options.dtype, has) != 0)
        return fx_fail(err, FX_FAILED_PRECONDITION,
                       "--dtype %s: '%s' is stored as %s; give the checkpoint's folder instead",
                       job->options.dtype, job->model_name, has);
    return true;
}

static FX_MUST bool open_model(struct job *job, fx_error *err) {
    const char *dtype = job->options.dtype ? job->options.dtype : "f32";
    bool opened = is_folder(job->model_name)
                      ? fx_store_open_folder(job->model_name, fx_model_dtype_of(dtype), NULL,
                                             &job->model, err)
                      : open_stored(job, err);
    if (!opened) return false;
    const struct fx_model_config *config = fx_model_get_config(job->model);
    job->vocab = config->vocabulary;
    job->chosen = (size_t)config->layers * config->experts_per_token;
    if (job->options.router && !job->chosen)
        return fx_fail(err, FX_INVALID_ARGUMENT, "--router: '%s' has no experts", job->model_name);
    job->experts = fx_alloc(job->count * job->chosen, sizeof(*job->experts));
    if (!job->experts) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "routes");
    return true;
}

static uint32_t largest_below(const float *logits, uint32_t vocab, const uint32_t *taken,
                              uint32_t count) {
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < vocab; i++) {
        bool is_taken = false;
        for (uint32_t t = 0; t < count; t++)
            is_taken = is_taken || taken[t] == i;
        if (!is_taken && (best == UINT32_MAX || logits[i] > logits[best])) best = i;
    }
    return best;
}

static void print_row(const struct job *job, const struct fx_engine_row *row) {
    uint32_t top[TOP], count = job->vocab < TOP ? job->vocab : TOP;
    (void)printf("%6u %8u ->", row->position, job->ids[row->position]);
    for (uint32_t i = 0; i < count; i++) {
        top[i] = largest_below(row->logits, job->vocab, top, i);
        (void)printf("  %u (%.4f)", top[i], (double)row->logits[top[i]]);
    }
    (void)printf("\n");
}

static void on_row(void *ctx, const struct fx_engine_row *row) {
    struct job *job = ctx;
    if (job->chosen)
        memcpy(job->experts + row->position * job->chosen, row->experts,
               job->chosen * sizeof(*job->experts));
    if (!job->raw)
        print_row(job, row);
    else if (fwrite(row->logits, sizeof(float), job->vocab, job->raw) != job->vocab)
        job->write_errno = errno;
}

/* Room for the ids and the page that is begun. */
static uint64_t kv_bytes(const struct job *job) {
    const struct fx_model_config *config = fx_model_get_config(job->model);
    uint64_t tokens = (uint64_t)job->count + config->window + 3 * job->options.page.value +
                      job->options.chunk.value;
    return tokens * config->layers * config->kv_heads * config->head_dim * 2 * sizeof(float);
}

static FX_MUST bool compute(struct job *job, fx_error *err) {
    const struct options *options = &job->options;
    fx_auto(fx_engine) engine = NULL;
    const struct fx_engine_opts opts = {
        .model = job->model,
        .backend = options->backend,
        .kv_dtype = options->kv_dtype,
        .threads = (uint32_t)options->threads.value,
        .kv_bytes = kv_bytes(job),
        .page_tokens = (uint32_t)options->page.value,
        .slots = 1,
        .rows_max = (uint32_t)options->chunk.value,
        .chunk_rows_max = (uint32_t)options->chunk.value,
        .on_row = on_row,
        .ctx = job,
    };
    const struct fx_sequence sequence = {
        .prompt = job->ids, .prompt_count = job->count, .max_tokens = 1};
    uint32_t number;
    if (!fx_engine_open(&opts, &engine, err) || !fx_engine_add(engine, &sequence, &number, err))
        return false;
    while (fx_engine_busy(engine)) {
        const struct fx_engine_result *results;
        size_t count;
        fx_engine_step(engine, &results, &count);
    }
    return true;
}

static FX_MUST bool close_checked(FILE *file, const char *path, fx_error *err) {
    return fclose(file) == 0 || fx_fail_errno(err, "write '%s'", path);
}

static void write_layer(FILE *file, const struct job *job, uint32_t layer, uint32_t per_token) {
    for (uint32_t position = 0; position < job->count; position++) {
        const int32_t *chosen = job->experts + position * job->chosen + (size_t)layer * per_token;
        (void)fprintf(file, "%s[", position ? "," : "");
        for (uint32_t i = 0; i < per_token; i++)
            (void)fprintf(file, "%s%d", i ? "," : "", chosen[i]);
        (void)fprintf(file, "]");
    }
}

/* {"layers":{"0":{"experts":[[4,1],...]},...}}: by layer, then by position, best first. */
static FX_MUST bool write_router(const struct job *job, fx_error *err) {
    const char *path = job->options.router;
    const struct fx_model_config *config = fx_model_get_config(job->model);
    FILE *file = fopen(path, "we");
    if (!file) return fx_fail_errno(err, "open '%s'", path);
    (void)fprintf(file, "{\"layers\":{");
    for (uint32_t layer = 0; layer < config->layers; layer++) {
        (void)fprintf(file, "%s\"%u\":{\"experts\":[", layer ? "," : "", layer);
        write_layer(file, job, layer, config->experts_per_token);
        (void)fprintf(file, "]}");
    }
    (void)fprintf(file, "}}\n");
    bool failed = ferror(file) != 0;
    if (!close_checked(file, path, err)) return false;
    return !failed || fx_fail(err, FX_UNKNOWN, "write '%s' failed", path);
}

static FX_MUST bool run(struct job *job, fx_error *err) {
    const char *raw = job->options.raw;
    if (!open_model(job, err)) return false;
    if (raw && !(job->raw = fopen(raw, "wbe"))) return fx_fail_errno(err, "open '%s'", raw);
    if (!compute(job, err)) return false;
    if (job->write_errno) {
        errno = job->write_errno;
        return fx_fail_errno(err, "write '%s'", raw);
    }
    if (raw && !close_checked(fx_take(job->raw), raw, err)) return false;
    if (raw)
        (void)printf("%u x %u f32 logits of %s by %s in %s\n", job->count, job->vocab,
                     job->model_name, job->options.backend, raw);
    return !job->options.router || write_router(job, err);
}

static bool wants_help(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

int fx_cli_logits(int argc, char **argv) {
    struct job job = {0};
    fx_error err = {0};
    if (wants_help(argc, argv)) return show_help();
    if (!parse(&job, argc, argv, &err)) {
        job_done(&job);
        (void)fprintf(stderr, "fractal logits: %s\n`fractal logits --help` shows the options\n",
                      err.text);
        return CLI_USAGE;
    }
    bool ok = run(&job, &err);
    job_done(&job);
    return ok ? CLI_OK : cli_failed(&err);
}
