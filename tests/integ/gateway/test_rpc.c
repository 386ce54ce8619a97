/* The public gRPC API: the same answers, errors and ends as over HTTP. */
#include <math.h>
#include "fractal/v1/generation.pb-c.h"
#include "tests/integ/gateway/rpc_client.h"

/* -- answers -- */

static const struct answer_row {
    const char *name;
    struct stage_script script;
    uint32_t max_tokens;
    const char *text;
    Fractal__V1__FinishReason reason;
    uint32_t tokens;
} answers[] = {
    {"stop",
     {"Hello", 5, 0, 5, 1, FX_FINISH_STOP, NULL},
     0, "Hello",
     FRACTAL__V1__FINISH_REASON__FINISH_REASON_STOP,             5},
    {"cut by max_tokens",
     {"Hello", 5, 0, 0, 1, FX_FINISH_STOP, NULL},
     3, "Hel",
     FRACTAL__V1__FINISH_REASON__FINISH_REASON_LENGTH,           3},
    {"no token at all",
     {"", 0, 0, 0, 1, FX_FINISH_STOP, NULL},
     0, "",
     FRACTAL__V1__FINISH_REASON__FINISH_REASON_STOP,             0},
    {"bytes that are no characters",
     {"a\xff\xc0"
      "b",
      4, 0, 5, 1, FX_FINISH_STOP, NULL},
     0, "a\xef\xbf\xbd\xef\xbf\xbd"
     "b", FRACTAL__V1__FINISH_REASON__FINISH_REASON_STOP,
     4                                                            },
    {"a NUL",
     {"a\0b", 3, 0, 5, 1, FX_FINISH_STOP, NULL},
     0, "a\xef\xbf\xbd"
     "b", FRACTAL__V1__FINISH_REASON__FINISH_REASON_STOP,
     3                                                            },
};

static void test_chat(void **state) {
    struct stage *stage = *state;
    for (size_t i = 0; i < FX_TEST_COUNT(answers); i++) {
        const struct answer_row *row = &answers[i];
        struct rpc rpc;
        struct rpc_chat chat;
        rpc_open(stage, &rpc);
        rpc_chat_make(&chat);
        chat.request.max_tokens = row->max_tokens;
        stage_say(stage, row->script);
        if (!rpc_stream(&rpc, &chat.request, RPC_LONG_MS))
            fail_msg("%s: %s", row->name, rpc.err.text);
        assert_string_equal(rpc.at[0].text, row->text);
        assert_int_equal(rpc.at[0].reason, row->reason);
        assert_int_equal(rpc.at[0].tokens, row->tokens);
        assert_int_equal(rpc.usages, 1);
        assert_int_equal(rpc.completion_tokens, row->tokens);
        assert_int_equal(rpc.prompt_tokens, 3); /* BOS and two letters */
        assert_int_equal(strncmp(rpc.id, "chatcmpl-", 9), 0);
        rpc_close(&rpc);
    }
}

static void test_generate(void **state) {
    struct stage *stage = *state;
    Fractal__V1__GenerateRequest request = FRACTAL__V1__GENERATE_REQUEST__INIT;
    Fractal__V1__TokenIds ids = FRACTAL__V1__TOKEN_IDS__INIT;
    uint32_t at[] = {104, 105};
    struct rpc rpc;
    rpc_open(stage, &rpc);
    request.model = STAGE_MODEL;
    request.prompt_case = FRACTAL__V1__GENERATE_REQUEST__PROMPT_IDS;
    request.ids = &ids;
    ids.ids = at;
    ids.n_ids = 2;
    assert_true(rpc_stream(&rpc, &request, RPC_LONG_MS));
    assert_string_equal(rpc.at[0].text, "Hello");
    assert_int_equal(rpc.prompt_tokens, 2);
    assert_int_equal(strncmp(rpc.id, "cmpl-", 5), 0);
    rpc_close(&rpc);
    rpc_open(stage, &rpc);
    request.prompt_case = FRACTAL__V1__GENERATE_REQUEST__PROMPT_TEXT;
    request.text = "";
    stage_say(stage, (struct stage_script){NULL, 0, 0, 0, 4, FX_FINISH_STOP, NULL});
    assert_true(rpc_stream(&rpc, &request, RPC_LONG_MS));
    assert_int_equal(rpc.completion_tokens, 16); /* as HTTP's default */
    assert_int_equal(rpc.prompt_tokens, 1);      /* BOS */
    rpc_close(&rpc);
}

