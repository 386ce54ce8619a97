#pragma once
/* The client: private to common/queue/redis*.c. */
#include "common/queue/redis_conn.h"

struct fx_redis_channel;

/** The pub/sub half: a table of channels over its own connection. */
struct fx_redis_subs {
    fx_redis_conn conn;
    bool open; /* conn was initialised: something subscribed once */
    struct fx_redis_channel **buckets;
    uint32_t buckets_len, subs_count, subs_max;
    uint64_t sent, acked;           /* SUBSCRIBE commands on this connection, and their answers */
    uint32_t walking;               /* callbacks are being called: nothing is freed */
    struct fx_redis_channel *sweep; /* where something was unsubscribed meanwhile */
};

struct fx_redis {
    struct event_base *base;
    struct evdns_base *dns;
    struct fx_redis_url url;
    fx_redis_trust *tls; /* NULL: plain */
    fx_redis_conn conn;
    struct fx_redis_subs subs;
    fx_span library;
    struct fx_redis_report report;
    fx_error why; /* report.err points here */
    bool told_lost;
    void (*on_report)(void *ctx, const struct fx_redis_report *report);
    void *ctx;
};

/** Sends the main connection's hand-shake; its last answer brings the client up. */
void fx_redis__greet(void *redis);
void fx_redis__subs_done(fx_redis *redis);
