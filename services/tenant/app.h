#pragma once
#include <stdatomic.h>
#include "common/queue/redis.h"
#include "common/rpc/loop.h"
#include "common/rpc/server.h"
#include "common/rpc/service.h"
#include "services/tenant/config.h"

enum {
    TENANT_CALLS_MAX = 64,
    TENANT_ARENA_BYTES = 512 * 1024, /* holds the largest page */
    TENANT_TENANTS_MAX = 100000,
    TENANT_KEYS_MAX = 1000, /* of one tenant, revoked ones too */
    TENANT_PAGE_MAX = 1000,
    TENANT_PAGE_DEFAULT = 100,
    TENANT_NAME_MAX = 63,
    TENANT_LABEL_MAX = 128,
    TENANT_WEIGHT_MAX = 1000,
    TENANT_RATE_MAX = 1000000000, /* requests or tokens a minute */
    TENANT_STREAMS_MAX = 1000000,
    TENANT_RETRY_AFTER_MS = 500,
};

/** What the handlers share. The loop's thread owns `redis`. */
struct tenant_app {
    fx_loop *loop;
    fx_redis *redis;
    fx_server *server;
    char token[FX_TOKEN_MAX];
    struct fx_health_config health;
    _Atomic bool redis_ready, draining;
    _Atomic uint32_t redis_reconnects;
    _Atomic uint64_t authenticated, refused, tenants_created, keys_created, keys_revoked;
};

extern const struct fx_method tenant_methods[];
extern const size_t tenant_method_count;

/** Opens the ledger's Redis on the app's loop (which does not run yet) and follows its state.
 *  @own caller, fx_redis_free @err INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
FX_MUST bool tenant_app_redis(struct tenant_app *app, const struct tenant_config *config,
                              fx_redis **out, fx_error *err);
/** For the admin endpoints. @thread any */
bool tenant_app_live(void *app, char *reason);
bool tenant_app_ready(void *app, char *reason);
void tenant_app_metrics(void *app, fx_buf *out);
void tenant_app_follow(void *app, bool ready, const char *reason);
