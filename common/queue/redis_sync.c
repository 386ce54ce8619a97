/* The blocking helpers, and hiredis's command format. */
#include "common/queue/redis_internal.h"
#include <stdarg.h>
#include <stdlib.h>
#include "common/base/heap.h"

struct sync {
    redisReply *reply;
    fx_error err;
    bool done, failed, abandoned;
};

/* hiredis formats into RESP; its argument spans are recovered so that one way of sending serves
 * all. Commands by format are small: at most FORMAT_WORDS_MAX words. */
enum { FORMAT_WORDS_MAX = 64 };

static FX_MUST bool next_word(const char **at, const char *end, fx_span *out) {
    char *digits_end;
    unsigned long len = strtoul(*at + 1, &digits_end, 10);
    const char *word = digits_end + 2;
    if (word + len + 2 > end) return false;
    *out = (fx_span){(const uint8_t *)word, len};
    *at = word + len + 2;
    return true;
}

static FX_MUST bool send_format(fx_redis *redis, const struct fx_redis_pending *pending,
                                fx_error *err, const char *fmt, va_list args) {
    char *text = NULL;
    fx_span words[FORMAT_WORDS_MAX];
    int len = redisvFormatCommand(&text, fmt, args);
    if (len < 0) return fx_fail(err, FX_INTERNAL, "Redis command format '%s'", fmt);
    char *digits_end;
    unsigned long count = strtoul(text + 1, &digits_end, 10);
    const char *at = digits_end + 2;
    bool ok = count <= FORMAT_WORDS_MAX;
    for (size_t i = 0; ok && i < count; i++)
        ok = next_word(&at, text + len, &words[i]);
    if (!ok)
        ok = fx_fail(err, FX_INTERNAL, "Redis command format '%s': too many words", fmt);
    else if (!redis->report.ready)
        ok = fx_fail(err, FX_UNAVAILABLE, "Redis is not connected: %s", redis->why.text);
    else
        ok = fx_redis__conn_send(&redis->conn, &(struct fx_redis_words){words, count}, 1, pending,
                                 err);
    redisFreeCommand(text);
    return ok;
}

bool fx_redis_command(fx_redis *redis, fx_redis_done done, void *ctx, fx_error *err,
                      const char *fmt, ...) {
    struct fx_redis_pending pending = {done, ctx, NULL, 0};
    va_list args;
    va_start(args, fmt);
    bool ok = send_format(redis, &pending, err, fmt, args);
    va_end(args);
    return ok;
}

static void on_timeout(evutil_socket_t fd, short what, void *ctx) {
    (void)fd, (void)what;
    *(bool *)ctx = true;
}

/* Turns the loop until `*until` or the time is over. */
static FX_MUST bool loop_until(struct event_base *base, const bool *until, uint32_t timeout_ms) {
    bool over = false;
    struct timeval tv = {timeout_ms / 1000, (suseconds_t)(timeout_ms % 1000) * 1000};
    struct event *timer = evtimer_new(base, on_timeout, &over);
    if (!timer) return false;
    (void)event_add(timer, &tv);
    while (!*until && !over)
        (void)event_base_loop(base, EVLOOP_ONCE);
    event_free(timer);
    return *until;
}

bool fx_redis_wait_ready(fx_redis *redis, uint32_t timeout_ms, fx_error *err) {
    if (loop_until(redis->base, &redis->report.ready, timeout_ms)) return true;
    *err = redis->why;
    return fx_wrap(err, "Redis is not ready after %u ms", timeout_ms);
}

static void on_sync(void *ctx, const redisReply *reply, const fx_error *err) {
    struct sync *sync = ctx;
    (void)reply;
    sync->done = true;
    sync->failed = err != NULL;
    if (err) sync->err = *err;
    if (!sync->abandoned) return;
    if (sync->reply) freeReplyObject(sync->reply);
    free(sync);
}

bool fx_redis_sync(fx_redis *redis, uint32_t timeout_ms, redisReply **out, fx_error *err,
                   const char *fmt, ...) {
    struct sync *sync = fx_alloc(1, sizeof *sync);
    if (!sync) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a Redis call");
    struct fx_redis_pending pending = {on_sync, sync, &sync->reply, 0};
    va_list args;
    va_start(args, fmt);
    bool ok = send_format(redis, &pending, err, fmt, args);
    va_end(args);
    if (ok && !loop_until(redis->base, &sync->done, timeout_ms)) {
        sync->abandoned = true; /* its late reply frees it */
        return fx_fail(err, FX_DEADLINE_EXCEEDED, "no reply of Redis in %u ms", timeout_ms);
    }
    if (ok && sync->failed) {
        *err = sync->err;
        ok = false;
    }
    if (ok) *out = sync->reply;
    free(sync);
    return ok;
}
