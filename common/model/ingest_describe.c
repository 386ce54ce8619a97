#include <stdio.h>
#include "common/base/clock.h"
#include "common/model/config_json.h"
#include "common/model/ingest_internal.h"
#include "common/model/store_tokenizer.h"

static FX_MUST bool has_template(fx_span tokenizer_config, bool *out, fx_error *err) {
    static const struct fx_json_limits limits = {64, 1 << 20};
    fx_auto(json_t) root = NULL;
    *out = false;
    if (!tokenizer_config.len) return true;
    if (!fx_config__json(tokenizer_config, limits, &root, err))
        return fx_wrap(err, "tokenizer_config.json");
    const json_t *template = json_object_get(root, "chat_template");
    *out = template && !json_is_null(template);
    return true;
}

static FX_MUST bool fill_info(struct fx_import *import, fx_error *err) {
    struct fx_model_info *info = &import->info;
    const struct fx_model_config *config = &import->plan.config;
    uint8_t digest[FX_SHA256_BYTES];
    (void)snprintf(info->name, sizeof info->name, "%s", import->opts->name);
    info->number = fx_model_number(info->name);
    info->dtype = import->opts->dtype;
    info->created_s = fx_wall_ms() / 1000;
    info->context_max = config->context_max;
    info->vocabulary = config->vocabulary;
    info->eos_count = config->eos_count;
    memcpy(info->eos_ids, config->eos_ids, sizeof info->eos_ids);
    fx_sha256(fx_bytes__span(&import->side[FX_SIDE_CONFIG]), digest);
    fx_hex((fx_span){digest, sizeof digest}, import->config_digest);
    fx_span tokenizer = fx_bytes__span(&import->side[FX_SIDE_TOKENIZER]);
    fx_span config_json = fx_bytes__span(&import->side[FX_SIDE_TOKENIZER_CONFIG]);
    if (tokenizer.len) fx_store__tokenizer_digest(tokenizer, config_json, info->tokenizer_digest);
    return has_template(config_json, &info->has_chat_template, err);
}

/* The name of file i; "" when this import has it not. */
static void file_name(const struct fx_import *import, uint32_t i, char out[FX_MANIFEST_FILE_MAX]) {
    uint32_t parts = import->plan.part_count;
    const char *name = "";
    if (i < parts) {
        fx_manifest_part_name(i, out);
        return;
    }
    if (i == parts)
        name = FX_PACK_FILE;
    else if (import->side[i - parts - 1].at)
        name = fx_side_names[i - parts - 1];
    (void)snprintf(out, FX_MANIFEST_FILE_MAX, "%s", name);
}

static FX_MUST bool digest_file(struct fx_import *import, struct fx_manifest_file *file,
                                fx_error *err) {
    const struct fx_file_tick tick = {fx_import__step, import};
    char path[FX_PATH_MAX];
    if (!fx_file__path(path, err, "%s/%s", import->stage.path, file->name) ||
        !fx_file__sha256(path, &tick, file->sha256, &file->bytes, err))
        return false;
    import->info.bytes += file->bytes;
    return true;
}

/* The digest of the weights is that of the parts' digests, as hex, in their order. */
static FX_MUST bool digest_files(struct fx_import *import, fx_error *err) {
    fx_auto(fx_sha256_stream) weights = fx_sha256_new();
    uint8_t digest[FX_SHA256_BYTES];
    if (!weights) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a digest");
    for (uint32_t i = 0; i < import->file_count; i++) {
        struct fx_manifest_file *file = &import->files[i];
        file_name(import, i, file->name);
        if (file->name[0] && !digest_file(import, file, err)) return false;
        if (i < import->plan.part_count) fx_sha256_add(weights, fx_span_str(file->sha256));
    }
    fx_sha256_end(weights, digest);
    fx_hex((fx_span){digest, sizeof digest}, import->info.weight_digest);
    return true;
}

bool fx_import__describe(struct fx_import *import, fx_error *err) {
    import->file_count = import->plan.part_count + 1 + FX_SIDES;
    import->files = fx_alloc(import->file_count, sizeof *import->files);
    if (!import->files) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for the manifest");
    return fill_info(import, err) && digest_files(import, err);
}

static FX_MUST bool add_tensor(const struct fx_import *import, const struct fx_plan_tensor *tensor,
                               json_t *manifest, fx_error *err) {
    fx_auto(void) memory = fx_alloc(tensor->slice_count, sizeof(struct fx_manifest_slice));
    struct fx_manifest_slice *slices = memory;
    if (!slices) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for the manifest");
    for (uint32_t i = 0; i < tensor->slice_count; i++) {
        const struct fx_plan_slice *slice = &import->plan.slices[tensor->slice_first + i];
        slices[i] = (struct fx_manifest_slice){slice->part, slice->row, slice->rows};
    }
    return fx_manifest_add_tensor(manifest, tensor->is.name, &tensor->pack, slices,
                                  tensor->slice_count, err);
}

static FX_MUST bool write_manifest(const struct fx_import *import, fx_error *err) {
    fx_auto(json_t) manifest = fx_manifest_new(&import->info, import->config_digest);
    if (!manifest) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for the manifest");
    for (uint32_t i = 0; i < import->plan.count; i++)
        if (!add_tensor(import, &import->plan.tensors[i], manifest, err)) return false;
    for (uint32_t i = 0; i < import->file_count; i++)
        if (import->files[i].name[0] && !fx_manifest_add_file(manifest, &import->files[i], err))
            return false;
    return fx_manifest_write(manifest, import->stage.path, err);
}

bool fx_import__publish(struct fx_import *import, fx_error *err) {
    fx_auto_fd lock = -1;
    return fx_stage__lock(&import->stage, &lock, err) &&
           fx_stage__version(&import->stage, import->opts->name, import->info.version, err) &&
           write_manifest(import, err) &&
           fx_stage__publish(&import->stage, import->opts->name, import->info.version, err);
}
