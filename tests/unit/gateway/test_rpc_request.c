/* gRPC requests as the JSON that the HTTP API's parser checks. */
#include "tests/fx_test.h"
#include <math.h>
#include <stddef.h>
#include "fractal/v1/inference.pb-c.h"
#include "services/gateway/rpc.h"

#define PRESENT(field) FRACTAL__V1__SAMPLING_OPTIONS__##field

static void expect(const void *message, enum gw_kind want_kind, const char *want) {
    struct gw_problem problem = {0};
    enum gw_kind kind;
    json_t *json;
    if (!gw_rpc_json(message, &kind, &json, &problem)) fail_msg("%s", problem.message);
    char *got = json_dumps(json, JSON_SORT_KEYS | JSON_COMPACT);
    assert_int_equal(kind, want_kind);
    assert_string_equal(got, want);
    free(got);
    json_decref(json);
}

static void expect_refused(const void *message, const char *param) {
    struct gw_problem problem = {0};
    enum gw_kind kind;
    json_t *json;
    assert_false(gw_rpc_json(message, &kind, &json, &problem));
    assert_int_equal(problem.reason, GW_BAD_VALUE);
    assert_string_equal(problem.param, param);
}

static void test_empty(void **state) {
    Fractal__V1__GenerateRequest generate = FRACTAL__V1__GENERATE_REQUEST__INIT;
    Fractal__V1__ChatRequest chat = FRACTAL__V1__CHAT_REQUEST__INIT;
    Fractal__V1__CountTokensRequest count = FRACTAL__V1__COUNT_TOKENS_REQUEST__INIT;
    (void)state;
    expect(&generate, GW_COMPLETION, "{}");
    expect(&chat, GW_CHAT, "{\"messages\":[]}");
    expect(&count, GW_COMPLETION, "{}");
}

static void test_prompts(void **state) {
    Fractal__V1__GenerateRequest generate = FRACTAL__V1__GENERATE_REQUEST__INIT;
    Fractal__V1__TokenIds ids = FRACTAL__V1__TOKEN_IDS__INIT;
    uint32_t at[] = {0, UINT32_MAX};
    (void)state;
    generate.model = "m";
    generate.max_tokens = 9;
    generate.prompt_case = FRACTAL__V1__GENERATE_REQUEST__PROMPT_TEXT;
    generate.text = "";
    expect(&generate, GW_COMPLETION, "{\"max_tokens\":9,\"model\":\"m\",\"prompt\":\"\"}");
    generate.prompt_case = FRACTAL__V1__GENERATE_REQUEST__PROMPT_IDS;
    generate.ids = &ids;
    ids.ids = at;
    ids.n_ids = 2;
    expect(&generate, GW_COMPLETION,
           "{\"max_tokens\":9,\"model\":\"m\",\"prompt\":[0,4294967295]}");
}

static void test_sampling(void **state) {
    Fractal__V1__GenerateRequest generate = FRACTAL__V1__GENERATE_REQUEST__INIT;
    Fractal__V1__SamplingOptions options = FRACTAL__V1__SAMPLING_OPTIONS__INIT;
    Fractal__V1__TokenBias bias = FRACTAL__V1__TOKEN_BIAS__INIT, *biases[] = {&bias};
    char *stop[] = {"a", "b"};
    (void)state;
    generate.sampling = &options;
    options.temperature_presence_case = PRESENT(TEMPERATURE_PRESENCE_TEMPERATURE);
    options.temperature = 0; /* not the same as absent */
    options.top_p_presence_case = PRESENT(TOP_P_PRESENCE_TOP_P);
    options.top_p = 0.5F;
    options.typical_p_presence_case = PRESENT(TYPICAL_P_PRESENCE_TYPICAL_P);
    options.typical_p = 0.25F;
    options.repetition_penalty_presence_case =
        PRESENT(REPETITION_PENALTY_PRESENCE_REPETITION_PENALTY);
    options.repetition_penalty = 1.5F;
    options.seed_presence_case = PRESENT(SEED_PRESENCE_SEED);
    options.seed = 7;
    options.top_k = 3;
    options.min_p = 0.125F;
    options.presence_penalty = -1;
    options.frequency_penalty = 2;
    options.min_tokens = 4;
    options.ignore_eos = 1;
    options.stop = stop;
    options.n_stop = 2;
    options.logit_bias = biases;
    options.n_logit_bias = 1;
    bias.token = 11;
    bias.bias = -100;
    expect(&generate, GW_COMPLETION,
           "{\"frequency_penalty\":2.0,\"ignore_eos\":true,\"logit_bias\":{\"11\":-100.0},"
           "\"min_p\":0.125,\"min_tokens\":4,\"presence_penalty\":-1.0,\"repetition_penalty\":1.5,"
           "\"seed\":7,\"stop\":[\"a\",\"b\"],\"temperature\":0.0,\"top_k\":3,"
           "\"top_p\":0.5,\"typical_p\":0.25}");
}

static void test_count(void **state) {
    Fractal__V1__CountTokensRequest count = FRACTAL__V1__COUNT_TOKENS_REQUEST__INIT;
    Fractal__V1__Conversation chat = FRACTAL__V1__CONVERSATION__INIT;
    Fractal__V1__ChatMessage message = FRACTAL__V1__CHAT_MESSAGE__INIT, *messages[] = {&message};
    (void)state;
    count.prompt_case = FRACTAL__V1__COUNT_TOKENS_REQUEST__PROMPT_CHAT;
    count.chat = &chat;
    chat.messages = messages;
    chat.n_messages = 1;
    message.role = "user";
    message.content = "hi";
    expect(&count, GW_CHAT, "{\"messages\":[{\"content\":\"hi\",\"role\":\"user\"}]}");
}

