/* The client itself, on servers of its own. */
#include <signal.h>
#include "tests/integ/queue/rig.h"
#include "common/base/clock.h"

struct told {
    struct fx_redis_report report;
    uint32_t ready, lost;
    char error[256], warning[128];
};

static void on_report(void *ctx, const struct fx_redis_report *report) {
    struct told *told = ctx;
    told->report = *report;
    if (report->ready)
        told->ready++;
    else
        told->lost++;
    (void)snprintf(told->error, sizeof told->error, "%s", report->err ? report->err->text : "");
    (void)snprintf(told->warning, sizeof told->warning, "%s",
                   report->warning ? report->warning : "");
}

static fx_redis *open_client(struct rig *rig, const char *url, struct told *told) {
    fx_redis *redis = NULL;
    fx_error err = {0};
    struct fx_redis_opts opts = {.base = rig->base,
                                 .url = url,
                                 .on_report = on_report,
                                 .ctx = told,
                                 .timeout_ms = 600,
                                 .inflight_max = 64,
                                 .output_bytes_max = 1 << 16,
                                 .channels_max = 4,
                                 .backoff_max_ms = 100};
    assert_true(fx_redis_open(&opts, &redis, &err));
    return redis;
}

/* ---- commands ---- */

struct order {
    long long next, count;
    bool done;
};

static void on_number(void *ctx, const redisReply *reply, const fx_error *err) {
    struct order *order = ctx;
    assert_null(err);
    assert_int_equal(reply->integer, ++order->next);
    order->done = order->next == order->count;
}

static void pipelined_in_order(struct rig *rig) {
    struct order order = {.count = 1000};
    fx_error err = {0};
    for (long long i = 0; i < order.count; i++)
        assert_true(fx_redis_command(rig->redis, on_number, &order, &err, "INCR %s", "n"));
    assert_int_equal(fx_redis_inflight(rig->redis), 1000);
    rig_until(rig, &order.done);
    assert_int_equal(fx_redis_inflight(rig->redis), 0);
}

static void binary_arguments(struct rig *rig) {
    redisReply *reply = NULL;
    fx_error err = {0};
    assert_true(fx_redis_sync(rig->redis, 1000, &reply, &err, "SET k %b", "a\0\r\nb", (size_t)5));
    freeReplyObject(reply);
    assert_true(fx_redis_sync(rig->redis, 1000, &reply, &err, "GET k"));
    assert_true(fx_span_eq(fx_redis_span(reply), (fx_span){(const uint8_t *)"a\0\r\nb", 5}));
    freeReplyObject(reply);
}

static void error_replies(struct rig *rig) {
    redisReply *reply = NULL;
    fx_error err = {0};
    assert_false(fx_redis_sync(rig->redis, 1000, &reply, &err, "NOSUCHCOMMAND"));
    assert_int_equal(err.code, FX_INTERNAL);
    assert_null(reply);
    assert_non_null(strstr(err.text, "unknown command"));
}

/* It does not serve now, which is no fault of the command's. */
static void a_master_without_replicas(struct rig *rig) {
    redisReply *reply = NULL;
    fx_error err = {0};
    assert_int_equal(rig_int(rig, "CONFIG SET min-replicas-to-write 1"), -1);
    assert_false(fx_redis_sync(rig->redis, 1000, &reply, &err, "SET a b"));
    assert_int_equal(rig_int(rig, "CONFIG SET min-replicas-to-write 0"), -1);
    assert_int_equal(err.code, FX_UNAVAILABLE);
}

static void on_any(void *ctx, const redisReply *reply, const fx_error *err) {
    (void)reply;
    fx_error *out = ctx;
    out->code = err ? err->code : FX_OK;
    out->text[0] = '!'; /* answered */
}

static void bounded_in_flight(struct rig *rig) {
    struct told told = {0};
    fx_error err = {0}, answers[65] = {0};
    fx_auto(fx_redis) redis = open_client(rig, rig->server.url, &told);
    assert_true(fx_redis_wait_ready(redis, 2000, &err));
    for (int i = 0; i < 64; i++)
        assert_true(fx_redis_command(redis, on_any, &answers[i], &err, "PING"));
    assert_false(fx_redis_command(redis, on_any, &answers[64], &err, "PING"));
    assert_int_equal(err.code, FX_RESOURCE_EXHAUSTED);
    rig_sleep(rig, 50);
    assert_true(fx_redis_command(redis, on_any, &answers[64], &err, "PING"));
}

