/* What the command connection says first: who Redis is, whether it has our functions, and the
 * settings that keep data safe. Again after every reconnect: Redis may be another one. */
#include "common/queue/redis_internal.h"

/* The value after `name` in a flat list of names and values; NULL when it is not there. */
static const redisReply *value_of(const redisReply *reply, const char *name) {
    if (reply && reply->type == REDIS_REPLY_ARRAY)
        for (size_t i = 0; i + 1 < reply->elements; i += 2)
            if (fx_span_eq_str(fx_redis_span(reply->element[i]), name))
                return reply->element[i + 1];
    return NULL;
}

static fx_span setting(const redisReply *reply, const char *name) {
    return fx_redis_span(value_of(reply, name));
}

static bool merely_refused(const fx_error *err) {
    return err->code == FX_INTERNAL || err->code == FX_PERMISSION_DENIED; /* renamed, forbidden */
}

/* Is an answer of the hand-shake of no more use? */
static bool is_over(fx_redis *redis, const fx_error *err) {
    if (redis->conn.phase == FX_REDIS_DOWN) return true;
    if (!err || merely_refused(err)) return false;
    fx_redis__conn_fail(&redis->conn, err);
    return true;
}

/* ---- who it is ---- */

static void on_info(void *ctx, const redisReply *reply, const fx_error *err) {
    static const char name[] = "\r\nrun_id:";
    fx_redis *redis = ctx;
    struct fx_redis_report *report = &redis->report;
    char run_id[FX_REDIS_RUN_ID_MAX] = "";
    if (is_over(redis, err)) return;
    fx_span text = fx_redis_span(reply);
    const char *at = text.len ? memmem(text.at, text.len, name, sizeof name - 1) : NULL;
    if (at) (void)snprintf(run_id, sizeof run_id, "%.40s", at + sizeof name - 1);
    if (!run_id[0] || strcmp(run_id, report->run_id) != 0) report->servers++;
    (void)snprintf(report->run_id, sizeof report->run_id, "%s", run_id);
}

static FX_MUST bool info_ask(fx_redis *redis, fx_error *err) {
    fx_span words[] = {fx_span_str("INFO"), fx_span_str("server")};
    return fx_redis__ask(&redis->conn, words, FX_COUNT(words), on_info, redis, err);
}

/* ---- its settings ---- */

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
    if (is_over(redis, err)) return;
    fx_span mode = setting(reply, "appendfsync");
    report->noeviction = fx_span_eq_str(setting(reply, "maxmemory-policy"), "noeviction");
    report->append_only = fx_span_eq_str(setting(reply, "appendonly"), "yes");
    report->fsync_always = fx_span_eq_str(mode, "always");
    (void)snprintf(report->fsync_mode, sizeof report->fsync_mode, "%.*s", (int)mode.len,
                   mode.len ? (const char *)mode.at : "");
    report->warning = warning(report, !err && mode.len > 0);
}

static FX_MUST bool settings_ask(fx_redis *redis, fx_error *err) {
    fx_span words[] = {fx_span_str("CONFIG"), fx_span_str("GET"), fx_span_str("maxmemory-policy"),
                       fx_span_str("appendonly"), fx_span_str("appendfsync")};
    return fx_redis__ask(&redis->conn, words, FX_COUNT(words), on_settings, redis, err);
}

/* ---- our functions; the last question ---- */

static void up(fx_redis *redis) {
    redis->report.ready = true;
    redis->report.err = NULL;
    redis->told_lost = false;
    fx_redis__conn_up(&redis->conn);
    if (redis->on_report) redis->on_report(redis->ctx, &redis->report);
}

static void on_loaded(void *ctx, const redisReply *reply, const fx_error *err) {
    fx_redis *redis = ctx;
    (void)reply;
    if (redis->conn.phase == FX_REDIS_DOWN) return;
    if (!err) {
        up(redis);
        return;
    }
    fx_error why = *err;
    fx_error_wrap(&why, "FUNCTION LOAD (Redis 7 or later is needed)");
    fx_redis__conn_fail(&redis->conn, &why);
}

static void load(fx_redis *redis) {
    fx_error err = {0};
    fx_span words[] = {fx_span_str("FUNCTION"), fx_span_str("LOAD"), fx_span_str("REPLACE"),
                       redis->library};
    if (!fx_redis__ask(&redis->conn, words, FX_COUNT(words), on_loaded, redis, &err))
        fx_redis__conn_fail(&redis->conn, &err);
}

static void on_list(void *ctx, const redisReply *reply, const fx_error *err) {
    fx_redis *redis = ctx;
    if (is_over(redis, err)) return;
    bool one = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 1;
    fx_span code = one ? setting(reply->element[0], "library_code") : (fx_span){NULL, 0};
    if (fx_span_eq(code, redis->library))
        up(redis);
    else
        load(redis);
}

/* "#!lua name=fx3\n..." */
static fx_span library_name(fx_span library) {
    static const char mark[] = "name=";
    const uint8_t *end = memchr(library.at, '\n', library.len);
    FX_ASSERT(end);
    const uint8_t *at = memmem(library.at, (size_t)(end - library.at), mark, sizeof mark - 1);
    FX_ASSERT(at);
    at += sizeof mark - 1;
    return (fx_span){at, (size_t)(end - at)};
}

static FX_MUST bool functions_ask(fx_redis *redis, fx_error *err) {
    fx_span ping = fx_span_str("PING");
    if (!redis->library.len) return fx_redis__ask(&redis->conn, &ping, 1, on_loaded, redis, err);
    fx_span words[] = {fx_span_str("FUNCTION"), fx_span_str("LIST"), fx_span_str("LIBRARYNAME"),
                       library_name(redis->library), fx_span_str("WITHCODE")};
    return fx_redis__ask(&redis->conn, words, FX_COUNT(words), on_list, redis, err);
}

void fx_redis__greet(void *owner) {
    fx_redis *redis = owner;
    fx_error err = {0};
    if (!info_ask(redis, &err) || !settings_ask(redis, &err) || !functions_ask(redis, &err))
        fx_redis__conn_fail(&redis->conn, &err);
}
