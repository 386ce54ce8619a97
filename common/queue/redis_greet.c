/* What the command connection says first: our functions are loaded, the settings that keep data
 * safe are read. Again after every reconnect: Redis may be another one. */
#include "common/queue/redis_internal.h"

static FX_MUST bool greet_send(fx_redis *redis, const fx_span *words, size_t count,
                               fx_redis_done done, fx_error *err) {
    struct fx_redis_pending pending = {done, redis, NULL, 0};
    return fx_redis__conn_send(&redis->conn, &(struct fx_redis_words){words, count}, 1, &pending,
                               err);
}

static void on_loaded(void *ctx, const redisReply *reply, const fx_error *err) {
    fx_redis *redis = ctx;
    (void)reply;
    if (!err || redis->conn.phase == FX_REDIS_DOWN) return;
    fx_error why = *err;
    fx_error_wrap(&why, "FUNCTION LOAD (Redis 7 or later is needed)");
    fx_redis__conn_fail(&redis->conn, &why);
}

/* The value after `name` in CONFIG GET's flat list; empty when Redis does not tell. */
static fx_span setting(const redisReply *reply, const char *name) {
    if (reply && reply->type == REDIS_REPLY_ARRAY)
        for (size_t i = 0; i + 1 < reply->elements; i += 2)
            if (fx_span_eq_str(fx_redis_span(reply->element[i]), name))
                return fx_redis_span(reply->element[i + 1]);
    return (fx_span){NULL, 0};
}

static const char *warning(const struct fx_redis_report *report, bool told) {
    if (!told) return "CONFIG GET is refused: eviction and AOF settings are unknown";
    if (!report->noeviction)
        return "maxmemory-policy is not noeviction: Redis may drop queues and logs";
    if (!report->append_only) return "appendonly is no: a restart of Redis loses generations";
    if (!report->fsync_always)
        return "appendfsync is not always: a crash of Redis may lose the last second";
    return NULL;
}

static void on_settings(void *ctx, const redisReply *reply, const fx_error *err) {
    fx_redis *redis = ctx;
    struct fx_redis_report *report = &redis->report;
    if (redis->conn.phase == FX_REDIS_DOWN) return;
    if (err && err->code != FX_INTERNAL && err->code != FX_PERMISSION_DENIED) {
        fx_redis__conn_fail(&redis->conn, err); /* not merely CONFIG, renamed or forbidden */
        return;
    }
    fx_span mode = setting(reply, "appendfsync");
    report->noeviction = fx_span_eq_str(setting(reply, "maxmemory-policy"), "noeviction");
    report->append_only = fx_span_eq_str(setting(reply, "appendonly"), "yes");
    report->fsync_always = fx_span_eq_str(mode, "always");
    (void)snprintf(report->fsync_mode, sizeof report->fsync_mode, "%.*s", (int)mode.len,
                   mode.len ? (const char *)mode.at : "");
    report->warning = warning(report, !err && mode.len > 0);
    report->ready = true;
    report->err = NULL;
    redis->told_lost = false;
    fx_redis__conn_up(&redis->conn);
    if (redis->on_report) redis->on_report(redis->ctx, report);
}

static FX_MUST bool greet(fx_redis *redis, fx_error *err) {
    if (redis->library.len) {
        fx_span load[] = {fx_span_str("FUNCTION"), fx_span_str("LOAD"), fx_span_str("REPLACE"),
                          redis->library};
        if (!greet_send(redis, load, FX_COUNT(load), on_loaded, err)) return false;
    }
    fx_span config[] = {fx_span_str("CONFIG"), fx_span_str("GET"), fx_span_str("maxmemory-policy"),
                        fx_span_str("appendonly"), fx_span_str("appendfsync")};
    return greet_send(redis, config, FX_COUNT(config), on_settings, err);
}

void fx_redis__greet(void *owner) {
    fx_redis *redis = owner;
    fx_error err = {0};
    if (!greet(redis, &err)) fx_redis__conn_fail(&redis->conn, &err);
}
