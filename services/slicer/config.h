#pragma once
#include "common/rpc/service.h"

struct slicer_config {
    struct fx_service_config service;
    struct fx_health_config health; /* but for a drain's time nothing is set */
    const char *model_dir, *token_file;
};

extern const struct fx_env_row slicer_env[];
extern const size_t slicer_env_count;
/** Reads the environment. @err INVALID_ARGUMENT */
FX_MUST bool slicer_config_load(struct slicer_config *config, fx_error *err);
