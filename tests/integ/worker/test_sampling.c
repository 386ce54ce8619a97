#include "tests/integ/worker/fleet.h"
#include <signal.h>

/* Sampling parameters, stop strings and log probabilities through queue and worker. */

static const struct fx_bias biases[] = {
    {'e', -3  },
    {'q', 2.5F}
};
static const struct fx_sampling everything = {
    .top_k = 40,
    .top_p = 0.95F,
    .min_p = 0.01F,
    .choice = 3,
    .typical_p = 0.9F,
    .presence = 0.4F,
    .frequency = 0.2F,
    .repetition = 1.1F,
    .min_tokens = 20,
    .bias = biases,
    .bias_count = FX_TEST_COUNT(biases),
};

static struct fleet_ask ask_all(uint64_t seed) {
    struct fleet_ask ask = fleet_ask("It is a truth universally acknowledged", 80, 0.9F, seed);
    ask.more = everything;
    return ask;
}

/* What comes is what the engine itself makes of it, and a worker that dies half-way changes
 * nothing. */
static void test_everything(void **state) {
    (void)state;
    fleet_auto fleet = fleet_open(1, NULL);
    struct fleet_ask ask = ask_all(17), greedy = ask_all(1), eos = ask_all(2);
    greedy.temperature = 0;
    eos.ignore_eos = true;
    struct fleet_ask *asks[] = {&ask, &greedy, &eos};
    for (size_t i = 0; i < FX_TEST_COUNT(asks); i++) {
        fleet_submit(fleet, asks[i]);
        fleet_wait(fleet, asks[i], 20000);
        fleet_expect(fleet, asks[i]);
    }
    assert_int_equal(eos.finish, FX_FINISH_LENGTH);
    fleet_worker_stop(fleet, 0);
}

/* Another choice of the same seed is another text. */
static void test_choices(void **state) {
    (void)state;
    fleet_auto fleet = fleet_open(1, NULL);
    struct fleet_ask asks[2] = {ask_all(5), ask_all(5)};
    asks[1].more.choice = 4;
    fleet_submit_all(fleet, asks, 2);
    for (size_t i = 0; i < 2; i++) {
        fleet_wait(fleet, &asks[i], 20000);
        fleet_expect(fleet, &asks[i]);
    }
    assert_memory_not_equal(asks[0].tokens, asks[1].tokens, 40 * sizeof(uint32_t));
}

/* How many tokens end behind the first place of `stop` in a text of one byte a token. */
static uint32_t found(const struct fleet_ask *ask, const char *stop, uint32_t from) {
    size_t len = strlen(stop);
    for (uint32_t at = from; at + len <= ask->count; at++) {
        size_t same = 0;
        while (same < len && ask->tokens[at + same] == (uint8_t)stop[same])
            same++;
        if (same == len) return at + (uint32_t)len;
    }
    return 0;
}

static void text_cut(const struct fleet_ask *ask, uint32_t from, uint32_t len, char *out) {
    for (uint32_t i = 0; i < len; i++)
        out[i] = (char)ask->tokens[from + i];
    out[len] = 0;
}

static void check_stopped(struct fleet *fleet, const struct fleet_ask *whole, struct fleet_ask *ask,
                          uint32_t want) {
    fleet_submit(fleet, ask);
    fleet_wait(fleet, ask, 20000);
    assert_int_equal(ask->finish, FX_FINISH_STOP);
    assert_int_equal(ask->count, want);
    assert_memory_equal(ask->tokens, whole->tokens, want * sizeof(uint32_t));
}