static void test_choices(void **state) {
    Fractal__V1__GenerateRequest generate = FRACTAL__V1__GENERATE_REQUEST__INIT;
    Fractal__V1__ChatRequest chat = FRACTAL__V1__CHAT_REQUEST__INIT;
    (void)state;
    generate.n = chat.n = 16;
    generate.logprobs = chat.logprobs = 1;
    expect(&generate, GW_COMPLETION, "{\"logprobs\":0,\"n\":16}");
    expect(&chat, GW_CHAT, "{\"logprobs\":true,\"messages\":[],\"n\":16}");
    generate.top_logprobs = 5;
    chat.top_logprobs = 20;
    expect(&generate, GW_COMPLETION, "{\"logprobs\":5,\"n\":16}");
    expect(&chat, GW_CHAT, "{\"logprobs\":true,\"messages\":[],\"n\":16,\"top_logprobs\":20}");
    generate.top_logprobs = 6;
    expect_refused(&generate, "top_logprobs");
    generate.top_logprobs = 1;
    generate.logprobs = 0;
    expect_refused(&generate, "top_logprobs");
}

static void test_template(void **state) {
    Fractal__V1__ChatRequest chat = FRACTAL__V1__CHAT_REQUEST__INIT;
    Fractal__V1__CountTokensRequest count = FRACTAL__V1__COUNT_TOKENS_REQUEST__INIT;
    Fractal__V1__Conversation conversation = FRACTAL__V1__CONVERSATION__INIT;
    Fractal__V1__TemplateOptions options = FRACTAL__V1__TEMPLATE_OPTIONS__INIT;
    char *documents[] = {"{\"title\":\"a\"}", "{}"}, *broken[] = {"{}", "{"};
    (void)state;
    chat.template_options = conversation.template_options = &options;
    count.prompt_case = FRACTAL__V1__COUNT_TOKENS_REQUEST__PROMPT_CHAT;
    count.chat = &conversation;
    expect(&chat, GW_CHAT, "{\"messages\":[]}");
    options.add_generation_prompt_presence_case =
        FRACTAL__V1__TEMPLATE_OPTIONS__ADD_GENERATION_PROMPT_PRESENCE_ADD_GENERATION_PROMPT;
    options.chat_template_kwargs = "{\"think\": false, \"n\": 12345678901}";
    options.documents = documents;
    options.n_documents = 2;
    static const char want[] =
        "{\"add_generation_prompt\":false,\"chat_template_kwargs\":{\"n\":12345678901,"
        "\"think\":false},\"documents\":[{\"title\":\"a\"},{}],\"messages\":[]}";
    expect(&chat, GW_CHAT, want);
    expect(&count, GW_CHAT, want);
    options.documents = broken;
    expect_refused(&chat, "documents");
    expect_refused(&count, "documents");
    options.n_documents = 0;
    options.chat_template_kwargs = "{\"a\":1,\"a\":2}";
    expect_refused(&chat, "chat_template_kwargs");
}

/* A number that JSON can't say is refused under its own name. */
static void test_not_finite(void **state) {
    static const struct {
        const char *name;
        size_t offset, present; /* of the float; of its presence, if it has one */
    } rows[] = {
#define FLOAT(name, presence)                                                                      \
    {#name, offsetof(Fractal__V1__SamplingOptions, name),                                          \
     offsetof(Fractal__V1__SamplingOptions, presence)}
#define PLAIN(name)                                                                                \
    { #name, offsetof(Fractal__V1__SamplingOptions, name), 0 }
        FLOAT(temperature, temperature_presence_case),
        FLOAT(top_p, top_p_presence_case),
        FLOAT(typical_p, typical_p_presence_case),
        FLOAT(repetition_penalty, repetition_penalty_presence_case),
        PLAIN(min_p),
        PLAIN(presence_penalty),
        PLAIN(frequency_penalty),
    };
    static const float values[] = {(float)NAN, (float)INFINITY, (float)-INFINITY};
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        for (size_t j = 0; j < FX_TEST_COUNT(values); j++) {
            Fractal__V1__GenerateRequest generate = FRACTAL__V1__GENERATE_REQUEST__INIT;
            Fractal__V1__SamplingOptions options = FRACTAL__V1__SAMPLING_OPTIONS__INIT;
            int present = 1;
            generate.sampling = &options;
            memcpy((char *)&options + rows[i].offset, &values[j], sizeof values[j]);
            if (rows[i].present)
                memcpy((char *)&options + rows[i].present, &present, sizeof present);
            expect_refused(&generate, rows[i].name);
        }
}

static void test_biases(void **state) {
    Fractal__V1__GenerateRequest generate = FRACTAL__V1__GENERATE_REQUEST__INIT;
    Fractal__V1__SamplingOptions options = FRACTAL__V1__SAMPLING_OPTIONS__INIT;
    Fractal__V1__TokenBias first = FRACTAL__V1__TOKEN_BIAS__INIT, second = first,
                           *biases[] = {&first, &second};
    (void)state;
    generate.sampling = &options;
    options.logit_bias = biases;
    options.n_logit_bias = 2;
    expect_refused(&generate, "logit_bias"); /* the same token twice */
    second.token = 1;
    second.bias = (float)NAN;
    expect_refused(&generate, "logit_bias");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),    cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_sampling), cmocka_unit_test(test_count),
        cmocka_unit_test(test_choices),  cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_biases),   cmocka_unit_test(test_template),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
