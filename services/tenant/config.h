#pragma once
#include "common/queue/redis_env.h"
#include "common/rpc/service.h"

struct tenant_config {
    struct fx_service_config service;
    struct fx_health_config health;
    const char *redis_url, *ledger_url; /* ledger_url: where tenants and keys are; never empty */
    struct fx_redis_tls redis_tls;
    const char *token_file;
};

extern const struct fx_env_row tenant_env[];
extern const size_t tenant_env_count;
/** Reads the environment. @err INVALID_ARGUMENT */
FX_MUST bool tenant_config_load(struct tenant_config *config, fx_error *err);
