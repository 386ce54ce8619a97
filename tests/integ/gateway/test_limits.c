/* Rate limits at one gateway: what is charged, what comes back, what the answers say. */
#include "tests/integ/gateway/limit_answers.h"

enum { RPM = 5, TPM = 100, ROOM = 2 /* tokens that come back as the test runs */ };

static struct stage *limited(void **state, unsigned rpm, unsigned tpm, unsigned streams) {
    struct stage *stage = *state;
    stage->key_limits.requests = rpm;
    stage->key_limits.tokens = tpm;
    stage->key_limits.streams = streams;
    return stage;
}

/* What a look tells; it spends nothing. */
static void assert_left(const struct stage *stage, unsigned long requests, unsigned long tokens) {
    char *answer = stage_get(stage, "/v1/models", "Authorization: Bearer " STAGE_KEY "\r\n");
    assert_int_equal(wire_status(answer), 200);
    assert_six_headers(answer);
    assert_int_equal(header_number(answer, "x-ratelimit-remaining-requests"), requests);
    assert_in_range(header_number(answer, "x-ratelimit-remaining-tokens"), tokens, tokens + ROOM);
    free(answer);
}

static void test_charged(void **state) {
    struct stage *stage = limited(state, RPM, TPM, 0);
    char *answer = stage_ask(stage, "/v1/completions", LIMIT_ASK(",\"max_tokens\":50"));
    assert_int_equal(wire_status(answer), 200); /* Hello: five tokens */
    assert_six_headers(answer);
    assert_int_equal(header_number(answer, "x-ratelimit-limit-requests"), RPM);
    assert_int_equal(header_number(answer, "x-ratelimit-remaining-requests"), RPM - 1);
    assert_int_equal(header_number(answer, "x-ratelimit-limit-tokens"), TPM);
    assert_int_equal(header_number(answer, "x-ratelimit-remaining-tokens"), TPM - 52);
    assert_in_range(header_duration(answer, "x-ratelimit-reset-requests"), 11000, 12000);
    assert_in_range(header_duration(answer, "x-ratelimit-reset-tokens"), 31000, 32000);
    free(answer);
    assert_left(stage, RPM - 1, TPM - LIMIT_PROMPT_TOKENS - 5);
    answer = stage_ask(stage, "/v1/completions", LIMIT_ASK(",\"max_tokens\":50,\"stream\":true"));
    assert_six_headers(answer);
    assert_int_equal(header_number(answer, "x-ratelimit-remaining-requests"), RPM - 2);
    free(answer);
    assert_left(stage, RPM - 2, TPM - 2 * (LIMIT_PROMPT_TOKENS + 5));
}

/* Answers that spend nothing carry the headers all the same. */
static void test_errors_are_free(void **state) {
    static const struct {
        const char *path, *body;
        unsigned status;
    } rows[] = {
        {"/v1/completions", "{",                                                400},
        {"/v1/completions", LIMIT_ASK(",\"temperature\":9"),                    400},
        {"/v1/completions", LIMIT_ASK(",\"n\":0"),                              400},
        {"/v1/completions", "{\"model\":\"nobody\",\"prompt\":[65]}",           404},
        {"/v1/completions", "{\"model\":\"" STAGE_MODEL "\",\"prompt\":[999]}", 400},
    };
    struct stage *stage = limited(state, RPM, TPM, 1);
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        char *answer = stage_ask(stage, rows[i].path, rows[i].body);
        assert_int_equal(wire_status(answer), rows[i].status);
        assert_six_headers(answer);
        free(answer);
    }
    char *answer = stage_get(stage, "/v1/models/nobody", "Authorization: Bearer " STAGE_KEY "\r\n");
    assert_int_equal(wire_status(answer), 404);
    assert_six_headers(answer);
    free(answer);
    assert_left(stage, RPM, TPM);
    assert_int_equal(stage->submitted, 0);
}

static void test_no_limit(void **state) {
    struct stage *stage = limited(state, 0, 0, 0);
    char value[64];
    for (int i = 0; i < 20; i++) {
        char *answer = stage_ask(stage, "/v1/completions", LIMIT_ASK(""));
        assert_int_equal(wire_status(answer), 200);
        assert_false(stage_header(answer, "x-ratelimit-limit-requests", value));
        free(answer);
    }
}

