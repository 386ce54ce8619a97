#include "common/queue/redis_internal.h"
#include <signal.h>
#include "common/base/heap.h"

enum {
    INFLIGHT_MAX = 4096,
    OUTPUT_BYTES_MAX = 32 << 20,
    CHANNELS_MAX = 8192,
    TIMEOUT_MS = 7000,
    BACKOFF_MIN_MS = 50,
    BACKOFF_MAX_MS = 1000,
};

static uint32_t or_default(uint32_t value, uint32_t fallback) {
    return value ? value : fallback;
}

bool fx_redis_url_check(const char *url, fx_error *err) {
    struct fx_redis_url parsed;
    return fx_redis__url_parse(url, &parsed, err);
}

/* Told once per outage, however many attempts fail. */
static void on_lost(void *owner) {
    fx_redis *redis = owner;
    redis->why = redis->conn.error;
    redis->report.ready = false;
    redis->report.err = &redis->why;
    redis->report.warning = NULL;
    redis->report.reconnects++;
    if (redis->told_lost) return;
    redis->told_lost = true;
    if (redis->on_report) redis->on_report(redis->ctx, &redis->report);
}

/* A write to a connection the peer has closed must be an error, not the process's end. */
static void ignore_sigpipe(void) {
    struct sigaction old, ignore = {.sa_handler = SIG_IGN};
    if (sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        (void)sigaction(SIGPIPE, &ignore, NULL);
}

static void conn_setup(fx_redis *redis, const struct fx_redis_opts *opts, fx_redis_conn *conn) {
    conn->base = redis->base;
    conn->dns = &redis->dns;
    conn->url = &redis->url;
    conn->tls = redis->tls;
    conn->cap = or_default(opts->inflight_max, INFLIGHT_MAX);
    conn->output_bytes_max = or_default(opts->output_bytes_max, OUTPUT_BYTES_MAX);
    conn->timeout_ms = or_default(opts->timeout_ms, TIMEOUT_MS);
    conn->backoff_min_ms = or_default(opts->backoff_min_ms, BACKOFF_MIN_MS);
    conn->backoff_max_ms = or_default(opts->backoff_max_ms, BACKOFF_MAX_MS);
    conn->owner = redis;
}

bool fx_redis_open(const struct fx_redis_opts *opts, fx_redis **out, fx_error *err) {
    fx_auto(fx_redis) redis = fx_alloc(1, sizeof *redis);
    if (!redis) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a Redis client");
    if (!fx_redis__url_parse(opts->url, &redis->url, err)) return false;
    if (redis->url.tls && !fx_redis__trust_open(&opts->tls, &redis->tls, err)) return false;
    redis->base = opts->base;
    redis->library = opts->library;
    redis->on_report = opts->on_report;
    redis->ctx = opts->ctx;
    redis->subs.subs_max = or_default(opts->channels_max, CHANNELS_MAX);
    conn_setup(redis, opts, &redis->conn);
    conn_setup(redis, opts, &redis->subs.conn);
    redis->conn.greet = fx_redis__greet;
    redis->conn.lost = on_lost;
    if (!fx_redis__conn_init(&redis->conn, err)) return false;
    redis->why = redis->conn.error;
    redis->report.err = &redis->why;
    ignore_sigpipe();
    fx_redis__conn_start(&redis->conn);
    *out = fx_take(redis);
    return true;
}

void fx_redis_free(fx_redis *redis) {
    if (!redis) return;
    fx_redis__subs_done(redis);
    fx_redis__conn_done(&redis->conn);
    if (redis->dns) evdns_base_free(redis->dns, 0);
    fx_redis__trust_free(redis->tls);
    free(redis);
}

bool fx_redis_ready(const fx_redis *redis) {
    return redis->report.ready;
}

const struct fx_redis_report *fx_redis_report(const fx_redis *redis) {
    return &redis->report;
}

uint32_t fx_redis_inflight(const fx_redis *redis) {
    return redis->conn.count;
}

struct event_base *fx_redis_base(const fx_redis *redis) {
    return redis->base;
}

static FX_MUST bool send_ready(fx_redis *redis, const struct fx_redis_words *words, size_t count,
                               const struct fx_redis_pending *pending, fx_error *err) {
    if (!redis->report.ready)
        return fx_fail(err, FX_UNAVAILABLE, "Redis is not connected: %s", redis->why.text);
    return fx_redis__conn_send(&redis->conn, words, count, pending, err);
}

bool fx_redis_reserve(fx_redis *redis, size_t commands, size_t bytes, fx_error *err) {
    fx_redis_conn *conn = &redis->conn;
    if (!redis->report.ready)
        return fx_fail(err, FX_UNAVAILABLE, "Redis is not connected: %s", redis->why.text);
    if (conn->count + commands > conn->cap)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "%u Redis commands in flight", conn->count);
    return fx_redis__conn_room(conn, bytes, err);
}

bool fx_redis_argv(fx_redis *redis, size_t argc, const fx_span *argv, fx_redis_done done, void *ctx,
                   fx_error *err) {
    struct fx_redis_pending pending = {done, ctx, NULL, 0};
    return send_ready(redis, &(struct fx_redis_words){argv, argc}, 1, &pending, err);
}

bool fx_redis_fcall(fx_redis *redis, const struct fx_redis_fcall *call, fx_redis_done done,
                    void *ctx, fx_error *err) {
    FX_ASSERT(call->key_count + call->arg_count <= FX_REDIS_ARGS_MAX);
    char keys[16];
    (void)snprintf(keys, sizeof keys, "%zu", call->key_count);
    fx_span head[] = {fx_span_str("FCALL"), fx_span_str(call->function), fx_span_str(keys)};
    struct fx_redis_words words[] = {
        {head,       FX_COUNT(head) },
        {call->keys, call->key_count},
        {call->args, call->arg_count},
    };
    struct fx_redis_pending pending = {done, ctx, NULL, 0};
    return send_ready(redis, words, FX_COUNT(words), &pending, err);
}
