#include "common/model/ingest.h"
#include <sys/statvfs.h>
#include "common/model/ingest_internal.h"
#include "common/model/ingest_write.h"

enum { PROGRESS_STEP_BYTES = 1 << 20, SIDE_BYTES_MAX = 64 * 1024 * 1024 };

const char *const fx_side_names[FX_SIDES] = {"config.json", "generation_config.json",
                                             "tokenizer.json", "tokenizer_config.json"};

static FX_MUST bool report(struct fx_import *import) {
    import->reported = import->progress.done_bytes;
    return !import->opts->progress || import->opts->progress(import->opts->ctx, &import->progress);
}

bool fx_import__step(void *ctx, uint64_t bytes) {
    struct fx_import *import = ctx;
    import->progress.done_bytes += bytes;
    return import->progress.done_bytes - import->reported < PROGRESS_STEP_BYTES || report(import);
}

static FX_MUST bool enter(struct fx_import *import, const char *stage, fx_error *err) {
    import->progress.stage = stage;
    return report(import) || fx_fail(err, FX_CANCELLED, "stopped");
}

static FX_MUST bool read_sides(struct fx_import *import, fx_error *err) {
    for (size_t i = 0; i < FX_SIDES; i++) {
        char path[FX_PATH_MAX];
        if (!fx_file__path(path, err, "%s/%s", import->opts->folder, fx_side_names[i]))
            return false;
        if (i != FX_SIDE_CONFIG && !fx_file__exists(path)) continue;
        if (!fx_file__read(path, SIDE_BYTES_MAX, &import->side[i], err)) return false;
    }
    if (!fx_import__template(import, err)) return false;
    for (size_t i = 0; i < FX_SIDES; i++)
        import->progress.total_bytes += import->side[i].len;
    return fx_model_config_parse(fx_bytes__span(&import->side[FX_SIDE_CONFIG]),
                                 fx_bytes__span(&import->side[FX_SIDE_GENERATION]),
                                 &import->plan.config, err);
}

static FX_MUST bool ask(const struct fx_import *import, fx_error *err) {
    const struct fx_ingest_found found = {&import->plan.config,
                                          fx_bytes__span(&import->side[FX_SIDE_TOKENIZER]),
                                          fx_bytes__span(&import->side[FX_SIDE_TOKENIZER_CONFIG])};
    return !import->opts->check || import->opts->check(import->opts->ctx, &found, err);
}

static FX_MUST bool make_plan(struct fx_import *import, fx_error *err) {
    uint64_t parts;
    uint32_t cap = import->opts->part_bytes_max;
    import->plan.dtype = import->opts->dtype;
    import->plan.part_bytes_max = cap ? cap : FX_PART_BYTES_MAX;
    if (!read_sides(import, err) || !ask(import, err) ||
        !fx_source__open(import->opts->folder, &import->source, err) ||
        !fx_plan__make(&import->plan, &import->source, err) ||
        !fx_ingest__parts_bytes(&import->plan, &parts, err))
        return false;
    import->progress.total_bytes += import->plan.source_bytes + parts + import->plan.pack_bytes;
    return true;
}

/* Refused before it is begun, not after an hour of writing. */
static FX_MUST bool check_room(const struct fx_import *import, fx_error *err) {
    struct statvfs fs;
    uint64_t need = import->progress.total_bytes - import->plan.source_bytes;
    if (statvfs(import->opts->store_dir, &fs) != 0)
        return fx_fail_errno(err, "model store '%.120s'", import->opts->store_dir);
    uint64_t room = (uint64_t)fs.f_bavail * fs.f_frsize;
    return need <= room ||
           fx_fail(err, FX_RESOURCE_EXHAUSTED,
                   "disk full: the model needs %llu bytes, '%.100s' has room for %llu",
                   (unsigned long long)need, import->opts->store_dir, (unsigned long long)room);
}

static FX_MUST bool copy_sides(const struct fx_import *import, fx_error *err) {
    for (size_t i = 0; i < FX_SIDES; i++) {
        char path[FX_PATH_MAX];
        if (!import->side[i].at) continue;
        if (!fx_file__path(path, err, "%s/%s", import->stage.path, fx_side_names[i]) ||
            !fx_file__write(path, fx_bytes__span(&import->side[i]), err))
            return false;
    }
    return true;
}

static FX_MUST bool run(struct fx_import *import, fx_error *err) {
    const struct fx_ingest_tick tick = {fx_import__step, import};
    if (!enter(import, "read", err) || !make_plan(import, err) || !check_room(import, err))
        return false;
    bool int4 = import->opts->dtype == FX_MODEL_INT4;
    return enter(import, int4 ? "quantise" : "pack", err) &&
           fx_stage__begin(import->opts->store_dir, &import->stage, err) &&
           fx_ingest__write(&import->plan, import->stage.path, &tick, err) &&
           copy_sides(import, err) && enter(import, "digest", err) &&
           fx_import__describe(import, err) && enter(import, "publish", err) &&
           fx_import__publish(import, err);
}

static void done(struct fx_import *import) {
    fx_stage__end(&import->stage);
    fx_plan__done(&import->plan);
    fx_source__done(&import->source);
    free(import->files);
    for (size_t i = 0; i < FX_SIDES; i++)
        fx_bytes__free(&import->side[i]);
}

bool fx_ingest(const struct fx_ingest_opts *opts, struct fx_model_info *out, fx_error *err) {
    if (!fx_model_name_check(opts->name, err)) return false;
    if (opts->dtype < FX_MODEL_F32 || opts->dtype > FX_MODEL_INT4)
        return fx_fail(err, FX_INVALID_ARGUMENT, "dtype is none of f32, f16, int4");
    if (opts->part_bytes_max && opts->part_bytes_max < FX_PART_BYTES_MIN)
        return fx_fail(err, FX_INVALID_ARGUMENT, "parts of %u bytes, at least %d",
                       opts->part_bytes_max, FX_PART_BYTES_MIN);
    fx_auto(void) memory = fx_alloc(1, sizeof(struct fx_import));
    struct fx_import *import = memory;
    if (!import) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for an import");
    import->opts = opts;
    import->stage.fd = -1;
    bool ok = run(import, err);
    done(import);
    if (ok && out) *out = import->info;
    return ok || fx_wrap(err, "import of '%s'", opts->name);
}
