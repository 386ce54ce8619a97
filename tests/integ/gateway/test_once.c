/* Requests with an Idempotency-Key whose clients leave, in whatever phase, or come at once. */
#include "tests/integ/gateway/stage.h"
#include "common/base/clock.h"

#define CHAT(more)                                                                                 \
    "{\"model\":\"" STAGE_MODEL "\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]" more "}"
#define STREAM ",\"stream\":true"
/* Twenty log probabilities a token: a kilobyte and more. */
#define BULKY CHAT(STREAM ",\"logprobs\":true,\"top_logprobs\":20,\"max_tokens\":240")

static const struct stage_script digits = {"0123456789", 10, 0, 40, 1, FX_FINISH_STOP, NULL};

static bool wait_for(atomic_ullong *counter, unsigned long long want) {
    for (int i = 0; i < 10000 && *counter != want; i++)
        usleep(1000);
    return *counter == want;
}

/* Until the scheduler is asked once more than before. */
static int posted_and_held(struct stage *stage, const char *key, const char *json) {
    int fd = stage_connect(stage), calls = stage->submit_calls;
    stage->hold_submits = 1;
    stage_post_once(fd, key, json);
    assert_true(stage_wait(&stage->submit_calls, calls + 1));
    return fd;
}

static void assert_has_all(struct stage *stage, int fd) {
    bool closed;
    char *answer = wire_read(fd, NULL, &closed);
    if (!strstr(answer, "\"content\":\"0123456789\"")) fail_msg("%s", answer);
    free(answer);
    close(fd);
    assert_int_equal(stage->cancelled, 0);
}

/* It is cut for not reading; the answer goes on without it, and the gateway too. */
static void test_cut(void **state) {
    struct stage *stage = *state;
    stage_gateway_close(stage);
    stage->config.unread_bytes = 8192;
    stage->config.unread_ms_max = 300;
    stage_gateway_open(stage);
    struct gw_metrics *metrics = &stage->gateway->metrics;
    stage_say(stage, (struct stage_script){NULL, 0, 0, 4, 1, FX_FINISH_LENGTH, NULL});
    int fd = stage_connect_narrow(stage);
    stage_post_once(fd, "cut", BULKY);
    assert_true(wait_for(&metrics->unread, 1));
    assert_true(wait_for(&metrics->unread, 0));
    assert_true(wait_for(&metrics->running, 0));
    assert_int_equal(metrics->finished_length, 1);
    assert_int_equal(stage->cancelled, 0);
    close(fd);
}

/* Before a scheduler has answered: the answer is there for who comes back. */
static void test_leaves_before_it_begins(void **state) {
    struct stage *stage = *state;
    stage_say(stage, digits);
    int fd = posted_and_held(stage, "early", CHAT(""));
    close(fd);
    usleep(100000);
    stage->hold_submits = 0;
    assert_true(stage_wait(&stage->running, 1));
    int pulled = stage->pulled;
    fd = stage_connect(stage);
    stage_post_once(fd, "early", CHAT(""));
    assert_has_all(stage, fd);
    assert_int_equal(stage->pulled, pulled);
    assert_true(wait_for(&stage->gateway->metrics.running, 0));
}

/* The second of two that share an answer leaves: the first one's goes on. */
static void test_second_leaves(void **state) {
    struct stage *stage = *state;
    stage_say(stage, digits);
    int first = stage_connect(stage);
    stage_post_once(first, "shared", CHAT(""));
    assert_true(stage_wait(&stage->running, 1));
    int second = posted_and_held(stage, "shared", CHAT(""));
    close(second);
    usleep(100000);
    stage->hold_submits = 0;
    assert_has_all(stage, first);
    assert_true(wait_for(&stage->gateway->metrics.running, 0));
}

