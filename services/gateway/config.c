#include "services/gateway/config.h"
#include <sched.h>
#include <stddef.h>
#include "common/http/listen.h"
#include "common/queue/redis.h"
#include "common/rpc/server.h"

#define AT(member) offsetof(struct gw_config, member)

const struct fx_env_row gw_config_rows[] = {
    {"FX_HTTP_ADDR",          FX_ENV_TEXT,   AT(http_addr),        0,    0,                  "127.0.0.1:5000",           NULL,
     "address of the HTTP API"                                         },
    {"FX_GRPC_ADDR",          FX_ENV_TEXT,   AT(grpc_addr),        0,    0,                  "127.0.0.1:50050",          NULL,
     "address of the gRPC API"                                         },
    {"FX_ADMIN_ADDR",         FX_ENV_TEXT,   AT(admin_addr),       0,    0,                  "127.0.0.1:51050",          NULL,
     "address of /livez, /readyz and /metrics (plain HTTP)"            },
    {"FX_TENANT_ADDR",        FX_ENV_TEXT,   AT(tenant_addr),      0,    0,                  "127.0.0.1:50051",          NULL,
     "address of the tenant service"                                   },
    {"FX_SCHEDULER_ADDR",     FX_ENV_TEXT,   AT(scheduler_addr),   0,    0,                  "127.0.0.1:50052",          NULL,
     "addresses of the schedulers, by comma"                           },
    {"FX_SLICER_ADDR",        FX_ENV_TEXT,   AT(slicer_addr),      0,    0,                  "127.0.0.1:50053",          NULL,
     "address of the slicer"                                           },
    {"FX_REDIS_URL",          FX_ENV_TEXT,   AT(redis_url),        0,    0,                  "redis://127.0.0.1:6379/0", NULL,
     "queues and logs: " FX_REDIS_URL_HELP                             },
    {"FX_REDIS_LEDGER_URL",   FX_ENV_TEXT,   AT(redis_ledger_url), 0,    0,                  "",                         NULL,
     "Redis of keys and rate limits; empty: FX_REDIS_URL"              },
    FX_REDIS_TLS_ROWS(struct gw_config, redis_tls),
    {"FX_HTTP_TLS_CERT",      FX_ENV_TEXT,   AT(http_tls_cert),    0,    0,                  "",                         NULL,
     "PEM certificate chain of the HTTP API; with it HTTPS is on"      },
    {"FX_HTTP_TLS_KEY",       FX_ENV_TEXT,   AT(http_tls_key),     0,    0,                  "",                         NULL,
     "PEM private key of that certificate"                             },
    {"FX_TLS_CA",             FX_ENV_TEXT,   AT(tls_ca),           0,    0,                  "",                         NULL,
     "PEM file of the authority the services trust; with it mTLS is on"},
    {"FX_TLS_CERT",           FX_ENV_TEXT,   AT(tls_cert),         0,    0,                  "",                         NULL,
     "PEM file of this service's certificate"                          },
    {"FX_TLS_KEY",            FX_ENV_TEXT,   AT(tls_key),          0,    0,                  "",                         NULL,
     "PEM file of this service's private key"                          },
    {"FX_CORS_ORIGINS",       FX_ENV_TEXT,   AT(cors_origins),     0,    0,                  "",                         NULL,
     "origins of web pages that may ask, by comma, or *; empty: none"  },
    {"FX_PLAINTEXT",          FX_ENV_BOOL,   AT(plaintext),        0,    0,                  "0",                        NULL,
     "1 allows other addresses than loopback without TLS"              },
    {"FX_RPC_THREADS",        FX_ENV_U32,    AT(rpc_threads),      2,    FX_RPC_THREADS_MAX, "2",                        NULL,
     "threads (completion queues) of the gRPC API"                     },
    {"FX_HTTP_LOOPS",         FX_ENV_U32,    AT(http_loops),       0,    GW_LOOPS_MAX,       "0",                        NULL,
     "loops (threads) that serve; 0: the usable cores, at most 8"      },
    {"FX_CONNECTIONS_MAX",    FX_ENV_U32,    AT(connections_max),  1,    100000,             "2048",                     NULL,
     "open connections; one more gets 503"                             },
    {"FX_BODY_BYTES_MAX",     FX_ENV_U32,    AT(body_bytes_max),   1024, 67108864,           "4194304",                  NULL,
     "bytes of a request's body; more gets 413"                        },
    {"FX_UNREAD_BYTES",       FX_ENV_U32,    AT(unread_bytes),     4096, 16777216,           "65536",                    NULL,
     "bytes a client may leave unread until its answer waits for it"   },
    {"FX_UNREAD_MS",          FX_ENV_U32,    AT(unread_ms_max),    1000, 3600000,            "30000",                    NULL,
     "ms an answer waits for its client until it is cut"               },
    {"FX_STALL_MS",           FX_ENV_U32,    AT(stall_ms_max),     1000, 86400000,           "600000",                   NULL,
     "ms without a new token until a generation is given up"           },
    {"FX_RESUME_DEADLINE_MS", FX_ENV_U32,    AT(resume_ms_max),    1000, 86400000,           "120000",                   NULL,
     "ms a generation waits for a token while its model has no worker" },
    {"FX_PING_MS",            FX_ENV_U32,    AT(ping_ms),          1000, 15000,              "10000",                    NULL,
     "ms of silence until a stream gets a comment that keeps it open"  },
    FX_HEALTH_ROWS(struct gw_config, health, "60000"),
    {"FX_LIMIT_LEASE_MS",     FX_ENV_U32,    AT(limit_lease_ms),   1000, 600000,             "15000",                    NULL,
     "ms until what a dead gateway took of rate limits comes back"     },
    {"FX_LOG_LEVEL",          FX_ENV_CHOICE, AT(log_level),        0,    0,                  "info",                     "debug|info|warn|error",
     "least level that is logged"                                      },
};
const size_t gw_config_row_count = FX_COUNT(gw_config_rows);

