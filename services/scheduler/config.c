#include "services/scheduler/config.h"

#define AT(member) offsetof(struct scheduler_config, member)

const struct fx_env_row scheduler_env[] = {
    {"FX_REDIS_URL",        FX_ENV_TEXT, AT(redis_url),     0,   0,       "redis://127.0.0.1:6379", NULL,
     "queue and logs: " FX_REDIS_URL_HELP                                             },
    FX_REDIS_TLS_ROWS(struct scheduler_config, redis_tls),
    {"FX_LEASE_MS",         FX_ENV_U32,  AT(lease_ms),      100, 600000,  "3000",                   NULL,
     "a generation whose worker is silent for so long goes to another"                },
    {"FX_GEN_RETAIN_S",     FX_ENV_U32,  AT(retain_s),      1,   604800,  "600",                    NULL,
     "how long log and state of an ended generation are kept"                         },
    {"FX_QUEUE_MODEL_MAX",  FX_ENV_U32,  AT(model_max),     1,   1000000, "4096",                   NULL,
     "generations of one model that may wait; one more is refused"                    },
    {"FX_QUEUE_TENANT_MAX", FX_ENV_U32,  AT(tenant_max),    1,   1000000, "1024",                   NULL,
     "generations of one tenant and model that may wait"                              },
    {"FX_DELIVERIES_MAX",   FX_ENV_U32,  AT(fruitless_max), 1,   100,     "3",                      NULL,
     "workers in a row that may lose a generation without a new token before it fails"},
    {"FX_COLD_MODELS",      FX_ENV_TEXT, AT(cold_models),   0,   0,       "",                       NULL,
     "models, by comma, whose generations may wait for a first worker; for others it is 503 while "
     "there is none"                                                                  },
    FX_SERVICE_ROWS(struct scheduler_config, service, "127.0.0.1:50052", "127.0.0.1:51052"),
    FX_HEALTH_ROWS(struct scheduler_config, health, "10000"),
};
const size_t scheduler_env_count = FX_COUNT(scheduler_env);

bool scheduler_config_load(struct scheduler_config *config, fx_error *err) {
    struct scheduler_config read = {0};
    if (!fx_env_load(scheduler_env, scheduler_env_count, &read, err)) return false;
    if (!fx_redis_url_check(read.redis_url, err)) return fx_wrap(err, "FX_REDIS_URL");
    if (!fx_health_check(&read.health, err)) return false;
    *config = read;
    return true;
}
