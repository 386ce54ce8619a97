#include "common/model/store.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include "common/model/config_json.h"
#include "common/model/manifest.h"
#include "common/model/pack.h"
#include "common/model/store_file.h"
#include "common/model/store_names.h"

struct fx_model {
    struct fx_model_info info;
    struct fx_model_config config;
    struct fx_pack_home home;
    void *map;
    size_t map_bytes;
};

void fx_numerics_id(const struct fx_model_info *info, const char *kv_dtype,
                    char out[FX_NUMERICS_ID_MAX]) {
    (void)snprintf(out, FX_NUMERICS_ID_MAX, "exact/%d/%s/%s/%.16s", FX_NUMERICS_CONTRACT,
                   fx_manifest_codec(info->dtype), kv_dtype, info->weight_digest);
}

/* The folder of the current version. */
static FX_MUST bool find_version(const char *dir, const char *name, char folder[FX_PATH_MAX],
                                 fx_error *err) {
    char version[FX_MODEL_VERSION_MAX];
    return fx_model_name_check(name, err) && fx_store__current(dir, name, version, err) &&
           fx_file__path(folder, err, "%s/%s/%s", dir, name, version);
}

static FX_MUST bool load_manifest(const char *folder, const char *name, json_t **manifest,
                                  struct fx_model_info *info, fx_error *err) {
    if (!fx_manifest_load(folder, manifest, err) || !fx_manifest_info(*manifest, info, err))
        return false;
    return strcmp(info->name, name) == 0 ||
           fx_fail(err, FX_DATA_LOSS, "its manifest is that of '%s'", info->name);
}

bool fx_store_info(const char *dir, const char *name, struct fx_model_info *out, fx_error *err) {
    char folder[FX_PATH_MAX];
    fx_auto(json_t) manifest = NULL;
    if (!find_version(dir, name, folder, err)) return false;
    return load_manifest(folder, name, &manifest, out, err) || fx_wrap(err, "model '%s'", name);
}

bool fx_store_manifest(const char *dir, const char *name, struct fx_bytes *out, fx_error *err) {
    char folder[FX_PATH_MAX], path[FX_PATH_MAX];
    return find_version(dir, name, folder, err) &&
           fx_file__path(path, err, "%s/" FX_MANIFEST_FILE, folder) &&
           fx_file__read(path, FX_MANIFEST_BYTES_MAX, out, err);
}

static FX_MUST bool read_config(const char *folder, struct fx_model_config *out, fx_error *err) {
    char path[FX_PATH_MAX];
    fx_auto_bytes config = {0};
    fx_auto_bytes generation = {0};
    if (!fx_file__path(path, err, "%s/config.json", folder) ||
        !fx_file__read(path, FX_CONFIG_FILE_BYTES_MAX, &config, err) ||
        !fx_file__path(path, err, "%s/generation_config.json", folder))
        return false;
    if (fx_file__exists(path) && !fx_file__read(path, FX_CONFIG_FILE_BYTES_MAX, &generation, err))
        return false;
    return fx_model_config_parse(fx_bytes__span(&config), fx_bytes__span(&generation), out, err);
}

/* Every file of the manifest is there and as long as it says. */
static FX_MUST bool check_sizes(const json_t *manifest, const char *folder, fx_error *err) {
    for (size_t i = 0; i < fx_manifest_file_count(manifest); i++) {
        struct fx_manifest_file file;
        char path[FX_PATH_MAX];
        uint64_t bytes;
        if (!fx_manifest_file_at(manifest, i, &file, err) ||
            !fx_file__path(path, err, "%s/%s", folder, file.name))
            return false;
        if (!fx_file__exists(path))
            return fx_fail(err, FX_DATA_LOSS, "file '%s' is missing", file.name);
        if (!fx_file__size(path, &bytes, err)) return false;
        if (bytes != file.bytes)
            return fx_fail(err, FX_DATA_LOSS, "file '%s' has %llu bytes, the manifest says %llu",
                           file.name, (unsigned long long)bytes, (unsigned long long)file.bytes);
    }
    return true;
}

