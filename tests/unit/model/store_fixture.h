#pragma once
/* Folders, checkpoints and imports for the tests of the store. Helpers assert, they don't fail. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/fx_test.h"
#include "common/base/heap.h"
#include "common/model/ingest.h"
#include "common/model/safetensors.h"
#include "common/model/store.h"

#define FX_BUNDLED FX_SOURCE_DIR "/models/fractal-tiny-moe"
#define FX_GOLDENS FX_SOURCE_DIR "/tests/goldens/"

enum { FIXTURE_PATH = 512 };

/* A folder below /tmp, gone at the end of the test. */
struct fixture_dir {
    char path[FIXTURE_PATH];
};

static inline void fixture_dir_make(struct fixture_dir *dir) {
    (void)snprintf(dir->path, sizeof dir->path, "/tmp/fx-test-XXXXXX");
    assert_non_null(mkdtemp(dir->path));
}

static inline int fixture_unlink(const char *path, const struct stat *stat, int type,
                                 struct FTW *place) {
    (void)stat, (void)type, (void)place;
    return remove(path);
}

static inline void fixture_dir_remove(const struct fixture_dir *dir) {
    assert_int_equal(nftw(dir->path, fixture_unlink, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static inline void fixture_path(char out[FIXTURE_PATH], const char *dir, const char *name) {
    assert_true(snprintf(out, FIXTURE_PATH, "%s/%s", dir, name) < FIXTURE_PATH);
}

static inline void fixture_write(const char *dir, const char *name, const void *bytes, size_t len) {
    char path[FIXTURE_PATH];
    fixture_path(path, dir, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

/* free(); NUL after the bytes. */
static inline char *fixture_read(const char *dir, const char *name, size_t *len) {
    char path[FIXTURE_PATH];
    struct stat stat_;
    fixture_path(path, dir, name);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("can't open %s", path);
    assert_int_equal(fstat(fileno(file), &stat_), 0);
    char *text = fx_alloc((size_t)stat_.st_size + 1, 1);
    assert_non_null(text);
    *len = fread(text, 1, (size_t)stat_.st_size, file);
    assert_int_equal(*len, stat_.st_size);
    assert_int_equal(fclose(file), 0);
    return text;
}

static inline void fixture_copy(const char *from, const char *to, const char *name) {
    size_t len;
    char *text = fixture_read(from, name, &len);
    fixture_write(to, name, text, len);
    free(text);
}

/* A checkpoint of one file that the test may spoil. */
static inline void fixture_copy_model(const char *from, const char *to) {
    fixture_copy(from, to, "config.json");
    fixture_copy(from, to, "generation_config.json");
    fixture_copy(from, to, "model.safetensors");
}

/* Replaces the first `old` in a file by as many bytes of `new`. */
static inline void fixture_patch(const char *dir, const char *name, const char *old,
                                 const char *new) {
    size_t len;
    assert_int_equal(strlen(old), strlen(new));
    char *text = fixture_read(dir, name, &len);
    char *at = memmem(text, len, old, strlen(old));
    if (!at) fail_msg("'%s' is not in %s", old, name);
    memcpy(at, new, strlen(new));
    fixture_write(dir, name, text, len);
    free(text);
}

static inline void fixture_flip(const char *dir, const char *name, long at) {
    size_t len;
    char *text = fixture_read(dir, name, &len);
    size_t index = at < 0 ? len - (size_t)-at : (size_t)at;
    assert_true(index < len);
    text[index] = (char)(text[index] ^ 1);
    fixture_write(dir, name, text, len);
    free(text);
}

static inline void fixture_import(const char *folder, const char *store, const char *name,
                                  enum fx_model_dtype dtype, uint32_t part_bytes_max,
                                  struct fx_model_info *info) {
    fx_error err = {0};
    const struct fx_ingest_opts opts = {.folder = folder,
                                        .store_dir = store,
                                        .name = name,
                                        .dtype = dtype,
                                        .part_bytes_max = part_bytes_max};
    if (!fx_ingest(&opts, info, &err)) fail_msg("import %s: %s", folder, err.text);
}

static inline fx_model *fixture_open(const char *store, const char *name) {
    fx_error err = {0};
    fx_model *model = NULL;
    if (!fx_store_open(store, name, &model, &err)) fail_msg("open %s: %s", name, err.text);
    return model;
}

/* Entries of a folder but "." and "..". */
static inline size_t fixture_entries(const char *path) {
    size_t count = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    (void)closedir(dir);
    return count;
}

static inline void fixture_expect(const fx_error *err, enum fx_code code, const char *text) {
    if (err->code != code || !strstr(err->text, text))
        fail_msg("got %s '%s', want %s '%s'", fx_code_name(err->code), err->text,
                 fx_code_name(code), text);
}