/* The log ends with the token that completes a stop string. */
static void test_stop(void **state) {
    (void)state;
    fleet_auto fleet = fleet_open(1, NULL);
    char stop[8];
    struct fleet_ask whole = fleet_ask("The ship sailed", 120, 0, 0);
    fleet_submit(fleet, &whole);
    fleet_wait(fleet, &whole, 20000);
    assert_int_equal(whole.count, 120);
    text_cut(&whole, 30, 4, stop);
    struct fleet_ask ask = fleet_ask("The ship sailed", 120, 0, 0);
    ask.stop[0] = "no such text";
    ask.stop[1] = stop;
    ask.stop_count = 2;
    check_stopped(fleet, &whole, &ask, found(&whole, stop, 0));

    /* what min_tokens asks for is not searched */
    struct fleet_ask later = fleet_ask("The ship sailed", 120, 0, 0);
    later.stop[0] = " ";
    later.stop_count = 1;
    later.more.min_tokens = 50;
    check_stopped(fleet, &whole, &later, found(&whole, " ", 50));

    (void)fleet_idle(fleet, 0);
    fleet_worker_stop(fleet, 0);
}

/* The worker checks what no gateway lets through. */
static void test_refused(void **state) {
    (void)state;
    fleet_auto fleet = fleet_open(1, NULL);
    const struct fx_bias past = {260, 1}, heavy = {5, 101};
    struct fleet_ask asks[6];
    const char *said[] = {"logit_bias", "logit_bias", "stop", "stop", "presence", "repetition"};
    for (size_t i = 0; i < FX_TEST_COUNT(asks); i++)
        asks[i] = fleet_ask("abc", 10, 1, 0);
    asks[0].more = (struct fx_sampling){.bias = &past, .bias_count = 1};
    asks[1].more = (struct fx_sampling){.bias = &heavy, .bias_count = 1};
    asks[2].stop[0] = "";
    asks[3].stop[0] = "a";
    asks[2].stop_count = 1;
    asks[3].stop_count = 1;
    char long_stop[FX_STOP_BYTES_MAX + 2] = {0};
    memset(long_stop, 'a', FX_STOP_BYTES_MAX + 1);
    asks[3].stop[0] = long_stop;
    asks[4].more.presence = 3;
    asks[5].more.repetition = -1;
    for (size_t i = 0; i < FX_TEST_COUNT(asks); i++) {
        fleet_submit(fleet, &asks[i]);
        fleet_wait(fleet, &asks[i], 10000);
        assert_int_equal(asks[i].finish, FX_FINISH_ERROR);
        if (!strstr(asks[i].detail, said[i])) fail_msg("%zu: %s", i, asks[i].detail);
    }
    struct fleet_ask good = ask_all(4);
    fleet_submit(fleet, &good);
    fleet_wait(fleet, &good, 10000);
    fleet_expect(fleet, &good);
}

/* Log probabilities come with every token, the same bits that the engine tells, also when a second
 * worker goes on. */
static void test_logprobs(void **state) {
    (void)state;
    const char *const slow[] = {"FX_BACKEND=ref", "FX_LEASE_MS=1000", "FX_RENEW_MS=200", NULL};
    fleet_auto fleet = fleet_open(1, slow);
    static struct fleet_ask asks[3];
    for (uint32_t i = 0; i < FX_TEST_COUNT(asks); i++) {
        asks[i] = ask_all(30 + i);
        asks[i].max_tokens = 150;
        asks[i].ignore_eos = true;
    }
    asks[0].logprobs = 1;
    asks[1].logprobs = FX_LOGPROBS_MAX;
    asks[2].logprobs = 4;
    asks[2].temperature = 0;
    fleet_submit_all(fleet, asks, FX_TEST_COUNT(asks));
    fleet_wait_tokens(fleet, &asks[1], 20);
    assert_int_equal(kill(fleet->workers[0].process.pid, SIGKILL), 0);
    assert_true(asks[1].count < 150);
    fleet_worker_start(fleet, 1, slow);
    for (uint32_t i = 0; i < FX_TEST_COUNT(asks); i++) {
        fleet_wait(fleet, &asks[i], 60000);
        assert_int_equal(asks[i].with_logprobs, asks[i].count);
        fleet_expect(fleet, &asks[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything), cmocka_unit_test(test_choices),
        cmocka_unit_test(test_stop),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_logprobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
