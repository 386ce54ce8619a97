#pragma once
#include "common/base/error.h"

/** `text` and a line's end into a new file that its owner alone may read: it is there whole, or not
 *  at all. @err ALREADY_EXISTS, or what the system says */
FX_MUST bool cli_secret_write(const char *path, const char *text, fx_error *err);
