/* Workers and schedulers that die or freeze: nothing is lost, repeated or left behind. */
#include <hiredis/hiredis.h>
#include <signal.h>
#include "common/queue/queue.h"
#include "tests/e2e/monitor.h"

#define PROMPT "It is a truth universally acknowledged,"
enum {
    TOKENS = 240,
    STEP_MS = 10000,
    GENERATION_DIGITS = 2 * FX_GEN_ID_BYTES,
    MODEL_DIGITS = 8,
};

static json_t *tokens(int count) {
    return json_pack("{s:i}", "max_tokens", count);
}

/* -- what the workers are at -- */

static struct service *busy_find(struct suite *suite) {
    for (uint32_t i = 0; i < SUITE_MANY; i++) {
        struct service *worker = &suite->workers[i];
        if (!process_runs(&worker->process)) continue;
        auto_text now = service_metrics(worker);
        if (metric_of(now, "fx_worker_slots_free") < metric_of(now, "fx_worker_slots"))
            return worker;
    }
    return NULL;
}

/* The worker that runs the one generation there is. */
static struct service *busy_worker(struct suite *suite) {
    struct service *worker;
    WAIT_FOR((worker = busy_find(suite)) != NULL, STEP_MS, "no worker is busy");
    return worker;
}

/* -- processes that die -- */

static void assert_rest(struct stream *stream, const char *want) {
    MUST(stream_rest(stream, &err));
    assert_string_equal(stream->text.at, want);
}

static void kill_9(struct service *service) {
    process_signal(&service->process, SIGKILL);
    assert_true(process_wait(&service->process, STEP_MS));
    service->killed = true;
}

static void kill_9_of_a_worker_loses_nothing(void **state) {
    struct suite *suite = *state;
    auto_stream stream = {0};
    auto_text want = suite_complete(suite, PROMPT, tokens(TOKENS));
    MUST(stream_open(&stream, suite, PROMPT, tokens(TOKENS), &err));
    MUST(stream_until(&stream, 5, &err));
    struct service *worker = busy_worker(suite);
    kill_9(worker);
    assert_rest(&stream, want);
    suite_worker_start(suite, worker == &suite->workers[0] ? 0 : 1);
}

/* One of two schedulers in mid-stream; the other dispatches and reclaims. */
static void kill_9_of_a_scheduler_loses_nothing(void **state) {
    struct suite *suite = *state;
    auto_stream stream = {0};
    auto_text want = suite_complete(suite, PROMPT, tokens(TOKENS));
    MUST(stream_open(&stream, suite, PROMPT, tokens(TOKENS), &err));
    MUST(stream_until(&stream, 3, &err));
    kill_9(&suite->schedulers[0]);
    assert_rest(&stream, want);
    auto_text again = suite_complete(suite, PROMPT, tokens(TOKENS));
    assert_string_equal(again, want);
}

/* -- a worker that freezes and wakes -- */

static redisReply *ask(redisContext *redis, int count, const char **words) {
    redisReply *reply = redisCommandArgv(redis, count, words, NULL);
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", words[0], reply ? reply->str : redis->errstr);
    return reply;
}

static long long log_length(redisContext *redis, const char *log) {
    redisReply *reply = ask(redis, 2, (const char *[]){"XLEN", log});
    long long length = reply->integer;
    freeReplyObject(reply);
    return length;
}

/* The first worker's own call once more, with the next token: LEASE_LOST, and nothing written. */
static void check_refused(redisContext *redis, struct monitor *monitor,
                          const struct monitor_log *log) {
    static struct monitor_words words;
    const char *again[MONITOR_WORDS_MAX];
    uint32_t call = 0;
    char first[16];
    while (!log->appends[call].count)
        call++;
    monitor_words(monitor, log->appends[call].line, &words);
    uint32_t id = 3 + (uint32_t)strtoul(words.at[2], NULL, 10); /* epoch first lease hint token */
    assert_string_equal(words.at[id + 1], "1");
    (void)snprintf(first, sizeof first, "%u", TOKENS + 1);
    for (uint32_t i = 0; i < id + 5; i++)
        again[i] = words.at[i];
    again[id + 2] = first;
    again[id + 5] = "65";
    long long before = log_length(redis, words.at[4]);
    redisReply *reply = ask(redis, (int)id + 6, again);
    assert_int_equal(reply->element[0]->integer, FX_QUEUE_LEASE_LOST);
    freeReplyObject(reply);
    assert_int_equal(log_length(redis, words.at[4]), before);
}

static void assert_entry(const redisReply *entry, uint32_t n, uint32_t part) {
    char want[MONITOR_ENTRY_MAX];
    (void)snprintf(want, sizeof want, "%u-%u", n, part);
    assert_string_equal(entry->element[0]->str, want);
}

