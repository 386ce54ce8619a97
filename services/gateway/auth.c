#include "services/gateway/auth.h"
#include <stdio.h>
#include <strings.h>
#include <sys/queue.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/rpc/pb.h"
#include "fractal/v1/tenant.pb-c.h"

enum { PROBES = 8 };

struct entry {
    uint64_t asked_ms; /* 0: free */
    struct gw_identity who;
};

/* Somebody who waits for a question's answer. */
struct waiter {
    STAILQ_ENTRY(waiter) entry;
    gw_auth_done done;
    void *ctx;
};

/* One question under way: who has the same one meanwhile waits with it. */
struct asking {
    LIST_ENTRY(asking) entry;
    struct gw_auth *auth;
    uint8_t digest[FX_SHA256_BYTES];
    uint64_t asked_ms, drops;
    STAILQ_HEAD(, waiter) waiters;
};

struct gw_auth {
    struct gw_auth_opts opts;
    fx_redis_sub *revoked;
    bool hears;                /* revocations reach us */
    uint64_t drops;            /* an answer to a question from before a drop is not kept */
    LIST_HEAD(, asking) asked; /* at most as many as the client has calls */
    struct entry entries[GW_AUTH_ENTRIES];
};

/* -- cache -- */

static struct entry *at(struct gw_auth *auth, const uint8_t *digest, size_t probe) {
    size_t first = (size_t)digest[0] | (size_t)digest[1] << 8;
    return &auth->entries[(first + probe) % GW_AUTH_ENTRIES];
}

static bool fresh(const struct entry *entry) {
    return entry->asked_ms && fx_clock_ms() - entry->asked_ms < GW_AUTH_TTL_MS;
}

static const struct gw_identity *cache_find(struct gw_auth *auth, const uint8_t *digest) {
    for (size_t i = 0; i < PROBES; i++) {
        struct entry *entry = at(auth, digest, i);
        if (fresh(entry) && fx_equal_ct(entry->who.digest, digest, FX_SHA256_BYTES))
            return &entry->who;
    }
    return NULL;
}

/* Into a free or stale place, else over the oldest of its neighbours. */
static void cache_put(struct gw_auth *auth, const struct asking *asking,
                      const struct gw_identity *who) {
    struct entry *place = at(auth, asking->digest, 0);
    if (!auth->hears || asking->drops != auth->drops) return;
    for (size_t i = 0; i < PROBES; i++) {
        struct entry *entry = at(auth, asking->digest, i);
        if (memcmp(entry->who.digest, asking->digest, FX_SHA256_BYTES) == 0) {
            place = entry;
            break;
        }
        if (entry->asked_ms < place->asked_ms) place = entry;
    }
    place->asked_ms = asking->asked_ms;
    place->who = *who;
}

static void cache_drop(struct gw_auth *auth) {
    memset(auth->entries, 0, sizeof auth->entries);
    auth->drops++;
    gw_count(&auth->opts.metrics->auth_drops, 1);
}

static void on_revoked(void *ctx, enum fx_redis_event event, fx_span payload) {
    struct gw_auth *auth = ctx;
    (void)payload; /* whichever key it was */
    auth->hears = event != FX_REDIS_LOST;
    cache_drop(auth);
}

bool gw_auth_open(const struct gw_auth_opts *opts, struct gw_auth **out, fx_error *err) {
    struct gw_auth *auth = fx_alloc(1, sizeof *auth);
    if (!auth) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for the key cache");
    auth->opts = *opts;
    if (!fx_redis_subscribe(opts->redis, fx_span_str("fx:keys"), on_revoked, auth, &auth->revoked,
                            err)) {
        free(auth);
        return fx_wrap(err, "key cache");
    }
    *out = auth;
    return true;
}

void gw_auth_free(struct gw_auth *auth) {
    if (!auth) return;
    fx_redis_unsubscribe(auth->revoked);
    free(auth);
}

