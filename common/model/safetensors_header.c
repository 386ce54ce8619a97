#include <stdlib.h>
#include <unistd.h>
#include "common/base/heap.h"
#include "common/model/config_json.h"
#include "common/model/safetensors_internal.h"

#define LLU(x) ((unsigned long long)(x))

/* The header's own bytes, read and not mapped: the file may shrink under a mapping. */
static FX_MUST bool read_header(const struct fx_safetensors *file, uint8_t **out, size_t *len,
                                fx_error *err) {
    uint64_t size = 0;
    if (pread(file->fd, &size, sizeof size, 0) != sizeof size)
        return fx_fail(err, FX_DATA_LOSS, "can't read the header's length");
    if (size > FX_SAFETENSORS_HEADER_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "header of %llu bytes, at most %d", LLU(size),
                       FX_SAFETENSORS_HEADER_MAX);
    if (size > file->bytes - 8)
        return fx_fail(err, FX_DATA_LOSS, "header ends at %llu but the file has %llu bytes",
                       LLU(size + 8), LLU(file->bytes));
    fx_auto(uint8_t) text = fx_alloc(size, 1);
    if (!text) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a header");
    if (pread(file->fd, text, size, 8) != (ssize_t)size)
        return fx_fail(err, FX_DATA_LOSS, "can't read the header");
    if (!size || text[0] != '{')
        return fx_fail(err, FX_INVALID_ARGUMENT, "header does not begin with '{'");
    *out = fx_take(text);
    *len = size;
    return true;
}

static FX_MUST bool check_metadata(const json_t *metadata, fx_error *err) {
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return fx_fail(err, FX_INVALID_ARGUMENT, "__metadata__ is not an object");
    json_object_foreach(
        (json_t *)(uintptr_t)metadata, key,
        value) if (!json_is_string(value)) return fx_fail(err, FX_INVALID_ARGUMENT,
                                                          "__metadata__ '%.100s' is not a string",
                                                          key);
    return true;
}

/* A number >= 0 of an array. */
static bool number_at(const json_t *array, size_t i, uint64_t *out) {
    const json_t *value = json_array_get(array, i);
    if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static FX_MUST bool read_shape(struct fx_tensor *tensor, const json_t *shape, fx_error *err) {
    if (!json_is_array(shape)) return fx_fail(err, FX_INVALID_ARGUMENT, "shape is not an array");
    if (json_array_size(shape) > FX_TENSOR_DIMS_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%zu dimensions, at most %d",
                       json_array_size(shape), FX_TENSOR_DIMS_MAX);
    tensor->dims = (uint32_t)json_array_size(shape);
    for (uint32_t i = 0; i < tensor->dims; i++)
        if (!number_at(shape, i, &tensor->shape[i]))
            return fx_fail(err, FX_INVALID_ARGUMENT, "shape[%u] is not a number >= 0", i);
    return true;
}

static FX_MUST bool read_range(const struct fx_safetensors *file, struct fx_tensor *tensor,
                               const json_t *range, fx_error *err) {
    uint64_t begin, end, want;
    if (!json_is_array(range) || json_array_size(range) != 2 || !number_at(range, 0, &begin) ||
        !number_at(range, 1, &end))
        return fx_fail(err, FX_INVALID_ARGUMENT, "data_offsets are not two numbers >= 0");
    if (begin > end)
        return fx_fail(err, FX_INVALID_ARGUMENT, "data begins at %llu, after its end at %llu",
                       LLU(begin), LLU(end));
    if (!fx_safetensors__bytes(tensor->dtype, tensor->dims, tensor->shape, &want))
        return fx_fail(err, FX_INVALID_ARGUMENT, "its shape's product overflows");
    if (want != end - begin)
        return fx_fail(err, FX_INVALID_ARGUMENT, "its shape needs %llu bytes, its data has %llu",
                       LLU(want), LLU(end - begin));
    tensor->data = (fx_span){(const uint8_t *)file->map + file->data_at, want};
    if (end > file->bytes - file->data_at)
        return fx_fail(err, FX_DATA_LOSS, "data ends at %llu but the file has %llu bytes",
                       LLU(end + file->data_at), LLU(file->bytes));
    tensor->data.at += begin;
    return true;
}

static FX_MUST bool read_tensor(const struct fx_safetensors *file, const char *name,
                                const json_t *entry, struct fx_tensor *tensor, fx_error *err) {
    if (strlen(name) > FX_TENSOR_NAME_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "a name of %zu bytes, at most %d", strlen(name),
                       FX_TENSOR_NAME_MAX);
    if (!json_is_object(entry)) return fx_fail(err, FX_INVALID_ARGUMENT, "not an object");
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!dtype) return fx_fail(err, FX_INVALID_ARGUMENT, "dtype is not a string");
    tensor->name = name;
    tensor->dtype = fx_safetensors__dtype_of(dtype);
    if (!tensor->dtype)
        return fx_fail(err, FX_UNIMPLEMENTED, "dtype '%.40s' is not supported", dtype);
    return read_shape(tensor, json_object_get(entry, "shape"), err) &&
           read_range(file, tensor, json_object_get(entry, "data_offsets"), err);
}