/* 1-0 to TOKENS-0 and the finish; each written once, in order, by one writer an epoch. */
static void check_log(redisContext *redis, const char *generation, const struct monitor_log *log) {
    char pattern[64];
    uint32_t last = 0;
    (void)snprintf(pattern, sizeof pattern, "fx:*:log:%s", generation);
    redisReply *keys = ask(redis, 2, (const char *[]){"KEYS", pattern});
    assert_int_equal(keys->elements, 1);
    redisReply *entries =
        ask(redis, 4, (const char *[]){"XRANGE", keys->element[0]->str, "-", "+"});
    assert_int_equal(entries->elements, TOKENS + 1);
    assert_int_equal(log->entry_count, TOKENS);
    for (uint32_t n = 1; n <= TOKENS; n++) {
        assert_entry(entries->element[n - 1], n, 0);
        assert_string_equal(log->entries[n - 1], entries->element[n - 1]->element[0]->str);
    }
    assert_entry(entries->element[TOKENS], TOKENS, 1);
    for (uint32_t i = 0; i < log->append_count; i++) {
        const struct monitor_append *append = &log->appends[i];
        if (!append->count) continue;
        assert_in_range(append->epoch, last ? last : 1, last ? 2 : 1);
        last = append->epoch;
    }
    assert_int_equal(last, 2);
    freeReplyObject(entries);
    freeReplyObject(keys);
}

static bool all_seen(struct monitor *monitor, const char *generation, struct monitor_log *log) {
    monitor_read(monitor, generation, log);
    return log->entry_count == TOKENS;
}

static const char leases_lost[] = "fx_worker_leases_lost_total";

/* It wakes when another has finished its work: what it still sends is refused. */
static void wakes(struct service *frozen, double lost_before, struct monitor *monitor,
                  const char *generation) {
    static struct monitor_log log;
    WAIT_FOR(all_seen(monitor, generation, &log), STEP_MS, "the monitor misses tokens");
    uint32_t before = log.append_count;
    process_signal(&frozen->process, SIGCONT);
    WAIT_FOR(worker_is_free(frozen), STEP_MS, "the woken worker holds on");
    WAIT_FOR(service_metric(frozen, leases_lost) > lost_before, STEP_MS,
             "it was not told that its lease is lost");
    monitor_read(monitor, generation, &log);
    print_message("%u late appends, all refused\n", log.append_count - before);
    for (uint32_t i = before; i < log.append_count; i++)
        assert_true(log.appends[i].epoch == 1 && !log.appends[i].count);
}

/* A completion's id: the generation's, then the model's number. */
static void generation_of(const struct stream *stream, char out[GENERATION_DIGITS + 1]) {
    const char *at = strchr(stream->generation, '-');
    assert_non_null(at);
    assert_int_equal(strspn(at + 1, "0123456789abcdef"), GENERATION_DIGITS + MODEL_DIGITS);
    (void)snprintf(out, GENERATION_DIGITS + 1, "%s", at + 1);
}

static void a_worker_that_wakes_up_can_append_nothing(void **state) {
    static struct monitor_log log;
    struct suite *suite = *state;
    auto_stream stream = {0};
    char generation[GENERATION_DIGITS + 1];
    auto_text want = suite_complete(suite, PROMPT, tokens(TOKENS));
    struct monitor *monitor = monitor_start(suite);
    redisContext *redis = redisConnectUnix(suite->redis.socket);
    assert_true(redis && !redis->err);
    MUST(stream_open(&stream, suite, PROMPT, tokens(TOKENS), &err));
    MUST(stream_until(&stream, 5, &err));
    struct service *frozen = busy_worker(suite);
    double lost_before = service_metric(frozen, leases_lost);
    process_signal(&frozen->process, SIGSTOP);
    assert_rest(&stream, want);
    generation_of(&stream, generation);
    wakes(frozen, lost_before, monitor, generation);
    monitor_read(monitor, generation, &log);
    check_refused(redis, monitor, &log);
    monitor_read(monitor, generation, &log);
    check_log(redis, generation, &log);
    monitor_stop(monitor);
    redisFree(redis);
    auto_text more = suite_complete(suite, "and then", tokens(4)); /* both serve on */
    assert_true(*more != 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kill_9_of_a_worker_loses_nothing),
        cmocka_unit_test(a_worker_that_wakes_up_can_append_nothing),
        cmocka_unit_test(kill_9_of_a_scheduler_loses_nothing),
    };
    return suite_main("faults", tests, FX_TEST_COUNT(tests),
                      &(struct suite_opts){.workers = 2,
                                           .schedulers = 2,
                                           .worker_env = WORDS("FX_BACKEND=ref"), /* slowly */
                                           .env = WORDS("FX_LEASE_MS=1500", "FX_RENEW_MS=400")});
}
