#pragma once
#include <hiredis/hiredis.h>
#include <stdint.h>
#include "common/base/error.h"
#include "common/base/span.h"

struct event_base;

/** A Redis client (RESP2) on a libevent loop: one connection for commands, pipelined, and one for
 *  pub/sub, opened at the first subscription. Both reconnect by themselves, with back-off and
 *  jitter, for ever. Nothing blocks but fx_redis_sync() and fx_redis_wait_ready().
 *  @thread everything here, callbacks included, belongs to the thread of the loop */
typedef struct fx_redis fx_redis;

enum { FX_REDIS_RUN_ID_MAX = 48 };
/** What a connection found, each time it became ready or was lost. */
struct fx_redis_report {
    bool ready;
    const fx_error *err; /* why it is not ready; NULL when ready */
    const char *warning; /* a setting that endangers data, for the log; NULL: all well */
    uint32_t reconnects; /* connections lost or refused since the start */
    bool append_only;    /* appendonly yes */
    bool fsync_always;   /* appendfsync always */
    bool noeviction;     /* maxmemory-policy noeviction */
    char fsync_mode[16]; /* "always", "everysec", "no", "" when Redis does not tell */
    uint32_t servers;    /* grows when the server is another one, or was restarted: it may have lost
                            its last second. One that does not tell its run_id always counts */
    char run_id[FX_REDIS_RUN_ID_MAX];
};

/** For rediss:// URLs; paths of PEM files, borrowed until the client is open; NULL or "": none. */
struct fx_redis_tls {
    const char *ca_file;              /* who signs the server's certificate; none: the system's */
    const char *cert_file, *key_file; /* our own, when the server wants one */
};

struct fx_redis_opts {
    struct event_base *base; /* borrowed, outlives the client */
    const char *url;         /* see redis_url.h: redis, rediss, their +sentinel, unix */
    struct fx_redis_tls tls;
    fx_span library;           /* Lua, loaded where Redis has another; len 0 = none; borrowed */
    uint32_t inflight_max;     /* commands without a reply; 0 = 4096 */
    uint32_t output_bytes_max; /* unsent bytes; 0 = 32 MiB */
    uint32_t channels_max;     /* subscriptions; 0 = 8192 */
    uint32_t timeout_ms;       /* a reply later than this drops the connection; 0 = 7000 */
    uint32_t backoff_min_ms;   /* 0 = 50 */
    uint32_t backoff_max_ms;   /* 0 = 1000 */
    void (*on_report)(void *ctx, const struct fx_redis_report *report); /* may be NULL */
    void *ctx;
};

/** Starts connecting; does not wait. @own caller, fx_redis_free(), never inside a callback
 *  @err INVALID_ARGUMENT (the URL), RESOURCE_EXHAUSTED */
FX_MUST bool fx_redis_open(const struct fx_redis_opts *opts, fx_redis **out, fx_error *err);
/** Commands in flight are answered CANCELLED; subscriptions end without a word. */
void fx_redis_free(fx_redis *redis);
FX_DEFINE_AUTO(fx_redis, fx_redis_free)

/** Checks a URL without connecting. @err INVALID_ARGUMENT */
FX_MUST bool fx_redis_url_check(const char *url, fx_error *err);
/** True between a successful hand-shake and the loss of the connection. */
bool fx_redis_ready(const fx_redis *redis);
/** The last report; `err` in it points to a text of the client's. */
const struct fx_redis_report *fx_redis_report(const fx_redis *redis);
/** Commands sent and not answered. */
uint32_t fx_redis_inflight(const fx_redis *redis);
struct event_base *fx_redis_base(const fx_redis *redis);

/** Exactly one of `reply` and `err` is not NULL; both are borrowed until the callback returns.
 *  An error reply of Redis comes as `err`: UNAVAILABLE where it cannot serve now (LOADING,
 * READONLY, MISCONF, OOM, NOREPLICAS and the like), RESOURCE_EXHAUSTED for the FULL of a function
 * of ours; else INTERNAL, PERMISSION_DENIED, UNAUTHENTICATED. UNAVAILABLE after a lost connection:
 * the command may or may not have been carried out. */
