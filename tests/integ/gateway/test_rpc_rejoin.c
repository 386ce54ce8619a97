/* Clients of the gRPC API that come back: Follow from every place, at another gateway, after a
 * drain; GetGeneration, CancelGeneration; calls that come twice. */
#include <hiredis/hiredis.h>
#include "tests/integ/gateway/rpc_client.h"

enum { STOP = FRACTAL__V1__FINISH_REASON__FINISH_REASON_STOP };
#define STATE(name) FRACTAL__V1__GENERATION_STATE__GENERATION_STATE_##name
typedef Fractal__V1__AnswerStatus status_type;

/* -- from every place -- */

/* The client's connection breaks after each number of messages; the rest must be the rest. */
static void follow_from_everywhere(struct stage *stage, const void *message) {
    struct rpc whole, part;
    rpc_open(stage, &whole);
    if (!rpc_stream(&whole, message, RPC_LONG_MS)) fail_msg("%s", whole.err.text);
    size_t messages = whole.messages;
    assert_true(messages > 3);
    for (size_t i = 1; i <= messages; i++) {
        rpc_open(stage, &part);
        part.leave_after = i;
        part.once = "stays"; /* leaving does not cancel it */
        bool ended = rpc_stream(&part, message, RPC_LONG_MS);
        if (!ended) assert_int_equal(part.err.code, FX_CANCELLED);
        part.usages = 0; /* told again: it was said with the last message */
        if (!rpc_follow(&part)) fail_msg("after %zu messages: %s", i, part.err.text);
        assert_int_equal(part.usages, 1);
        assert_int_equal(part.completion_tokens, whole.completion_tokens);
        assert_int_equal(part.prompt_tokens, whole.prompt_tokens);
        for (size_t c = 0; c < RPC_CHOICES; c++) {
            assert_string_equal(part.at[c].text, whole.at[c].text);
            assert_int_equal(part.at[c].tokens, whole.at[c].tokens);
            assert_int_equal(part.at[c].reason, whole.at[c].reason);
            assert_int_equal(part.at[c].logprob_count, whole.at[c].logprob_count);
            for (uint32_t t = 0; t < whole.at[c].logprob_count; t++)
                assert_int_equal(part.at[c].logprobs[t].token, whole.at[c].logprobs[t].token);
        }
        rpc_close(&part);
    }
    rpc_close(&whole);
}

/* Characters of three bytes, what is no character, and text that may become a stop string. */
#define SAID                                                                                       \
    "a\xe2\x82\xac\xe2\x82"                                                                        \
    "bnonope-no"
static const struct stage_script said = {SAID, sizeof SAID - 1, 0, 4, 1, FX_FINISH_STOP, NULL};

static void test_chat(void **state) {
    static char *stop[] = {"nothing", "-not"};
    struct rpc_chat chat;
    rpc_chat_make(&chat);
    chat.sampling.stop = stop;
    chat.sampling.n_stop = 2;
    stage_say(*state, said);
    follow_from_everywhere(*state, &chat.request);
}

static void test_choices(void **state) {
    struct rpc_chat chat;
    rpc_chat_make(&chat);
    chat.request.n = 3;
    chat.request.logprobs = 1;
    chat.request.top_logprobs = 2;
    stage_say(*state, said);
    follow_from_everywhere(*state, &chat.request);
}

static void test_generate(void **state) {
    Fractal__V1__GenerateRequest request = FRACTAL__V1__GENERATE_REQUEST__INIT;
    request.model = STAGE_MODEL;
    request.prompt_case = FRACTAL__V1__GENERATE_REQUEST__PROMPT_TEXT;
    request.text = "hi";
    stage_say(*state, said);
    follow_from_everywhere(*state, &request);
}

/* Log probabilities of more tokens than a message has room for, in one page of the log: each
 * message has the text of its tokens. */
static void test_pages(void **state) {
    struct rpc_chat chat;
    rpc_chat_make(&chat);
    chat.request.max_tokens = 250;
    chat.request.n = 2;
    chat.request.logprobs = 1;
    chat.request.top_logprobs = 20;
    stage_say(*state, (struct stage_script){NULL, 0, 0, 0, 60, FX_FINISH_STOP, NULL});
    follow_from_everywhere(*state, &chat.request);
}

static void pause_300_ms(void *ctx) {
    (void)ctx;
    usleep(300000);
}

