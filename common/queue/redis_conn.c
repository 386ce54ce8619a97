#include "common/queue/redis_conn.h"
#include <event2/buffer.h>
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/heap.h"

enum { TICK_MS = 250, READ_CHUNK_MAX = 256 * 1024 };

static void arm(fx_redis_conn *conn, uint32_t ms) {
    struct timeval tv = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
    (void)event_add(conn->timer, &tv);
}

/* ---- replies ---- */

void fx_redis__reply_error(const redisReply *reply, fx_error *err) {
    static const struct {
        const char *prefix;
        enum fx_code code;
    } codes[] = {
        {"LOADING",                                                    FX_UNAVAILABLE       },
        {"BUSY",                                                       FX_UNAVAILABLE       },
        {"READONLY",                                                   FX_UNAVAILABLE       },
        {"MASTERDOWN",                                                 FX_UNAVAILABLE       },
        {"MISCONF",                                                    FX_UNAVAILABLE       },
        {"CLUSTERDOWN",                                                FX_UNAVAILABLE       },
        {"TRYAGAIN",                                                   FX_UNAVAILABLE       },
        {"ERR Can not run script with write flag on readonly replica", FX_UNAVAILABLE       },
        {"OOM",                                                        FX_UNAVAILABLE       },
        {"NOREPLICAS",                                                 FX_UNAVAILABLE       },
        {"FULL",                                                       FX_RESOURCE_EXHAUSTED},
        {"NOPERM",                                                     FX_PERMISSION_DENIED },
        {"NOAUTH",                                                     FX_UNAUTHENTICATED   },
        {"WRONGPASS",                                                  FX_UNAUTHENTICATED   },
    };
    enum fx_code code = FX_INTERNAL;
    for (size_t i = 0; i < FX_COUNT(codes); i++)
        if (strncmp(reply->str, codes[i].prefix, strlen(codes[i].prefix)) == 0)
            code = codes[i].code;
    fx_error_set(err, code, "Redis: %s", reply->str);
}

static void answer(const struct fx_redis_pending *pending, redisReply *reply) {
    fx_error err = {0};
    if (reply->type == REDIS_REPLY_ERROR) {
        fx_redis__reply_error(reply, &err);
        pending->done(pending->ctx, NULL, &err);
    } else if (pending->take) {
        *pending->take = reply;
        pending->done(pending->ctx, reply, NULL);
        return;
    } else {
        pending->done(pending->ctx, reply, NULL);
    }
    freeReplyObject(reply);
}

static struct fx_redis_pending pop(fx_redis_conn *conn) {
    struct fx_redis_pending pending = conn->ring[conn->head];
    conn->head = (conn->head + 1) % conn->cap;
    conn->count--;
    return pending;
}

/* The words for a command, and those for a function. */
static bool is_replica(const char *error) {
    return strncmp(error, "READONLY", 8) == 0 || strstr(error, "on readonly replica") != NULL;
}

/* Hands one reply on; false when the connection is of no more use. */
static FX_MUST bool take_reply(fx_redis_conn *conn, redisReply *reply, fx_error *err) {
    if (conn->pushing && conn->count == 0) {
        if (reply->type != REDIS_REPLY_ERROR) conn->attempts = 0;
        conn->push(conn->owner, reply);
        freeReplyObject(reply);
        return true;
    }
    if (conn->count == 0) {
        freeReplyObject(reply);
        return fx_fail(err, FX_UNAVAILABLE, "Redis: a reply nobody asked for");
    }
    struct fx_redis_pending pending = pop(conn);
    bool demoted = reply->type == REDIS_REPLY_ERROR && is_replica(reply->str);
    answer(&pending, reply);
    return !demoted || conn->phase != FX_REDIS_UP ||
           fx_fail(err, FX_UNAVAILABLE, "Redis has become a replica");
}

static FX_MUST bool feed(fx_redis_conn *conn, struct evbuffer *input, fx_error *err) {
    struct evbuffer_iovec part;
    while (evbuffer_peek(input, READ_CHUNK_MAX, NULL, &part, 1) > 0 && part.iov_len > 0) {
        if (redisReaderFeed(conn->reader, part.iov_base, part.iov_len) != REDIS_OK)
            return fx_fail(err, FX_UNAVAILABLE, "Redis: %s", conn->reader->errstr);
        (void)evbuffer_drain(input, part.iov_len);
    }
    return true;
}

static void on_read(struct bufferevent *bev, void *ctx) {
    fx_redis_conn *conn = ctx;
    fx_error err = {0};
    conn->read_ms = fx_clock_ms();
    if (!feed(conn, bufferevent_get_input(bev), &err)) {
        fx_redis__conn_fail(conn, &err);
        return;
    }
    /* A callback may have dropped the connection: then bev is another, or none. */
    while (conn->bev == bev) {
        void *reply = NULL;
        bool ok = redisReaderGetReply(conn->reader, &reply) == REDIS_OK;
        if (ok && !reply) return;
        if (!ok) fx_error_set(&err, FX_UNAVAILABLE, "Redis: %s", conn->reader->errstr);
        if (!ok || !take_reply(conn, reply, &err)) {
            fx_redis__conn_fail(conn, &err);
            return;
        }
    }
}

