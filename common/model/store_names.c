#include "common/model/store_names.h"
#include <dirent.h>
#include <stdio.h>
#include "common/model/store_file.h"

uint32_t fx_model_number(const char *name) {
    uint8_t digest[FX_SHA256_BYTES];
    fx_sha256(fx_span_str(name), digest);
    return (uint32_t)digest[0] << 24 | (uint32_t)digest[1] << 16 | (uint32_t)digest[2] << 8 |
           digest[3];
}

enum { NAME_PART_MAX = 64 };
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static FX_MUST bool check_part(fx_span part, fx_error *err) {
    char text[NAME_PART_MAX + 1] = "";
    if (part.len < 1 || part.len > NAME_PART_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT,
                       "a model name is NAME or ORG/NAME of 1 to %d characters each",
                       NAME_PART_MAX);
    memcpy(text, part.at, part.len);
    if (strspn(text, NAME_CHARACTERS) != part.len)
        return fx_fail(err, FX_INVALID_ARGUMENT, "a model name has only [a-zA-Z0-9._-]");
    if (text[0] == '.')
        return fx_fail(err, FX_INVALID_ARGUMENT, "a model name does not begin with '.'");
    return true;
}

bool fx_model_name_check(const char *name, fx_error *err) {
    const char *slash = strchr(name, '/');
    if (!slash) return check_part(fx_span_str(name), err);
    fx_span org = {(const uint8_t *)name, (size_t)(slash - name)};
    if (!check_part(org, err) || !check_part(fx_span_str(slash + 1), err)) return false;
    if (slash[1 + strspn(slash + 1, "0123456789")] == '\0' ||
        strcmp(slash + 1, FX_CURRENT_FILE) == 0)
        return fx_fail(err, FX_INVALID_ARGUMENT,
                       "the part after '/' of a model name is no number and not '" FX_CURRENT_FILE
                       "'");
    return true;
}

bool fx_store__current(const char *dir, const char *name, char version[FX_MODEL_VERSION_MAX],
                       fx_error *err) {
    char path[FX_PATH_MAX];
    fx_auto_bytes text = {0};
    if (!fx_file__path(path, err, "%s/%s/" FX_CURRENT_FILE, dir, name)) return false;
    if (!fx_file__exists(path)) return fx_fail(err, FX_NOT_FOUND, "no model '%s'", name);
    if (!fx_file__read(path, FX_MODEL_VERSION_MAX, &text, err)) return false;
    size_t digits = strspn((const char *)text.at, "0123456789");
    if (!digits || digits + 1 != text.len || text.at[digits] != '\n' ||
        digits >= FX_MODEL_VERSION_MAX)
        return fx_fail(err, FX_DATA_LOSS, "model '%s': its file 'current' names no version", name);
    memcpy(version, text.at, digits);
    version[digits] = '\0';
    return true;
}

static bool has_current(const char *dir, const char *name) {
    char path[FX_PATH_MAX];
    return fx_model_name_check(name, NULL) &&
           fx_file__path(path, NULL, "%s/%s/" FX_CURRENT_FILE, dir, name) && fx_file__exists(path);
}

struct walk {
    const char *dir;
    bool (*each)(void *ctx, const char *name, fx_error *err);
    void *ctx;
};

static FX_MUST bool visit(const struct walk *walk, const char *name, fx_error *err) {
    return !has_current(walk->dir, name) || walk->each(walk->ctx, name, err);
}

/* The models "org/..." . */
static FX_MUST bool visit_org(const struct walk *walk, const char *org, fx_error *err) {
    char path[FX_PATH_MAX];
    bool ok = true;
    if (!fx_model_name_check(org, NULL) || !fx_file__path(path, NULL, "%s/%s", walk->dir, org))
        return true;
    DIR *entries = opendir(path);
    if (!entries) return true;
    for (const struct dirent *entry; ok && (entry = readdir(entries));) {
        char name[FX_PATH_MAX];
        if (fx_file__path(name, NULL, "%s/%s", org, entry->d_name)) ok = visit(walk, name, err);
    }
    (void)closedir(entries);
    return ok;
}

bool fx_store__names(const char *dir, bool (*each)(void *ctx, const char *name, fx_error *),
                     void *ctx, fx_error *err) {
    const struct walk walk = {dir, each, ctx};
    bool ok = true;
    DIR *entries = opendir(dir);
    if (!entries) return fx_fail_errno(err, "model store '%s'", dir);
    for (const struct dirent *entry; ok && (entry = readdir(entries));)
        ok = visit(&walk, entry->d_name, err) && visit_org(&walk, entry->d_name, err);
    (void)closedir(entries);
    return ok;
}
