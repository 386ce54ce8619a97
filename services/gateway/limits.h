#pragma once
#include <sys/queue.h>
#include "common/queue/queue.h"
#include "services/gateway/auth.h"

/** Rate limits of keys and tenants, in Redis (limits.lua has the keys and the rules), so that all
 *  gateways share one truth. A request takes its prompt and its ceiling of tokens from all buckets
 *  that limit it, or from none; when it ends it is charged for what it used. Its lease is renewed
 *  while it runs: what a dead gateway took comes back. Fails closed. @thread the loop's */
struct gw_limits;

enum {
    GW_LIMIT_NONE = 1000000000, /* told where nothing limits: the most that can be set */
    GW_LIMIT_HEADERS = 6,
    GW_LIMIT_TEXT = 24,
};

/** A bucket as a client is told of it. */
struct gw_bucket {
    uint32_t limit, left; /* a minute's; limit 0: none */
    uint64_t full_ms;     /* until it is full again */
};

/** What Redis said last. */
struct gw_limit_state {
    bool known;
    struct gw_bucket requests, tokens;
};

/** What a running generation took; a member of what lives as long. Zeroed to begin. */
struct gw_hold {
    TAILQ_ENTRY(gw_hold) entry;
    struct gw_limits *limits; /* NULL: nothing is taken */
    const struct gw_identity *who;
    fx_gen_id id;
    uint32_t reserved;
    uint32_t used, told; /* tokens; what Redis was told */
    bool counts;         /* as a request, whatever happens next */
    uint64_t renewed_ms;
};

struct gw_limits_opts {
    fx_redis *redis; /* of the keys, with gw_limits_library loaded; borrowed */
    uint32_t lease_ms;
    struct gw_metrics *metrics;
};

/** The functions, for fx_redis_opts.library. */
fx_span gw_limits_library(void);
/** @own caller, gw_limits_free @err RESOURCE_EXHAUSTED */
FX_MUST bool gw_limits_open(const struct gw_limits_opts *opts, struct gw_limits **out,
                            fx_error *err);
/** After its Redis has been freed. NULL is fine. */
void gw_limits_free(struct gw_limits *limits);

/** Does anything limit this key? */
bool gw_limited(const struct gw_identity *who);
/** The ceiling of tokens, lowered to what an empty minute could give after the prompt; as it is
 *  when the prompt alone is too much. */
uint32_t gw_limits_ceiling(const struct gw_identity *who, uint32_t prompt, uint32_t max_tokens);

/** Called once, later or from inside. `problem` NULL: taken, or only looked at. `state` is known
 *  when Redis answered. */
typedef void (*gw_limits_done)(void *ctx, const struct gw_limit_state *state,
                               const struct gw_problem *problem);
/** Takes one request and `tokens` for generation `id`. `hold` and `who` must live until `done`, and
 *  then until gw_limits_end. Where another request has taken them for the same generation it is the
 *  one that is charged: `hold` stays empty. */
void gw_limits_take(struct gw_limits *limits, struct gw_hold *hold, const struct gw_identity *who,
                    const fx_gen_id *id, uint32_t tokens, gw_limits_done done, void *ctx);
/** How full the buckets are. */
void gw_limits_look(struct gw_limits *limits, const struct gw_identity *who, gw_limits_done done,
                    void *ctx);
/** Gives back what was not used, and the request unless it counts. May be called again. */
void gw_limits_end(struct gw_hold *hold);
/** Renews the leases that need it; call it several times a second. */
void gw_limits_tick(struct gw_limits *limits);

/** The x-ratelimit-* headers, or none when the state is not known. `headers` borrows from `text`.
 */
struct gw_limit_headers {
    size_t count;
    struct fx_http_header headers[GW_LIMIT_HEADERS];
    char text[GW_LIMIT_HEADERS][GW_LIMIT_TEXT];
};
void gw_limit_headers(const struct gw_limit_state *state, struct gw_limit_headers *out);
/** "0s", "120ms", "7s", "6m0s", "1h0m0s"; seconds are rounded up. */
void gw_limit_duration(uint64_t ms, char out[GW_LIMIT_TEXT]);