/* -- the key of a request -- */

static bool key_usable(fx_span key) {
    if (!key.len || key.len > GW_KEY_BYTES_MAX) return false;
    for (size_t i = 0; i < key.len; i++)
        if (key.at[i] <= 0x20 || key.at[i] >= 0x7F) return false;
    return true;
}

bool gw_auth_key(const struct fx_http_request *request, fx_span *out, struct gw_problem *problem) {
    return gw_auth_key_of(fx_http_header(request, "authorization"),
                          fx_http_header(request, "x-auth-token"), out, problem);
}

bool gw_auth_key_of(fx_span value, fx_span key, fx_span *out, struct gw_problem *problem) {
    static const char scheme[] = "Bearer ";
    size_t len = sizeof scheme - 1;
    if (!value.len && !key.len)
        return gw_refuse(problem, GW_NO_KEY, NULL,
                         "an API key is needed: Authorization: Bearer <key>");
    if (value.len) {
        bool bearer = value.len > len && strncasecmp((const char *)value.at, scheme, len) == 0;
        key = bearer ? (fx_span){value.at + len, value.len - len} : (fx_span){0};
        while (key.len && key.at[0] == ' ')
            key.at++, key.len--;
    }
    if (!key_usable(key)) return gw_refuse(problem, GW_BAD_KEY, NULL, "the API key is malformed");
    *out = key;
    return true;
}

/* -- the tenant service -- */

static void answer(struct asking *asking, const struct gw_identity *who,
                   const struct gw_problem *problem) {
    struct waiter *waiter;
    LIST_REMOVE(asking, entry);
    while ((waiter = STAILQ_FIRST(&asking->waiters))) {
        gw_auth_done done = waiter->done;
        void *ctx = waiter->ctx;
        STAILQ_REMOVE_HEAD(&asking->waiters, entry);
        free(waiter);
        done(ctx, who, problem);
    }
    free(asking);
}

static struct gw_limit limit_of(const Fractal__V1__Limits *limits) {
    if (!limits) return (struct gw_limit){0};
    return (struct gw_limit){limits->requests_per_minute, limits->tokens_per_minute,
                             limits->streams};
}

static struct gw_identity identity_of(const struct asking *asking,
                                      const Fractal__V1__AuthenticateReply *reply) {
    struct gw_identity who = {
        .tenant = reply->tenant->number,
        .weight = reply->tenant->weight,
        .limits = {[GW_OF_KEY] = limit_of(reply->limits),
                   [GW_OF_TENANT] = limit_of(reply->tenant->limits)},
    };
    (void)snprintf(who.key_id, sizeof who.key_id, "%s", reply->key_id);
    memcpy(who.digest, asking->digest, sizeof who.digest);
    return who;
}

static void on_authenticated(void *user, const struct fx_client_result *result) {
    struct asking *asking = user;
    struct gw_metrics *metrics = asking->auth->opts.metrics;
    const Fractal__V1__AuthenticateReply *reply = result->reply;
    struct gw_problem problem;
    if (result->code == FX_OK && reply->tenant && reply->tenant->number) {
        struct gw_identity who = identity_of(asking, reply);
        cache_put(asking->auth, asking, &who);
        answer(asking, &who, NULL);
        return;
    }
    bool nobody = result->code == FX_UNAUTHENTICATED || result->code == FX_NOT_FOUND ||
                  result->code == FX_INVALID_ARGUMENT;
    gw_count(nobody ? &metrics->auth_refused : &metrics->auth_errors, 1);
    if (nobody)
        gw_problem_set(&problem, GW_BAD_KEY, NULL, "the API key is not valid");
    else
        gw_problem_set(&problem, GW_UNAVAILABLE, NULL, "API keys can't be checked at the moment");
    answer(asking, NULL, &problem);
}

