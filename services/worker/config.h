#pragma once
#include "common/queue/redis_env.h"
#include "common/rpc/service.h"

/** FX_* of the worker. */
struct worker_config {
    const char *model, *model_dir, *backend, *kv_dtype, *numerics;
    uint32_t threads; /* 0: see worker_threads */
    uint64_t kv_mib;
    uint32_t slots_max, lease_ms, renew_ms;
    const char *redis_url, *scheduler_addr;
    struct fx_redis_tls redis_tls;
    bool resume_inexact;
    struct fx_service_config service;
    struct fx_health_config health; /* what runs when the drain ends goes to other workers */
};

extern const struct fx_env_row worker_env[];
extern const size_t worker_env_count;
/** What rows can't say. @err INVALID_ARGUMENT */
FX_MUST bool worker_config_check(const struct worker_config *config, fx_error *err);
/** Compute threads: FX_THREADS, or all processors but one. */
uint32_t worker_threads(const struct worker_config *config);
