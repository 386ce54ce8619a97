/* The rate limits' Redis functions on a real Redis: each row a story, each step a call and what is
 * left after it. */
#include <event2/event.h>
#include <stdio.h>
#include <unistd.h>
#include "tests/fx_test.h"
#include "common/queue/redis.h"
#include "tests/integ/queue/redis_fixture.h"

enum { LEASE_MS = 15000, WAIT_MS = 5000, STEPS_MAX = 8, LUA_MAX = 65536, SLACK = 1 };

static struct redis_fixture server_;
static struct event_base *base_;
static fx_redis *redis_;
static uint8_t lua_[LUA_MAX];

enum op {
    END,
    TAKE,   /* a: tokens */
    LOOK,   /**/
    RENEW,  /* a: reserved, b: told, c: used */
    SETTLE, /* a: used, b: told, c: counts */
    PASS,   /* a: ms, of the buckets */
    EXPIRE, /* every lease runs out */
};

struct step {
    enum op op;
    unsigned id, a, b, c;
    const char *status;         /* of TAKE */
    int requests, tokens, held; /* left; held by the key. -1: whatever */
    unsigned wait_ms;           /* of a refusal, at most, and 2 s less at least */
    const char *key;            /* NULL: "k" */
};

struct row {
    const char *name;
    unsigned key[3], tenant[3]; /* rpm, tpm, streams */
    struct step steps[STEPS_MAX];
};

