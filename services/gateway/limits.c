#include "services/gateway/limits.h"
#include <stdio.h>
#include "common/base/clock.h"
#include "common/base/heap.h"

enum {
    KEYS = 3,  /* of a scope, and its numbers */
    FIXED = 5, /* arguments before those */
    KEY_MAX = 80,
    NUMBER_MAX = 12,
    RENEWS = 3, /* in a lease */
    AWAY_RETRY_MS = 1000,
    NEVER_MS = 60000,
    REPLY_FIELDS = 10,
};

extern const unsigned char gw_limits_lua[];
extern const unsigned long gw_limits_lua_len;

TAILQ_HEAD(holds, gw_hold);

struct gw_limits {
    struct gw_limits_opts opts;
    struct holds holds; /* by renewal, the oldest first */
};

fx_span gw_limits_library(void) {
    return (fx_span){gw_limits_lua, gw_limits_lua_len};
}

bool gw_limits_open(const struct gw_limits_opts *opts, struct gw_limits **out, fx_error *err) {
    struct gw_limits *limits = fx_alloc(1, sizeof *limits);
    if (!limits) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for the rate limits");
    limits->opts = *opts;
    TAILQ_INIT(&limits->holds);
    *out = limits;
    return true;
}

void gw_limits_free(struct gw_limits *limits) {
    free(limits);
}

static bool limit_any(const struct gw_limit *limit) {
    return limit->requests || limit->tokens || limit->streams;
}

bool gw_limited(const struct gw_identity *who) {
    return limit_any(&who->limits[GW_OF_KEY]) || limit_any(&who->limits[GW_OF_TENANT]);
}

uint32_t gw_limits_ceiling(const struct gw_identity *who, uint32_t prompt, uint32_t max_tokens) {
    for (size_t i = 0; i < GW_SCOPES; i++) {
        uint32_t most = who->limits[i].tokens;
        if (most > prompt && max_tokens > most - prompt) max_tokens = most - prompt;
    }
    return max_tokens;
}

/* -- one call -- */

/* The words of a call of fx2_limits_*. */
struct words {
    char key[GW_SCOPES * KEYS][KEY_MAX], arg[FIXED + GW_SCOPES * KEYS][NUMBER_MAX];
    char id[2 * FX_GEN_ID_BYTES + 1];
    fx_span keys[GW_SCOPES * KEYS], args[FIXED + GW_SCOPES * KEYS];
    size_t key_count, arg_count;
};

static void number_put(struct words *words, uint32_t number) {
    char *text = words->arg[words->arg_count];
    (void)snprintf(text, NUMBER_MAX, "%u", number);
    words->args[words->arg_count++] = fx_span_str(text);
}

static void scope_put(struct words *words, const struct gw_identity *who, enum gw_scope scope) {
    static const char *const ends[KEYS] = {"", ":leases", ":holds"};
    const struct gw_limit *limit = &who->limits[scope];
    bool of_key = scope == GW_OF_KEY;
    if (!limit_any(limit)) return;
    for (size_t i = 0; i < KEYS; i++) {
        char *text = words->key[words->key_count];
        (void)snprintf(text, KEY_MAX, "fx:{t%llu}:limit:%s%s%s", (unsigned long long)who->tenant,
                       of_key ? "key:" : "all", of_key ? who->key_id : "", ends[i]);
        words->keys[words->key_count++] = fx_span_str(text);
    }
    number_put(words, limit->requests);
    number_put(words, limit->tokens);
    number_put(words, limit->streams);
}

static FX_MUST bool call_send(struct gw_limits *limits, const char *function,
                              const struct gw_identity *who, const fx_gen_id *id,
                              const uint32_t numbers[3], fx_redis_done done, void *ctx) {
    struct words words;
    words.key_count = words.arg_count = 0;
    fx_hex((fx_span){id->bytes, sizeof id->bytes}, words.id);
    number_put(&words, limits->opts.lease_ms);
    words.args[words.arg_count++] = fx_span_str(words.id);
    for (size_t i = 0; i < 3; i++)
        number_put(&words, numbers[i]);
    scope_put(&words, who, GW_OF_KEY);
    scope_put(&words, who, GW_OF_TENANT);
    struct fx_redis_fcall call = {function, words.keys, words.key_count, words.args,
                                  words.arg_count};
    return fx_redis_fcall(limits->opts.redis, &call, done, ctx, &(fx_error){0});
}

/* -- take and look -- */

/* One question under way. */
struct asking {
    struct gw_limits *limits;
    struct gw_hold *hold; /* NULL: a look */
    const struct gw_identity *who;
    gw_limits_done done;
    void *ctx;
};

static void answer(struct asking *asking, const struct gw_limit_state *state,
                   const struct gw_problem *problem) {
    struct asking was = *asking;
    free(asking);
    was.done(was.ctx, state, problem);
}

static void away(struct gw_limits *limits, struct gw_problem *problem) {
    gw_count(&limits->opts.metrics->limit_errors, 1);
    gw_problem_set(problem, GW_UNAVAILABLE, NULL, "rate limits can't be checked at the moment");
    problem->retry_ms = AWAY_RETRY_MS;
}

static uint64_t integer(const redisReply *reply, size_t at) {
    const redisReply *field = reply->element[at];
    return field->type == REDIS_REPLY_INTEGER && field->integer > 0 ? (uint64_t)field->integer : 0;
}

static struct gw_bucket bucket_read(const redisReply *reply, size_t at) {
    return (struct gw_bucket){(uint32_t)integer(reply, at), (uint32_t)integer(reply, at + 1),
                              integer(reply, at + 2)};
}