/* Nobody follows what another visit follows already: each would cost a place. */
static void test_followers_leave(void **state) {
    enum { TIMES = 20 };
    struct stage *stage = *state;
    bool closed;
    stage_say(stage, (struct stage_script){"0123456789", 10, 0, 200, 1, FX_FINISH_STOP, NULL});
    int first = stage_connect(stage);
    stage_post_once(first, "many", CHAT(""));
    assert_true(stage_wait(&stage->running, 1));
    for (int i = 0; i < TIMES; i++) {
        int fd = stage_connect(stage);
        stage_post_once(fd, "many", CHAT(""));
        close(fd);
        fd = stage_connect(stage);
        stage_post_once(fd, "many", CHAT(""));
        usleep(10000);
        close(fd);
    }
    assert_true(wait_for(&stage->gateway->metrics.running, 1));
    assert_int_equal(stage->running, 1); /* the worker has it still */
    char *answer = wire_read(first, NULL, &closed);
    assert_non_null(strstr(answer, "\"content\":\"0123456789\""));
    free(answer);
    close(first);
}

/* What failed is tried anew once, by however many come for it. */
static void test_two_come_again(void **state) {
    struct stage *stage = *state;
    char *failed, *answers[2], *ids[2];
    int fds[2];
    bool closed;
    stage_say(stage, (struct stage_script){"He", 2, 0, 2, 1, FX_FINISH_ERROR, "out of luck"});
    fds[0] = stage_connect(stage);
    stage_post_once(fds[0], "again", CHAT(""));
    failed = wire_read(fds[0], NULL, &closed);
    assert_int_equal(wire_status(failed), 500);
    free(failed);
    close(fds[0]);
    stage_say(stage, digits);
    int pulled = stage->pulled;
    for (int i = 0; i < 2; i++)
        fds[i] = stage_connect(stage);
    for (int i = 0; i < 2; i++)
        stage_post_once(fds[i], "again", CHAT(""));
    for (int i = 0; i < 2; i++) {
        answers[i] = wire_read(fds[i], NULL, &closed);
        ids[i] = strstr(answers[i], "\"id\":\"chatcmpl-");
        assert_non_null(ids[i]);
        close(fds[i]);
    }
    assert_memory_equal(ids[0], ids[1], 50);
    assert_int_equal(stage->pulled, pulled + 1);
    free(answers[0]);
    free(answers[1]);
}

/* The second comes before a scheduler has the first: the key is charged for one request. */
static void test_charged_once(void **state) {
    struct stage *stage = *state;
    char left[64];
    stage->key_limits.tokens = 100; /* of which 3 are the prompt, 10 the answer */
    stage_say(stage, (struct stage_script){"0123456789", 10, 0, 5, 1, FX_FINISH_STOP, NULL});
    int first = posted_and_held(stage, "twice", CHAT(""));
    int second = stage_connect(stage);
    stage_post_once(second, "twice", CHAT(""));
    usleep(150000);
    stage->hold_submits = 0;
    assert_has_all(stage, first);
    assert_has_all(stage, second);
    char *answer = stage_get(stage, "/v1/models", "Authorization: Bearer " STAGE_KEY "\r\n");
    assert_true(stage_header(answer, "x-ratelimit-remaining-tokens", left));
    assert_in_range(strtoul(left, NULL, 10), 87, 93); /* some have come back meanwhile */
    free(answer);
}

/* The gateway is closed while it follows an answer for nobody: nothing is left of it. */
static void test_closed(void **state) {
    struct stage *stage = *state;
    stage_say(stage, digits);
    int fd = stage_connect(stage);
    stage_post_once(fd, "closed", CHAT(""));
    assert_true(stage_wait(&stage->running, 1));
    close(fd);
    usleep(100000);
    assert_int_equal(stage->gateway->metrics.running, 1);
    stage_gateway_close(stage);
    stage_gateway_open(stage);
    fd = stage_connect(stage);
    stage_post_once(fd, "closed", CHAT(""));
    assert_has_all(stage, fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cut, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_leaves_before_it_begins, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_second_leaves, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_followers_leave, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_two_come_again, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_charged_once, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_closed, stage_setup, stage_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