static const struct row rows[] = {
    {"requests: as many as a minute has, then the wait",
     {3, 0, 0},
     {0},
     {
         {TAKE, 1, 5, 0, 0, "ok", 2, 0, 1, 0, NULL},
         {TAKE, 2, 5, 0, 0, "ok", 1, 0, 2, 0, NULL},
         {TAKE, 3, 5, 0, 0, "ok", 0, 0, 3, 0, NULL},
         {TAKE, 4, 5, 0, 0, "requests", 0, 0, 3, 20000, NULL},
         {PASS, 0, 20000, 0, 0, NULL, 1, 0, 3, 0, NULL},
         {TAKE, 4, 5, 0, 0, "ok", 0, 0, 4, 0, NULL},
         {PASS, 0, 600000, 0, 0, NULL, 3, 0, 4, 0, NULL},
     }},
    {"tokens: reserved, then charged for what was used",
     {0, 100, 0},
     {0},
     {
         {TAKE, 1, 60, 0, 0, "ok", 0, 40, 1, 0, NULL},
         {TAKE, 2, 60, 0, 0, "tokens", 0, 40, 1, 12000, NULL},
         {SETTLE, 1, 10, 0, 1, NULL, 0, 90, 0, 0, NULL},
         {TAKE, 2, 60, 0, 0, "ok", 0, 30, 1, 0, NULL},
         {SETTLE, 2, 60, 0, 1, NULL, 0, 30, 0, 0, NULL},
         {PASS, 0, 30000, 0, 0, NULL, 0, 80, 0, 0, NULL},
     }},
    {"larger than a minute: never",
     {9, 100, 0},
     {0},
     {
         {TAKE, 1, 101, 0, 0, "never", 9, 100, 0, 0, NULL},
         {TAKE, 2, 100, 0, 0, "ok", 8, 0, 1, 0, NULL},
         {TAKE, 3, 101, 0, 0, "never", 8, 0, 1, 0, NULL},
     }},
    {"a refusal by one limit takes nothing from the other",
     {2, 100, 0},
     {0},
     {
         {TAKE, 1, 60, 0, 0, "ok", 1, 40, 1, 0, NULL},
         {TAKE, 2, 60, 0, 0, "tokens", 1, 40, 1, 12000, NULL},
         {TAKE, 3, 10, 0, 0, "ok", 0, 30, 2, 0, NULL},
         {TAKE, 4, 10, 0, 0, "requests", 0, 30, 2, 30000, NULL},
         {TAKE, 5, 90, 0, 0, "tokens", 0, 30, 2, 36000, NULL}, /* the longer wait */
     }},
    {"streams",
     {0, 0, 2},
     {0},
     {
         {TAKE, 1, 5, 0, 0, "ok", 0, 0, 1, 0, NULL},
         {TAKE, 2, 5, 0, 0, "ok", 0, 0, 2, 0, NULL},
         {TAKE, 3, 5, 0, 0, "streams", 0, 0, 2, 1000, NULL},
         {SETTLE, 1, 5, 0, 1, NULL, 0, 0, 1, 0, NULL},
         {TAKE, 3, 5, 0, 0, "ok", 0, 0, 2, 0, NULL},
         {EXPIRE, 0, 0, 0, 0, NULL, 0, 0, 0, 0, NULL},
         {TAKE, 4, 5, 0, 0, "ok", 0, 0, 1, 0, NULL},
     }},
    {"a failure returns all, a client that left not the request",
     {5, 100, 0},
     {0},
     {
         {TAKE, 1, 60, 0, 0, "ok", 4, 40, 1, 0, NULL},
         {SETTLE, 1, 0, 0, 0, NULL, 5, 100, 0, 0, NULL},
         {TAKE, 2, 60, 0, 0, "ok", 4, 40, 1, 0, NULL},
         {SETTLE, 2, 0, 0, 1, NULL, 4, 100, 0, 0, NULL},
     }},
    {"the same generation twice is one",
     {5, 100, 1},
     {0},
     {
         {TAKE, 1, 60, 0, 0, "ok", 4, 40, 1, 0, NULL},
         {TAKE, 1, 60, 0, 0, "ok", 4, 40, 1, 0, NULL},
     }},
    {"a dead gateway: all of it returns",
     {5, 100, 1},
     {0},
     {
         {TAKE, 1, 60, 0, 0, "ok", 4, 40, 1, 0, NULL},
         {TAKE, 2, 10, 0, 0, "streams", 4, 40, 1, 1000, NULL},
         {EXPIRE, 0, 0, 0, 0, NULL, 5, 100, 0, 0, NULL},
         {TAKE, 2, 10, 0, 0, "ok", 4, 90, 1, 0, NULL},
     }},
    {"a dead gateway: what it had told is charged",
     {5, 100, 1},
     {0},
     {
         {TAKE, 1, 60, 0, 0, "ok", 4, 40, 1, 0, NULL},
         {RENEW, 1, 60, 0, 30, NULL, 4, 40, 1, 0, NULL},
         {EXPIRE, 0, 0, 0, 0, NULL, 4, 70, 0, 0, NULL},
     }},
    {"a gateway that was only slow takes it again",
     {5, 100, 1},
     {0},
     {
         {TAKE, 1, 60, 0, 0, "ok", 4, 40, 1, 0, NULL},
         {EXPIRE, 0, 0, 0, 0, NULL, 5, 100, 0, 0, NULL},
         {RENEW, 1, 60, 0, 10, NULL, 4, 40, 1, 0, NULL},
         {EXPIRE, 0, 0, 0, 0, NULL, 4, 90, 0, 0, NULL},
         {RENEW, 1, 60, 10, 20, NULL, 4, 40, 1, 0, NULL},
         {SETTLE, 1, 25, 20, 1, NULL, 4, 75, 0, 0, NULL},
     }},
    {"what returns never overflows",
     {5, 100, 0},
     {0},
     {
         {TAKE, 1, 60, 0, 0, "ok", 4, 40, 1, 0, NULL},
         {PASS, 0, 60000, 0, 0, NULL, 5, 100, 1, 0, NULL},
         {EXPIRE, 0, 0, 0, 0, NULL, 5, 100, 0, 0, NULL},
         {TAKE, 2, 100, 0, 0, "ok", 4, 0, 1, 0, NULL},
     }},
    {"an end after the lease charges the rest",
     {5, 100, 1},
     {0},
     {
         {TAKE, 1, 60, 0, 0, "ok", 4, 40, 1, 0, NULL},
         {RENEW, 1, 60, 0, 10, NULL, 4, 40, 1, 0, NULL},
         {EXPIRE, 0, 0, 0, 0, NULL, 4, 90, 0, 0, NULL},
         {SETTLE, 1, 25, 10, 1, NULL, 4, 75, 0, 0, NULL},
     }},
    {"debt is never told as less than nothing",
     {1, 100, 0},
     {0},
     {
         {TAKE, 1, 100, 0, 0, "ok", 0, 0, 1, 0, NULL},
         {EXPIRE, 0, 0, 0, 0, NULL, 1, 100, 0, 0, NULL},
         {TAKE, 2, 100, 0, 0, "ok", 0, 0, 1, 0, NULL},
         {RENEW, 1, 100, 0, 50, NULL, 0, 0, 2, 0, NULL},
         {TAKE, 3, 1, 0, 0, "requests", 0, 0, 2, 120000, NULL},
         {TAKE, 4, 50, 0, 0, "requests", 0, 0, 2, 120000, NULL},
     }},
    {"a tenant's limits hold for its keys together",
     {10, 0, 0},
     {3, 100, 0},
     {
         {TAKE, 1, 30, 0, 0, "ok", 2, 70, 1, 0, "a"},
         {TAKE, 2, 30, 0, 0, "ok", 1, 40, 1, 0, "b"},
         {TAKE, 3, 50, 0, 0, "tokens", 1, 40, 1, 6000, "a"},
         {TAKE, 4, 30, 0, 0, "ok", 0, 10, 2, 0, "a"},
         {TAKE, 5, 1, 0, 0, "requests", 0, 10, 1, 20000, "b"},
         {SETTLE, 2, 10, 0, 0, NULL, 1, 30, 0, 0, "b"},
     }},
    {"the emptier of both is told",
     {2, 0, 0},
     {100, 100, 5},
     {
         {TAKE, 1, 30, 0, 0, "ok", 1, 70, 1, 0, NULL},
         {TAKE, 2, 30, 0, 0, "ok", 0, 40, 2, 0, NULL},
         {TAKE, 3, 1, 0, 0, "requests", 0, 40, 2, 30000, NULL},
     }},
};

