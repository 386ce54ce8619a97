#include <stdio.h>
#include "common/model/config_json.h"
#include "common/model/manifest.h"
#include "common/model/pack.h"
#include "common/model/store_file.h"

const char *fx_manifest_codec(enum fx_model_dtype dtype) {
    return dtype == FX_MODEL_INT4 ? "int4-b64" : fx_model_dtype_name(dtype);
}

void fx_manifest_part_name(uint32_t part, char out[FX_MANIFEST_FILE_MAX]) {
    (void)snprintf(out, FX_MANIFEST_FILE_MAX, "part-%03u.safetensors", part);
}

json_t *fx_manifest_new(const struct fx_model_info *info, const char *config_digest) {
    fx_auto(json_t) ids = json_array();
    for (uint32_t i = 0; i < info->eos_count; i++)
        if (json_array_append_new(ids, json_integer(info->eos_ids[i])) != 0) return NULL;
    const char *tokenizer = info->tokenizer_digest[0] ? info->tokenizer_digest : NULL;
    return json_pack(
        "{s:i, s:s, s:s, s:I, s:s, s:s, s:s, s:s, s:s?, s:s, s:b, s:O, s:I, s:I, s:{},"
        " s:{}}",
        "schema", FX_MANIFEST_SCHEMA, "name", info->name, "version", info->version, "created_s",
        (json_int_t)info->created_s, "dtype", fx_model_dtype_name(info->dtype), "codec",
        fx_manifest_codec(info->dtype), "layout", FX_PACK_ID, "config_digest", config_digest,
        "tokenizer_digest", tokenizer, "weight_digest", info->weight_digest, "has_chat_template",
        (int)info->has_chat_template, "eos_ids", ids, "context_max", (json_int_t)info->context_max,
        "vocabulary", (json_int_t)info->vocabulary, "tensors", "files");
}

bool fx_manifest_add_tensor(json_t *manifest, const char *name,
                            const struct fx_manifest_tensor *tensor,
                            const struct fx_manifest_slice *slices, uint32_t count, fx_error *err) {
    fx_auto(json_t) parts = json_array();
    for (uint32_t i = 0; i < count; i++) {
        char file[FX_MANIFEST_FILE_MAX];
        fx_manifest_part_name(slices[i].part, file);
        json_t *slice = json_pack("{s:s, s:I, s:I}", "file", file, "row", (json_int_t)slices[i].row,
                                  "rows", (json_int_t)slices[i].rows);
        if (json_array_append_new(parts, slice) != 0)
            return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for the manifest");
    }
    json_t *entry =
        json_pack("{s:s, s:I, s:I, s:s, s:I, s:I, s:O}", "file", FX_PACK_FILE, "offset",
                  (json_int_t)tensor->offset, "bytes", (json_int_t)tensor->bytes, "layout",
                  fx_layout_name(tensor->layout), "rows", (json_int_t)tensor->rows, "cols",
                  (json_int_t)tensor->cols, "parts", parts);
    return json_object_set_new(json_object_get(manifest, "tensors"), name, entry) == 0 ||
           fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for the manifest");
}

bool fx_manifest_add_file(json_t *manifest, const struct fx_manifest_file *file, fx_error *err) {
    json_t *entry =
        json_pack("{s:I, s:s}", "bytes", (json_int_t)file->bytes, "sha256", file->sha256);
    return json_object_set_new(json_object_get(manifest, "files"), file->name, entry) == 0 ||
           fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for the manifest");
}

bool fx_manifest_write(const json_t *manifest, const char *folder, fx_error *err) {
    char path[FX_PATH_MAX], line[FX_SHA256_HEX + sizeof FX_MANIFEST_FILE + 4];
    uint8_t digest[FX_SHA256_BYTES];
    fx_auto(char) text = json_dumps(manifest, JSON_INDENT(1));
    if (!text) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for the manifest");
    if (!fx_file__path(path, err, "%s/" FX_MANIFEST_FILE, folder) ||
        !fx_file__write(path, fx_span_str(text), err))
        return false;
    fx_sha256(fx_span_str(text), digest);
    fx_hex((fx_span){digest, sizeof digest}, line);
    (void)snprintf(line + FX_SHA256_HEX - 1, sizeof line - FX_SHA256_HEX + 1,
                   "  " FX_MANIFEST_FILE "\n");
    return fx_file__path(path, err, "%s/" FX_MANIFEST_DIGEST_FILE, folder) &&
           fx_file__write(path, fx_span_str(line), err);
}
