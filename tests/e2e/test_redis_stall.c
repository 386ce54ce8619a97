/* The disk under Redis stalls for 5 s (an fdatasync, by slow_fsync.c) while 1,000 requests want in
 * and others run: none is lost, none is admitted twice, every text is exact, and no lease that
 * could not be renewed meanwhile is reclaimed. */
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <sys/resource.h>
#include "tests/e2e/herd.h"

enum {
    REQUESTS = 1000,
    PROMPTS = 10,
    TOKENS = 4,
    LONGS = 6,
    LONG = 900,
    STALL_MS = 5000,
    TRIES_MAX = 40,
    STEP_MS = 10000,
};

#define FINISHED "4" /* fractal.v1.GenerationState */

struct client {
    struct http_conn conn;
    bool done;
};
static struct client clients[REQUESTS];

static void prompt_of(uint32_t number, char out[48]) {
    (void)snprintf(out, 48, "Letter %u begins", number % PROMPTS);
}

static void ask(struct suite *suite, uint32_t number) {
    char bearer[128], prompt[48];
    prompt_of(number, prompt);
    auto_json body = suite_prompt(prompt, json_pack("{s:i}", "max_tokens", TOKENS));
    auto_text text = json_dumps(body, JSON_COMPACT);
    (void)snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", suite->key);
    const struct http_request request = {.method = "POST",
                                         .path = "/v1/completions",
                                         .headers = WORDS(bearer, "Content-Type: application/json"),
                                         .body = fx_span_str(text)};
    MUST(http_open(&clients[number].conn, suite->gateways[0].port, &err));
    MUST(http_send(&clients[number].conn, &request, &err));
}

static void ask_all(struct suite *suite) {
    for (uint32_t i = 0; i < REQUESTS; i++)
        if (!clients[i].done) ask(suite, i);
}

/* A refusal must say when to come again. */
static bool answered(struct client *client, const char *want) {
    const char *text = NULL;
    char retry[16];
    struct http_conn *conn = &client->conn;
    MUST(http_read_all(conn, SUITE_ANSWER_MS, &err));
    if (conn->status != 200) {
        if (conn->status != 503 && conn->status != 429)
            fail_msg("%u: %s", conn->status, conn->body.at);
        assert_true(http_header(conn, "retry-after", retry, sizeof retry));
        print_message("%u %s\n", conn->status, conn->body.at);
        return false;
    }
    auto_json json = json_loadb(conn->body.at, conn->body.len, 0, NULL);
    assert_int_equal(json_unpack(json, "{s:[{s:s}]}", "choices", "text", &text), 0);
    assert_string_equal(text, want);
    return true;
}

/* Those left over. */
static uint32_t answers_read(char *const want[PROMPTS]) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < REQUESTS; i++) {
        struct client *client = &clients[i];
        if (client->done) continue;
        client->done = answered(client, want[i % PROMPTS]);
        http_close(&client->conn);
        left += !client->done;
    }
    return left;
}

/* Generations of Redis that ended as they should, and how many there are in all. */
static uint32_t finished(const struct suite *suite) {
    redisContext *redis = redisConnectUnix(suite->redis.socket);
    redisReply *keys = redisCommand(redis, "KEYS fx:{m*}:gen:*");
    uint32_t count = 0;
    assert_non_null(keys);
    for (size_t i = 0; i < keys->elements; i++) {
        redisReply *state = redisCommand(redis, "HGET %s state", keys->element[i]->str);
        count += state->str && strcmp(state->str, FINISHED) == 0;
        freeReplyObject(state);
    }
    freeReplyObject(keys);
    redisFree(redis);
    return count;
}

static double both(struct suite *suite, const char *name) {
    return service_metric(&suite->schedulers[0], name) +
           service_metric(&suite->schedulers[1], name);
}

static void restart_with_shim(struct suite *suite, const char *file) {
    assert_int_equal(redis_fixture_end(&suite->redis), 0);
    assert_int_equal(setenv("LD_PRELOAD", FX_SLOW_FSYNC_SO, 1), 0);
    assert_int_equal(setenv("FX_SLOW_FSYNC", file, 1), 0);
    redis_fixture_restart(&suite->redis, NULL);
    assert_int_equal(unsetenv("LD_PRELOAD"), 0);
    assert_int_equal(unsetenv("FX_SLOW_FSYNC"), 0);
    herd_await_services(suite);
}

static void stall_begin(const char *file) {
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    WAIT_FOR(access(file, F_OK) != 0, STEP_MS, "Redis writes nothing");
}

static void a_stall_of_5_s(void **state) {
    struct suite *suite = *state;
    auto_herd want = {0}, got = {0};
    char *texts[PROMPTS], file[128];
    (void)snprintf(file, sizeof file, "%s/stall", suite->folder);
    restart_with_shim(suite, file);
    herd_send(&want, suite, 0, LONGS, LONG);
    herd_rest(&want);
    for (uint32_t i = 0; i < PROMPTS; i++) {
        char prompt[48];
        prompt_of(i, prompt);
        texts[i] = suite_complete(suite, prompt, json_pack("{s:i}", "max_tokens", TOKENS));
    }
    uint32_t before = finished(suite), left = REQUESTS, refused = 0, tries = 0;
    double reclaimed = both(suite, "fx_scheduler_reclaimed_total");
    herd_send(&got, suite, 0, LONGS, LONG);
    herd_begun(&got);
    uint64_t begin_ms = fx_clock_ms();
    stall_begin(file);
    ask_all(suite);
    assert_true(fx_clock_ms() - begin_ms < STALL_MS); /* all of them wait for it */
    while ((left = answers_read(texts)) > 0) {
        print_message("%u are asked again\n", left);
        assert_true(++tries < TRIES_MAX);
        refused += left;
        (void)sleep(1);
        ask_all(suite);
    }
    herd_rest(&got);
    print_message("%u answers after %llu ms\n", REQUESTS,
                  (unsigned long long)(fx_clock_ms() - begin_ms));
    herd_equal(&got, &want);
    assert_true(both(suite, "fx_scheduler_reclaimed_total") - reclaimed < 0.5);
    /* One whose client was told to come again may have ended before it was cancelled. */
    uint32_t wanted = before + REQUESTS + LONGS;
    assert_in_range(finished(suite), wanted, wanted + refused);
    for (uint32_t i = 0; i < PROMPTS; i++)
        free(texts[i]);
}

int main(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_stall_of_5_s)};
    return suite_main("redis_stall", tests, FX_TEST_COUNT(tests),
                      &(struct suite_opts){.workers = 2, .schedulers = 2});
}
