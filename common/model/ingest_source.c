#include "common/model/ingest_source.h"
#include "common/model/config_json.h"
#include "common/model/store_file.h"

#define SINGLE "model.safetensors"
#define INDEX "model.safetensors.index.json"

enum { INDEX_BYTES_MAX = 64 * 1024 * 1024 };

static FX_MUST bool open_file(const char *folder, const char *name, struct fx_source *source,
                              fx_error *err) {
    char path[FX_PATH_MAX];
    if (!fx_file__path(path, err, "%s/%s", folder, name) ||
        !fx_safetensors_open(path, &source->files[source->file_count], err))
        return false;
    source->file_count++;
    return true;
}

static FX_MUST bool reserve_files(struct fx_source *source, size_t count, fx_error *err) {
    source->files = fx_alloc(count, sizeof(fx_safetensors *));
    return source->files || fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for %zu files", count);
}

static FX_MUST bool check_shard(const json_t *file, fx_error *err) {
    const char *name = json_string_value(file);
    if (!name || !name[0] || name[0] == '.' || strchr(name, '/'))
        return fx_fail(err, FX_INVALID_ARGUMENT, "weight_map has a value that is no file name");
    return true;
}

/* Opens each file of the map once; `opened` is by its name. */
static FX_MUST bool open_shards(const char *folder, json_t *map, struct fx_source *source,
                                fx_error *err) {
    fx_auto(json_t) opened = json_object();
    const char *tensor;
    json_t *file;
    if (!opened || !reserve_files(source, FX_SHARDS_MAX, err)) return false;
    json_object_foreach(map, tensor, file) {
        if (!check_shard(file, err)) return false;
        if (json_object_get(opened, json_string_value(file))) continue;
        if (source->file_count == FX_SHARDS_MAX)
            return fx_fail(err, FX_INVALID_ARGUMENT, "more than %d files", FX_SHARDS_MAX);
        if (!open_file(folder, json_string_value(file), source, err)) return false;
        json_int_t nth = (json_int_t)source->file_count - 1;
        if (json_object_set_new(opened, json_string_value(file), json_integer(nth)) != 0)
            return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for the index");
    }
    json_object_foreach(map, tensor, file) {
        json_int_t nth = json_integer_value(json_object_get(opened, json_string_value(file)));
        if (!fx_safetensors_find(source->files[nth], tensor))
            return fx_fail(err, FX_INVALID_ARGUMENT, "tensor '%.100s' is not in '%.80s'", tensor,
                           json_string_value(file));
    }
    return true;
}

static FX_MUST bool open_index(const char *folder, const char *path, struct fx_source *source,
                               fx_error *err) {
    static const struct fx_json_limits limits = {8, (size_t)4 * FX_SAFETENSORS_TENSORS_MAX};
    fx_auto_bytes text = {0};
    fx_auto(json_t) root = NULL;
    if (!fx_file__read(path, INDEX_BYTES_MAX, &text, err) ||
        !fx_config__json(fx_bytes__span(&text), limits, &root, err))
        return fx_wrap(err, INDEX);
    json_t *map = json_object_get(root, "weight_map");
    if (!json_is_object(map) || !json_object_size(map))
        return fx_fail(err, FX_INVALID_ARGUMENT, INDEX ": weight_map is not an object");
    return open_shards(folder, map, source, err) || fx_wrap(err, INDEX);
}

static int by_name(const void *a, const void *b) {
    const struct fx_source_tensor *x = a, *y = b;
    return strcmp(x->tensor->name, y->tensor->name);
}

static FX_MUST bool list_tensors(struct fx_source *source, fx_error *err) {
    size_t count = 0;
    for (size_t f = 0; f < source->file_count; f++)
        count += fx_safetensors_count(source->files[f]);
    source->tensors = fx_alloc(count, sizeof *source->tensors);
    if (!source->tensors)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for %zu tensors", count);
    for (size_t f = 0; f < source->file_count; f++)
        for (size_t i = 0; i < fx_safetensors_count(source->files[f]); i++)
            source->tensors[source->count++] = (struct fx_source_tensor){
                fx_safetensors_at(source->files[f], i), source->files[f], false};
    qsort(source->tensors, source->count, sizeof *source->tensors, by_name);
    for (size_t i = 1; i < source->count; i++)
        if (by_name(&source->tensors[i - 1], &source->tensors[i]) == 0)
            return fx_fail(err, FX_INVALID_ARGUMENT, "tensor '%.150s' is in two files",
                           source->tensors[i].tensor->name);
    return true;
}

bool fx_source__open(const char *folder, struct fx_source *source, fx_error *err) {
    char single[FX_PATH_MAX], index[FX_PATH_MAX];
    if (!fx_file__path(single, err, "%s/" SINGLE, folder) ||
        !fx_file__path(index, err, "%s/" INDEX, folder))
        return false;
    if (fx_file__exists(single)) {
        if (!reserve_files(source, 1, err) || !open_file(folder, SINGLE, source, err)) return false;
    } else if (fx_file__exists(index)) {
        if (!open_index(folder, index, source, err)) return false;
    } else {
        return fx_fail(err, FX_NOT_FOUND, "neither " SINGLE " nor " INDEX " in '%.120s'", folder);
    }
    return list_tensors(source, err);
}

void fx_source__done(struct fx_source *source) {
    for (size_t i = 0; i < source->file_count; i++)
        fx_safetensors_free(source->files[i]);
    free(source->files);
    free(source->tensors);
    *source = (struct fx_source){0};
}

struct fx_source_tensor *fx_source__find(const struct fx_source *source, const char *name) {
    size_t low = 0, high = source->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, source->tensors[middle].tensor->name);
        if (order == 0) return &source->tensors[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
