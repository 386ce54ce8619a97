#pragma once
#include "common/base/hash.h"
#include "common/queue/redis.h"
#include "common/rpc/client.h"
#include "services/gateway/errors.h"
#include "services/gateway/metrics.h"

enum {
    GW_KEY_BYTES_MAX = 256,
    GW_KEY_ID_MAX = 16,
    GW_AUTH_ENTRIES = 4096, /* of the cache, a power of two */
    GW_AUTH_TTL_MS = 5000,  /* from the question on, not from the answer */
    GW_AUTH_DEADLINE_MS = 3000,
};

/** What may be asked for: a minute, a minute, at the same time; 0: no limit. */
struct gw_limit {
    uint32_t requests, tokens, streams;
};
enum gw_scope { GW_OF_KEY, GW_OF_TENANT, GW_SCOPES };

/** Whose key it is. */
struct gw_identity {
    uint64_t tenant;
    uint32_t weight;
    char key_id[GW_KEY_ID_MAX + 1];
    uint8_t digest[FX_SHA256_BYTES];   /* the key's SHA-256, to ask again whether it is good */
    struct gw_limit limits[GW_SCOPES]; /* all of them hold */
};

/** Keys to tenants: asked of the tenant service and kept for GW_AUTH_TTL_MS by the key's SHA-256.
 *  Kept only while revocations can be heard; dropped at each and at each reconnect. Fails closed.
 *  @thread the loop's */
struct gw_auth;

struct gw_auth_opts {
    fx_client *tenant;
    fx_redis *redis; /* of the keys */
    struct gw_metrics *metrics;
};

/** @own caller, gw_auth_free @err RESOURCE_EXHAUSTED */
FX_MUST bool gw_auth_open(const struct gw_auth_opts *opts, struct gw_auth **out, fx_error *err);
/** After its client has been freed, before its Redis. NULL is fine. */
void gw_auth_free(struct gw_auth *auth);

/** The key of a request: `Authorization: Bearer` or `X-Auth-Token`. */
FX_MUST bool gw_auth_key(const struct fx_http_request *request, fx_span *out,
                         struct gw_problem *problem);
/** The same of the two values; .len 0: not there. */
FX_MUST bool gw_auth_key_of(fx_span authorization, fx_span x_auth_token, fx_span *out,
                            struct gw_problem *problem);
/** `done` is called once, perhaps from inside; exactly one of `who` and `problem` is not NULL. */
typedef void (*gw_auth_done)(void *ctx, const struct gw_identity *who,
                             const struct gw_problem *problem);
void gw_auth_check(struct gw_auth *auth, fx_span key, const fx_trace *trace, gw_auth_done done,
                   void *ctx);
/** The same of a key that is not kept: by its SHA-256. */
void gw_auth_check_digest(struct gw_auth *auth, const uint8_t digest[FX_SHA256_BYTES],
                          const fx_trace *trace, gw_auth_done done, void *ctx);