static FX_MUST bool map_pack(const char *folder, fx_model *model, fx_error *err) {
    char path[FX_PATH_MAX];
    uint64_t bytes;
    if (!fx_file__path(path, err, "%s/" FX_PACK_FILE, folder) || !fx_file__size(path, &bytes, err))
        return false;
    fx_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fx_fail_errno(err, "open '" FX_PACK_FILE "'");
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) return fx_fail_errno(err, "map '" FX_PACK_FILE "'");
    model->map = map;
    model->map_bytes = bytes;
    return true;
}

static FX_MUST bool set_weight(fx_model *model, const json_t *manifest, uint32_t i, fx_error *err) {
    struct fx_pack_tensor is;
    struct fx_manifest_tensor at;
    fx_pack_tensor(&model->config, i, &is);
    if (!fx_manifest_tensor(manifest, is.name, &at, err)) return false;
    if (at.rows != is.rows || at.cols != is.cols ||
        at.layout != fx_pack_layout(is.kind, model->info.dtype) ||
        at.bytes != fx_weight_bytes(at.layout, is.rows, is.cols))
        return fx_fail(err, FX_DATA_LOSS, "tensor '%s': the manifest disagrees with the config",
                       is.name);
    if (at.offset % FX_PACK_ALIGN || at.offset > model->map_bytes ||
        at.bytes > model->map_bytes - at.offset)
        return fx_fail(err, FX_DATA_LOSS, "tensor '%s' does not lie in '" FX_PACK_FILE "'",
                       is.name);
    const uint8_t *data = (const uint8_t *)model->map + at.offset;
    *fx_pack_slot(&model->config, i, &model->home) =
        (struct fx_weight){data, at.rows, at.cols, at.layout};
    return true;
}

static FX_MUST bool set_weights(fx_model *model, const json_t *manifest, fx_error *err) {
    const struct fx_model_config *config = &model->config;
    struct fx_pack_home *home = &model->home;
    size_t experts = (size_t)config->layers * config->experts;
    home->layers = fx_alloc(config->layers, sizeof *home->layers);
    home->experts = fx_alloc(experts, sizeof *home->experts);
    if (!home->layers || !home->experts)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for %u layers", config->layers);
    for (uint32_t i = 0; i < fx_pack_count(config); i++)
        if (!set_weight(model, manifest, i, err)) return false;
    for (uint32_t i = 0; config->experts && i < config->layers; i++)
        home->layers[i].experts = &home->experts[(size_t)i * config->experts];
    if (config->tied) home->weights.lm_head = home->weights.embed;
    home->weights.layers = home->layers;
    return true;
}

static FX_MUST bool load(fx_model *model, const char *folder, const char *name, fx_error *err) {
    fx_auto(json_t) manifest = NULL;
    return load_manifest(folder, name, &manifest, &model->info, err) &&
           check_sizes(manifest, folder, err) && read_config(folder, &model->config, err) &&
           map_pack(folder, model, err) && set_weights(model, manifest, err);
}

bool fx_store_open(const char *dir, const char *name, fx_model **out, fx_error *err) {
    char folder[FX_PATH_MAX];
    if (!find_version(dir, name, folder, err)) return false;
    fx_auto(fx_model) model = fx_alloc(1, sizeof *model);
    if (!model) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a model");
    if (!load(model, folder, name, err)) return fx_wrap(err, "model '%s'", name);
    *out = fx_take(model);
    return true;
}

void fx_model_free(fx_model *model) {
    if (!model) return;
    if (model->map) (void)munmap(model->map, model->map_bytes);
    free(model->home.layers);
    free(model->home.experts);
    free(model);
}

const struct fx_model_config *fx_model_get_config(const fx_model *model) {
    return &model->config;
}

const struct fx_model_weights *fx_model_get_weights(const fx_model *model) {
    return &model->home.weights;
}

const struct fx_model_info *fx_model_get_info(const fx_model *model) {
    return &model->info;
}

fx_span fx_model_get_pack(const fx_model *model) {
    return (fx_span){model->map, model->map_bytes};
}
