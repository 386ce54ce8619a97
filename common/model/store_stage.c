#include "common/model/store_stage.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include "common/model/store_names.h"

#define STAGES ".import"

static int open_dir(const char *path) {
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void sweep_one(const char *dir, const char *name, uint32_t age_s_min) {
    char path[FX_PATH_MAX];
    struct stat stat;
    if (!fx_file__path(path, NULL, "%s/%s", dir, name)) return;
    fx_auto_fd fd = open_dir(path);
    if (fd < 0 || fstat(fd, &stat) != 0 || stat.st_uid != geteuid()) return;
    if (time(NULL) - stat.st_mtime < (time_t)age_s_min) return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) fx_file__remove_tree(path);
}

void fx_stage__sweep(const char *dir, const char *prefix, uint32_t age_s_min) {
    DIR *entries = opendir(dir);
    if (!entries) return;
    for (const struct dirent *entry; (entry = readdir(entries));)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && entry->d_name[0] != '.')
            sweep_one(dir, entry->d_name, age_s_min);
    (void)closedir(entries);
}

static FX_MUST bool make_dir(const char *path, fx_error *err) {
    return mkdir(path, 0755) == 0 || errno == EEXIST || fx_fail_errno(err, "create '%s'", path);
}

static FX_MUST bool stages_path(const char *store, char out[FX_PATH_MAX], fx_error *err) {
    return fx_file__path(out, err, "%s/" STAGES, store);
}

bool fx_stage__lock(const struct fx_stage *stage, int *lock, fx_error *err) {
    char path[FX_PATH_MAX];
    if (!stages_path(stage->store, path, err)) return false;
    *lock = open_dir(path);
    if (*lock < 0) return fx_fail_errno(err, "open '%s'", path);
    while (flock(*lock, LOCK_EX) != 0)
        if (errno != EINTR) return fx_fail_errno(err, "lock '%s'", path);
    return true;
}

/* Under the lock, so that no sweep comes between mkdir and flock. */
static FX_MUST bool make_stage(struct fx_stage *stage, const char *stages, fx_error *err) {
    uint64_t random;
    fx_random(&random, sizeof random);
    if (!fx_file__path(stage->path, err, "%s/%016llx", stages, (unsigned long long)random))
        return false;
    if (mkdir(stage->path, 0755) != 0) return fx_fail_errno(err, "create '%s'", stage->path);
    stage->fd = open_dir(stage->path);
    if (stage->fd >= 0 && flock(stage->fd, LOCK_EX | LOCK_NB) == 0) return true;
    return fx_fail_errno(err, "lock '%s'", stage->path);
}

bool fx_stage__begin(const char *store_dir, struct fx_stage *stage, fx_error *err) {
    char stages[FX_PATH_MAX];
    fx_auto_fd lock = -1;
    *stage = (struct fx_stage){.fd = -1};
    if (!fx_file__path(stage->store, err, "%s", store_dir) ||
        !stages_path(store_dir, stages, err) || !make_dir(stages, err) ||
        !fx_stage__lock(stage, &lock, err))
        return false;
    fx_stage__sweep(stages, "", 0);
    return make_stage(stage, stages, err);
}

void fx_store_clean(const char *dir) {
    struct fx_stage stage = {.fd = -1};
    char stages[FX_PATH_MAX];
    fx_auto_fd lock = -1;
    if (fx_file__path(stage.store, NULL, "%s", dir) && stages_path(dir, stages, NULL) &&
        fx_stage__lock(&stage, &lock, NULL))
        fx_stage__sweep(stages, "", 0);
}

void fx_stage__end(struct fx_stage *stage) {
    if (stage->path[0]) fx_file__remove_tree(stage->path);
    if (stage->fd >= 0) (void)close(stage->fd);
    *stage = (struct fx_stage){.fd = -1};
}

