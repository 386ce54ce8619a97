#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/rpc/descriptors_internal.h"
#include "common/rpc/server_internal.h"

enum {
    THREADS_DEFAULT = 2,
    CALLS_DEFAULT = 256,
    ARENA_BYTES_DEFAULT = 64 * 1024,
    MESSAGE_FRAME_BYTES = 1024,
    PING_INTERVAL_MIN_MS = 500,
    KEEPALIVE_MS = 30000,
    KEEPALIVE_TIMEOUT_MS = 10000,
    METADATA_BYTES_MAX = 16 * 1024,
    HANDSHAKE_MS = 10000,
    STALL_MS_DEFAULT = 30000,
    CONNECTION_AGE_DEFAULT_MS = 60000,
    QUOTA_MESSAGES = 32, /* of the largest size, at once */
    QUOTA_LEAST = 64 * 1024 * 1024,
};

static bool is_loopback(const char *address) {
    static const char *const prefixes[] = {
        "127.", "localhost:", "[::1]:", "unix:", "ipv4:127.", "ipv6:[::1]:"};
    for (size_t i = 0; i < FX_COUNT(prefixes); i++)
        if (strncmp(address, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

/* Core takes a port modulo 65536. */
static bool port_is_valid(const char *address) {
    const char *colon = strrchr(address, ':');
    if (strncmp(address, "unix:", 5) == 0) return true;
    if (!colon || strchr(colon, ']')) return false;
    size_t len = strspn(colon + 1, "0123456789");
    return len > 0 && len <= 5 && colon[1 + len] == '\0' && strtoul(colon + 1, NULL, 10) <= 65535;
}

static FX_MUST bool opts_check(const struct fx_server_opts *opts, size_t method_count,
                               fx_error *err) {
    if (!opts->address || !*opts->address)
        return fx_fail(err, FX_INVALID_ARGUMENT, "the server needs an address");
    if (!port_is_valid(opts->address))
        return fx_fail(err, FX_INVALID_ARGUMENT, "'%s': want host:port or unix:/path",
                       opts->address);
    if (opts->threads == 1 || opts->threads > FX_RPC_THREADS_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%u threads: want 2 to %d", opts->threads,
                       FX_RPC_THREADS_MAX);
    if (method_count > FX_METHODS_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%zu methods, at most %d", method_count,
                       FX_METHODS_MAX);
    if (!fx_tls__on(&opts->tls) && !opts->plaintext && !is_loopback(opts->address))
        return fx_fail(err, FX_FAILED_PRECONDITION,
                       "'%s' is not loopback: set FX_TLS_CA, FX_TLS_CERT and FX_TLS_KEY, or "
                       "FX_PLAINTEXT=1 in a network you trust",
                       opts->address);
    return true;
}

static void opts_default(struct fx_server_opts *opts) {
    if (!opts->threads) opts->threads = THREADS_DEFAULT;
    if (!opts->calls_max) opts->calls_max = CALLS_DEFAULT;
    if (!opts->arena_bytes) opts->arena_bytes = ARENA_BYTES_DEFAULT;
    if (!opts->message_bytes_max) opts->message_bytes_max = FX_MESSAGE_BYTES_DEFAULT;
    if (!opts->reply_bytes_max) opts->reply_bytes_max = opts->message_bytes_max;
    if (!opts->stall_ms_max) opts->stall_ms_max = STALL_MS_DEFAULT;
    if (!opts->connection_age_ms) opts->connection_age_ms = CONNECTION_AGE_DEFAULT_MS;
}

/* Core buffers a message as long as it says it is, before its limit is looked at: what all of them
 * may hold is bounded here. Past it core closes windows, then streams. */
static grpc_resource_quota *quota_create(const struct fx_server_opts *opts) {
    grpc_resource_quota *quota = grpc_resource_quota_create("fx_server");
    size_t bytes = QUOTA_MESSAGES * (size_t)opts->message_bytes_max;
    grpc_resource_quota_resize(quota, bytes > QUOTA_LEAST ? bytes : QUOTA_LEAST);
    return quota;
}

static grpc_server *core_create(const struct fx_server_opts *opts) {
    grpc_resource_quota *quota = quota_create(opts);
    grpc_arg args[] = {
        fx_rpc__arg_int(GRPC_ARG_ALLOW_REUSEPORT, 0), /* a second server is an error, not a twin */
        fx_rpc__arg_int(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, (int)opts->message_bytes_max),
        fx_rpc__arg_int(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, (int)opts->reply_bytes_max),
        fx_rpc__arg_int(GRPC_ARG_MAX_METADATA_SIZE, METADATA_BYTES_MAX),
        fx_rpc__arg_int(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                        PING_INTERVAL_MIN_MS),
        fx_rpc__arg_int(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
        fx_rpc__arg_int(GRPC_ARG_KEEPALIVE_TIME_MS, KEEPALIVE_MS),
        fx_rpc__arg_int(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_TIMEOUT_MS),
        fx_rpc__arg_int(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, HANDSHAKE_MS),
        fx_rpc__arg_int(GRPC_ARG_MAX_CONNECTION_AGE_MS, (int)opts->connection_age_ms),
        {GRPC_ARG_POINTER,
                                                                        (char *)(uintptr_t)GRPC_ARG_RESOURCE_QUOTA,
                                                                        {.pointer = {quota, grpc_resource_quota_arg_vtable()}}},
    };
    grpc_channel_args all = {FX_COUNT(args), args};
    grpc_server *core = grpc_server_create(&all, NULL);
    grpc_resource_quota_unref(quota);
    return core;
}

static FX_MUST bool bind_port(fx_server *server, fx_error *err) {
    if (!fx_tls__open(&server->opts.tls, &server->tls.certs, err)) return false;
    grpc_server_credentials *credentials = fx_tls__server(&server->tls);
    int port = grpc_server_add_http2_port(server->core, server->opts.address, credentials);
    grpc_server_credentials_release(credentials);
    if (port <= 0)
        return fx_fail(err, FX_UNAVAILABLE,
                       "listen on '%s': taken by another process, or no address of this machine",
                       server->opts.address);
    if (strncmp(server->opts.address, "unix:", 5) != 0) server->port = (uint16_t)port;
    return true;
}

static FX_MUST bool queues_start(fx_server *server, fx_error *err) {
    for (uint32_t i = 0; i < server->threads; i++)
        fx_queue__post(&server->queues[i]);
    for (uint32_t i = 0; i < server->threads; i++) {
        struct fx_queue *queue = &server->queues[i];
        int rc = pthread_create(&queue->thread, NULL, fx_queue__run, queue);
        if (rc) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "start a thread: %s", strerror(rc));
        queue->started = true;
    }
    return true;
}

static FX_MUST bool server_init(fx_server *server, fx_error *err) {
    struct fx_server_opts *opts = &server->opts;
    if (!fx_pool__init(&server->calls, server, opts->calls_max, opts->arena_bytes, err) ||
        !fx_pool__init(&server->builtin, server, FX_BUILTIN_CALLS_MAX, FX_BUILTIN_ARENA_BYTES,
                       err) ||
        !fx_descriptors__open(&server->descriptors, err))
        return false;
    server->core = core_create(opts);
    for (uint32_t i = 0; i < opts->threads; i++) {
        struct fx_queue *queue = &server->queues[i];
        queue->server = server;
        queue->cq = grpc_completion_queue_create_for_next(NULL);
        grpc_server_register_completion_queue(server->core, queue->cq, NULL);
    }
    server->threads = opts->threads;
    if (!bind_port(server, err)) return false;
    grpc_server_start(server->core);
    return queues_start(server, err);
}

static fx_server *server_new(const struct fx_server_opts *opts) {
    fx_server *server = fx_alloc(1, sizeof *server);
    if (!server) return NULL;
    server->opts = *opts;
    opts_default(&server->opts);
    pthread_mutex_init(&server->stop_lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&server->stop_change, &monotonic);
    pthread_condattr_destroy(&monotonic);
    fx_rpc__init();
    return server;
}

bool fx_server_open(const struct fx_server_opts *opts, const struct fx_method *methods,
                    size_t count, fx_server **out, fx_error *err) {
    if (!opts_check(opts, count, err)) return false;
    fx_auto(fx_server) server = server_new(opts);
    if (!server) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "open the server");
    server->methods = methods;
    server->method_count = count;
    if (!server_init(server, err)) return false;
    *out = fx_take(server);
    return true;
}

uint16_t fx_server_port(const fx_server *server) {
    return server->port;
}

void fx_server_set_serving(fx_server *server, bool serving) {
    server->serving = serving && !server->draining;
    fx_health__push_all(server);
}

bool fx_server_serving(const fx_server *server) {
    return server->serving;
}

struct fx_server_stats fx_server_stats(const fx_server *server) {
    fx_server *open = (fx_server *)(uintptr_t)server;
    return (struct fx_server_stats){.calls = server->calls_total,
                                    .calls_failed = server->calls_failed,
                                    .calls_refused = server->calls_refused,
                                    .cut_slow = server->cut_slow,
                                    .calls_active = fx_pool__active(&open->calls)};
}

bool fx_server__has_service(const fx_server *server, fx_span service) {
    if (service.len == 0) return true;
    for (size_t i = 0; i < server->method_count; i++) {
        const char *name = server->methods[i].name + 1;
        if (fx_span_eq(service, (fx_span){(const uint8_t *)name, strcspn(name, "/")})) return true;
    }
    return fx_span_eq_str(service, "grpc.health.v1.Health");
}
