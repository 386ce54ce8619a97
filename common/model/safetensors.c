#include "common/model/safetensors.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/heap.h"
#include "common/model/safetensors_internal.h"

static const struct {
    const char *name;
    uint32_t bytes;
} dtypes[] = {
    [FX_DTYPE_F64] = {"F64",  8},
      [FX_DTYPE_F32] = {"F32",  4},
      [FX_DTYPE_F16] = {"F16",  2},
    [FX_DTYPE_BF16] = {"BF16", 2},
      [FX_DTYPE_I64] = {"I64",  8},
      [FX_DTYPE_I32] = {"I32",  4},
    [FX_DTYPE_I16] = {"I16",  2},
      [FX_DTYPE_I8] = {"I8",   1},
      [FX_DTYPE_U8] = {"U8",   1},
    [FX_DTYPE_BOOL] = {"BOOL", 1},
};

uint32_t fx_dtype_bytes(enum fx_dtype dtype) {
    return dtypes[dtype].bytes;
}

const char *fx_dtype_name(enum fx_dtype dtype) {
    return dtypes[dtype].name;
}

enum fx_dtype fx_safetensors__dtype_of(const char *name) {
    for (size_t i = 1; i < FX_COUNT(dtypes); i++)
        if (strcmp(dtypes[i].name, name) == 0) return (enum fx_dtype)i;
    return (enum fx_dtype)0;
}

bool fx_safetensors__bytes(enum fx_dtype dtype, uint32_t dims, const uint64_t *shape,
                           uint64_t *bytes) {
    uint64_t product = fx_dtype_bytes(dtype);
    for (uint32_t i = 0; i < dims; i++)
        if (__builtin_mul_overflow(product, shape[i], &product)) return false;
    *bytes = product;
    return true;
}

static FX_MUST bool map_file(struct fx_safetensors *file, const char *path, fx_error *err) {
    struct stat stat;
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0 || fstat(file->fd, &stat) != 0) return fx_fail_errno(err, "open");
    if (!S_ISREG(stat.st_mode)) return fx_fail(err, FX_INVALID_ARGUMENT, "not a regular file");
    file->bytes = (uint64_t)stat.st_size;
    if (file->bytes < 8)
        return fx_fail(err, FX_DATA_LOSS, "%llu bytes are no safetensors file",
                       (unsigned long long)file->bytes);
    file->map = mmap(NULL, file->bytes, PROT_READ, MAP_SHARED, file->fd, 0);
    if (file->map != MAP_FAILED) return true;
    file->map = NULL;
    return fx_fail_errno(err, "map");
}

bool fx_safetensors_open(const char *path, fx_safetensors **out, fx_error *err) {
    fx_auto(fx_safetensors) file = fx_alloc(1, sizeof *file);
    if (!file) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a file");
    file->fd = -1;
    const char *slash = strrchr(path, '/');
    if (!map_file(file, path, err) || !fx_safetensors__header(file, err))
        return fx_wrap(err, "'%.100s'", slash ? slash + 1 : path);
    *out = fx_take(file);
    return true;
}

void fx_safetensors_free(fx_safetensors *file) {
    if (!file) return;
    if (file->map) (void)munmap(file->map, file->bytes);
    if (file->fd >= 0) (void)close(file->fd);
    json_decref(file->root);
    free(file->tensors);
    free(file->by_name);
    free(file);
}

size_t fx_safetensors_count(const fx_safetensors *file) {
    return file->count;
}

const struct fx_tensor *fx_safetensors_at(const fx_safetensors *file, size_t i) {
    FX_ASSERT(i < file->count);
    return &file->tensors[i];
}

const struct fx_tensor *fx_safetensors_find(const fx_safetensors *file, const char *name) {
    size_t low = 0, high = file->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, file->by_name[middle]->name);
        if (order == 0) return file->by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

bool fx_safetensors_read(const fx_safetensors *file, const struct fx_tensor *tensor,
                         uint64_t offset, void *out, size_t len, fx_error *err) {
    FX_ASSERT(offset <= tensor->data.len && len <= tensor->data.len - offset);
    uint64_t at = (uint64_t)(tensor->data.at - (const uint8_t *)file->map) + offset;
    for (size_t done = 0; done < len;) {
        ssize_t got = pread(file->fd, (uint8_t *)out + done, len - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fx_fail_errno(err, "tensor '%.150s': read", tensor->name);
        if (got == 0)
            return fx_fail(err, FX_DATA_LOSS, "tensor '%.150s': the file became shorter",
                           tensor->name);
        done += (size_t)got;
    }
    return true;
}