/* What the scheduler is given is what was asked for. */
static void test_task(void **state) {
    struct stage *stage = *state;
    struct rpc rpc;
    struct rpc_chat chat;
    rpc_open(stage, &rpc);
    rpc_chat_make(&chat);
    chat.request.max_tokens = 5;
    chat.sampling.temperature_presence_case =
        FRACTAL__V1__SAMPLING_OPTIONS__TEMPERATURE_PRESENCE_TEMPERATURE;
    chat.sampling.temperature = 0.25F;
    chat.sampling.top_p_presence_case = FRACTAL__V1__SAMPLING_OPTIONS__TOP_P_PRESENCE_TOP_P;
    chat.sampling.top_p = 0.75F;
    chat.sampling.top_k = 7;
    chat.sampling.min_p = 0.5F;
    chat.sampling.seed_presence_case = FRACTAL__V1__SAMPLING_OPTIONS__SEED_PRESENCE_SEED;
    chat.sampling.seed = UINT64_MAX;
    if (!rpc_stream(&rpc, &chat.request, RPC_LONG_MS)) fail_msg("%s", rpc.err.text);
    Fractal__V1__GenerationTask *task =
        fractal__v1__generation_task__unpack(NULL, stage->last_task_len, stage->last_task);
    assert_non_null(task);
    assert_int_equal(task->tenant, STAGE_TENANT);
    assert_int_equal(task->max_tokens, 5);
    assert_float_equal(task->sampling->temperature, 0.25F, 0);
    assert_float_equal(task->sampling->top_p, 0.75F, 0);
    assert_float_equal(task->sampling->min_p, 0.5F, 0);
    assert_int_equal(task->sampling->top_k, 7);
    assert_true(task->sampling->seed == UINT64_MAX);
    fractal__v1__generation_task__free_unpacked(task, NULL);
    rpc_close(&rpc);
}

static void pause_300_ms(void *ctx) {
    (void)ctx;
    usleep(300000);
}

/* A client that reads late gets everything. */
static void test_late_reader(void **state) {
    struct stage *stage = *state;
    struct rpc rpc;
    struct rpc_chat chat;
    rpc_open(stage, &rpc);
    rpc_chat_make(&chat);
    chat.request.max_tokens = 200;
    rpc.pause = pause_300_ms;
    stage_say(stage, (struct stage_script){NULL, 0, 0, 1, 1, FX_FINISH_STOP, NULL});
    if (!rpc_stream(&rpc, &chat.request, RPC_LONG_MS)) fail_msg("%s", rpc.err.text);
    assert_int_equal(strlen(rpc.at[0].text), 200);
    assert_int_equal(rpc.completion_tokens, 200);
    rpc_close(&rpc);
}

/* -- errors -- */

static void count(struct rpc *rpc, const char *text, const struct fx_client_metadata *metadata,
                  Fractal__V1__CountTokensResponse **reply) {
    Fractal__V1__CountTokensRequest message = FRACTAL__V1__COUNT_TOKENS_REQUEST__INIT;
    message.model = STAGE_MODEL;
    message.prompt_case = FRACTAL__V1__COUNT_TOKENS_REQUEST__PROMPT_TEXT;
    message.text = (char *)(uintptr_t)text;
    rpc_unary(rpc, "/fractal.v1.InferenceService/CountTokens", &message, metadata, reply,
              &fractal__v1__count_tokens_response__descriptor);
}

static void test_keys(void **state) {
    static const struct fx_client_metadata bad = {"authorization", "Bearer fx-bad"},
                                           malformed = {"authorization", "fx-rpc_key"},
                                           other = {"x-auth-token", STAGE_KEY};
    struct stage *stage = *state;
    Fractal__V1__CountTokensResponse *reply;
    struct rpc rpc;
    rpc_open(stage, &rpc);
    count(&rpc, "abc", NULL, &reply);
    assert_int_equal(rpc.err.code, FX_UNAUTHENTICATED);
    count(&rpc, "abc", &bad, &reply);
    assert_int_equal(rpc.err.code, FX_UNAUTHENTICATED);
    count(&rpc, "abc", &malformed, &reply);
    assert_int_equal(rpc.err.code, FX_UNAUTHENTICATED);
    count(&rpc, "abc", &other, &reply);
    assert_int_equal(rpc.err.code, FX_OK);
    assert_int_equal(reply->tokens, 4);
    assert_int_equal(reply->context_max, STAGE_CONTEXT);
    stage->tenant_code = FX_UNAVAILABLE;
    count(&rpc, "abc", &(struct fx_client_metadata){"authorization", "Bearer fx-new"}, &reply);
    assert_int_equal(rpc.err.code, FX_UNAVAILABLE);
    rpc_close(&rpc);
}

