#pragma once
/* One connection to Redis: private to common/queue/redis*.c. */
#include <event2/event.h>
#include <event2/bufferevent.h>
#include <event2/dns.h>
#include "common/queue/redis.h"
#include "common/queue/redis_tls.h"
#include "common/queue/redis_url.h"

struct fx_redis_pending {
    fx_redis_done done;
    void *ctx;
    redisReply **take; /* fx_redis_sync keeps the reply */
    uint64_t sent_ms;
};

enum fx_redis_phase { FX_REDIS_DOWN, FX_REDIS_CONNECTING, FX_REDIS_GREETING, FX_REDIS_UP };

/** Transport, hand-shake (AUTH, SELECT, then `greet`) and reconnect. With sentinels each attempt
 * asks one of them first where the master is. */
typedef struct fx_redis_conn {
    struct event_base *base;
    struct evdns_base **dns; /* shared by the client's connections, made when needed */
    const struct fx_redis_url *url;
    fx_redis_trust *tls;         /* NULL: plain */
    struct fx_redis_host master; /* as a sentinel told; port 0: not yet */
    uint32_t sentinel;           /* whose turn it is to be asked */
    struct bufferevent *bev;
    redisReader *reader;
    struct event *timer; /* reconnect while down, else the tick */
    enum fx_redis_phase phase;
    struct fx_redis_pending *ring;
    uint32_t head, count, cap;
    uint32_t output_bytes_max, timeout_ms, backoff_min_ms, backoff_max_ms, attempts;
    uint64_t phase_ms, read_ms, ping_ms;
    bool pushing; /* pub/sub: replies go to `push`, not to the ring */
    fx_error error;
    /* The hooks of the owner. `greet` sends the owner's own hand-shake and ends it with
     * fx_redis__conn_up(); `lost` comes after every failed attempt too. */
    void (*greet)(void *owner);
    void (*lost)(void *owner);
    void (*push)(void *owner, const redisReply *reply);
    void *owner;
} fx_redis_conn;

/** Several arrays of arguments, sent as one command. */
struct fx_redis_words {
    const fx_span *at;
    size_t count;
};

/** `conn` has base, url, dns, cap, limits and hooks set. @err RESOURCE_EXHAUSTED */
FX_MUST bool fx_redis__conn_init(fx_redis_conn *conn, fx_error *err);
void fx_redis__conn_start(fx_redis_conn *conn);
void fx_redis__conn_done(fx_redis_conn *conn);
void fx_redis__conn_up(fx_redis_conn *conn);
/** Drops the connection, answers what is in flight with UNAVAILABLE, tries again later. */
void fx_redis__conn_fail(fx_redis_conn *conn, const fx_error *why);
/** Sends while greeting or up. `pending` NULL: no reply is awaited (pub/sub). */
FX_MUST bool fx_redis__conn_send(fx_redis_conn *conn, const struct fx_redis_words *words,
                                 size_t count, const struct fx_redis_pending *pending,
                                 fx_error *err);
/** Room for `bytes` of output. @err RESOURCE_EXHAUSTED */
FX_MUST bool fx_redis__conn_room(fx_redis_conn *conn, size_t bytes, fx_error *err);
/** The error of an error reply. */
void fx_redis__reply_error(const redisReply *reply, fx_error *err);
/** Connects anew at once, without a word to anybody. */
void fx_redis__conn_again(fx_redis_conn *conn);

/* redis_dial.c: the transport. */
/** Makes conn->bev and starts to connect it. */
FX_MUST bool fx_redis__dial(fx_redis_conn *conn, bufferevent_data_cb on_read,
                            bufferevent_event_cb on_event, fx_error *err);
void fx_redis__no_delay(const fx_redis_conn *conn);
/** What an event of the transport that is not CONNECTED means. */
void fx_redis__dial_error(const fx_redis_conn *conn, short what, fx_error *err);

/* redis_greet.c and redis_sentinel.c: what is said first. */
/** A command of the hand-shake; `done` gets the connection. */
FX_MUST bool fx_redis__ask(fx_redis_conn *conn, const fx_span *words, size_t count,
                           fx_redis_done done, void *ctx, fx_error *err);
/** AUTH as the URL says; it has a password. */
FX_MUST bool fx_redis__auth(fx_redis_conn *conn, fx_redis_done done, fx_error *err);
/** Is the other side a sentinel? */
bool fx_redis__is_sentinel(const fx_redis_conn *conn);
/** Asks it for the master, and connects to that. */
FX_MUST bool fx_redis__sentinel_ask(fx_redis_conn *conn, fx_error *err);
/** What a sentinel called the master must say so itself. */
FX_MUST bool fx_redis__role_check(fx_redis_conn *conn, fx_error *err);
