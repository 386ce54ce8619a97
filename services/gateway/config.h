#pragma once
#include "common/base/env.h"
#include "common/http/cors.h"
#include "common/queue/redis_env.h"
#include "common/rpc/service.h"

enum { GW_LOOPS_MAX = 64, GW_LOOPS_AUTO_MAX = 8 };

/** What the environment says; read once. `fractal-gateway --help` prints the table. */
struct gw_config {
    const char *http_addr, *grpc_addr, *admin_addr, *log_level;
    const char *tenant_addr, *scheduler_addr, *slicer_addr;
    const char *redis_url, *redis_ledger_url; /* the second "": as the first */
    struct fx_redis_tls redis_tls;            /* of both */
    const char *tls_ca, *tls_cert, *tls_key;  /* between services, and of the gRPC API */
    const char *http_tls_cert, *http_tls_key; /* of the public port; both or none */
    const char *cors_origins;                 /* "": no web page may ask */
    uint32_t connections_max, body_bytes_max, stall_ms_max, limit_lease_ms, rpc_threads, http_loops,
        unread_bytes, unread_ms_max, ping_ms, resume_ms_max;
    bool plaintext;
    struct fx_health_config health;
};

extern const struct fx_env_row gw_config_rows[];
extern const size_t gw_config_row_count;

/** Reads and checks: a public address without TLS is refused unless FX_PLAINTEXT=1.
 *  @err INVALID_ARGUMENT naming the variable */
FX_MUST bool gw_config_load(struct gw_config *out, fx_error *err);
FX_MUST bool gw_config_check(const struct gw_config *config, fx_error *err);
struct fx_tls gw_config_tls(const struct gw_config *config);
/** Which web pages may ask, and what. */
struct fx_http_cors gw_config_cors(const struct gw_config *config);
/** How many loops serve HTTP: as set, or as many as there are usable cores. */
uint32_t gw_config_loops(const struct gw_config *config);
/** The Redis of keys and rate limits. */
const char *gw_config_ledger_url(const struct gw_config *config);