/* The whole number a folder's name is, 0 for none. */
static uint64_t version_of(const char *name) {
    char *end;
    if (name[0] < '1' || name[0] > '9' || strlen(name) > 9) return 0;
    uint64_t version = strtoull(name, &end, 10);
    return *end ? 0 : version;
}

/* A version above the current one was never published: its maker died between the two renames. */
static void remove_orphans(const char *model, uint64_t current) {
    DIR *entries = opendir(model);
    if (!entries) return;
    for (const struct dirent *entry; (entry = readdir(entries));) {
        char path[FX_PATH_MAX];
        if (version_of(entry->d_name) > current &&
            fx_file__path(path, NULL, "%s/%s", model, entry->d_name))
            fx_file__remove_tree(path);
    }
    (void)closedir(entries);
}

static FX_MUST bool check_number(void *ctx, const char *name, fx_error *err) {
    const char *ours = ctx;
    return strcmp(name, ours) == 0 || fx_model_number(name) != fx_model_number(ours) ||
           fx_fail(err, FX_ALREADY_EXISTS, "'%s' has the same number as '%s': choose another name",
                   ours, name);
}

bool fx_stage__version(const struct fx_stage *stage, const char *name,
                       char version[FX_MODEL_VERSION_MAX], fx_error *err) {
    char model[FX_PATH_MAX], current[FX_MODEL_VERSION_MAX] = "";
    fx_error none = {0};
    if (!fx_store__names(stage->store, check_number, (void *)(uintptr_t)name, err) ||
        !fx_file__path(model, err, "%s/%s", stage->store, name))
        return false;
    if (!fx_store__current(stage->store, name, current, &none) && none.code != FX_NOT_FOUND)
        return fx_fail(err, none.code, "%s", none.text);
    remove_orphans(model, version_of(current));
    (void)snprintf(version, FX_MODEL_VERSION_MAX, "%llu",
                   (unsigned long long)version_of(current) + 1);
    return true;
}

/* The model's folder, and that of its organisation. */
static FX_MUST bool make_model_dir(const char *store, const char *name, char model[FX_PATH_MAX],
                                   fx_error *err) {
    char org[FX_PATH_MAX];
    const char *slash = strchr(name, '/');
    if (slash && (!fx_file__path(org, err, "%s/%.*s", store, (int)(slash - name), name) ||
                  !make_dir(org, err) || !fx_file__sync_dir(store, err)))
        return false;
    return fx_file__path(model, err, "%s/%s", store, name) && make_dir(model, err) &&
           fx_file__sync_dir(slash ? org : store, err);
}

static FX_MUST bool switch_current(const char *model, const char *version, fx_error *err) {
    char next[FX_PATH_MAX], current[FX_PATH_MAX], line[FX_MODEL_VERSION_MAX + 1];
    if (!fx_file__path(next, err, "%s/.current", model) ||
        !fx_file__path(current, err, "%s/" FX_CURRENT_FILE, model))
        return false;
    (void)unlink(next);
    (void)snprintf(line, sizeof line, "%s\n", version);
    if (!fx_file__write(next, fx_span_str(line), err)) return false;
    if (rename(next, current) != 0) return fx_fail_errno(err, "rename to '%s'", current);
    return fx_file__sync_dir(model, err);
}

bool fx_stage__publish(struct fx_stage *stage, const char *name, const char *version,
                       fx_error *err) {
    char model[FX_PATH_MAX], path[FX_PATH_MAX];
    if (!make_model_dir(stage->store, name, model, err) ||
        !fx_file__path(path, err, "%s/%s", model, version) || !fx_file__sync_dir(stage->path, err))
        return false;
    if (rename(stage->path, path) != 0) return fx_fail_errno(err, "rename to '%s'", path);
    memcpy(stage->path, path, sizeof path); /* until `current` names it, it is ours to remove */
    if (!fx_file__sync_dir(model, err) || !switch_current(model, version, err)) return false;
    stage->path[0] = '\0';
    return true;
}
