#pragma once
#include "common/base/error.h"

enum { CLI_MODEL_NAME_MAX = 160 };

/** The gateway's model, where it serves exactly one. @err FAILED_PRECONDITION names the choices */
FX_MUST bool cli_only_model(const char *base_url, const char *api_key, char out[CLI_MODEL_NAME_MAX],
                            fx_error *err);