/* A key with one limit is told of six, the others as large as can be. */
static void test_one_limit(void **state) {
    struct stage *stage = limited(state, 0, 0, 3);
    char *answer = stage_ask(stage, "/v1/completions", LIMIT_ASK(""));
    assert_six_headers(answer);
    assert_int_equal(header_number(answer, "x-ratelimit-limit-requests"), GW_LIMIT_NONE);
    assert_int_equal(header_number(answer, "x-ratelimit-remaining-tokens"), GW_LIMIT_NONE);
    assert_int_equal(header_duration(answer, "x-ratelimit-reset-tokens"), 0);
    free(answer);
}

static void test_never(void **state) {
    struct stage *stage = limited(state, RPM, 2, 0); /* two of prompt leave none for an answer */
    char value[64], *answer = stage_ask(stage, "/v1/completions", LIMIT_ASK(""));
    assert_limited(answer);
    assert_int_equal(header_number(answer, "retry-after"), 60);
    assert_true(stage_header(answer, "x-should-retry", value));
    assert_string_equal(value, "false");
    assert_non_null(strstr(answer, "larger than what this key has: 2 tokens a minute"));
    free(answer);
    assert_left(stage, RPM, 2);
}

/* A ceiling past a minute's tokens is lowered: the answer ends there. */
static void test_ceiling(void **state) {
    struct stage *stage = limited(state, 0, 40, 0);
    stage_say(stage, (struct stage_script){.bytes = NULL, .finish = FX_FINISH_STOP});
    char *answer = stage_ask(stage, "/v1/completions", LIMIT_ASK(",\"max_tokens\":200"));
    assert_int_equal(wire_status(answer), 200);
    assert_non_null(strstr(answer, "\"finish_reason\":\"length\""));
    assert_non_null(strstr(answer, "\"completion_tokens\":38"));
    free(answer);
    answer = stage_ask(stage, "/v1/completions", LIMIT_ASK(",\"max_tokens\":30"));
    assert_limited(answer);
    assert_true(header_number(answer, "retry-after") > 30);
    assert_null(strstr(answer, "x-should-retry"));
    assert_non_null(strstr(answer, "this key has 40 tokens a minute"));
    free(answer);
}

/* The tenant's limits hold too, and are named. */
static void test_tenant(void **state) {
    struct stage *stage = limited(state, RPM, 0, 0);
    stage->tenant_limits.requests = 1;
    char *answer = stage_ask(stage, "/v1/completions", LIMIT_ASK(""));
    assert_int_equal(wire_status(answer), 200);
    assert_int_equal(header_number(answer, "x-ratelimit-limit-requests"), 1);
    free(answer);
    answer = stage_ask(stage, "/v1/completions", LIMIT_ASK(""));
    assert_limited(answer);
    assert_non_null(strstr(answer, "this tenant has 1 requests a minute"));
    free(answer);
}

/* -- what returns -- */

static void wait_left(const struct stage *stage, unsigned long tokens) {
    for (int i = 0; i < 200; i++, usleep(10000)) {
        char *answer = stage_get(stage, "/v1/models", "Authorization: Bearer " STAGE_KEY "\r\n");
        unsigned long left = header_number(answer, "x-ratelimit-remaining-tokens");
        free(answer);
        if (left >= tokens) return;
    }
    fail_msg("%lu tokens do not come back", tokens);
}

