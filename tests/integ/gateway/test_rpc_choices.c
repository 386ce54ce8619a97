/* n and log probabilities over gRPC. */
#include "fractal/v1/generation.pb-c.h"
#include "tests/integ/gateway/rpc_client.h"

enum { STOP = FRACTAL__V1__FINISH_REASON__FINISH_REASON_STOP };

static void test_choices(void **state) {
    static const uint32_t counts[] = {0, 1, 4, 16};
    struct stage *stage = *state;
    for (size_t i = 0; i < FX_TEST_COUNT(counts); i++) {
        uint32_t n = counts[i] ? counts[i] : 1;
        struct rpc rpc;
        struct rpc_chat chat;
        rpc_open(stage, &rpc);
        rpc_chat_make(&chat);
        chat.request.n = counts[i];
        if (!rpc_stream(&rpc, &chat.request, RPC_LONG_MS)) fail_msg("%s", rpc.err.text);
        for (uint32_t j = 0; j < RPC_CHOICES; j++) {
            assert_string_equal(rpc.at[j].text, j < n ? "Hello" : "");
            assert_int_equal(rpc.at[j].tokens, j < n ? 5 : 0);
            assert_int_equal(rpc.at[j].reason, j < n ? STOP : 0);
            assert_int_equal(rpc.at[j].logprob_count, 0);
        }
        assert_int_equal(rpc.usages, 1);
        assert_int_equal(rpc.prompt_tokens, 3);
        assert_int_equal(rpc.completion_tokens, 5 * n);
        rpc_close(&rpc);
    }
    assert_true(stage_wait(&stage->running, 0));
    assert_int_equal(stage->cancelled, 0);
}

/* One seed for all choices, whose indices tell them apart. */
static void test_task(void **state) {
    struct stage *stage = *state;
    struct rpc rpc;
    struct rpc_chat chat;
    rpc_open(stage, &rpc);
    rpc_chat_make(&chat);
    chat.request.n = 2;
    chat.request.logprobs = 1;
    chat.request.top_logprobs = 7;
    if (!rpc_stream(&rpc, &chat.request, RPC_LONG_MS)) fail_msg("%s", rpc.err.text);
    Fractal__V1__GenerationTask *task =
        fractal__v1__generation_task__unpack(NULL, stage->last_task_len, stage->last_task);
    assert_non_null(task);
    assert_in_range(task->sampling->choice, 0, 1);
    assert_int_equal(task->sampling->seed_presence_case,
                     FRACTAL__V1__SAMPLING_PARAMS__SEED_PRESENCE_SEED);
    assert_int_equal(task->logprobs, 1);
    assert_int_equal(task->top_logprobs, 7);
    fractal__v1__generation_task__free_unpacked(task, NULL);
    rpc_close(&rpc);
}

/* The stage's worker says -0.5 of a token itself and -1, -2, ... of the ids from 0xfd on. */
static void check_logprobs(const struct rpc_choice *choice, const char *bytes, uint32_t tops) {
    for (uint32_t i = 0; i < choice->logprob_count; i++) {
        const struct rpc_logprob *at = &choice->logprobs[i];
        bool is_text = bytes[i] > 0;
        assert_int_equal(at->token, (uint8_t)bytes[i]);
        assert_int_equal(at->raw_len, 1);
        assert_int_equal(at->raw[0], (uint8_t)bytes[i]);
        assert_string_equal(at->text, is_text ? ((char[]){bytes[i], 0}) : "\xef\xbf\xbd");
        assert_float_equal(at->value, -0.5F, 0);
        assert_int_equal(at->tops, tops);
        for (uint32_t j = 0; j < tops; j++) {
            assert_int_equal(at->top_tokens[j], 0xfd + j);
            assert_float_equal(at->top_values[j], -1.0F - (float)j, 0);
        }
    }
}

static void test_logprobs(void **state) {
    static const uint32_t tops[] = {0, 1, 20};
    static const char bytes[] = "a\0\xff"
                                "b";
    struct stage *stage = *state;
    stage_say(stage, (struct stage_script){bytes, 4, 0, 1, 1, FX_FINISH_STOP, NULL});
    for (size_t i = 0; i < FX_TEST_COUNT(tops); i++) {
        struct rpc rpc;
        struct rpc_chat chat;
        rpc_open(stage, &rpc);
        rpc_chat_make(&chat);
        chat.request.n = 3;
        chat.request.logprobs = 1;
        chat.request.top_logprobs = tops[i];
        if (!rpc_stream(&rpc, &chat.request, RPC_LONG_MS)) fail_msg("%s", rpc.err.text);
        for (size_t j = 0; j < 3; j++) {
            assert_int_equal(rpc.at[j].logprob_count, 4);
            check_logprobs(&rpc.at[j], bytes, tops[i]);
            assert_string_equal(rpc.at[j].text, "a\xef\xbf\xbd\xef\xbf\xbd"
                                                "b");
        }
        rpc_close(&rpc);
    }
}

