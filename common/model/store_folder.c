#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include "common/model/ingest.h"
#include "common/model/store_stage.h"

#define PREFIX "fx-folder-"

/* Older than the moment between making a folder and locking it. */
enum { AGE_S_MIN = 60 };

/* Locked as long as it is in use: what a killed one left is removed by the next. */
static FX_MUST bool make_folder(const char *dir, char path[FX_PATH_MAX], int *fd, fx_error *err) {
    fx_stage__sweep(dir, PREFIX, AGE_S_MIN);
    if (!fx_file__path(path, err, "%s/" PREFIX "XXXXXX", dir)) return false;
    if (!mkdtemp(path)) return fx_fail_errno(err, "temporary folder in '%.150s'", dir);
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd >= 0 && flock(*fd, LOCK_EX) == 0) return true;
    return fx_fail_errno(err, "lock '%.150s'", path);
}

bool fx_store_open_folder(const char *folder, enum fx_model_dtype dtype, const char *tmp_dir,
                          fx_model **out, fx_error *err) {
    char path[FX_PATH_MAX] = "";
    fx_auto_fd fd = -1;
    bool ok = make_folder(tmp_dir ? tmp_dir : "/tmp", path, &fd, err);
    struct fx_ingest_opts opts = {
        .folder = folder, .store_dir = path, .name = "folder", .dtype = dtype};
    ok = ok && fx_ingest(&opts, NULL, err) && fx_store_open(path, opts.name, out, err);
    if (path[0]) fx_file__remove_tree(path);
    return ok;
}