static void test_bad_requests(void **state) {
    struct stage *stage = *state;
    struct rpc rpc;
    struct rpc_chat chat;
    rpc_open(stage, &rpc);
    rpc_chat_make(&chat);
    chat.request.model = "nobody";
    assert_false(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    assert_int_equal(rpc.err.code, FX_NOT_FOUND);
    rpc_chat_make(&chat);
    chat.request.n_messages = 0;
    assert_false(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    assert_int_equal(rpc.err.code, FX_INVALID_ARGUMENT);
    rpc_chat_make(&chat);
    chat.message.role = "oracle";
    assert_false(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    assert_int_equal(rpc.err.code, FX_INVALID_ARGUMENT);
    rpc_chat_make(&chat);
    chat.message.content = "a\xff";
    assert_false(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    assert_int_equal(rpc.err.code, FX_INVALID_ARGUMENT);
    assert_non_null(strstr(rpc.err.text, "UTF-8"));
    rpc_chat_make(&chat);
    chat.sampling.temperature_presence_case =
        FRACTAL__V1__SAMPLING_OPTIONS__TEMPERATURE_PRESENCE_TEMPERATURE;
    chat.sampling.temperature = 3;
    assert_false(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    assert_int_equal(rpc.err.code, FX_INVALID_ARGUMENT);
    chat.sampling.temperature = (float)NAN;
    assert_false(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    assert_int_equal(rpc.err.code, FX_INVALID_ARGUMENT);
    rpc_chat_make(&chat);
    stage->submit_code = FX_RESOURCE_EXHAUSTED;
    assert_false(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    assert_int_equal(rpc.err.code, FX_RESOURCE_EXHAUSTED);
    stage->submit_code = FX_UNAVAILABLE;
    assert_false(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    assert_int_equal(rpc.err.code, FX_UNAVAILABLE);
    stage->submit_code = FX_OK;
    assert_int_equal(rpc.messages, 0);
    stage_say(stage, (struct stage_script){"ab", 2, 0, 0, 1, FX_FINISH_ERROR, "broken"});
    assert_false(
        rpc_stream(&rpc, &chat.request, RPC_LONG_MS)); /* what came before the error is there */
    assert_int_equal(rpc.err.code, FX_INTERNAL);
    assert_non_null(strstr(rpc.err.text, "broken"));
    assert_string_equal(rpc.at[0].text, "ab");
    rpc_close(&rpc);
}

static void test_too_large(void **state) {
    struct stage *stage = *state;
    size_t len = 5 * 1000 * 1000;
    char *text = calloc(1, len + 1);
    struct rpc rpc;
    struct rpc_chat chat;
    memset(text, 'x', len);
    rpc_open(stage, &rpc);
    rpc_chat_make(&chat);
    chat.message.content = text;
    assert_false(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    print_message("- 5 MB: %s\n", rpc.err.text);
    assert_int_equal(rpc.err.code, FX_RESOURCE_EXHAUSTED);
    text[90000] = 0; /* fits the message, not the context */
    assert_false(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    assert_int_equal(rpc.err.code, FX_INVALID_ARGUMENT);
    assert_non_null(strstr(rpc.err.text, "context"));
    free(text);
    rpc_close(&rpc);
}

/* -- the client's end -- */

/* Before and after the scheduler has it. */
static void test_deadline(void **state) {
    static const uint32_t deadlines_ms[] = {50, 600};
    struct stage *stage = *state;
    struct rpc rpc;
    struct rpc_chat chat;
    rpc_chat_make(&chat);
    stage_say(stage, (struct stage_script){NULL, 0, 5000, 5, 1, 0, NULL});
    for (size_t i = 0; i < FX_TEST_COUNT(deadlines_ms); i++) {
        rpc_open(stage, &rpc);
        uint64_t begun_ms = fx_clock_ms();
        assert_false(rpc_stream(&rpc, &chat.request, deadlines_ms[i]));
        assert_int_equal(rpc.err.code, FX_DEADLINE_EXCEEDED);
        assert_true(fx_clock_ms() - begun_ms < deadlines_ms[i] + 1000);
        usleep(50000); /* a submit under way is cancelled when it has been answered */
        assert_true(stage_wait(&stage->cancelled, stage->submitted));
        assert_true(stage_wait(&stage->running, 0));
        rpc_close(&rpc);
    }
    assert_true(stage->submitted >= 1);
}

static void test_cancel(void **state) {
    struct stage *stage = *state;
    struct rpc rpc;
    struct rpc_chat chat;
    rpc_open(stage, &rpc);
    rpc_chat_make(&chat);
    rpc.leave_after = 4;
    stage_say(stage, (struct stage_script){NULL, 0, 0, 5, 1, 0, NULL});
    assert_false(rpc_stream(&rpc, &chat.request, RPC_LONG_MS));
    assert_int_equal(rpc.err.code, FX_CANCELLED);
    uint64_t begun_ms = fx_clock_ms();
    assert_true(stage_wait(&stage->running, 0));
    assert_true(fx_clock_ms() - begun_ms <= 200);
    assert_true(stage_wait(&stage->cancelled, 1));
    rpc_close(&rpc);
}

/* Leaving at any moment: nothing stays. */
static void test_leave_at_once(void **state) {
    struct stage *stage = *state;
    stage_say(stage, (struct stage_script){NULL, 0, 0, 10, 1, 0, NULL});
    for (uint32_t i = 0; i < 40; i++) {
        struct rpc rpc;
        struct rpc_chat chat;
        rpc_open(stage, &rpc);
        rpc_chat_make(&chat);
        assert_false(rpc_stream(&rpc, &chat.request, 1 + i));
        rpc_close(&rpc);
    }
    assert_true(stage_wait(&stage->running, 0));
    for (int i = 0; i < 5000 && fx_server_stats(stage->process->rpc).calls_active; i++)
        usleep(1000);
    assert_int_equal(fx_server_stats(stage->process->rpc).calls_active, 0);
    for (int i = 0; i < 5000 && stage->gateway->metrics.running; i++)
        usleep(1000);
    assert_int_equal(stage->gateway->metrics.running, 0);
}

struct streaming {
    struct rpc rpc;
    struct rpc_chat chat;
    bool ok;
};

static void *stream_run(void *user) {
    struct streaming *streaming = user;
    streaming->ok = rpc_stream(&streaming->rpc, &streaming->chat.request, RPC_LONG_MS);
    return NULL;
}

/* SIGTERM: a running answer ends, when it can; when it can't it is told so. */
static void drain_while(struct stage *stage, struct stage_script script, bool ends) {
    struct streaming streaming;
    pthread_t thread;
    rpc_open(stage, &streaming.rpc);
    rpc_chat_make(&streaming.chat);
    stage_say(stage, script);
    assert_int_equal(pthread_create(&thread, NULL, stream_run, &streaming), 0);
    assert_true(stage_wait(&stage->running, 1));
    stage->config.health.drain_ms = ends ? 5000 : 100;
    gw_process_drain(stage->process);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(streaming.ok, ends);
    if (!ends) {
        assert_int_equal(streaming.rpc.err.code, FX_UNAVAILABLE);
        assert_non_null(strstr(streaming.rpc.err.text, "shutting down"));
    }
    assert_false(rpc_stream(&streaming.rpc, &streaming.chat.request, 1000));
    assert_true(streaming.rpc.err.code == FX_UNAVAILABLE);
    rpc_close(&streaming.rpc);
    assert_true(stage_wait(&stage->running, ends ? 0 : 1)); /* another gateway has the rest */
    assert_int_equal(stage->cancelled, 0);
}

static void test_drain(void **state) {
    drain_while(*state, (struct stage_script){"Hello", 5, 0, 100, 1, FX_FINISH_STOP, NULL}, true);
}

static void test_drain_cut(void **state) {
    drain_while(*state, (struct stage_script){NULL, 0, 0, 100, 1, 0, NULL}, false);
}

/* -- the rest -- */

/* An address that others reach needs TLS, and one that is taken is named. */
static void test_addresses(void **state) {
    struct stage *stage = *state;
    struct gw_config config = stage->config;
    struct gw_process *second = NULL;
    char taken[32];
    fx_error err = {0};
    config.grpc_addr = "0.0.0.0:0";
    assert_false(gw_process_open(&config, &second, &err));
    assert_int_equal(err.code, FX_FAILED_PRECONDITION);
    assert_non_null(strstr(err.text, "FX_GRPC_ADDR"));
    (void)snprintf(taken, sizeof taken, "127.0.0.1:%u", gw_process_rpc_port(stage->process));
    config.grpc_addr = taken;
    assert_false(gw_process_open(&config, &second, &err));
    assert_int_equal(err.code, FX_UNAVAILABLE);
    assert_non_null(strstr(err.text, "FX_GRPC_ADDR"));
    assert_null(second);
}

static void test_models(void **state) {
    struct stage *stage = *state;
    Fractal__V1__InferenceServiceListModelsRequest message =
        FRACTAL__V1__INFERENCE_SERVICE_LIST_MODELS_REQUEST__INIT;
    Fractal__V1__InferenceServiceListModelsResponse *reply;
    struct rpc rpc;
    rpc_open(stage, &rpc);
    rpc_unary(&rpc, "/fractal.v1.InferenceService/ListModels", &message, rpc_key, &reply,
              &fractal__v1__inference_service_list_models_response__descriptor);
    assert_int_equal(rpc.err.code, FX_OK);
    assert_int_equal(reply->n_models, 1);
    assert_string_equal(reply->models[0]->name, STAGE_MODEL);
    assert_int_equal(reply->models[0]->context_max, STAGE_CONTEXT);
    assert_int_equal(reply->models[0]->created_s, 1234);
    assert_int_equal(reply->models[0]->vocabulary, 260);
    rpc_unary(&rpc, "/fractal.v1.InferenceService/ListModels", &message, NULL, &reply,
              &fractal__v1__inference_service_list_models_response__descriptor);
    assert_int_equal(rpc.err.code, FX_UNAUTHENTICATED);
    rpc_close(&rpc);
}

static void test_count_chat(void **state) {
    struct stage *stage = *state;
    Fractal__V1__CountTokensRequest message = FRACTAL__V1__COUNT_TOKENS_REQUEST__INIT;
    Fractal__V1__Conversation conversation = FRACTAL__V1__CONVERSATION__INIT;
    Fractal__V1__CountTokensResponse *reply;
    struct rpc_chat chat;
    struct rpc rpc;
    char text[2 * STAGE_CONTEXT + 1] = "";
    rpc_open(stage, &rpc);
    rpc_chat_make(&chat);
    message.model = STAGE_MODEL;
    message.prompt_case = FRACTAL__V1__COUNT_TOKENS_REQUEST__PROMPT_CHAT;
    message.chat = &conversation;
    conversation.messages = chat.messages;
    conversation.n_messages = 1;
    memset(text, 'y', sizeof text - 1);
    chat.message.content = text;
    rpc_unary(&rpc, "/fractal.v1.InferenceService/CountTokens", &message, rpc_key, &reply,
              &fractal__v1__count_tokens_response__descriptor);
    assert_int_equal(rpc.err.code, FX_OK);
    assert_int_equal(reply->tokens, 2 * STAGE_CONTEXT + 1); /* also what does not fit */
    message.prompt_case = FRACTAL__V1__COUNT_TOKENS_REQUEST__PROMPT__NOT_SET;
    rpc_unary(&rpc, "/fractal.v1.InferenceService/CountTokens", &message, rpc_key, &reply,
              &fractal__v1__count_tokens_response__descriptor);
    assert_int_equal(rpc.err.code, FX_INVALID_ARGUMENT);
    rpc_close(&rpc);
}

/* The same buckets as over HTTP. */
static void test_limits(void **state) {
    struct stage *stage = *state;
    char *answer;
    stage->key_limits.requests = 2;
    for (int i = 0; i < 3; i++) {
        struct rpc rpc;
        struct rpc_chat chat;
        rpc_open(stage, &rpc);
        rpc_chat_make(&chat);
        bool ok = rpc_stream(&rpc, &chat.request, RPC_LONG_MS);
        assert_int_equal(ok, i < 2);
        if (!ok) assert_int_equal(rpc.err.code, FX_RESOURCE_EXHAUSTED);
        rpc_close(&rpc);
    }
    assert_int_equal(stage->submitted, 2);
    answer =
        stage_ask(stage, "/v1/completions", "{\"model\":\"" STAGE_MODEL "\",\"prompt\":\"hi\"}");
    assert_int_equal(wire_status(answer), 429);
    free(answer);
}

int main(void) {
#define ROW(test) cmocka_unit_test_setup_teardown(test, stage_setup, stage_teardown)
    const struct CMUnitTest tests[] = {
        ROW(test_chat),   ROW(test_generate),      ROW(test_task),      ROW(test_late_reader),
        ROW(test_keys),   ROW(test_bad_requests),  ROW(test_too_large), ROW(test_deadline),
        ROW(test_cancel), ROW(test_leave_at_once), ROW(test_drain),     ROW(test_drain_cut),
        ROW(test_models), ROW(test_count_chat),    ROW(test_addresses), ROW(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
