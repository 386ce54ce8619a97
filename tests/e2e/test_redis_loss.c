/* Redis is killed, and comes back as it was, or without its last second: whatever was promised is
 * kept, every text is the one of an undisturbed run, and nothing is left behind. */
#include <fcntl.h>
#include <glob.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/stat.h>
#include "tests/e2e/herd.h"

enum {
    LONG = 900,  /* tokens: they run all through */
    BRIEF = 900, /* begin in the second that is lost */
    SHORT = 4,   /* begin and end in it */
    LONGS = 8,
    BRIEFS = 6,
    SHORTS = 6,
    FIRST_BRIEF = 100,
    FIRST_SHORT = 200,
    AWAY_MS = 700,
    TAIL_MS = 1000,
    SETTLE_MS = 20000,
};

static struct herd long_want, brief_want, short_want;

/* -- what is in Redis -- */

static redisContext *dial(const struct suite *suite) {
    redisContext *redis = redisConnectUnix(suite->redis.socket);
    if (!redis || redis->err) fail_msg("Redis: %s", redis ? redis->errstr : "no memory");
    return redis;
}

static bool is_finished(redisContext *redis, const char *log) {
    redisReply *last = redisCommand(redis, "XREVRANGE %s + - COUNT 1", log);
    redisReply *len = redisCommand(redis, "XLEN %s", log);
    assert_true(last && len);
    unsigned long long n = 0, part = 0;
    bool ended = last->elements == 1 &&
                 sscanf(last->element[0]->element[0]->str, "%llu-%llu", &n, &part) == 2 &&
                 part == 1;
    bool whole = ended && (unsigned long long)len->integer == n + 1;
    freeReplyObject(last);
    freeReplyObject(len);
    return whole;
}

/* Logs that have all their tokens and their finish record. */
static uint32_t logs_finished(const struct suite *suite) {
    redisContext *redis = dial(suite);
    redisReply *keys = redisCommand(redis, "KEYS fx:*:log:*");
    uint32_t count = 0;
    assert_non_null(keys);
    for (size_t i = 0; i < keys->elements; i++)
        count += is_finished(redis, keys->element[i]->str);
    freeReplyObject(keys);
    redisFree(redis);
    return count;
}

static long long number(const struct suite *suite, const char *command) {
    redisContext *redis = dial(suite);
    redisReply *keys = redisCommand(redis, "KEYS fx:*:%s", command);
    assert_non_null(keys);
    long long total = 0;
    for (size_t i = 0; i < keys->elements; i++) {
        redisReply *card = redisCommand(redis, "ZCARD %s", keys->element[i]->str);
        total += card->integer;
        freeReplyObject(card);
    }
    freeReplyObject(keys);
    redisFree(redis);
    return total;
}

/* No lease, no task, no slot, no KV block is held. */
static void check_nothing_left(struct suite *suite) {
    for (uint32_t i = 0; i < suite->opts.workers; i++)
        WAIT_FOR(worker_is_free(&suite->workers[i]), SETTLE_MS, "worker %u holds something", i);
    WAIT_FOR(number(suite, "leases") == 0, SETTLE_MS, "a lease is left");
    assert_int_equal(number(suite, "ready"), 0);
    assert_int_equal(number(suite, "tenants"), 0);
}

/* -- the append-only file -- */

