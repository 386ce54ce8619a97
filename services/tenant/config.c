#include "services/tenant/config.h"

#define AT(member) offsetof(struct tenant_config, member)

const struct fx_env_row tenant_env[] = {
    FX_SERVICE_ROWS(struct tenant_config, service, "127.0.0.1:50051", "127.0.0.1:51051"),
    FX_HEALTH_ROWS(struct tenant_config, health, "10000"),
    {"FX_REDIS_URL",            FX_ENV_TEXT, AT(redis_url),  0, 0, "redis://127.0.0.1:6379", NULL,
                                             FX_REDIS_URL_HELP                                                   },
    {"FX_REDIS_LEDGER_URL",     FX_ENV_TEXT, AT(ledger_url), 0, 0, "",                       NULL,
                                             "Redis of tenants and keys; empty: FX_REDIS_URL"                    },
    FX_REDIS_TLS_ROWS(struct tenant_config, redis_tls),
    {"FX_BOOTSTRAP_TOKEN_FILE", FX_ENV_TEXT, AT(token_file), 0, 0, NULL,                     NULL,
                                             "file (mode 0600) with the 64 hex digits that admin calls must show"},
};
const size_t tenant_env_count = FX_COUNT(tenant_env);

bool tenant_config_load(struct tenant_config *config, fx_error *err) {
    struct tenant_config read = {0};
    if (!fx_env_load(tenant_env, tenant_env_count, &read, err)) return false;
    bool has_own = *read.ledger_url != '\0';
    if (!has_own) read.ledger_url = read.redis_url;
    if (!fx_redis_url_check(read.ledger_url, err))
        return fx_wrap(err, "%s", has_own ? "FX_REDIS_LEDGER_URL" : "FX_REDIS_URL");
    if (!fx_health_check(&read.health, err)) return false;
    *config = read;
    return true;
}