static void bounded_output(struct rig *rig) {
    static char large[1 << 15];
    struct told told = {0};
    fx_error err = {0}, answer = {0};
    fx_auto(fx_redis) redis = open_client(rig, rig->server.url, &told);
    assert_true(fx_redis_wait_ready(redis, 2000, &err));
    assert_true(fx_redis_command(redis, on_any, &answer, &err, "SET k %b", large, sizeof large));
    assert_false(fx_redis_command(redis, on_any, &answer, &err, "SET k %b", large, sizeof large));
    assert_int_equal(err.code, FX_RESOURCE_EXHAUSTED);
    assert_false(fx_redis_reserve(redis, 1, sizeof large, &err));
    assert_true(fx_redis_reserve(redis, 1, 100, &err));
}

static void freed_with_commands_in_flight(struct rig *rig) {
    struct told told = {0};
    fx_error err = {0}, answer = {0};
    fx_redis *redis = open_client(rig, rig->server.url, &told);
    assert_true(fx_redis_wait_ready(redis, 2000, &err));
    assert_true(fx_redis_command(redis, on_any, &answer, &err, "PING"));
    fx_redis_free(redis);
    assert_int_equal(answer.code, FX_CANCELLED);
    assert_int_equal(answer.text[0], '!');
}

static void a_large_reply(struct rig *rig) {
    static char large[3 << 20];
    redisReply *reply = NULL;
    fx_error err = {0};
    memset(large, 'x', sizeof large);
    assert_true(fx_redis_sync(rig->redis, 3000, &reply, &err, "SET k %b", large, sizeof large));
    freeReplyObject(reply);
    assert_true(fx_redis_sync(rig->redis, 3000, &reply, &err, "GET k"));
    assert_int_equal(reply->len, sizeof large);
    assert_memory_equal(reply->str, large, sizeof large);
    freeReplyObject(reply);
}

/* ---- connecting ---- */

static void nobody_there(struct rig *rig) {
    struct told told = {0};
    fx_error err = {0};
    uint64_t start = fx_clock_ms();
    fx_auto(fx_redis) redis = open_client(rig, "unix:///tmp/fx-nobody-there", &told);
    assert_false(fx_redis_wait_ready(redis, 500, &err));
    assert_int_equal(err.code, FX_UNAVAILABLE);
    assert_true(fx_clock_ms() - start < 2000);
    assert_int_equal(told.lost, 1); /* told once, tried several times */
    assert_in_range(fx_redis_report(redis)->reconnects, 4, 30);
    assert_false(fx_redis_command(redis, on_any, NULL, &err, "PING"));
    assert_int_equal(err.code, FX_UNAVAILABLE);
}

static void tcp_refused(struct rig *rig) {
    struct told told = {0};
    fx_error err = {0};
    fx_auto(fx_redis) redis = open_client(rig, "redis://127.0.0.1:1", &told);
    assert_false(fx_redis_wait_ready(redis, 300, &err));
    assert_int_equal(err.code, FX_UNAVAILABLE);
    assert_non_null(strstr(told.error, "refused"));
}

