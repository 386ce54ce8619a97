#include "common/model/config_json.h"
#include "common/model/manifest.h"
#include "common/model/store_file.h"
#include "common/model/store_names.h"

struct verification {
    const char *folder;
    bool (*stop)(void *ctx);
    void *ctx;
    struct fx_store_verified seen;
};

static bool step(void *ctx, uint64_t bytes) {
    struct verification *verification = ctx;
    verification->seen.bytes += bytes;
    return !verification->stop || !verification->stop(verification->ctx);
}

static FX_MUST bool check_digest(struct verification *verification, const char *name,
                                 const char *want, fx_error *err) {
    const struct fx_file_tick tick = {step, verification};
    char path[FX_PATH_MAX], got[FX_SHA256_HEX];
    uint64_t bytes;
    if (!fx_file__path(path, err, "%s/%s", verification->folder, name)) return false;
    if (!fx_file__exists(path)) return fx_fail(err, FX_DATA_LOSS, "file '%s' is missing", name);
    if (!fx_file__sha256(path, &tick, got, &bytes, err)) return false;
    if (strcmp(got, want) != 0)
        return fx_fail(err, FX_DATA_LOSS, "file '%s' has changed: its SHA-256 differs", name);
    verification->seen.files++;
    return true;
}

/* manifest.json against the line beside it. */
static FX_MUST bool check_manifest(struct verification *verification, fx_error *err) {
    char path[FX_PATH_MAX];
    fx_auto_bytes line = {0};
    if (!fx_file__path(path, err, "%s/" FX_MANIFEST_DIGEST_FILE, verification->folder))
        return false;
    if (!fx_file__read(path, 256, &line, err) || line.len < FX_SHA256_HEX - 1)
        return fx_fail(err, FX_DATA_LOSS, "file '" FX_MANIFEST_DIGEST_FILE "' can't be read");
    line.at[FX_SHA256_HEX - 1] = '\0';
    return check_digest(verification, FX_MANIFEST_FILE, (const char *)line.at, err);
}

static FX_MUST bool check_all(struct verification *verification, fx_error *err) {
    fx_auto(json_t) manifest = NULL;
    if (!check_manifest(verification, err) ||
        !fx_manifest_load(verification->folder, &manifest, err))
        return false;
    for (size_t i = 0; i < fx_manifest_file_count(manifest); i++) {
        struct fx_manifest_file file;
        if (!fx_manifest_file_at(manifest, i, &file, err) ||
            !check_digest(verification, file.name, file.sha256, err))
            return false;
    }
    return true;
}

bool fx_store_verify(const char *dir, const char *name, bool (*stop)(void *ctx), void *ctx,
                     struct fx_store_verified *out, fx_error *err) {
    char version[FX_MODEL_VERSION_MAX], folder[FX_PATH_MAX];
    if (!fx_model_name_check(name, err) || !fx_store__current(dir, name, version, err) ||
        !fx_file__path(folder, err, "%s/%s/%s", dir, name, version))
        return false;
    struct verification verification = {.folder = folder, .stop = stop, .ctx = ctx};
    if (!check_all(&verification, err)) return fx_wrap(err, "model '%s'", name);
    *out = verification.seen;
    return true;
}