/* What waits while the client does not read goes out as messages with places of their own. */
static void test_late_reader(void **state) {
    struct stage *stage = *state;
    struct rpc rpc;
    struct rpc_chat chat;
    rpc_open(stage, &rpc);
    rpc_chat_make(&chat);
    chat.request.max_tokens = 240;
    chat.request.n = 2;
    chat.request.logprobs = 1;
    rpc.once = "late";
    rpc.pause = pause_300_ms;
    rpc.leave_after = 5;
    stage_say(stage, (struct stage_script){NULL, 0, 0, 1, 1, FX_FINISH_STOP, NULL});
    assert_false(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    if (!rpc_follow(&rpc)) fail_msg("%s", rpc.err.text);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(strlen(rpc.at[i].text), 240);
        assert_int_equal(rpc.at[i].logprob_count, 240);
    }
    rpc_close(&rpc);
}

/* While it runs: the gateway that began it is told to end, says so, and another has the rest. */
static void *drain(void *process) {
    gw_process_drain(process);
    return NULL;
}

static void drain_begin(void *ctx) {
    struct stage *stage = ctx;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, drain, stage->process), 0);
    (void)pthread_detach(thread);
}

static void test_hand_over(void **state) {
    struct stage *stage = *state;
    struct rpc rpc, other;
    struct rpc_chat chat;
    stage_gateway_close(stage);
    stage->config.health.drain_ms = 100;
    stage_gateway_open(stage);
    struct gw_process *first = stage->process;
    rpc_open(stage, &rpc);
    rpc_chat_make(&chat);
    rpc.pause = drain_begin;
    rpc.pause_ctx = stage;
    stage_say(stage, (struct stage_script){"0123456789", 10, 0, 80, 1, FX_FINISH_STOP, NULL});
    assert_false(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    assert_int_equal(rpc.err.code, FX_UNAVAILABLE);
    assert_non_null(strstr(rpc.err.text, "Follow"));
    assert_true(*rpc.at[0].text && strlen(rpc.at[0].text) < 10);
    stage_gateway_open(stage); /* one more */
    rpc_open(stage, &other);
    fx_client *client = rpc.client;
    rpc.client = other.client;
    other.client = client;
    if (!rpc_follow(&rpc)) fail_msg("%s", rpc.err.text);
    assert_string_equal(rpc.at[0].text, "0123456789");
    assert_int_equal(rpc.at[0].reason, STOP);
    assert_int_equal(stage->cancelled, 0);
    rpc_close(&rpc);
    rpc_close(&other);
    gw_process_close(first);
}

/* -- refusals -- */

static void follow_refused(struct stage *stage, char *id, char *after, enum fx_code code,
                           const char *what) {
    Fractal__V1__FollowRequest request = FRACTAL__V1__FOLLOW_REQUEST__INIT;
    struct rpc rpc;
    rpc_open(stage, &rpc);
    request.id = id;
    request.after = after;
    assert_false(rpc_stream(&rpc, &request, RPC_LONG_MS));
    assert_int_equal(rpc.err.code, code);
    if (!strstr(rpc.err.text, what)) fail_msg("'%s': %s", after, rpc.err.text);
    assert_int_equal(rpc.messages, 0);
    rpc_close(&rpc);
}

static void status_ask(struct rpc *rpc, const char *method, char *id, status_type **out) {
    static union {
        Fractal__V1__InferenceServiceGetGenerationRequest get;
        Fractal__V1__InferenceServiceCancelGenerationRequest cancel;
    } request;
    bool is_get = strcmp(method, "/fractal.v1.InferenceService/GetGeneration") == 0;
    Fractal__V1__InferenceServiceGetGenerationResponse *got = NULL;
    Fractal__V1__InferenceServiceCancelGenerationResponse *cancelled = NULL;
    if (is_get) {
        fractal__v1__inference_service_get_generation_request__init(&request.get);
        request.get.id = id;
        rpc_unary(rpc, method, &request, rpc_key, &got,
                  &fractal__v1__inference_service_get_generation_response__descriptor);
    } else {
        fractal__v1__inference_service_cancel_generation_request__init(&request.cancel);
        request.cancel.id = id;
        rpc_unary(rpc, method, &request, rpc_key, &cancelled,
                  &fractal__v1__inference_service_cancel_generation_response__descriptor);
    }
    if (rpc->err.code == FX_OK) *out = is_get ? got->status : cancelled->status;
}
#define GET "/fractal.v1.InferenceService/GetGeneration"
#define CANCEL "/fractal.v1.InferenceService/CancelGeneration"

static void status_refused(struct stage *stage, char *id) {
    static const char *const methods[] = {GET, CANCEL};
    status_type *status;
    struct rpc rpc;
    rpc_open(stage, &rpc);
    for (size_t i = 0; i < FX_TEST_COUNT(methods); i++) {
        status_ask(&rpc, methods[i], id, &status);
        assert_int_equal(rpc.err.code, FX_NOT_FOUND);
    }
    rpc_close(&rpc);
}

static void answer(struct stage *stage, struct rpc *rpc) {
    struct rpc_chat chat;
    rpc_open(stage, rpc);
    rpc_chat_make(&chat);
    stage_say(stage, (struct stage_script){"Hello", 5, 0, 0, 1, FX_FINISH_STOP, NULL});
    if (!rpc_stream(rpc, &chat.request, RPC_LONG_MS)) fail_msg("%s", rpc->err.text);
}

static void test_refusals(void **state) {
    static char *const ids[] = {"", "x", "chatcmpl-00000000000000000000000000000000000000aa"};
    static char *const places[] = {"x", "1,2", "-1", "1x", "99999999999", "1,", "e"};
    struct stage *stage = *state;
    struct rpc rpc;
    char longest[1001] = "chatcmpl-";
    memset(longest + 9, '0', sizeof longest - 10);
    answer(stage, &rpc);
    for (size_t i = 0; i < FX_TEST_COUNT(ids); i++) {
        follow_refused(stage, ids[i], "", FX_NOT_FOUND, "no such generation");
        status_refused(stage, ids[i]);
    }
    follow_refused(stage, longest, "", FX_NOT_FOUND, "no such generation");
    for (size_t i = 0; i < FX_TEST_COUNT(places); i++)
        follow_refused(stage, rpc.id, places[i], FX_INVALID_ARGUMENT, "after");
    rpc_close(&rpc);
}

/* Another tenant's answer is none. */
static void test_other_tenant(void **state) {
    struct stage *stage = *state;
    struct rpc rpc;
    char command[128];
    answer(stage, &rpc);
    redisContext *redis = redisConnectUnix(stage->redis_server.socket);
    assert_true(redis && !redis->err);
    (void)snprintf(command, sizeof command, "HSET fx:{m7}:gen:%.32s tenant 43",
                   strchr(rpc.id, '-') + 1);
    redisReply *reply = redisCommand(redis, command);
    assert_non_null(reply);
    freeReplyObject(reply);
    redisFree(redis);
    follow_refused(stage, rpc.id, "", FX_NOT_FOUND, "no such generation");
    status_refused(stage, rpc.id);
    rpc_close(&rpc);
}

/* -- status and cancel -- */

static void test_status(void **state) {
    struct stage *stage = *state;
    struct rpc rpc;
    struct rpc_chat chat;
    status_type *status;
    rpc_open(stage, &rpc);
    rpc_chat_make(&chat);
    chat.request.n = 2;
    stage_say(stage, (struct stage_script){"Hello", 5, 0, 0, 1, FX_FINISH_LENGTH, NULL});
    assert_true(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    status_ask(&rpc, GET, rpc.id, &status);
    assert_int_equal(rpc.err.code, FX_OK);
    assert_string_equal(status->id, rpc.id);
    assert_string_equal(status->model, STAGE_MODEL);
    assert_true(status->created_s > 0);
    assert_int_equal(status->state, STATE(FINISHED));
    assert_int_equal(status->prompt_tokens, 3);
    assert_int_equal(status->n_choices, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(status->choices[i]->state, STATE(FINISHED));
        assert_int_equal(status->choices[i]->tokens, 5);
        assert_int_equal(status->choices[i]->finish_reason,
                         FRACTAL__V1__FINISH_REASON__FINISH_REASON_LENGTH);
    }
    rpc_close(&rpc);
}

/* By another call than the one that waits for it, which is told. */
struct cancelling {
    struct stage *stage;
    struct rpc rpc;
};

static void cancel(void *ctx) {
    struct cancelling *cancelling = ctx;
    struct rpc other;
    status_type *status;
    rpc_open(cancelling->stage, &other);
    status_ask(&other, GET, cancelling->rpc.id, &status);
    assert_int_equal(status->state, STATE(RUNNING));
    status_ask(&other, CANCEL, cancelling->rpc.id, &status);
    assert_int_equal(other.err.code, FX_OK);
    rpc_close(&other);
}

static void test_cancel(void **state) {
    struct cancelling cancelling = {.stage = *state};
    struct rpc *rpc = &cancelling.rpc;
    struct rpc_chat chat;
    status_type *status;
    rpc_open(*state, rpc);
    rpc_chat_make(&chat);
    rpc->once = "cancelled"; /* also one that leaving would not cancel */
    rpc->pause = cancel;
    rpc->pause_ctx = &cancelling;
    stage_say(*state, (struct stage_script){NULL, 0, 0, 20, 1, FX_FINISH_STOP, NULL});
    assert_false(rpc_stream(rpc, &chat.request, RPC_LONG_MS));
    assert_int_equal(rpc->err.code, FX_ABORTED);
    assert_true(stage_wait(&cancelling.stage->running, 0));
    status_ask(rpc, CANCEL, rpc->id, &status); /* twice */
    assert_int_equal(status->state, STATE(CANCELLED));
    assert_false(rpc_follow(rpc));
    assert_int_equal(rpc->err.code, FX_ABORTED);
    rpc_close(rpc);
}

/* -- a call that comes twice -- */

static bool ask_once(struct stage *stage, const char *key, uint32_t max_tokens, struct rpc *rpc) {
    struct rpc_chat chat;
    rpc_open(stage, rpc);
    rpc_chat_make(&chat);
    chat.request.max_tokens = max_tokens;
    rpc->once = key;
    return rpc_stream(rpc, &chat.request, RPC_LONG_MS);
}

static void test_once(void **state) {
    struct stage *stage = *state;
    struct rpc first, second;
    stage_say(stage, (struct stage_script){"Hello", 5, 0, 10, 1, FX_FINISH_STOP, NULL});
    assert_true(ask_once(stage, "a-key", 9, &first));
    stage_say(stage, (struct stage_script){"Other", 5, 0, 10, 1, FX_FINISH_STOP, NULL});
    assert_true(ask_once(stage, "a-key", 9, &second));
    assert_string_equal(second.id, first.id);
    assert_string_equal(second.at[0].text, "Hello");
    assert_int_equal(second.usages, 1);
    assert_int_equal(stage->pulled, 1);
    rpc_close(&second);
    assert_false(ask_once(stage, "a-key", 8, &second));
    assert_int_equal(second.err.code, FX_INVALID_ARGUMENT);
    assert_non_null(strstr(second.err.text, "another request"));
    rpc_close(&second);
    assert_true(ask_once(stage, "b-key", 9, &second));
    assert_string_equal(second.at[0].text, "Other");
    rpc_close(&second);
    assert_false(ask_once(stage, "a key", 9, &second));
    assert_int_equal(second.err.code, FX_INVALID_ARGUMENT);
    rpc_close(&second);
    rpc_close(&first);
}

/* Who said that it may come back finds its answer, which ran on. */
static void test_once_leaves(void **state) {
    struct stage *stage = *state;
    struct rpc rpc;
    struct rpc_chat chat;
    rpc_open(stage, &rpc);
    rpc_chat_make(&chat);
    rpc.once = "left";
    rpc.leave_after = 2;
    stage_say(stage, (struct stage_script){"0123456789", 10, 0, 40, 1, FX_FINISH_STOP, NULL});
    assert_false(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    rpc_close(&rpc);
    usleep(60000);
    assert_int_equal(stage->running, 1);
    rpc_open(stage, &rpc);
    rpc.once = "left";
    assert_true(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    assert_string_equal(rpc.at[0].text, "0123456789");
    rpc_close(&rpc);
    assert_int_equal(stage->cancelled, 0);
    assert_int_equal(stage->pulled, 1);
    for (int i = 0; i < 500 && stage->gateway->metrics.running; i++)
        usleep(2000);
    assert_int_equal(stage->gateway->metrics.running, 0);
}

int main(void) {
#define ROW(test) cmocka_unit_test_setup_teardown(test, stage_setup, stage_teardown)
    const struct CMUnitTest tests[] = {
        ROW(test_chat),        ROW(test_choices),   ROW(test_generate), ROW(test_pages),
        ROW(test_late_reader), ROW(test_hand_over), ROW(test_refusals), ROW(test_other_tenant),
        ROW(test_status),      ROW(test_cancel),    ROW(test_once),     ROW(test_once_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