typedef void (*fx_redis_done)(void *ctx, const redisReply *reply, const fx_error *err);

/** Sends one command. On true `done` is called exactly once, later; on false never.
 *  @err UNAVAILABLE (not connected), RESOURCE_EXHAUSTED (inflight_max or output_bytes_max) */
FX_MUST bool fx_redis_argv(fx_redis *redis, size_t argc, const fx_span *argv, fx_redis_done done,
                           void *ctx, fx_error *err);
/** As fx_redis_argv with hiredis's format: %s text, %b bytes + size_t, %d, %llu ... */
FX_MUST bool fx_redis_command(fx_redis *redis, fx_redis_done done, void *ctx, fx_error *err,
                              const char *fmt, ...);

/** Makes sure that `commands` of together `bytes` (32 more a word) can be sent now.
 *  @err as fx_redis_argv */
FX_MUST bool fx_redis_reserve(fx_redis *redis, size_t commands, size_t bytes, fx_error *err);

/** One call of a Redis function. */
struct fx_redis_fcall {
    const char *function;
    const fx_span *keys;
    size_t key_count;
    const fx_span *args;
    size_t arg_count;
};
enum { FX_REDIS_ARGS_MAX = 4096 }; /* keys and args of one call together */
FX_MUST bool fx_redis_fcall(fx_redis *redis, const struct fx_redis_fcall *call, fx_redis_done done,
                            void *ctx, fx_error *err);

enum fx_redis_event {
    FX_REDIS_SUBSCRIBED, /* from now on messages arrive; again after each reconnect: read what may
                            have been missed. Payload empty */
    FX_REDIS_MESSAGE,
    FX_REDIS_LOST, /* messages may be missed until the next SUBSCRIBED. Payload empty */
};
/** `payload` is borrowed until the callback returns. The callback may unsubscribe anything. */
typedef void (*fx_redis_on_message)(void *ctx, enum fx_redis_event event, fx_span payload);
typedef struct fx_redis_sub fx_redis_sub;
/** Subscribes to a channel, also while disconnected. Several subscribers may share a channel.
 *  @own caller, fx_redis_unsubscribe() @err RESOURCE_EXHAUSTED (channels_max) */
FX_MUST bool fx_redis_subscribe(fx_redis *redis, fx_span channel, fx_redis_on_message on_message,
                                void *ctx, fx_redis_sub **out, fx_error *err);
/** NULL is fine. No callback comes after it. */
void fx_redis_unsubscribe(fx_redis_sub *sub);
FX_DEFINE_AUTO(fx_redis_sub, fx_redis_unsubscribe)

/** Runs the loop until the client is ready. For start-up, tests and command lines.
 *  @err the last reason, or DEADLINE_EXCEEDED */
FX_MUST bool fx_redis_wait_ready(fx_redis *redis, uint32_t timeout_ms, fx_error *err);
/** Sends a command and runs the loop until its reply. Never inside a callback.
 *  @own caller, freeReplyObject() @err as fx_redis_done, DEADLINE_EXCEEDED */
FX_MUST bool fx_redis_sync(fx_redis *redis, uint32_t timeout_ms, redisReply **out, fx_error *err,
                           const char *fmt, ...);
static inline void fx_redis_reply_free(redisReply *reply) {
    freeReplyObject(reply);
}
FX_DEFINE_AUTO(redisReply, fx_redis_reply_free)

/** The bytes of a string or status reply; empty for any other. */
static inline fx_span fx_redis_span(const redisReply *reply) {
    if (!reply || (reply->type != REDIS_REPLY_STRING && reply->type != REDIS_REPLY_STATUS))
        return (fx_span){NULL, 0};
    return (fx_span){(const uint8_t *)reply->str, (size_t)reply->len};
}
