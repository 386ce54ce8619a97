/* The input as a file: what opens holds together, and every byte of it can be read. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/fuzz/fuzz.h"
#include "common/model/safetensors.h"

static uint64_t check_tensor(const fx_safetensors *file, const struct fx_tensor *tensor) {
    uint64_t bytes = fx_dtype_bytes(tensor->dtype);
    volatile uint8_t sink = 0;
    uint8_t last;
    FX_ASSERT(tensor->dims <= FX_TENSOR_DIMS_MAX);
    for (uint32_t i = 0; i < tensor->dims; i++)
        bytes *= tensor->shape[i];
    FX_ASSERT(bytes == tensor->data.len);
    FX_ASSERT(fx_safetensors_find(file, tensor->name) == tensor);
    for (size_t i = 0; i < tensor->data.len; i++)
        sink = (uint8_t)(sink ^ tensor->data.at[i]);
    if (bytes)
        FX_ASSERT(fx_safetensors_read(file, tensor, bytes - 1, &last, 1, NULL) &&
                  last == tensor->data.at[bytes - 1]);
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int fd = -1;
    char path[64];
    uint64_t bytes = 0, header;
    fx_error err = {0};
    fx_auto(fx_safetensors) file = NULL;
    if (fd < 0) fd = memfd_create("fuzz", MFD_CLOEXEC);
    FX_ASSERT(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!fx_safetensors_open(path, &file, &err)) {
        FX_ASSERT(err.code != FX_OK && err.text[0]);
        return 0;
    }
    for (size_t i = 0; i < fx_safetensors_count(file); i++)
        bytes += check_tensor(file, fx_safetensors_at(file, i));
    memcpy(&header, data, sizeof header);
    FX_ASSERT(8 + header + bytes == size);
    return 0;
}
