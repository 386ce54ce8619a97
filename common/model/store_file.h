#pragma once
#include <limits.h>
#include <unistd.h>
#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/base/heap.h"
#include "common/base/span.h"
#include "common/model/store.h"

/* Files and folders of the store. Errors name the last part of the path. */

enum { FX_PATH_MAX = 4096 };

static inline void fx_fd__close(int *fd) {
    if (*fd >= 0) (void)close(*fd);
}
/** `fx_auto_fd fd = open(...)`: closed when it leaves scope. */
#define fx_auto_fd __attribute__((cleanup(fx_fd__close))) int

static inline void fx_bytes__free(struct fx_bytes *bytes) {
    free(bytes->at);
}
#define fx_auto_bytes __attribute__((cleanup(fx_bytes__free))) struct fx_bytes
static inline fx_span fx_bytes__span(const struct fx_bytes *bytes) {
    return (fx_span){bytes->at, bytes->len};
}

/** snprintf into a path. @err INVALID_ARGUMENT: too long */
FX_MUST bool fx_file__path(char out[FX_PATH_MAX], fx_error *err, const char *fmt, ...)
    FX_PRINTF(3, 4);
bool fx_file__exists(const char *path);
/** The size of a regular file. */
FX_MUST bool fx_file__size(const char *path, uint64_t *bytes, fx_error *err);
/** A whole file with a NUL after it. @own free(out->at) @err INVALID_ARGUMENT: larger */
FX_MUST bool fx_file__read(const char *path, size_t bytes_max, struct fx_bytes *out, fx_error *err);
/** A new durable file. */
FX_MUST bool fx_file__write(const char *path, fx_span bytes, fx_error *err);
FX_MUST bool fx_file__pwrite(int fd, uint64_t at, fx_span bytes, fx_error *err);
FX_MUST bool fx_file__sync_dir(const char *path, fx_error *err);

/** Told the bytes of each step; false stops with CANCELLED. */
struct fx_file_tick {
    bool (*step)(void *ctx, uint64_t bytes);
    void *ctx;
};
FX_MUST bool fx_file__sha256(const char *path, const struct fx_file_tick *tick,
                             char out[FX_SHA256_HEX], uint64_t *bytes, fx_error *err);
/** Removes a folder and all below it; links are removed, not followed. */
void fx_file__remove_tree(const char *path);