static void refused(struct asking *asking, const redisReply *reply, struct gw_problem *problem) {
    fx_span status = fx_redis_span(reply->element[0]);
    uint64_t ms = integer(reply, 1), limit = integer(reply, 2), scope = integer(reply, 3);
    bool first_is_key = limit_any(&asking->who->limits[GW_OF_KEY]);
    const char *whose = scope == 1 && first_is_key ? "key" : "tenant";
    unsigned long long number = limit;
    gw_count(&asking->limits->opts.metrics->limited, 1);
    if (fx_span_eq_str(status, "never")) {
        gw_problem_set(problem, GW_LIMITED, NULL,
                       "the request is larger than what this %s has: %llu tokens a minute", whose,
                       number);
        problem->no_retry = true;
        ms = NEVER_MS;
    } else if (fx_span_eq_str(status, "streams")) {
        gw_problem_set(problem, GW_LIMITED, NULL,
                       "this %s has %llu generations running, as many as it may", whose, number);
    } else {
        gw_problem_set(problem, GW_LIMITED, NULL,
                       "this %s has %llu %.*s a minute and they are used up; try again in %llu s",
                       whose, number, (int)status.len, (const char *)status.at,
                       (unsigned long long)(ms + 999) / 1000);
        problem->no_retry = ms > FX_HTTP_RETRY_MS_MAX;
    }
    problem->retry_ms = ms > NEVER_MS ? NEVER_MS : (uint32_t)ms;
}

static void hold_begin(struct gw_hold *hold, struct gw_limits *limits) {
    hold->limits = limits;
    hold->renewed_ms = fx_clock_ms();
    TAILQ_INSERT_TAIL(&limits->holds, hold, entry);
}

static void on_answer(void *ctx, const redisReply *reply, const fx_error *err) {
    struct asking *asking = ctx;
    struct gw_limit_state state = {0};
    struct gw_problem problem;
    if (err || reply->type != REDIS_REPLY_ARRAY || reply->elements != REPLY_FIELDS) {
        away(asking->limits, &problem); /* perhaps taken: the lease ends it */
        answer(asking, &state, &problem);
        return;
    }
    state = (struct gw_limit_state){true, bucket_read(reply, 4), bucket_read(reply, 7)};
    bool ok = fx_span_eq_str(fx_redis_span(reply->element[0]), "ok");
    if (!ok) refused(asking, reply, &problem);
    bool ours = ok && !integer(reply, 3);
    if (ours && asking->hold) hold_begin(asking->hold, asking->limits);
    answer(asking, &state, ok ? NULL : &problem);
}

static void ask(struct gw_limits *limits, const struct asking *question, const fx_gen_id *id,
                uint32_t tokens) {
    const uint32_t numbers[3] = {question->hold != NULL, tokens, 0};
    struct gw_problem problem;
    struct asking *asking = fx_alloc(1, sizeof *asking);
    if (asking) {
        *asking = *question;
        if (call_send(limits, "fx2_limits_take", asking->who, id, numbers, on_answer, asking))
            return;
    }
    free(asking);
    away(limits, &problem);
    question->done(question->ctx, &(struct gw_limit_state){0}, &problem);
}

void gw_limits_take(struct gw_limits *limits, struct gw_hold *hold, const struct gw_identity *who,
                    const fx_gen_id *id, uint32_t tokens, gw_limits_done done, void *ctx) {
    *hold = (struct gw_hold){.who = who, .id = *id, .reserved = tokens};
    ask(limits, &(struct asking){limits, hold, who, done, ctx}, id, tokens);
}

void gw_limits_look(struct gw_limits *limits, const struct gw_identity *who, gw_limits_done done,
                    void *ctx) {
    ask(limits, &(struct asking){limits, NULL, who, done, ctx}, &(fx_gen_id){0}, 0);
}

/* -- while it runs, and its end -- */

/* Nothing to do: what Redis did not get, the lease puts right. */
static void ignore(void *ctx, const redisReply *reply, const fx_error *err) {
    struct gw_metrics *metrics = ctx;
    (void)reply;
    if (err) gw_count(&metrics->limit_errors, 1);
}

void gw_limits_end(struct gw_hold *hold) {
    struct gw_limits *limits = hold->limits;
    if (!limits) return;
    const uint32_t numbers[3] = {hold->used, hold->told, hold->counts};
    hold->limits = NULL;
    TAILQ_REMOVE(&limits->holds, hold, entry);
    if (!call_send(limits, "fx2_limits_settle", hold->who, &hold->id, numbers, ignore,
                   limits->opts.metrics))
        gw_count(&limits->opts.metrics->limit_errors, 1);
}

void gw_limits_tick(struct gw_limits *limits) {
    uint64_t now_ms = fx_clock_ms(), every_ms = limits->opts.lease_ms / RENEWS;
    struct gw_hold *hold;
    while ((hold = TAILQ_FIRST(&limits->holds)) && now_ms - hold->renewed_ms >= every_ms) {
        const uint32_t numbers[3] = {hold->reserved, hold->told, hold->used};
        if (!call_send(limits, "fx2_limits_renew", hold->who, &hold->id, numbers, ignore,
                       limits->opts.metrics))
            return; /* Redis is away: at the next tick */
        hold->told = hold->used;
        hold->renewed_ms = now_ms;
        TAILQ_REMOVE(&limits->holds, hold, entry);
        TAILQ_INSERT_TAIL(&limits->holds, hold, entry);
    }
}
