#pragma once
#include "common/model/store.h"

#define FX_CURRENT_FILE "current"

/** The version that `current` names. @err NOT_FOUND, DATA_LOSS */
FX_MUST bool fx_store__current(const char *dir, const char *name,
                               char version[FX_MODEL_VERSION_MAX], fx_error *err);
/** Calls `each` for every name that has a current version, in no order; false ends it. */
FX_MUST bool fx_store__names(const char *dir, bool (*each)(void *ctx, const char *name, fx_error *),
                             void *ctx, fx_error *err);
