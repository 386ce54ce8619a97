#pragma once
#include <stddef.h>
#include "common/base/env.h"
#include "common/rpc/server.h"

/** What every gRPC service reads; embed it in the service's config. */
struct fx_service_config {
    const char *grpc_addr, *admin_addr, *log_level;
    const char *tls_ca, *tls_cert, *tls_key;
    uint32_t rpc_threads;
    bool plaintext;
};

/** The rows of a service's table for the member `member` (a struct fx_service_config). */
#define FX_SERVICE_ROWS(config, member, grpc_addr_, admin_addr_)                                   \
    {"FX_GRPC_ADDR", FX_ENV_TEXT, offsetof(config, member.grpc_addr), 0, 0,                        \
     grpc_addr_,     NULL,        "address of the gRPC server"},                                   \
        {"FX_ADMIN_ADDR",                                                                          \
         FX_ENV_TEXT,                                                                              \
         offsetof(config, member.admin_addr),                                                      \
         0,                                                                                        \
         0,                                                                                        \
         admin_addr_,                                                                              \
         NULL,                                                                                     \
         "address of /livez, /readyz and /metrics (plain HTTP)"},                                  \
        {"FX_RPC_THREADS",                                                                         \
         FX_ENV_U32,                                                                               \
         offsetof(config, member.rpc_threads),                                                     \
         2,                                                                                        \
         FX_RPC_THREADS_MAX,                                                                       \
         "2",                                                                                      \
         NULL,                                                                                     \
         "threads (completion queues) of the gRPC server"},                                        \
        {"FX_TLS_CA",                                                                              \
         FX_ENV_TEXT,                                                                              \
         offsetof(config, member.tls_ca),                                                          \
         0,                                                                                        \
         0,                                                                                        \
         "",                                                                                       \
         NULL,                                                                                     \
         "PEM file of the authority both sides trust; with it mTLS is on"},                        \
        {"FX_TLS_CERT",                                                                            \
         FX_ENV_TEXT,                                                                              \
         offsetof(config, member.tls_cert),                                                        \
         0,                                                                                        \
         0,                                                                                        \
         "",                                                                                       \
         NULL,                                                                                     \
         "PEM file of this service's certificate"},                                                \
        {"FX_TLS_KEY", FX_ENV_TEXT, offsetof(config, member.tls_key),        0, 0,                 \
         "",           NULL,        "PEM file of this service's private key"},                     \
        {"FX_PLAINTEXT",                                                                           \
         FX_ENV_BOOL,                                                                              \
         offsetof(config, member.plaintext),                                                       \
         0,                                                                                        \
         0,                                                                                        \
         "0",                                                                                      \
         NULL,                                                                                     \
         "1 allows other addresses than loopback without TLS"},                                    \
    {                                                                                              \
        "FX_LOG_LEVEL", FX_ENV_CHOICE, offsetof(config, member.log_level), 0, 0, "info",           \
            "debug|info|warn|error", "least level that is logged"                                  \
    }

/** When a service counts as ill, and what it has to end; embed it beside. */
struct fx_health_config {
    uint32_t drain_ms;
    uint32_t unready_ms, dead_ms; /* without progress: /readyz, /livez say 503 */
};

/** The row and rows of a table for the member `member` (a struct fx_health_config). */
#define FX_DRAIN_ROW(config, member, drain_ms_)                                                    \
    {                                                                                              \
        "FX_DRAIN_MS", FX_ENV_U32, offsetof(config, member.drain_ms), 0, 86400000, drain_ms_,      \
            NULL, "after SIGTERM: ms that what runs has to end"                                    \
    }
#define FX_HEALTH_ROWS(config, member, drain_ms_)                                                  \
    FX_DRAIN_ROW(config, member, drain_ms_),                                                       \
        {"FX_UNREADY_MS",                                                                          \
         FX_ENV_U32,                                                                               \
         offsetof(config, member.unready_ms),                                                      \
         300,                                                                                      \
         600000,                                                                                   \
         "5000",                                                                                   \
         NULL,                                                                                     \
         "ms that work waits without progress until /readyz says 503"},                            \
    {                                                                                              \
        "FX_DEAD_MS", FX_ENV_U32, offsetof(config, member.dead_ms), 300, 3600000, "30000", NULL,   \
            "likewise until /livez says 503; at least FX_UNREADY_MS"                               \
    }
/** What rows can't say. @err INVALID_ARGUMENT */
FX_MUST bool fx_health_check(const struct fx_health_config *config, fx_error *err);

/** Fills address, threads, tls and plaintext of `out`; the rest is zeroed for the caller. */
void fx_service_server_opts(const struct fx_service_config *config, struct fx_server_opts *out);
/** The same paths for a client; all NULL when TLS is off. */
struct fx_tls fx_service_tls(const struct fx_service_config *config);
/** Sets name and level of the log. */
void fx_service_log(const char *name, const struct fx_service_config *config);
/** What the arguments ask for instead of serving; `done`: main ends with what this returns.
 *  `--help` prints the table; `--probe [livez|readyz]` asks a running service of the same
 *  environment (readyz) and fails with what it says. Anything else is an error. */
FX_MUST bool fx_service_args(int argc, char **argv, const char *program, const char *what,
                             const struct fx_env_row *rows, size_t count, bool *done,
                             fx_error *err);

/** Blocks SIGTERM and SIGINT and ignores SIGPIPE; first thing in main, before any thread. */
void fx_signal_block(void);
/** Waits for SIGTERM or SIGINT and returns it. One more of them, FX_SIGNAL_AGAIN_MS or longer after
 *  it, ends the process at once, as it does programs that don't catch it. @thread main */
int fx_signal_wait(void);
/** As fx_signal_wait for at most `ms`; 0: none came. @thread main */
int fx_signal_wait_ms(uint32_t ms);
enum { FX_SIGNAL_AGAIN_MS = 1000 }; /* a terminal and a launcher may both send the first */

enum { FX_TOKEN_MAX = 65 };
/** Reads the bootstrap token: a file of mode 0600 or stricter with 64 hex digits.
 *  @err NOT_FOUND, PERMISSION_DENIED (others may read it), INVALID_ARGUMENT */
FX_MUST bool fx_token_read(const char *path, char out[FX_TOKEN_MAX], fx_error *err);
/** Does the call carry `authorization: Bearer <token>`? Constant time.
 *  @err UNAUTHENTICATED (none), PERMISSION_DENIED (another) */
FX_MUST bool fx_token_check(const fx_call *call, const char token[FX_TOKEN_MAX], fx_error *err);
