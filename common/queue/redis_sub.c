#include "common/queue/redis_internal.h"
#include "common/base/heap.h"

struct fx_redis_sub {
    fx_redis *redis;
    struct fx_redis_channel *channel;
    struct fx_redis_sub *next;
    fx_redis_on_message on_message; /* NULL: unsubscribed, waits for the sweep */
    void *ctx;
    uint64_t asked; /* the SUBSCRIBE whose answer makes it active */
    bool active;
};

struct fx_redis_channel {
    struct fx_redis_channel *next;
    struct fx_redis_channel *next_swept; /* while `sweep` */
    bool sweep;                          /* on the list of those to sweep */
    struct fx_redis_sub *subs;
    size_t len;
    uint32_t hash;
    uint8_t name[];
};

static uint32_t hash_of(fx_span name) {
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ name.at[i]) * 16777619u;
    return hash;
}

static struct fx_redis_channel **slot_of(struct fx_redis_subs *subs, fx_span name) {
    uint32_t hash = hash_of(name);
    struct fx_redis_channel **at = &subs->buckets[hash & (subs->buckets_len - 1)];
    while (*at && !((*at)->hash == hash && (*at)->len == name.len &&
                    memcmp((*at)->name, name.at, name.len) == 0))
        at = &(*at)->next;
    return at;
}

static fx_span name_of(const struct fx_redis_channel *channel) {
    return (fx_span){channel->name, channel->len};
}

static FX_MUST bool sub_command(struct fx_redis_subs *subs, const char *command, fx_span channel,
                                fx_error *err) {
    fx_span words[] = {fx_span_str(command), channel};
    return fx_redis__conn_send(&subs->conn, &(struct fx_redis_words){words, 2}, 1, NULL, err);
}

/* Drops the connection when even a subscription does not fit: it starts anew. */
static bool ask(struct fx_redis_subs *subs, struct fx_redis_channel *channel) {
    fx_error err = {0};
    if (sub_command(subs, "SUBSCRIBE", name_of(channel), &err)) {
        subs->sent++;
        return true;
    }
    fx_redis__conn_fail(&subs->conn, &err);
    return false;
}

/* ---- calling subscribers; they may unsubscribe anything meanwhile ---- */

static void channel_drop(struct fx_redis_subs *subs, struct fx_redis_channel *channel) {
    struct fx_redis_channel **at = slot_of(subs, name_of(channel));
    *at = channel->next;
    free(channel);
}

/* Frees the channel's dead subscribers, and the channel after its last. */
static void channel_sweep(struct fx_redis_subs *subs, struct fx_redis_channel *channel) {
    struct fx_redis_sub **at = &channel->subs;
    while (*at) {
        struct fx_redis_sub *sub = *at;
        if (sub->on_message) {
            at = &sub->next;
            continue;
        }
        *at = sub->next;
        free(sub);
        subs->subs_count--;
    }
    if (channel->subs) return;
    /* Should it not fit, the channel's messages are ignored until the next connection. */
    bool told = subs->conn.phase == FX_REDIS_UP &&
                sub_command(subs, "UNSUBSCRIBE", name_of(channel), &(fx_error){0});
    (void)told;
    channel_drop(subs, channel);
}

static void sweep_later(struct fx_redis_subs *subs, struct fx_redis_channel *channel) {
    if (channel->sweep) return;
    channel->sweep = true;
    channel->next_swept = subs->sweep;
    subs->sweep = channel;
}

static void sweep_all(struct fx_redis_subs *subs) {
    struct fx_redis_channel *channel;
    while ((channel = subs->sweep)) {
        subs->sweep = channel->next_swept;
        channel->sweep = false;
        channel_sweep(subs, channel);
    }
}

static void walk_end(struct fx_redis_subs *subs) {
    if (--subs->walking == 0) sweep_all(subs);
}

static void tell(struct fx_redis_sub *sub, enum fx_redis_event event, fx_span payload) {
    if (sub->on_message) sub->on_message(sub->ctx, event, payload);
}

static void on_message(struct fx_redis_subs *subs, struct fx_redis_channel *channel,
                       fx_span payload) {
    subs->walking++;
    for (struct fx_redis_sub *sub = channel->subs; sub; sub = sub->next)
        if (sub->active) tell(sub, FX_REDIS_MESSAGE, payload);
    walk_end(subs);
}

static void on_subscribed(struct fx_redis_subs *subs, struct fx_redis_channel *channel) {
    subs->walking++;
    for (struct fx_redis_sub *sub = channel->subs; sub; sub = sub->next) {
        if (sub->active || sub->asked > subs->acked) continue;
        sub->active = true;
        tell(sub, FX_REDIS_SUBSCRIBED, (fx_span){NULL, 0});
    }
    walk_end(subs);
}

/* ---- the connection's hooks ---- */