static int by_data(const void *a, const void *b) {
    const struct fx_tensor *x = a, *y = b;
    if (x->data.at != y->data.at) return x->data.at < y->data.at ? -1 : 1;
    if (x->data.len != y->data.len) return x->data.len < y->data.len ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const struct fx_tensor *const *)a)->name,
                  (*(const struct fx_tensor *const *)b)->name);
}

/* No hole, no overlap, no byte left over. */
static FX_MUST bool check_cover(const struct fx_safetensors *file, fx_error *err) {
    uint64_t at = file->data_at;
    for (size_t i = 0; i < file->count; i++) {
        const struct fx_tensor *tensor = &file->tensors[i];
        uint64_t begin = (uint64_t)(tensor->data.at - (const uint8_t *)file->map);
        if (begin != at)
            return fx_fail(
                err, FX_INVALID_ARGUMENT,
                "tensor '%.120s': data begins at %llu but what is before it ends at %llu",
                tensor->name, LLU(begin), LLU(at));
        at += tensor->data.len;
    }
    if (at != file->bytes)
        return fx_fail(err, FX_INVALID_ARGUMENT, "data ends at %llu but the file has %llu bytes",
                       LLU(at), LLU(file->bytes));
    return true;
}

static FX_MUST bool read_tensors(struct fx_safetensors *file, fx_error *err) {
    const char *name;
    json_t *entry;
    json_object_foreach(file->root, name, entry) {
        if (strcmp(name, "__metadata__") == 0) {
            if (!check_metadata(entry, err)) return false;
            continue;
        }
        if (!read_tensor(file, name, entry, &file->tensors[file->count], err))
            return fx_wrap(err, "tensor '%.120s'", name);
        file->count++;
    }
    return true;
}

bool fx_safetensors__header(struct fx_safetensors *file, fx_error *err) {
    static const struct fx_json_limits limits = {4, (size_t)16 * FX_SAFETENSORS_TENSORS_MAX};
    fx_auto(uint8_t) text = NULL;
    size_t len;
    if (!read_header(file, &text, &len, err)) return false;
    if (!fx_config__json((fx_span){text, len}, limits, &file->root, err))
        return fx_wrap(err, "header");
    size_t count = json_object_size(file->root);
    if (count > FX_SAFETENSORS_TENSORS_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%zu tensors, at most %d", count,
                       FX_SAFETENSORS_TENSORS_MAX);
    file->data_at = 8 + len;
    file->tensors = fx_alloc(count, sizeof *file->tensors);
    file->by_name = fx_alloc(count, sizeof(const struct fx_tensor *));
    if (!file->tensors || !file->by_name)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for %zu tensors", count);
    if (!read_tensors(file, err)) return false;
    qsort(file->tensors, file->count, sizeof *file->tensors, by_data);
    for (size_t i = 0; i < file->count; i++)
        file->by_name[i] = &file->tensors[i];
    qsort((void *)file->by_name, file->count, sizeof(struct fx_tensor *), by_name);
    return check_cover(file, err);
}