static FX_MUST bool ask(struct gw_auth *auth, const char *key, const fx_trace *trace,
                        struct asking *asking) {
    Fractal__V1__AuthenticateRequest message = FRACTAL__V1__AUTHENTICATE_REQUEST__INIT;
    if (key)
        message.key = fx_pb_text(key);
    else
        message.digest = (ProtobufCBinaryData){sizeof asking->digest, asking->digest};
    struct fx_client_request request = {
        .method = "/fractal.v1.TenantService/Authenticate",
        .message = &message,
        .reply = &fractal__v1__authenticate_reply__descriptor,
        .deadline_ms = GW_AUTH_DEADLINE_MS,
        .trace = trace,
        .user = asking,
        .on_done = on_authenticated,
    };
    gw_count(&auth->opts.metrics->auth_calls, 1);
    return fx_client_start(auth->opts.tenant, &request, NULL, &(fx_error){0});
}

/* The question about this key that is under way. An answer to one from before a revocation may be
 * the old one. */
static struct asking *asked_find(struct gw_auth *auth, const uint8_t *digest) {
    struct asking *asking;
    LIST_FOREACH(asking, &auth->asked, entry)
    if (asking->drops == auth->drops && memcmp(asking->digest, digest, FX_SHA256_BYTES) == 0)
        return asking;
    return NULL;
}

/* NULL: it can't be asked. */
static struct asking *asked_new(struct gw_auth *auth, const char *key,
                                const uint8_t digest[FX_SHA256_BYTES], const fx_trace *trace) {
    struct asking *asking = fx_alloc(1, sizeof *asking);
    if (!asking) return NULL;
    *asking = (struct asking){.auth = auth, .asked_ms = fx_clock_ms(), .drops = auth->drops};
    memcpy(asking->digest, digest, sizeof asking->digest);
    STAILQ_INIT(&asking->waiters);
    if (!ask(auth, key, trace, asking)) {
        free(asking);
        return NULL;
    }
    LIST_INSERT_HEAD(&auth->asked, asking, entry);
    return asking;
}

/* From the cache, else by a question; `key` NULL: only its digest is known. */
static void check(struct gw_auth *auth, const char *key, const uint8_t digest[FX_SHA256_BYTES],
                  const fx_trace *trace, gw_auth_done done, void *ctx) {
    struct gw_problem problem;
    const struct gw_identity *known = cache_find(auth, digest);
    if (known) {
        struct gw_identity who = *known;
        gw_count(&auth->opts.metrics->auth_hits, 1);
        done(ctx, &who, NULL);
        return;
    }
    struct waiter *waiter = fx_alloc(1, sizeof *waiter);
    struct asking *asking = waiter ? asked_find(auth, digest) : NULL;
    if (waiter && !asking) asking = asked_new(auth, key, digest, trace);
    if (asking) {
        *waiter = (struct waiter){.done = done, .ctx = ctx};
        STAILQ_INSERT_TAIL(&asking->waiters, waiter, entry);
        return;
    }
    free(waiter);
    gw_count(&auth->opts.metrics->auth_errors, 1);
    gw_problem_set(&problem, GW_UNAVAILABLE, NULL, "API keys can't be checked at the moment");
    done(ctx, NULL, &problem);
}

void gw_auth_check(struct gw_auth *auth, fx_span key, const fx_trace *trace, gw_auth_done done,
                   void *ctx) {
    uint8_t digest[FX_SHA256_BYTES];
    char text[GW_KEY_BYTES_MAX + 1];
    FX_ASSERT(key.len <= GW_KEY_BYTES_MAX);
    memcpy(text, key.at, key.len);
    text[key.len] = 0;
    fx_sha256(key, digest);
    check(auth, text, digest, trace, done, ctx);
    explicit_bzero(text, sizeof text);
}

void gw_auth_check_digest(struct gw_auth *auth, const uint8_t digest[FX_SHA256_BYTES],
                          const fx_trace *trace, gw_auth_done done, void *ctx) {
    check(auth, NULL, digest, trace, done, ctx);
}
