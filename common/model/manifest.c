#include "common/model/manifest.h"
#include "common/model/config_json.h"
#include "common/model/store_file.h"

static FX_MUST bool get_u64(const json_t *object, const char *member, uint64_t *out,
                            fx_error *err) {
    const json_t *value = json_object_get(object, member);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return fx_fail(err, FX_DATA_LOSS, "manifest: %s is not a number >= 0", member);
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static FX_MUST bool get_u32(const json_t *object, const char *member, uint32_t *out,
                            fx_error *err) {
    uint64_t value;
    if (!get_u64(object, member, &value, err)) return false;
    if (value > UINT32_MAX) return fx_fail(err, FX_DATA_LOSS, "manifest: %s is too large", member);
    *out = (uint32_t)value;
    return true;
}

/* A non-empty text that fits `out`. */
static FX_MUST bool get_text(const json_t *object, const char *member, char *out, size_t size,
                             fx_error *err) {
    const json_t *value = json_object_get(object, member);
    size_t len = json_string_length(value);
    if (!json_is_string(value) || !len || len >= size)
        return fx_fail(err, FX_DATA_LOSS, "manifest: %s is not a text of 1..%zu bytes", member,
                       size - 1);
    memcpy(out, json_string_value(value), len + 1);
    return true;
}

static FX_MUST bool get_digest(const json_t *object, const char *member, char out[FX_SHA256_HEX],
                               fx_error *err) {
    uint8_t bytes[FX_SHA256_BYTES];
    char text[FX_SHA256_HEX];
    if (!get_text(object, member, text, sizeof text, err)) return false;
    if (!fx_unhex(fx_span_str(text), bytes, sizeof bytes))
        return fx_fail(err, FX_DATA_LOSS, "manifest: %s is no SHA-256", member);
    memcpy(out, text, sizeof text);
    return true;
}

bool fx_manifest_parse(fx_span text, json_t **out, fx_error *err) {
    static const struct fx_json_limits limits = {8, 1 << 24};
    fx_auto(json_t) root = NULL;
    uint64_t schema;
    if (!fx_config__json(text, limits, &root, err)) {
        if (err) err->code = FX_DATA_LOSS;
        return fx_wrap(err, FX_MANIFEST_FILE);
    }
    if (!get_u64(root, "schema", &schema, err)) return false;
    if (schema != FX_MANIFEST_SCHEMA)
        return fx_fail(err, FX_DATA_LOSS, "manifest: schema %llu, this program reads %d",
                       (unsigned long long)schema, FX_MANIFEST_SCHEMA);
    *out = fx_take(root);
    return true;
}

bool fx_manifest_load(const char *folder, json_t **out, fx_error *err) {
    char path[FX_PATH_MAX];
    fx_auto_bytes text = {0};
    if (!fx_file__path(path, err, "%s/" FX_MANIFEST_FILE, folder)) return false;
    if (!fx_file__read(path, FX_MANIFEST_BYTES_MAX, &text, err)) {
        if (err) err->code = FX_DATA_LOSS;
        return fx_wrap(err, FX_MANIFEST_FILE);
    }
    return fx_manifest_parse(fx_bytes__span(&text), out, err);
}

static FX_MUST bool get_eos(const json_t *manifest, struct fx_model_info *out, fx_error *err) {
    const json_t *ids = json_object_get(manifest, "eos_ids");
    if (!json_is_array(ids) || json_array_size(ids) > FX_EOS_MAX)
        return fx_fail(err, FX_DATA_LOSS, "manifest: eos_ids is no list of at most %d", FX_EOS_MAX);
    for (out->eos_count = 0; out->eos_count < json_array_size(ids); out->eos_count++) {
        const json_t *id = json_array_get(ids, out->eos_count);
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) >= out->vocabulary)
            return fx_fail(err, FX_DATA_LOSS, "manifest: eos_ids holds no id");
        out->eos_ids[out->eos_count] = (uint32_t)json_integer_value(id);
    }
    return true;
}