static void bad_urls(struct rig *rig) {
    fx_redis *redis = NULL;
    fx_error err = {0};
    struct fx_redis_opts opts = {.base = rig->base, .url = "http://secret:word@h"};
    assert_false(fx_redis_open(&opts, &redis, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    assert_null(strstr(err.text, "word"));
}

static void password_and_database(struct rig *rig) {
    static const char *const extra[] = {"--requirepass", "s3cret", NULL};
    struct redis_fixture server;
    struct told told = {0};
    fx_error err = {0};
    redisReply *reply = NULL;
    char url[256];
    redis_fixture_start(&server, extra);
    (void)snprintf(url, sizeof url, "unix://:s3cret@%s?db=3", server.socket);
    fx_redis *redis = open_client(rig, url, &told);
    assert_true(fx_redis_wait_ready(redis, 2000, &err));
    assert_true(fx_redis_sync(redis, 1000, &reply, &err, "CLIENT INFO"));
    assert_non_null(strstr(reply->str, " db=3 "));
    freeReplyObject(reply);
    fx_redis_free(redis);
    (void)snprintf(url, sizeof url, "unix://:wrong@%s", server.socket);
    redis = open_client(rig, url, &told);
    assert_false(fx_redis_wait_ready(redis, 200, &err));
    assert_non_null(strstr(told.error, "WRONGPASS"));
    assert_null(strstr(told.error, "wrong@"));
    fx_redis_free(redis);
    redis = open_client(rig, server.url, &told);
    assert_false(fx_redis_wait_ready(redis, 200, &err));
    assert_non_null(strstr(told.error, "NOAUTH"));
    fx_redis_free(redis);
    redis_fixture_stop(&server);
}

static void settings(struct rig *rig) {
    static const struct {
        const char *extra[5];
        const char *warning;
        bool append_only, fsync_always, noeviction;
    } cases[] = {
        {{NULL},                                      "",                          true,  true,  true },
        {{"--appendonly", "no", NULL},                "appendonly is no",          false, true,  true },
        {{"--appendfsync", "everysec", NULL},         "appendfsync is not always", true,  false, true },
        {{"--maxmemory-policy", "allkeys-lru", NULL}, "not noeviction",            true,  true,  false},
        {{"--rename-command", "CONFIG", "", NULL},    "CONFIG GET is refused",     false, false, false},
    };
    for (size_t i = 0; i < FX_TEST_COUNT(cases); i++) {
        struct redis_fixture server;
        struct told told = {0};
        fx_error err = {0};
        redis_fixture_start(&server, cases[i].extra);
        fx_redis *redis = open_client(rig, server.url, &told);
        assert_true(fx_redis_wait_ready(redis, 2000, &err));
        assert_int_equal(told.ready, 1);
        assert_non_null(strstr(told.warning, cases[i].warning));
        assert_int_equal(strlen(told.warning) > 0, strlen(cases[i].warning) > 0);
        assert_int_equal(told.report.append_only, cases[i].append_only);
        assert_int_equal(told.report.fsync_always, cases[i].fsync_always);
        assert_int_equal(told.report.noeviction, cases[i].noeviction);
        fx_redis_free(redis);
        redis_fixture_stop(&server);
    }
}

static void a_frozen_server_is_dropped(struct rig *rig) {
    struct redis_fixture server;
    struct told told = {0};
    fx_error err = {0}, answer = {0};
    redis_fixture_start(&server, NULL);
    fx_redis *redis = open_client(rig, server.url, &told);
    assert_true(fx_redis_wait_ready(redis, 2000, &err));
    (void)kill(server.pid, SIGSTOP);
    assert_true(fx_redis_command(redis, on_any, &answer, &err, "PING"));
    rig_sleep(rig, 1200);
    assert_int_equal(answer.code, FX_UNAVAILABLE);
    assert_int_equal(told.lost, 1);
    (void)kill(server.pid, SIGCONT);
    assert_true(fx_redis_wait_ready(redis, 3000, &err));
    assert_int_equal(told.ready, 2);
    fx_redis_free(redis);
    redis_fixture_stop(&server);
}

/* ---- pub/sub ---- */

struct heard {
    uint32_t subscribed, messages, lost;
    fx_redis_sub *drop; /* unsubscribed by the first message */
    bool got, again;
    char last[32];
};

static void on_message(void *ctx, enum fx_redis_event event, fx_span payload) {
    struct heard *heard = ctx;
    if (event == FX_REDIS_SUBSCRIBED) heard->subscribed++;
    if (event == FX_REDIS_LOST) heard->lost++;
    heard->again = heard->subscribed == 2;
    if (event != FX_REDIS_MESSAGE) return;
    heard->messages++;
    heard->got = true;
    (void)snprintf(heard->last, sizeof heard->last, "%.*s", (int)payload.len,
                   (const char *)payload.at);
    if (heard->drop) fx_redis_unsubscribe(fx_take(heard->drop));
}

static fx_redis_sub *subscribe(struct rig *rig, const char *channel, struct heard *heard) {
    fx_redis_sub *sub = NULL;
    fx_error err = {0};
    assert_true(
        fx_redis_subscribe(rig->redis, fx_span_str(channel), on_message, heard, &sub, &err));
    for (int i = 0; i < 300 && !heard->subscribed; i++)
        rig_sleep(rig, 10);
    return sub;
}

static void wait_messages(struct rig *rig, const struct heard *heard, uint32_t count) {
    for (int i = 0; i < 300 && heard->messages < count; i++)
        rig_sleep(rig, 10);
    assert_int_equal(heard->messages, count);
}

static void messages_reach_their_channel(struct rig *rig) {
    struct heard a = {0}, b = {0}, a2 = {0};
    fx_redis_sub *sub_a = subscribe(rig, "a", &a), *sub_b = subscribe(rig, "b", &b);
    fx_redis_sub *sub_a2 = subscribe(rig, "a", &a2);
    assert_int_equal(a.subscribed, 1);
    assert_int_equal(a2.subscribed, 1);
    assert_int_equal(rig_int(rig, "PUBLISH a hello"), 1);
    rig_until(rig, &a.got);
    assert_string_equal(a.last, "hello");
    wait_messages(rig, &a2, 1);
    assert_int_equal(b.messages, 0);
    fx_redis_unsubscribe(sub_a);
    (void)rig_int(rig, "PUBLISH a again");
    wait_messages(rig, &a2, 2);
    assert_int_equal(a.messages, 1);
    fx_redis_unsubscribe(sub_a2);
    long long listeners = 1;
    for (int i = 0; i < 300 && listeners; i++)
        listeners = rig_int(rig, "PUBLISH a nobody");
    assert_int_equal(listeners, 0);
    fx_redis_unsubscribe(sub_b);
}

static void unsubscribes_inside_a_callback(struct rig *rig) {
    struct heard a = {0}, b = {0};
    fx_redis_sub *sub_a = subscribe(rig, "c", &a), *sub_b = subscribe(rig, "c", &b);
    a.drop = sub_b; /* each would drop the other: whoever is first */
    b.drop = sub_a;
    (void)rig_int(rig, "PUBLISH c 1");
    for (int i = 0; i < 300 && !a.messages && !b.messages; i++)
        rig_sleep(rig, 10);
    assert_int_equal(a.messages + b.messages, 1);
    struct heard *left = a.messages ? &a : &b;
    (void)rig_int(rig, "PUBLISH c 2");
    wait_messages(rig, left, 2);
    assert_int_equal(a.messages + b.messages, 2);
    fx_redis_unsubscribe(a.messages ? sub_a : sub_b);
}

static void unsubscribe_then_subscribe(struct rig *rig) {
    struct heard heard = {0};
    fx_redis_sub *sub = subscribe(rig, "d", &heard);
    for (int i = 0; i < 5; i++) {
        fx_error err = {0};
        fx_redis_unsubscribe(sub);
        assert_true(
            fx_redis_subscribe(rig->redis, fx_span_str("d"), on_message, &heard, &sub, &err));
    }
    rig_until(rig, &heard.again);
    assert_int_equal(heard.subscribed, 2); /* the first and the last: those between were gone */
    (void)rig_int(rig, "PUBLISH d x");
    rig_until(rig, &heard.got);
    fx_redis_unsubscribe(sub);
}

static void resubscribes(struct rig *rig) {
    struct heard heard = {0};
    fx_redis_sub *sub = subscribe(rig, "e", &heard);
    redis_fixture_kill(&rig->server);
    for (int i = 0; i < 300 && !heard.lost; i++)
        rig_sleep(rig, 10);
    assert_int_equal(heard.lost, 1);
    redis_fixture_restart(&rig->server, NULL);
    rig_until(rig, &heard.again);
    fx_error err = {0};
    assert_true(fx_redis_wait_ready(rig->redis, 3000, &err));
    (void)rig_int(rig, "PUBLISH e back");
    rig_until(rig, &heard.got);
    assert_string_equal(heard.last, "back");
    fx_redis_unsubscribe(sub);
}

static void bounded_channels(struct rig *rig) {
    struct told told = {0};
    struct heard heard = {0};
    fx_error err = {0};
    fx_redis_sub *sub[5] = {NULL};
    fx_auto(fx_redis) redis = open_client(rig, rig->server.url, &told);
    for (int i = 0; i < 4; i++)
        assert_true(fx_redis_subscribe(redis, fx_span_str("x"), on_message, &heard, &sub[i], &err));
    assert_false(fx_redis_subscribe(redis, fx_span_str("y"), on_message, &heard, &sub[4], &err));
    assert_int_equal(err.code, FX_RESOURCE_EXHAUSTED);
    fx_redis_unsubscribe(sub[0]);
    assert_true(fx_redis_subscribe(redis, fx_span_str("y"), on_message, &heard, &sub[4], &err));
}

static void a_silent_channel_stays(struct rig *rig) {
    struct told told = {0};
    struct heard heard = {0};
    fx_error err = {0};
    fx_redis_sub *sub = NULL;
    fx_auto(fx_redis) redis = open_client(rig, rig->server.url, &told);
    assert_true(fx_redis_subscribe(redis, fx_span_str("z"), on_message, &heard, &sub, &err));
    rig_sleep(rig, 1500); /* timeout_ms is 600: pings keep it */
    assert_int_equal(heard.subscribed, 1);
    assert_int_equal(heard.lost, 0);
    assert_int_equal(told.lost, 0);
}

static const struct rig_row rows[] = {
    {"pipelined in order",             pipelined_in_order            },
    {"binary arguments",               binary_arguments              },
    {"error replies",                  error_replies                 },
    {"a master without replicas",      a_master_without_replicas     },
    {"bounded in flight",              bounded_in_flight             },
    {"bounded output",                 bounded_output                },
    {"freed with commands in flight",  freed_with_commands_in_flight },
    {"a large reply",                  a_large_reply                 },
    {"nobody there",                   nobody_there                  },
    {"TCP refused",                    tcp_refused                   },
    {"bad URLs",                       bad_urls                      },
    {"password and database",          password_and_database         },
    {"settings",                       settings                      },
    {"a frozen server is dropped",     a_frozen_server_is_dropped    },
    {"messages reach their channel",   messages_reach_their_channel  },
    {"unsubscribes inside a callback", unsubscribes_inside_a_callback},
    {"unsubscribe, then subscribe",    unsubscribe_then_subscribe    },
    {"resubscribes",                   resubscribes                  },
    {"bounded channels",               bounded_channels              },
    {"a silent channel stays",         a_silent_channel_stays        },
};
RIG_MAIN(rows)