/* ---- sending ---- */

static size_t words_bytes(const struct fx_redis_words *words, size_t count) {
    size_t bytes = 32;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < words[i].count; j++)
            bytes += words[i].at[j].len + 32;
    return bytes;
}

static void put_number(struct evbuffer *out, char type, size_t number) {
    char text[32];
    int len = snprintf(text, sizeof text, "%c%zu\r\n", type, number);
    (void)evbuffer_add(out, text, (size_t)len);
}

static void put_words(struct evbuffer *out, const struct fx_redis_words *words, size_t count) {
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += words[i].count;
    put_number(out, '*', total);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < words[i].count; j++) {
            put_number(out, '$', words[i].at[j].len);
            (void)evbuffer_add(out, words[i].at[j].at, words[i].at[j].len);
            (void)evbuffer_add(out, "\r\n", 2);
        }
}

bool fx_redis__conn_room(fx_redis_conn *conn, size_t bytes, fx_error *err) {
    struct evbuffer *out = bufferevent_get_output(conn->bev);
    if (evbuffer_get_length(out) + bytes > conn->output_bytes_max)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "%zu bytes wait for Redis",
                       evbuffer_get_length(out));
    if (evbuffer_expand(out, bytes) != 0)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a Redis command");
    return true;
}

bool fx_redis__conn_send(fx_redis_conn *conn, const struct fx_redis_words *words, size_t count,
                         const struct fx_redis_pending *pending, fx_error *err) {
    if (conn->phase < FX_REDIS_GREETING)
        return fx_fail(err, FX_UNAVAILABLE, "Redis is not connected: %s", conn->error.text);
    if (pending && conn->count == conn->cap)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "%u Redis commands in flight", conn->cap);
    if (!fx_redis__conn_room(conn, words_bytes(words, count), err)) return false;
    put_words(bufferevent_get_output(conn->bev), words, count);
    if (!pending) return true;
    struct fx_redis_pending *slot = &conn->ring[(conn->head + conn->count++) % conn->cap];
    *slot = *pending;
    slot->sent_ms = fx_clock_ms();
    return true;
}

/* ---- hand-shake ---- */

static void on_greeting(void *ctx, const redisReply *reply, const fx_error *err) {
    fx_redis_conn *conn = ctx;
    (void)reply;
    /* After a failure the rest of the hand-shake is answered while the connection is down. */
    if (err && conn->phase != FX_REDIS_DOWN) fx_redis__conn_fail(conn, err);
}

bool fx_redis__ask(fx_redis_conn *conn, const fx_span *words, size_t count, fx_redis_done done,
                   void *ctx, fx_error *err) {
    struct fx_redis_pending pending = {done, ctx, NULL, 0};
    return fx_redis__conn_send(conn, &(struct fx_redis_words){words, count}, 1, &pending, err);
}

bool fx_redis__auth(fx_redis_conn *conn, fx_redis_done done, fx_error *err) {
    const struct fx_redis_url *url = conn->url;
    const char *user = url->user[0] ? url->user : "default";
    fx_span words[] = {fx_span_str("AUTH"), fx_span_str(user), fx_span_str(url->password)};
    return fx_redis__ask(conn, words, FX_COUNT(words), done, conn, err);
}

static FX_MUST bool greet(fx_redis_conn *conn, fx_error *err) {
    const struct fx_redis_url *url = conn->url;
    if (url->password[0] && !fx_redis__auth(conn, on_greeting, err)) return false;
    if (url->db) {
        char db[16];
        (void)snprintf(db, sizeof db, "%u", url->db);
        fx_span words[] = {fx_span_str("SELECT"), fx_span_str(db)};
        if (!fx_redis__ask(conn, words, FX_COUNT(words), on_greeting, conn, err)) return false;
    }
    return !url->master[0] || fx_redis__role_check(conn, err);
}

void fx_redis__conn_up(fx_redis_conn *conn) {
    conn->phase = FX_REDIS_UP;
    if (!conn->pushing) conn->attempts = 0; /* pub/sub: by its first reply */
    conn->error = (fx_error){0};
}

static void on_connected(fx_redis_conn *conn) {
    fx_error err = {0};
    bool asks = fx_redis__is_sentinel(conn);
    fx_redis__no_delay(conn);
    conn->phase = FX_REDIS_GREETING;
    conn->phase_ms = conn->read_ms = fx_clock_ms();
    if (!(asks ? fx_redis__sentinel_ask(conn, &err) : greet(conn, &err)))
        fx_redis__conn_fail(conn, &err);
    else if (!asks)
        conn->greet(conn->owner);
}

static void on_event(struct bufferevent *bev, short what, void *ctx) {
    fx_redis_conn *conn = ctx;
    fx_error err = {0};
    (void)bev;
    if (what & BEV_EVENT_CONNECTED) {
        on_connected(conn);
        return;
    }
    fx_redis__dial_error(conn, what, &err);
    fx_redis__conn_fail(conn, &err);
}