static void test_generate(void **state) {
    struct stage *stage = *state;
    Fractal__V1__GenerateRequest request = FRACTAL__V1__GENERATE_REQUEST__INIT;
    struct rpc rpc;
    rpc_open(stage, &rpc);
    request.model = STAGE_MODEL;
    request.prompt_case = FRACTAL__V1__GENERATE_REQUEST__PROMPT_TEXT;
    request.text = "hi";
    request.n = 2;
    request.logprobs = 1;
    request.top_logprobs = 5;
    if (!rpc_stream(&rpc, &request, RPC_LONG_MS)) fail_msg("%s", rpc.err.text);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(rpc.at[i].text, "Hello");
        assert_int_equal(rpc.at[i].logprob_count, 5);
        check_logprobs(&rpc.at[i], "Hello", 5);
    }
    rpc_close(&rpc);
}

/* More than fit one message: they come in several, the end with the last. */
static void test_many_logprobs(void **state) {
    struct stage *stage = *state;
    struct rpc rpc;
    struct rpc_chat chat;
    rpc_open(stage, &rpc);
    rpc_chat_make(&chat);
    chat.request.max_tokens = 240;
    chat.request.logprobs = 1;
    chat.request.top_logprobs = 20;
    stage_say(stage, (struct stage_script){NULL, 0, 0, 0, 60, FX_FINISH_STOP, NULL});
    if (!rpc_stream(&rpc, &chat.request, RPC_LONG_MS)) fail_msg("%s", rpc.err.text);
    assert_int_equal(rpc.at[0].logprob_count, 240);
    assert_int_equal(strlen(rpc.at[0].text), 240);
    rpc_close(&rpc);
}

static const struct refused_row {
    const char *name, *what;
    uint32_t n, top_logprobs;
    bool logprobs;
} refused[] = {
    {"17 choices",                          "n must be",                   17,         0,  false},
    {"2^32 - 1 choices",                    "n must be",                   UINT32_MAX, 0,  false},
    {"21 of the likeliest",                 "top_logprobs must be",        1,          21, true },
    {"likeliest without log probabilities", "top_logprobs needs logprobs", 1,          1,  false},
};

static void test_refused(void **state) {
    struct stage *stage = *state;
    for (size_t i = 0; i < FX_TEST_COUNT(refused); i++) {
        Fractal__V1__GenerateRequest generate = FRACTAL__V1__GENERATE_REQUEST__INIT;
        struct rpc rpc;
        struct rpc_chat chat;
        rpc_chat_make(&chat);
        generate.model = STAGE_MODEL;
        generate.prompt_case = FRACTAL__V1__GENERATE_REQUEST__PROMPT_TEXT;
        generate.text = "hi";
        chat.request.n = generate.n = refused[i].n;
        chat.request.top_logprobs = generate.top_logprobs = refused[i].top_logprobs;
        chat.request.logprobs = generate.logprobs = refused[i].logprobs;
        const void *messages[] = {&chat.request, &generate};
        for (size_t j = 0; j < 2; j++) {
            rpc_open(stage, &rpc);
            if (rpc_stream(&rpc, messages[j], RPC_LONG_MS)) fail_msg("%s", refused[i].name);
            assert_int_equal(rpc.err.code, FX_INVALID_ARGUMENT);
            if (!strstr(rpc.err.text, refused[i].what)) fail_msg("%s", rpc.err.text);
            rpc_close(&rpc);
        }
    }
    assert_int_equal(stage->submitted, 0);
}

/* One that goes wrong ends the call, and the others with it. */
static void test_failure(void **state) {
    struct stage *stage = *state;
    struct rpc rpc;
    struct rpc_chat chat;
    rpc_open(stage, &rpc);
    rpc_chat_make(&chat);
    chat.request.n = 3;
    stage_say(stage, (struct stage_script){"ab", 2, 0, 0, 1, FX_FINISH_ERROR, "broken"});
    assert_false(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    assert_int_equal(rpc.err.code, FX_INTERNAL);
    assert_non_null(strstr(rpc.err.text, "broken"));
    assert_int_equal(rpc.usages, 0);
    rpc_close(&rpc);
    assert_true(stage_wait(&stage->running, 0));
}

/* Leaving in the middle ends all of them. */
static void test_leave(void **state) {
    struct stage *stage = *state;
    struct rpc rpc;
    struct rpc_chat chat;
    rpc_open(stage, &rpc);
    rpc_chat_make(&chat);
    chat.request.n = 8;
    rpc.leave_after = 20;
    stage_say(stage, (struct stage_script){NULL, 0, 0, 20, 1, 0, NULL});
    assert_false(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    assert_int_equal(rpc.err.code, FX_CANCELLED);
    rpc_close(&rpc);
    assert_true(stage_wait(&stage->running, 0));
    assert_true(stage_wait(&stage->cancelled, 8));
}

int main(void) {
#define ROW(test) cmocka_unit_test_setup_teardown(test, stage_setup, stage_teardown)
    const struct CMUnitTest tests[] = {
        ROW(test_choices),       ROW(test_task),    ROW(test_logprobs), ROW(test_generate),
        ROW(test_many_logprobs), ROW(test_refused), ROW(test_failure),  ROW(test_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