static redisReply *command(const char *fmt, const char *a, const char *b) {
    fx_error err = {0};
    redisReply *reply = NULL;
    if (!fx_redis_sync(redis_, WAIT_MS, &reply, &err, fmt, a, b)) fail_msg("%s", err.text);
    return reply;
}

static char *copied(fx_span span) {
    char *text = calloc(1, span.len + 1);
    memcpy(text, span.at, span.len);
    return text;
}

/* The reply of one function as text: fields with a space before each. */
static void on_reply(void *ctx, const redisReply *reply, const fx_error *err) {
    char *out = ctx;
    size_t len = 0;
    if (err) fail_msg("%s", err->text);
    if (reply->type != REDIS_REPLY_ARRAY) (void)snprintf(out, 512, " done");
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        const redisReply *field = reply->element[i];
        if (field->type == REDIS_REPLY_INTEGER) {
            len += (size_t)snprintf(out + len, 512 - len, " %lld", field->integer);
        } else {
            char *text = copied(fx_redis_span(field));
            len += (size_t)snprintf(out + len, 512 - len, " %s", text);
            free(text);
        }
    }
}

static void call(const char *function, const struct row *row, const struct step *step,
                 const unsigned numbers[3], char out[512]) {
    char keys[6][64], args[11][24];
    fx_span key_spans[6], arg_spans[11];
    size_t key_count = 0, arg_count = 0;
    const char *ends[] = {"", ":leases", ":holds"};
    fx_error err = {0};
    (void)snprintf(args[arg_count++], 24, "%u", LEASE_MS);
    (void)snprintf(args[arg_count++], 24, "id%u", step->id);
    for (size_t i = 0; i < 3; i++)
        (void)snprintf(args[arg_count++], 24, "%u", numbers[i]);
    for (size_t scope = 0; scope < 2; scope++) {
        const unsigned *limits = scope ? row->tenant : row->key;
        if (!limits[0] && !limits[1] && !limits[2]) continue;
        for (size_t i = 0; i < 3; i++) {
            (void)snprintf(args[arg_count++], 24, "%u", limits[i]);
            (void)snprintf(keys[key_count++], 64, "fx:{t1}:limit:%s%s%s", scope ? "all" : "key:",
                           scope       ? ""
                           : step->key ? step->key
                                       : "k",
                           ends[i]);
        }
    }
    for (size_t i = 0; i < key_count; i++)
        key_spans[i] = fx_span_str(keys[i]);
    for (size_t i = 0; i < arg_count; i++)
        arg_spans[i] = fx_span_str(args[i]);
    struct fx_redis_fcall fcall = {function, key_spans, key_count, arg_spans, arg_count};
    *out = 0;
    if (!fx_redis_fcall(redis_, &fcall, on_reply, out, &err)) fail_msg("%s", err.text);
    while (!*out)
        (void)event_base_loop(base_, EVLOOP_ONCE);
}