static FX_MUST bool address_check(const struct gw_config *config, fx_error *err) {
    struct fx_listen_addr addr;
    if (!fx_listen_parse(config->http_addr, &addr, err)) return fx_wrap(err, "FX_HTTP_ADDR");
    if (!fx_listen_parse(config->admin_addr, &(struct fx_listen_addr){0}, err))
        return fx_wrap(err, "FX_ADMIN_ADDR");
    if (addr.loopback || *config->http_tls_cert || config->plaintext) return true;
    return fx_fail(err, FX_INVALID_ARGUMENT,
                   "FX_HTTP_ADDR %.64s is reachable from outside: set FX_HTTP_TLS_CERT and "
                   "FX_HTTP_TLS_KEY, or FX_PLAINTEXT=1 behind a proxy that ends TLS",
                   config->http_addr);
}

bool gw_config_check(const struct gw_config *config, fx_error *err) {
    if (!*config->http_tls_cert != !*config->http_tls_key)
        return fx_fail(err, FX_INVALID_ARGUMENT,
                       "FX_HTTP_TLS_CERT and FX_HTTP_TLS_KEY are set both or not at all");
    if (!address_check(config, err)) return false;
    if (!fx_health_check(&config->health, err)) return false;
    if (!fx_http_cors_check(config->cors_origins, err)) return fx_wrap(err, "FX_CORS_ORIGINS");
    if (!fx_redis_url_check(config->redis_url, err)) return fx_wrap(err, "FX_REDIS_URL");
    if (!fx_redis_url_check(gw_config_ledger_url(config), err))
        return fx_wrap(err, "FX_REDIS_LEDGER_URL");
    return true;
}

bool gw_config_load(struct gw_config *out, fx_error *err) {
    struct gw_config config;
    if (!fx_env_load(gw_config_rows, gw_config_row_count, &config, err)) return false;
    if (!gw_config_check(&config, err)) return false;
    *out = config;
    return true;
}

struct fx_tls gw_config_tls(const struct gw_config *config) {
    return (struct fx_tls){config->tls_ca, config->tls_cert, config->tls_key};
}

uint32_t gw_config_loops(const struct gw_config *config) {
    cpu_set_t cores;
    if (config->http_loops) return config->http_loops;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
    int usable = CPU_COUNT(&cores);
    return usable < GW_LOOPS_AUTO_MAX ? (uint32_t)usable : GW_LOOPS_AUTO_MAX;
}

struct fx_http_cors gw_config_cors(const struct gw_config *config) {
    return (struct fx_http_cors){
        .origins = config->cors_origins,
        .methods = "GET, POST",
        .headers = "authorization, content-type, x-auth-token, idempotency-key, last-event-id, "
                   "x-request-id",
        .exposed = "x-request-id, retry-after, retry-after-ms, x-should-retry, "
                   "openai-processing-ms, x-ratelimit-limit-requests, x-ratelimit-limit-tokens, "
                   "x-ratelimit-remaining-requests, x-ratelimit-remaining-tokens, "
                   "x-ratelimit-reset-requests, x-ratelimit-reset-tokens"};
}

const char *gw_config_ledger_url(const struct gw_config *config) {
    return *config->redis_ledger_url ? config->redis_ledger_url : config->redis_url;
}
