#pragma once
#include "common/queue/redis_env.h"
#include "common/rpc/service.h"

struct scheduler_config {
    struct fx_service_config service;
    struct fx_health_config health;
    const char *redis_url, *cold_models;
    struct fx_redis_tls redis_tls;
    uint32_t lease_ms, retain_s, model_max, tenant_max, fruitless_max;
};

extern const struct fx_env_row scheduler_env[];
extern const size_t scheduler_env_count;
/** Reads the environment. @err INVALID_ARGUMENT */
FX_MUST bool scheduler_config_load(struct scheduler_config *config, fx_error *err);