static const char older[] = "if redis.call('HEXISTS', KEYS[1], 'at_ms') == 1 then "
                            "redis.call('HINCRBY', KEYS[1], 'at_ms', -ARGV[1]) end";
static const char expired[] = "for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do "
                              "redis.call('ZADD', KEYS[1], 1, id) end";

static void pass(const struct step *step) {
    char ms[16];
    (void)snprintf(ms, sizeof ms, "%u", step->a);
    fx_auto(redisReply) keys = command("KEYS %s%s", "fx:{t1}:limit:*", "");
    for (size_t i = 0; i < keys->elements; i++) {
        const char *key = keys->element[i]->str;
        const char *script = strstr(key, ":leases")  ? expired
                             : strstr(key, ":holds") ? NULL
                                                     : older;
        if (!script || (script == expired) != (step->op == EXPIRE)) continue;
        fx_error err = {0};
        redisReply *reply = NULL;
        if (!fx_redis_sync(redis_, WAIT_MS, &reply, &err, "EVAL %s 1 %s %s", script, key, ms))
            fail_msg("%s", err.text);
        freeReplyObject(reply);
    }
}

static long long held(const struct step *step) {
    fx_auto(redisReply) reply =
        command("ZCARD fx:{t1}:limit:key:%s%s", step->key ? step->key : "k", ":leases");
    fx_auto(redisReply) holds =
        command("HLEN fx:{t1}:limit:key:%s%s", step->key ? step->key : "k", ":holds");
    assert_int_equal(reply->integer, holds->integer);
    return reply->integer;
}

static void step_run(const struct row *row, const struct step *step) {
    const unsigned take[3] = {1, step->a, 0}, look[3] = {0, 0, 0},
                   more[3] = {step->a, step->b, step->c};
    char text[512], status[32];
    unsigned wait, limit, scope, rpm, requests, requests_ms, tpm, tokens, tokens_ms;
    if (step->op == PASS || step->op == EXPIRE) pass(step);
    if (step->op == RENEW) call("fx2_limits_renew", row, step, more, text);
    if (step->op == SETTLE) call("fx2_limits_settle", row, step, more, text);
    call("fx2_limits_take", row, step, step->op == TAKE ? take : look, text);
    assert_int_equal(sscanf(text, " %31s %u %u %u %u %u %u %u %u %u", status, &wait, &limit, &scope,
                            &rpm, &requests, &requests_ms, &tpm, &tokens, &tokens_ms),
                     10);
    assert_string_equal(status, step->op == TAKE ? step->status : "ok");
    assert_in_range(requests, step->requests, step->requests);
    assert_in_range(tokens, step->tokens, step->tokens + SLACK); /* they refill as we go */
    assert_true(requests <= rpm && tokens <= tpm);
    assert_int_equal(held(step), step->held);
    if (step->wait_ms)
        assert_in_range(wait, step->wait_ms > 2000 ? step->wait_ms - 2000 : 1, step->wait_ms);
    if (!step->wait_ms) assert_int_equal(wait, 0);
    if (rpm) assert_in_range(requests_ms, requests < rpm ? 1 : 0, 180000);
    if (tpm) assert_in_range(tokens_ms, tokens < tpm ? 1 : 0, 180000);
}

static void test_row(void **state) {
    const struct row *row = *state;
    freeReplyObject(command("FLUSHDB%s%s", "", ""));
    for (size_t i = 0; i < STEPS_MAX && row->steps[i].op; i++) {
        print_message("- step %zu\n", i + 1);
        step_run(row, &row->steps[i]);
    }
}

