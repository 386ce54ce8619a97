#include "services/worker/config.h"
#include "common/base/auto.h"
#include <unistd.h>

#define AT(member) offsetof(struct worker_config, member)

const struct fx_env_row worker_env[] = {
    {"FX_MODEL",          FX_ENV_TEXT,   AT(model),          0,   0,       NULL,                     NULL,      "name of the model this worker serves"},
    {"FX_MODEL_DIR",      FX_ENV_TEXT,   AT(model_dir),      0,   0,       NULL,                     NULL,      "folder of the model store"           },
    {"FX_BACKEND",        FX_ENV_CHOICE, AT(backend),        0,   0,       "cpu",                    "cpu|ref",
     "cpu: the best this processor has; ref: plain C, slow, the same bits"                                                                            },
    {"FX_THREADS",        FX_ENV_U32,    AT(threads),        0,   256,     "0",                      NULL,
     "compute threads; 0: one per processor, less one for the other programs"                                                                         },
    {"FX_KV_MIB",         FX_ENV_U64,    AT(kv_mib),         1,   1 << 20, "128",                    NULL,
     "MiB of the KV cache, taken at start"                                                                                                            },
    {"FX_KV_DTYPE",       FX_ENV_CHOICE, AT(kv_dtype),       0,   0,       "f32",                    "f32|f16",
     "what the KV cache stores; another value makes another numerics id"                                                                              },
    {"FX_SLOTS_MAX",      FX_ENV_U32,    AT(slots_max),      1,   256,     "32",                     NULL,      "generations at once"                 },
    {"FX_NUMERICS",       FX_ENV_CHOICE, AT(numerics),       0,   0,       "exact",                  "exact",
     "exact: the same bits on every machine"                                                                                                          },
    {"FX_RESUME_INEXACT", FX_ENV_BOOL,   AT(resume_inexact), 0,   0,       "0",                      NULL,
     "1: go on with generations of a worker with another numerics id; their finish is marked"                                                         },
    {"FX_LEASE_MS",       FX_ENV_U32,    AT(lease_ms),       100, 600000,  "3000",                   NULL,
     "a generation whose worker is silent for so long goes to another"                                                                                },
    {"FX_RENEW_MS",       FX_ENV_U32,    AT(renew_ms),       20,  300000,  "800",                    NULL,
     "how often leases are renewed; at most half of FX_LEASE_MS"                                                                                      },
    {"FX_REDIS_URL",      FX_ENV_TEXT,   AT(redis_url),      0,   0,       "redis://127.0.0.1:6379", NULL,
     "queue and logs: " FX_REDIS_URL_HELP                                                                                                             },
    FX_REDIS_TLS_ROWS(struct worker_config, redis_tls),
    {"FX_SCHEDULER_ADDR", FX_ENV_TEXT,   AT(scheduler_addr), 0,   0,       "127.0.0.1:50052",        NULL,
     "the scheduler's gRPC address"                                                                                                                   },
    FX_SERVICE_ROWS(struct worker_config, service, "127.0.0.1:50054", "127.0.0.1:51054"),
    FX_HEALTH_ROWS(struct worker_config, health, "20000"),
};
const size_t worker_env_count = FX_COUNT(worker_env);

bool worker_config_check(const struct worker_config *config, fx_error *err) {
    if (config->renew_ms > config->lease_ms / 2)
        return fx_fail(err, FX_INVALID_ARGUMENT,
                       "FX_RENEW_MS=%u must be at most half of FX_LEASE_MS=%u", config->renew_ms,
                       config->lease_ms);
    return fx_health_check(&config->health, err);
}

uint32_t worker_threads(const struct worker_config *config) {
    if (config->threads) return config->threads;
    long spare = sysconf(_SC_NPROCESSORS_ONLN) - 1;
    return spare < 1 ? 1 : spare > 256 ? 256 : (uint32_t)spare;
}