/* ---- connect, tick, fail ---- */

static void dial(fx_redis_conn *conn) {
    fx_error err = {0};
    conn->phase = FX_REDIS_CONNECTING;
    conn->phase_ms = fx_clock_ms();
    arm(conn, TICK_MS);
    conn->reader = redisReaderCreate();
    if (!conn->reader) fx_error_set(&err, FX_UNAVAILABLE, "no memory for a Redis connection");
    if (!conn->reader || !fx_redis__dial(conn, on_read, on_event, &err))
        fx_redis__conn_fail(conn, &err);
}

static void on_pong(void *ctx, const redisReply *reply, const fx_error *err) {
    (void)ctx, (void)reply, (void)err;
}

static void ping(fx_redis_conn *conn, uint64_t now) {
    fx_span word = fx_span_str("PING");
    struct fx_redis_pending pending = {on_pong, NULL, NULL, 0};
    fx_error err;
    conn->ping_ms = now;
    if (!fx_redis__conn_send(conn, &(struct fx_redis_words){&word, 1}, 1,
                             conn->pushing ? NULL : &pending, &err))
        fx_redis__conn_fail(conn, &err);
}

/* What has waited too long? The oldest command, the hand-shake, or a silent pub/sub. */
static bool overdue(const fx_redis_conn *conn, uint64_t now) {
    if (conn->phase != FX_REDIS_UP) return now - conn->phase_ms > conn->timeout_ms;
    if (conn->count && now - conn->ring[conn->head].sent_ms > conn->timeout_ms) return true;
    return conn->pushing && now - conn->read_ms > conn->timeout_ms;
}

static void tick(fx_redis_conn *conn) {
    uint64_t now = fx_clock_ms(), quiet = conn->timeout_ms / 2;
    fx_error err = {0};
    if (overdue(conn, now)) {
        fx_error_set(&err, FX_UNAVAILABLE, "Redis gave no answer for %u ms", conn->timeout_ms);
        fx_redis__conn_fail(conn, &err);
        return;
    }
    if (conn->phase == FX_REDIS_UP && conn->count == 0 && now - conn->read_ms > quiet &&
        now - conn->ping_ms > quiet)
        ping(conn, now);
    if (conn->phase != FX_REDIS_DOWN) arm(conn, TICK_MS);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx) {
    fx_redis_conn *conn = ctx;
    (void)fd, (void)what;
    if (conn->phase == FX_REDIS_DOWN)
        dial(conn);
    else
        tick(conn);
}

static uint32_t backoff(fx_redis_conn *conn) {
    uint64_t ms = conn->backoff_min_ms;
    uint32_t random, doublings = conn->attempts < 16 ? conn->attempts : 16;
    ms <<= doublings;
    if (ms > conn->backoff_max_ms) ms = conn->backoff_max_ms;
    fx_random(&random, sizeof random);
    conn->attempts++;
    return (uint32_t)(ms / 2 + random % (ms / 2 + 1));
}

static void close_transport(fx_redis_conn *conn) {
    if (conn->bev) bufferevent_free(conn->bev);
    if (conn->reader) redisReaderFree(conn->reader);
    conn->bev = NULL;
    conn->reader = NULL;
    conn->phase = FX_REDIS_DOWN;
}

static void answer_all(fx_redis_conn *conn, const fx_error *err) {
    while (conn->count) {
        struct fx_redis_pending pending = pop(conn);
        pending.done(pending.ctx, NULL, err);
    }
}

void fx_redis__conn_again(fx_redis_conn *conn) {
    close_transport(conn);
    arm(conn, 0);
}

void fx_redis__conn_fail(fx_redis_conn *conn, const fx_error *why) {
    fx_error err = *why, lost = *why;
    lost.code = FX_UNAVAILABLE;
    close_transport(conn);
    conn->master.port = 0; /* it may be another now, and another sentinel may know */
    conn->sentinel++;
    conn->error = err;
    arm(conn, backoff(conn));
    answer_all(conn, &lost);
    conn->lost(conn->owner);
}

bool fx_redis__conn_init(fx_redis_conn *conn, fx_error *err) {
    conn->timer = evtimer_new(conn->base, on_timer, conn);
    conn->ring = fx_alloc(conn->cap, sizeof *conn->ring);
    if (!conn->timer || !conn->ring)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a Redis connection");
    fx_error_set(&conn->error, FX_UNAVAILABLE, "still connecting");
    return true;
}

void fx_redis__conn_start(fx_redis_conn *conn) {
    arm(conn, 0);
}

void fx_redis__conn_done(fx_redis_conn *conn) {
    fx_error err = {FX_CANCELLED, "the Redis client was closed"};
    close_transport(conn);
    answer_all(conn, &err);
    if (conn->timer) event_free(conn->timer);
    free(conn->ring);
    conn->timer = NULL;
    conn->ring = NULL;
}