static void on_push(void *owner, const redisReply *reply) {
    struct fx_redis_subs *subs = &((fx_redis *)owner)->subs;
    if (reply->type == REDIS_REPLY_ERROR) {
        fx_error err = {0};
        fx_redis__reply_error(reply, &err);
        fx_redis__conn_fail(&subs->conn, &err);
        return;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 3) return; /* a pong */
    fx_span kind = fx_redis_span(reply->element[0]);
    bool subscribed = fx_span_eq_str(kind, "subscribe");
    if (subscribed) subs->acked++;
    if (!subscribed && !fx_span_eq_str(kind, "message")) return;
    struct fx_redis_channel *channel = *slot_of(subs, fx_redis_span(reply->element[1]));
    if (!channel) return; /* unsubscribed meanwhile */
    if (subscribed)
        on_subscribed(subs, channel);
    else
        on_message(subs, channel, fx_redis_span(reply->element[2]));
}

static void on_greet(void *owner) {
    struct fx_redis_subs *subs = &((fx_redis *)owner)->subs;
    subs->sent = subs->acked = 0;
    fx_redis__conn_up(&subs->conn);
    for (uint32_t i = 0; i < subs->buckets_len; i++)
        for (struct fx_redis_channel *channel = subs->buckets[i]; channel;
             channel = channel->next) {
            if (!ask(subs, channel)) return;
            for (struct fx_redis_sub *sub = channel->subs; sub; sub = sub->next)
                sub->asked = subs->sent;
        }
}

static void on_lost(void *owner) {
    struct fx_redis_subs *subs = &((fx_redis *)owner)->subs;
    subs->walking++;
    for (uint32_t i = 0; i < subs->buckets_len; i++)
        for (struct fx_redis_channel *channel = subs->buckets[i]; channel; channel = channel->next)
            for (struct fx_redis_sub *sub = channel->subs; sub; sub = sub->next) {
                if (!sub->active) continue;
                sub->active = false;
                tell(sub, FX_REDIS_LOST, (fx_span){NULL, 0});
            }
    walk_end(subs);
}

/* ---- the public calls ---- */

static FX_MUST bool subs_start(fx_redis *redis, fx_error *err) {
    struct fx_redis_subs *subs = &redis->subs;
    if (subs->open) return true;
    subs->buckets_len = 64;
    while (subs->buckets_len < subs->subs_max && subs->buckets_len < 1u << 20)
        subs->buckets_len *= 2;
    subs->buckets = fx_alloc(subs->buckets_len, sizeof(struct fx_redis_channel *));
    if (!subs->buckets) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for channels");
    subs->conn.pushing = true;
    subs->conn.greet = on_greet;
    subs->conn.lost = on_lost;
    subs->conn.push = on_push;
    if (!fx_redis__conn_init(&subs->conn, err)) return false;
    subs->open = true;
    fx_redis__conn_start(&subs->conn);
    return true;
}

static struct fx_redis_channel *channel_take(struct fx_redis_subs *subs, fx_span name) {
    struct fx_redis_channel **at = slot_of(subs, name);
    if (*at) return *at;
    struct fx_redis_channel *channel = fx_alloc(1, sizeof *channel + name.len);
    if (!channel) return NULL;
    channel->len = name.len;
    channel->hash = hash_of(name);
    memcpy(channel->name, name.at, name.len);
    *at = channel;
    return channel;
}

static FX_MUST bool sub_new(fx_redis *redis, fx_span name, struct fx_redis_sub **out,
                            fx_error *err) {
    struct fx_redis_subs *subs = &redis->subs;
    if (subs->subs_count >= subs->subs_max)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "%u subscriptions", subs->subs_max);
    struct fx_redis_sub *sub = fx_alloc(1, sizeof *sub);
    struct fx_redis_channel *channel = sub ? channel_take(subs, name) : NULL;
    if (!channel) {
        free(sub);
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a subscription");
    }
    sub->redis = redis;
    sub->channel = channel;
    sub->next = channel->subs;
    channel->subs = sub;
    subs->subs_count++;
    *out = sub;
    return true;
}

bool fx_redis_subscribe(fx_redis *redis, fx_span channel, fx_redis_on_message callback, void *ctx,
                        fx_redis_sub **out, fx_error *err) {
    struct fx_redis_subs *subs = &redis->subs;
    struct fx_redis_sub *sub;
    if (!subs_start(redis, err) || !sub_new(redis, channel, &sub, err)) return false;
    sub->on_message = callback;
    sub->ctx = ctx;
    /* Also when the channel is active: the answer, in order, tells when this one hears it. */
    if (subs->conn.phase == FX_REDIS_UP && ask(subs, sub->channel)) sub->asked = subs->sent;
    *out = sub;
    return true;
}

void fx_redis_unsubscribe(fx_redis_sub *sub) {
    if (!sub) return;
    struct fx_redis_subs *subs = &sub->redis->subs;
    sub->on_message = NULL;
    if (subs->walking)
        sweep_later(subs, sub->channel);
    else
        channel_sweep(subs, sub->channel);
}

void fx_redis__subs_done(fx_redis *redis) {
    struct fx_redis_subs *subs = &redis->subs;
    for (uint32_t i = 0; i < subs->buckets_len; i++)
        for (struct fx_redis_channel *channel = subs->buckets[i], *next; channel; channel = next) {
            next = channel->next;
            for (struct fx_redis_sub *sub = channel->subs, *after; sub; sub = after) {
                after = sub->next;
                free(sub);
            }
            free(channel);
        }
    free(subs->buckets);
    fx_redis__conn_done(&subs->conn);
}
