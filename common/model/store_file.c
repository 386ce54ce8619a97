#include "common/model/store_file.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <sys/stat.h>

enum { CHUNK = 1 << 20, TREE_FDS = 16 };

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool fx_file__path(char out[FX_PATH_MAX], fx_error *err, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(out, FX_PATH_MAX, fmt, args);
    va_end(args);
    return (len >= 0 && len < FX_PATH_MAX) ||
           fx_fail(err, FX_INVALID_ARGUMENT, "a path of more than %d bytes", FX_PATH_MAX - 1);
}

bool fx_file__exists(const char *path) {
    return access(path, F_OK) == 0;
}

/* O_NONBLOCK: a FIFO can't make us wait. */
static FX_MUST bool open_regular(const char *path, int *fd, uint64_t *bytes, fx_error *err) {
    struct stat stat;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0 || fstat(*fd, &stat) != 0) return fx_fail_errno(err, "'%.150s'", last_part(path));
    if (!S_ISREG(stat.st_mode))
        return fx_fail(err, FX_INVALID_ARGUMENT, "'%.150s' is not a regular file", last_part(path));
    *bytes = (uint64_t)stat.st_size;
    return true;
}

bool fx_file__size(const char *path, uint64_t *bytes, fx_error *err) {
    fx_auto_fd fd = -1;
    return open_regular(path, &fd, bytes, err);
}

/* Reads up to `len` bytes, fewer at the end of the file. */
static FX_MUST bool read_some(int fd, uint8_t *out, size_t len, size_t *got, fx_error *err) {
    for (*got = 0; *got < len;) {
        ssize_t n = read(fd, out + *got, len - *got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fx_fail_errno(err, "read");
        if (n == 0) break;
        *got += (size_t)n;
    }
    return true;
}

bool fx_file__read(const char *path, size_t bytes_max, struct fx_bytes *out, fx_error *err) {
    fx_auto_fd fd = -1;
    uint64_t bytes;
    size_t got;
    if (!open_regular(path, &fd, &bytes, err)) return false;
    if (bytes > bytes_max)
        return fx_fail(err, FX_INVALID_ARGUMENT, "'%.150s' has %llu bytes, at most %zu",
                       last_part(path), (unsigned long long)bytes, bytes_max);
    fx_auto(uint8_t) text = fx_alloc(bytes + 1, 1);
    if (!text) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for '%.150s'", last_part(path));
    if (!read_some(fd, text, bytes, &got, err)) return fx_wrap(err, "'%.150s'", last_part(path));
    *out = (struct fx_bytes){fx_take(text), got};
    return true;
}

bool fx_file__pwrite(int fd, uint64_t at, fx_span bytes, fx_error *err) {
    for (size_t done = 0; done < bytes.len;) {
        ssize_t n = pwrite(fd, bytes.at + done, bytes.len - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fx_fail_errno(err, "write");
        done += (size_t)n;
    }
    return true;
}

bool fx_file__write(const char *path, fx_span bytes, fx_error *err) {
    fx_auto_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) return fx_fail_errno(err, "create '%.150s'", last_part(path));
    if (!fx_file__pwrite(fd, 0, bytes, err)) return fx_wrap(err, "'%.150s'", last_part(path));
    return fsync(fd) == 0 || fx_fail_errno(err, "sync '%.150s'", last_part(path));
}

bool fx_file__sync_dir(const char *path, fx_error *err) {
    fx_auto_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fsync(fd) == 0) return true;
    return fx_fail_errno(err, "sync folder '%.150s'", last_part(path));
}

bool fx_file__sha256(const char *path, const struct fx_file_tick *tick, char out[FX_SHA256_HEX],
                     uint64_t *bytes, fx_error *err) {
    fx_auto_fd fd = -1;
    uint64_t size;
    if (!open_regular(path, &fd, &size, err)) return false;
    fx_auto(fx_sha256_stream) hash = fx_sha256_new();
    fx_auto(uint8_t) chunk = fx_alloc(CHUNK, 1);
    if (!hash || !chunk) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a digest");
    size_t got = CHUNK;
    for (*bytes = 0; got == CHUNK; *bytes += got) {
        if (!read_some(fd, chunk, CHUNK, &got, err))
            return fx_wrap(err, "'%.150s'", last_part(path));
        fx_sha256_add(hash, (fx_span){chunk, got});
        if (tick && !tick->step(tick->ctx, got)) return fx_fail(err, FX_CANCELLED, "stopped");
    }
    uint8_t digest[FX_SHA256_BYTES];
    fx_sha256_end(hash, digest);
    fx_hex((fx_span){digest, sizeof digest}, out);
    return true;
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *place) {
    (void)stat, (void)type, (void)place;
    (void)remove(path);
    return 0;
}

void fx_file__remove_tree(const char *path) {
    (void)nftw(path, remove_one, TREE_FDS, FTW_DEPTH | FTW_PHYS);
}
