/* A client hangs up while its generation waits for a slot, in the prefill or in decode, streamed or
 * not: within 200 ms, or behind the step that runs, its slot and KV blocks are free, its entry of
 * the queue is acknowledged, and no more tokens are made. */
#include <hiredis/hiredis.h>
#include "tests/e2e/suite.h"

#define PROMPT "It is a truth universally acknowledged,"
enum {
    LONG = 900, /* tokens of an answer, or of a prompt: seconds */
    TRIES = 5,
    FREE_MS = 200, /* the median: the machine may stall once, the code may not be slow */
    STEP_MS = 10000,
    GAVE_UP_MS = 5000,
    STILL_MS = 100,
};

enum phase { QUEUED, PREFILL, DECODE };

static const struct row {
    const char *name;
    enum phase phase;
    bool stream;
} rows[] = {
    {"queued, streamed",  QUEUED,  true },
    {"queued, whole",     QUEUED,  false},
    {"prefill, streamed", PREFILL, true },
    {"prefill, whole",    PREFILL, false},
    {"decode, streamed",  DECODE,  true },
    {"decode, whole",     DECODE,  false},
};

struct trying {
    struct suite *suite;
    struct service *worker;
    redisContext *redis;
    double decoded, taken; /* before it */
};

static double metric(const struct trying *trying, const char *name) {
    return service_metric(trying->worker, name);
}

static double decoded(const struct trying *trying) {
    return metric(trying, "fx_worker_tokens_decoded_total");
}

static long long elements(redisContext *redis, const char *command) {
    redisReply *reply = redisCommand(redis, command);
    if (!reply || reply->type == REDIS_REPLY_ERROR) fail_msg("%s", reply ? reply->str : "Redis");
    long long count = (long long)reply->elements;
    freeReplyObject(reply);
    return count;
}

/* Delivered to the worker and not acknowledged. */
static long long pending(redisContext *redis) {
    redisReply *keys = redisCommand(redis, "KEYS fx:*:tasks");
    assert_true(keys && keys->elements == 1);
    redisReply *reply = redisCommand(redis, "XPENDING %s w", keys->element[0]->str);
    assert_true(reply && reply->type == REDIS_REPLY_ARRAY);
    long long count = reply->element[0]->integer;
    freeReplyObject(reply);
    freeReplyObject(keys);
    return count;
}

static bool is_waiting(redisContext *redis) {
    return elements(redis, "KEYS fx:*:wait:*") > 0;
}

/* -- the request -- */

static json_t *body_of(const struct row *row) {
    char prompt[LONG + 1] = PROMPT;
    if (row->phase == PREFILL) memset(prompt, 'x', LONG);
    return suite_prompt(prompt, json_pack("{s:i, s:b, s:b}", "max_tokens", LONG, "stream",
                                          row->stream, "ignore_eos", 1));
}

static void post(const struct trying *trying, const struct row *row, struct http_conn *conn) {
    char bearer[128];
    auto_json body = body_of(row);
    auto_text text = json_dumps(body, 0);
    (void)snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", trying->suite->key);
    const struct http_request request = {.method = "POST",
                                         .path = "/v1/completions",
                                         .headers = WORDS(bearer, "Content-Type: application/json"),
                                         .body = fx_span_str(text)};
    MUST(http_open(conn, trying->suite->gateways[0].port, &err));
    MUST(http_send(conn, &request, &err));
}

static void reach(const struct trying *trying, enum phase phase) {
    if (phase == QUEUED) {
        WAIT_FOR(is_waiting(trying->redis), STEP_MS, "it does not wait");
        return;
    }
    WAIT_FOR(metric(trying, "fx_worker_running") > 0, STEP_MS, "it does not run");
    if (phase == DECODE)
        WAIT_FOR(decoded(trying) >= trying->decoded + 3, STEP_MS, "it decodes nothing");
}

/* -- the end -- */

static bool is_gone(const struct trying *trying, enum phase phase) {
    return phase == QUEUED ? !is_waiting(trying->redis)
                           : worker_is_free(trying->worker) && !pending(trying->redis);
}

/* 0 when it was freed right behind the step that ran: how long a step takes is the machine's. */
static uint32_t freed_after(const struct trying *trying, enum phase phase) {
    uint64_t begin_ms = fx_clock_ms();
    double step = metric(trying, "fx_worker_steps_total");
    WAIT_FOR(is_gone(trying, phase), GAVE_UP_MS, "it stays");
    uint32_t took_ms = (uint32_t)(fx_clock_ms() - begin_ms);
    double steps = metric(trying, "fx_worker_steps_total") - step;
    print_message(" %u (%.0f)", took_ms, steps);
    return phase != QUEUED && steps <= 1 ? 0 : took_ms;
}

static uint32_t hang_up(const struct trying *trying, const struct row *row) {
    auto_http conn = {0};
    post(trying, row, &conn);
    reach(trying, row->phase);
    http_close(&conn);
    uint32_t took_ms = freed_after(trying, row->phase);
    if (row->phase == QUEUED) return took_ms;
    double made = decoded(trying);
    usleep(STILL_MS * 1000);
    assert_true(decoded(trying) == made);
    assert_int_equal(made > trying->decoded, row->phase == DECODE);
    return took_ms;
}

/* Behind one that holds the only slot; that one is the only one a worker ever took. */
static uint32_t hang_up_queued(const struct trying *trying, const struct row *row) {
    auto_stream first = {0};
    MUST(stream_open(&first, trying->suite, PROMPT, json_pack("{s:i}", "max_tokens", LONG), &err));
    MUST(stream_until(&first, 1, &err));
    uint32_t took_ms = hang_up(trying, row);
    stream_close(&first);
    (void)freed_after(trying, DECODE);
    assert_true(metric(trying, "fx_worker_generations_taken_total") == trying->taken + 1);
    return took_ms;
}

static int by_size(const void *a, const void *b) {
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static void a_hang_up_frees_everything(void **state) {
    struct suite *suite = *state;
    struct trying trying = {.suite = suite, .worker = &suite->workers[0]};
    trying.redis = redisConnectUnix(suite->redis.socket);
    assert_true(trying.redis && !trying.redis->err);
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        uint32_t times_ms[TRIES];
        print_message("- %s: ms (steps) until free:", rows[i].name);
        for (uint32_t try = 0; try < TRIES; try++) {
            trying.decoded = decoded(&trying);
            trying.taken = metric(&trying, "fx_worker_generations_taken_total");
            times_ms[try] = (rows[i].phase == QUEUED ? hang_up_queued : hang_up)(&trying, &rows[i]);
        }
        print_message("\n");
        qsort(times_ms, TRIES, sizeof *times_ms, by_size);
        assert_in_range(times_ms[TRIES / 2], 0, FREE_MS);
    }
    redisFree(trying.redis);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_hang_up_frees_everything)};
    return suite_main("hang_up", tests, FX_TEST_COUNT(tests),
                      &(struct suite_opts){.worker_env = WORDS("FX_BACKEND=ref", /* slowly */
                                                               "FX_SLOTS_MAX=1")});
}