/* Every key goes by itself when nothing is left to remember. */
static void test_expiry(void **state) {
    (void)state;
    static const struct row row = {
        .key = {10, 100, 1},
          .tenant = {20, 200, 2}
    };
    const unsigned take[3] = {1, 50, 0};
    char text[512];
    freeReplyObject(command("FLUSHDB%s%s", "", ""));
    call("fx2_limits_take", &row, &(struct step){.id = 1}, take, text);
    fx_auto(redisReply) keys = command("KEYS %s%s", "*", "");
    assert_int_equal(keys->elements, 6);
    for (size_t i = 0; i < keys->elements; i++) {
        fx_auto(redisReply) ttl = command("PTTL %s%s", keys->element[i]->str, "");
        assert_in_range(ttl->integer, LEASE_MS + 60000, 300000);
    }
}

/* Limits that change: one set later begins full, a lower one is at once the most there is. */
static void test_changes(void **state) {
    (void)state;
    static const struct row first =
                                {
                                    .key = {10, 0, 0}
    },
                            both = {.key = {10, 100, 0}}, lower = {.key = {3, 50, 0}},
                            higher = {.key = {30, 500, 0}};
    static const struct {
        const struct row *row;
        struct step step;
    } steps[] = {
        {&first,  {TAKE, 1, 60, 0, 0, "ok", 9, 0, 1, 0, NULL} },
        {&both,   {LOOK, 0, 0, 0, 0, NULL, 9, 100, 1, 0, NULL}},
        {&lower,  {LOOK, 0, 0, 0, 0, NULL, 3, 50, 1, 0, NULL} },
        {&lower,  {TAKE, 2, 20, 0, 0, "ok", 2, 30, 2, 0, NULL}},
        {&higher, {LOOK, 0, 0, 0, 0, NULL, 2, 30, 2, 0, NULL} },
    };
    freeReplyObject(command("FLUSHDB%s%s", "", ""));
    for (size_t i = 0; i < FX_TEST_COUNT(steps); i++)
        step_run(steps[i].row, &steps[i].step);
}

/* More leases run out than one call ends: those that are left take nobody's place. */
static void test_many(void **state) {
    (void)state;
    enum { MANY = 300 };
    static const struct row all =
                                {
                                    .key = {0, 0, MANY}
    },
                            few = {.key = {0, 0, 10}};
    const unsigned take[3] = {1, 5, 0};
    char text[512];
    freeReplyObject(command("FLUSHDB%s%s", "", ""));
    for (unsigned i = 1; i <= MANY; i++)
        call("fx2_limits_take", &all, &(struct step){.id = i}, take, text);
    call("fx2_limits_take", &all, &(struct step){.id = MANY + 1}, take, text);
    assert_memory_equal(text, " streams", 8);
    pass(&(struct step){.op = EXPIRE});
    call("fx2_limits_take", &few, &(struct step){.id = MANY + 1}, take, text);
    assert_memory_equal(text, " ok", 3);
    assert_true(held(&(struct step){0}) > 10); /* not all were ended yet */
    call("fx2_limits_take", &few, &(struct step){.id = MANY + 2}, take, text);
    assert_int_equal(held(&(struct step){0}), 2);
}

static int setup(void **state) {
    fx_error err = {0};
    (void)state;
    FILE *file = fopen(FX_SOURCE_DIR "/services/gateway/limits.lua", "rbe");
    assert_non_null(file);
    fx_span library = {lua_, fread(lua_, 1, sizeof lua_, file)};
    fclose(file);
    redis_fixture_start(&server_, NULL);
    base_ = event_base_new();
    struct fx_redis_opts opts = {.base = base_, .url = server_.url, .library = library};
    if (!fx_redis_open(&opts, &redis_, &err) || !fx_redis_wait_ready(redis_, WAIT_MS, &err))
        fail_msg("%s", err.text);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    fx_redis_free(redis_);
    event_base_free(base_);
    redis_fixture_stop(&server_);
    return 0;
}

int main(void) {
    struct CMUnitTest tests[FX_TEST_COUNT(rows) + 3] = {
        cmocka_unit_test(test_expiry), cmocka_unit_test(test_changes), cmocka_unit_test(test_many)};
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i + 3] =
            (struct CMUnitTest){rows[i].name, test_row, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests(tests, setup, teardown);
}
