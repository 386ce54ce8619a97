/* Where the master is: sentinels are asked in turn at every attempt to connect, and the server they
 * name must call itself a master. So a failover is followed by losing the connection to the old
 * one, or by its saying that it is a replica now. */
#include <stdlib.h>
#include "common/queue/redis_conn.h"

static fx_span part(const redisReply *reply, size_t index) {
    bool there = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements > index;
    return there ? fx_redis_span(reply->element[index]) : (fx_span){NULL, 0};
}

static FX_MUST bool master_read(const redisReply *reply, struct fx_redis_host *out) {
    fx_span name = part(reply, 0), port = part(reply, 1);
    struct fx_redis_host host = {0};
    char *end, digits[8];
    if (!name.len || name.len >= sizeof host.name || !port.len || port.len >= sizeof digits)
        return false;
    memcpy(host.name, name.at, name.len);
    memcpy(digits, port.at, port.len);
    digits[port.len] = 0;
    unsigned long number = strtoul(digits, &end, 10);
    if (*end || number < 1 || number > UINT16_MAX) return false;
    host.port = (uint16_t)number;
    *out = host;
    return true;
}

static void on_master(void *ctx, const redisReply *reply, const fx_error *err) {
    fx_redis_conn *conn = ctx;
    fx_error why = err ? *err : (fx_error){0};
    if (conn->phase == FX_REDIS_DOWN) return;
    if (!err && master_read(reply, &conn->master)) {
        fx_redis__conn_again(conn);
        return;
    }
    if (!err)
        fx_error_set(&why, FX_UNAVAILABLE, "a sentinel does not know master '%.64s'",
                     conn->url->master);
    fx_redis__conn_fail(conn, &why);
}

static void on_auth(void *ctx, const redisReply *reply, const fx_error *err) {
    (void)ctx, (void)reply, (void)err; /* a sentinel without a password says so: no matter */
}

bool fx_redis__sentinel_ask(fx_redis_conn *conn, fx_error *err) {
    if (conn->url->password[0] && !fx_redis__auth(conn, on_auth, err)) return false;
    fx_span words[] = {fx_span_str("SENTINEL"), fx_span_str("GET-MASTER-ADDR-BY-NAME"),
                       fx_span_str(conn->url->master)};
    return fx_redis__ask(conn, words, FX_COUNT(words), on_master, conn, err);
}

static void on_role(void *ctx, const redisReply *reply, const fx_error *err) {
    fx_redis_conn *conn = ctx;
    fx_error why = err ? *err : (fx_error){0};
    if (conn->phase == FX_REDIS_DOWN || (!err && fx_span_eq_str(part(reply, 0), "master"))) return;
    if (!err)
        fx_error_set(&why, FX_UNAVAILABLE, "%.64s:%u is not the master it was said to be",
                     conn->master.name, conn->master.port);
    fx_redis__conn_fail(conn, &why);
}

bool fx_redis__role_check(fx_redis_conn *conn, fx_error *err) {
    fx_span word = fx_span_str("ROLE");
    return fx_redis__ask(conn, &word, 1, on_role, conn, err);
}