static FX_MUST bool sum_files(const json_t *manifest, uint64_t *bytes, fx_error *err) {
    *bytes = 0;
    for (size_t i = 0; i < fx_manifest_file_count(manifest); i++) {
        struct fx_manifest_file file;
        if (!fx_manifest_file_at(manifest, i, &file, err)) return false;
        if (__builtin_add_overflow(*bytes, file.bytes, bytes))
            return fx_fail(err, FX_DATA_LOSS, "manifest: sizes overflow");
    }
    return true;
}

bool fx_manifest_info(const json_t *manifest, struct fx_model_info *out, fx_error *err) {
    struct fx_model_info info = {0};
    char dtype[8];
    if (!get_text(manifest, "name", info.name, sizeof info.name, err) ||
        !get_text(manifest, "version", info.version, sizeof info.version, err) ||
        !get_text(manifest, "dtype", dtype, sizeof dtype, err) ||
        !get_u64(manifest, "created_s", &info.created_s, err) ||
        !get_u32(manifest, "context_max", &info.context_max, err) ||
        !get_u32(manifest, "vocabulary", &info.vocabulary, err) ||
        !get_digest(manifest, "weight_digest", info.weight_digest, err) ||
        !get_eos(manifest, &info, err) || !sum_files(manifest, &info.bytes, err))
        return false;
    if (!json_is_null(json_object_get(manifest, "tokenizer_digest")) &&
        !get_digest(manifest, "tokenizer_digest", info.tokenizer_digest, err))
        return false;
    info.dtype = fx_model_dtype_of(dtype);
    if (!info.dtype) return fx_fail(err, FX_DATA_LOSS, "manifest: dtype '%s' is unknown", dtype);
    info.number = fx_model_number(info.name);
    info.has_chat_template = json_is_true(json_object_get(manifest, "has_chat_template"));
    *out = info;
    return true;
}

bool fx_manifest_tensor(const json_t *manifest, const char *name, struct fx_manifest_tensor *out,
                        fx_error *err) {
    const json_t *entry = json_object_get(json_object_get(manifest, "tensors"), name);
    char layout[16];
    if (!json_is_object(entry))
        return fx_fail(err, FX_DATA_LOSS, "manifest: tensor '%.150s' is missing", name);
    if (!get_u64(entry, "offset", &out->offset, err) ||
        !get_u64(entry, "bytes", &out->bytes, err) || !get_u32(entry, "rows", &out->rows, err) ||
        !get_u32(entry, "cols", &out->cols, err) ||
        !get_text(entry, "layout", layout, sizeof layout, err))
        return fx_wrap(err, "tensor '%.150s'", name);
    out->layout = fx_layout_of(layout);
    return out->layout ||
           fx_fail(err, FX_DATA_LOSS, "manifest: tensor '%.150s': layout '%s'", name, layout);
}

size_t fx_manifest_file_count(const json_t *manifest) {
    return json_object_size(json_object_get(manifest, "files"));
}

/* Plain names only: none leads out of the version's folder. */
static bool is_file_name(const char *name) {
    return name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) < FX_MANIFEST_FILE_MAX;
}

bool fx_manifest_file_at(const json_t *manifest, size_t i, struct fx_manifest_file *out,
                         fx_error *err) {
    json_t *files = json_object_get(manifest, "files");
    void *at = json_object_iter(files);
    for (size_t n = 0; n < i; n++)
        at = json_object_iter_next(files, at);
    FX_ASSERT(at);
    const char *name = json_object_iter_key(at);
    if (!is_file_name(name))
        return fx_fail(err, FX_DATA_LOSS, "manifest: '%.100s' is no file name", name);
    memcpy(out->name, name, strlen(name) + 1);
    const json_t *entry = json_object_iter_value(at);
    return (get_u64(entry, "bytes", &out->bytes, err) &&
            get_digest(entry, "sha256", out->sha256, err)) ||
           fx_wrap(err, "file '%.60s'", out->name);
}
