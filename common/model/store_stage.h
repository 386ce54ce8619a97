#pragma once
#include "common/model/store_file.h"

/** A version while it is being made: <store>/.import/<random>, locked as long as its maker lives,
 * so that the next one can tell what a killed one left. */
struct fx_stage {
    char store[FX_PATH_MAX], path[FX_PATH_MAX];
    int fd; /* of the folder, locked */
};

/** Removes what killed imports left, then makes a stage. @own caller, fx_stage__end */
FX_MUST bool fx_stage__begin(const char *store_dir, struct fx_stage *stage, fx_error *err);
/** Removes the stage unless it was published. */
void fx_stage__end(struct fx_stage *stage);
/** Holds the store against other publishers until *lock is closed. */
FX_MUST bool fx_stage__lock(const struct fx_stage *stage, int *lock, fx_error *err);
/** Under the lock: the version that comes next for this name.
 *  @err ALREADY_EXISTS: another model has the same number */
FX_MUST bool fx_stage__version(const struct fx_stage *stage, const char *name,
                               char version[FX_MODEL_VERSION_MAX], fx_error *err);
/** Under the lock: makes the stage that version and switches `current` to it. */
FX_MUST bool fx_stage__publish(struct fx_stage *stage, const char *name, const char *version,
                               fx_error *err);

/** Removes our user's folders `<dir>/<prefix>*` that nobody locks and that are at least so old. */
void fx_stage__sweep(const char *dir, const char *prefix, uint32_t age_s_min);