static void aof_path(const struct suite *suite, char *out, size_t cap) {
    char pattern[128];
    glob_t found;
    (void)snprintf(pattern, sizeof pattern, "%s/appendonlydir/*.incr.aof", suite->redis.folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    (void)snprintf(out, cap, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
}

static off_t aof_size(const struct suite *suite) {
    char path[192];
    struct stat st;
    aof_path(suite, path, sizeof path);
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static void aof_cut(const struct suite *suite, off_t size) {
    char path[192];
    off_t before = aof_size(suite);
    aof_path(suite, path, sizeof path);
    assert_true(before > size);
    print_message("cut from %lld to %lld bytes\n", (long long)before, (long long)size);
    assert_int_equal(truncate(path, size), 0);
}

/* -- rounds -- */

struct round {
    const char *mode; /* appendfsync */
    bool cut;
    off_t within; /* how many bytes before the end of a command */
    bool workers; /* they die with it: what is lost must come from the gateway */
};

static void record(struct suite *suite) {
    if (long_want.count) return;
    herd_send(&long_want, suite, 0, LONGS, LONG);
    herd_rest(&long_want);
    herd_send(&brief_want, suite, FIRST_BRIEF, BRIEFS, BRIEF);
    herd_rest(&brief_want);
    herd_send(&short_want, suite, FIRST_SHORT, SHORTS, SHORT);
    herd_rest(&short_want);
}

static void mode_set(const struct suite *suite, const char *mode) {
    redisContext *redis = dial(suite);
    redisReply *reply = redisCommand(redis, "CONFIG SET appendfsync %s", mode);
    assert_string_equal(reply->str, "OK");
    freeReplyObject(reply);
    redisFree(redis);
}

/* Over both workers. */
static double metric(struct suite *suite, const char *name) {
    return service_metric(&suite->workers[0], name) + service_metric(&suite->workers[1], name);
}

static double restored(struct suite *suite) {
    return metric(suite, "fx_worker_restored_total");
}

static double resubmitted(struct suite *suite) {
    return service_metric(&suite->gateways[0], "fx_gateway_resubmitted_total");
}

static double admitted(struct suite *suite) {
    return service_metric(&suite->schedulers[0], "fx_scheduler_admitted_total") +
           service_metric(&suite->schedulers[1], "fx_scheduler_admitted_total");
}

/* From here on no answer ends, however fast the machine. */
static void workers_freeze(struct suite *suite) {
    for (uint32_t i = 0; i < suite->opts.workers; i++)
        process_signal(&suite->workers[i].process, SIGSTOP);
}

static void workers_kill(struct suite *suite) {
    for (uint32_t i = 0; i < suite->opts.workers; i++) {
        process_signal(&suite->workers[i].process, SIGKILL);
        assert_true(process_wait(&suite->workers[i].process, SETTLE_MS));
        suite->workers[i].killed = true;
    }
}

static void workers_start(struct suite *suite) {
    for (uint32_t i = 0; i < suite->opts.workers; i++)
        suite_service_start(suite, &suite->workers[i]);
}

static void play(struct suite *suite, const struct round *round) {
    auto_herd longs = {0}, briefs = {0}, shorts = {0};
    herd_await_services(suite);
    record(suite);
    mode_set(suite, round->mode);
    uint32_t before = logs_finished(suite);
    herd_send(&longs, suite, 0, LONGS, LONG);
    herd_begun(&longs);
    off_t size = aof_size(suite) - round->within;
    uint64_t end_ms = fx_clock_ms() + TAIL_MS;
    herd_send(&shorts, suite, FIRST_SHORT, SHORTS, SHORT);
    herd_rest(&shorts);
    if (round->workers) workers_freeze(suite);
    double submitted = admitted(suite);
    herd_send(&briefs, suite, FIRST_BRIEF, BRIEFS, BRIEF);
    WAIT_FOR(admitted(suite) > submitted + BRIEFS - 0.5, SETTLE_MS, "not all are admitted");
    while (fx_clock_ms() < end_ms)
        (void)usleep(1000);
    redis_fixture_kill(&suite->redis);
    if (round->workers) workers_kill(suite);
    if (round->cut) aof_cut(suite, size);
    (void)usleep(AWAY_MS * 1000);
    redis_fixture_restart(&suite->redis, WORDS("--appendfsync", round->mode));
    if (round->workers) workers_start(suite);
    herd_rest(&longs);
    herd_rest(&briefs);
    herd_equal(&longs, &long_want);
    herd_equal(&briefs, &brief_want);
    herd_equal(&shorts, &short_want);
    herd_await_services(suite);
    check_nothing_left(suite);
    /* With the workers went those that had ended, and whose clients have their answer. */
    uint32_t after = before + LONGS + (round->workers ? 0 : BRIEFS + SHORTS);
    WAIT_FOR(logs_finished(suite) >= after, SETTLE_MS, "%u logs are whole, not %u",
             logs_finished(suite), after);
    print_message("so far restored %.0f, gaps %.0f, submitted again %.0f\n", restored(suite),
                  metric(suite, "fx_worker_gaps_total"), resubmitted(suite));
}

static void kill_9(void **state) {
    double before = restored(*state);
    play(*state, &(struct round){.mode = "always"});
    assert_true(restored(*state) - before < 0.5); /* what was acknowledged was there */
}

static void kill_9_and_the_last_second(void **state) {
    double before = restored(*state), gaps = metric(*state, "fx_worker_gaps_total");
    play(*state, &(struct round){.mode = "always", .cut = true});
    assert_true(restored(*state) > before);
    assert_true(metric(*state, "fx_worker_gaps_total") > gaps);
}

static void kill_9_and_the_last_second_in_mid_command(void **state) {
    play(*state, &(struct round){.mode = "always", .cut = true, .within = 5});
}

static void everysec(void **state) {
    double before = restored(*state);
    play(*state, &(struct round){.mode = "everysec", .cut = true, .within = 3});
    assert_true(restored(*state) > before);
}

static void everysec_and_all_workers(void **state) {
    double before = resubmitted(*state);
    play(*state, &(struct round){.mode = "everysec", .cut = true, .within = 7, .workers = true});
    assert_true(resubmitted(*state) > before);
}

/* Ended generations do not pile up in the workers. */
static void kept_are_let_go(void **state) {
    struct suite *suite = *state;
    for (uint32_t i = 0; i < suite->opts.workers; i++)
        WAIT_FOR(service_metric(&suite->workers[i], "fx_worker_kept") < 0.5, SETTLE_MS,
                 "worker %u keeps what is safe", i);
}

static void no_redis(void **state) {
    struct suite *suite = *state;
    redis_fixture_kill(&suite->redis);
    WAIT_FOR(service_metric(&suite->gateways[0], "fx_gateway_redis_up") < 0.5, SETTLE_MS,
             "the gateway does not notice");
    char retry[16] = "";
    auto_answer answer =
        suite_request(suite, "POST", "/v1/completions", suite_prompt("It was", NULL));
    assert_int_equal(answer.status, 503);
    assert_true(http_header(&answer.conn, "retry-after", retry, sizeof retry));
    assert_int_equal(service_get(&suite->gateways[0], "/readyz"), 200);
    assert_int_equal(service_get(&suite->schedulers[0], "/readyz"), 503);
    assert_int_equal(service_get(&suite->workers[0], "/readyz"), 503);
    for (uint32_t i = 0; suite_service(suite, i); i++)
        assert_int_equal(service_get(suite_service(suite, i), "/livez"), 200);
    redis_fixture_restart(&suite->redis, NULL);
    herd_await_services(suite);
    free(suite_complete(suite, "It was", NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kill_9),
        cmocka_unit_test(kill_9_and_the_last_second),
        cmocka_unit_test(kill_9_and_the_last_second_in_mid_command),
        cmocka_unit_test(everysec),
        cmocka_unit_test(everysec_and_all_workers),
        cmocka_unit_test(kept_are_let_go),
        cmocka_unit_test(no_redis),
    };
    int failed = suite_main("redis_loss", tests, FX_TEST_COUNT(tests),
                            &(struct suite_opts){.workers = 2, .schedulers = 2});
    herd_close(&long_want);
    herd_close(&brief_want);
    herd_close(&short_want);
    return failed;
}