/* The client leaves: charged for what was made, the rest returns at once. */
static void test_cancel(void **state) {
    struct stage *stage = limited(state, RPM, TPM, 1);
    bool closed;
    stage_say(stage, (struct stage_script){.every_ms = 20, .finish = FX_FINISH_STOP});
    int fd = stage_connect(stage);
    stage_post(fd, "/v1/completions", LIMIT_ASK(",\"max_tokens\":90,\"stream\":true"));
    free(wire_read(fd, "\"n\":3}", &closed));
    assert_left(stage, RPM - 1, TPM - LIMIT_PROMPT_TOKENS - 90);
    close(fd);
    assert_true(stage_wait(&stage->cancelled, 1));
    wait_left(stage, TPM - LIMIT_PROMPT_TOKENS - 20);
    char *answer = stage_ask(stage, "/v1/completions", LIMIT_ASK(",\"max_tokens\":1"));
    assert_int_equal(wire_status(answer), 200); /* its stream is free */
    assert_int_equal(header_number(answer, "x-ratelimit-remaining-requests"), RPM - 2);
    assert_true(header_number(answer, "x-ratelimit-remaining-tokens") < TPM - 5);
    free(answer);
}

/* Before the first token nothing but the request is charged, queued or not streamed. */
static void test_cancel_queued(void **state) {
    struct stage *stage = limited(state, RPM, TPM, 1);
    for (int i = 0; i < 2; i++) {
        stage->slots = 0;
        int fd = stage_connect(stage);
        stage_post(fd, "/v1/completions", i ? LIMIT_ASK(",\"stream\":true") : LIMIT_ASK(""));
        assert_true(stage_wait(&stage->submitted, i + 1));
        usleep(50000);
        close(fd);
        assert_true(stage_wait(&stage->cancelled, i + 1));
        wait_left(stage, TPM);
        assert_left(stage, (unsigned long)(RPM - 1 - i), TPM);
    }
}

/* Our failures cost nothing. */
static void test_failures(void **state) {
    struct stage *stage = limited(state, RPM, TPM, 1);
    stage->submit_code = FX_RESOURCE_EXHAUSTED;
    char *answer = stage_ask(stage, "/v1/completions", LIMIT_ASK(""));
    assert_int_equal(wire_status(answer), 429);
    assert_non_null(strstr(answer, "queue_full"));
    assert_six_headers(answer);
    free(answer);
    wait_left(stage, TPM);
    assert_left(stage, RPM, TPM);
    stage->submit_code = FX_OK;
    stage_say(stage, (struct stage_script){
                         .bytes = "", .finish = FX_FINISH_ERROR, .detail = "told to fail"});
    answer = stage_ask(stage, "/v1/completions", LIMIT_ASK(""));
    assert_int_equal(wire_status(answer), 500);
    assert_six_headers(answer);
    free(answer);
    wait_left(stage, TPM);
    assert_left(stage, RPM, TPM);
}

/* -- the ledger's Redis is away -- */

static void test_away(void **state) {
    struct stage *stage = limited(state, RPM, TPM, 1);
    struct redis_fixture ledger;
    redis_fixture_start(&ledger, NULL);
    stage_gateway_close(stage);
    stage->config.redis_ledger_url = ledger.url;
    stage_gateway_open(stage);
    for (int i = 0; i < 500 && stage->gateway->metrics.limit_errors == 0; i++, usleep(10000)) {
        char *ready = stage_ask(stage, "/v1/completions", LIMIT_ASK(""));
        unsigned status = wire_status(ready);
        free(ready);
        if (status == 200) break;
    }
    redis_fixture_kill(&ledger);
    usleep(100000);
    char *answer = stage_ask(stage, "/v1/completions", LIMIT_ASK(""));
    assert_int_equal(wire_status(answer), 503);
    assert_non_null(strstr(answer, "rate limits can't be checked"));
    assert_in_range(header_number(answer, "retry-after"), 1, 60);
    free(answer);
    limited(state, 0, 0, 0); /* who has none does not need it */
    answer = stage_ask(stage, "/v1/completions", LIMIT_ASK(""));
    assert_int_equal(wire_status(answer), 200);
    free(answer);
    stage_gateway_close(stage);
    redis_fixture_stop(&ledger);
}

#define STAGED(test) cmocka_unit_test_setup_teardown(test, stage_setup, stage_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(test_charged),       STAGED(test_errors_are_free),
        STAGED(test_no_limit),      STAGED(test_one_limit),
        STAGED(test_never),         STAGED(test_ceiling),
        STAGED(test_tenant),        STAGED(test_cancel),
        STAGED(test_cancel_queued), STAGED(test_failures),
        STAGED(test_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
