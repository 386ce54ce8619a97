/* A gRPC request as the JSON body of the HTTP API, so that one parser checks both. */
#include <math.h>
#include <stdio.h>
#include "common/http/json.h"
#include "fractal/v1/inference.pb-c.h"
#include "services/gateway/rpc.h"

/* A value that is NULL fails: no memory, which is what `problem` says to begin with. */

static bool put(json_t *json, const char *name, json_t *value) {
    return json_object_set_new(json, name, value) == 0;
}

static bool put_text(json_t *json, const char *name, const char *text) {
    return put(json, name, json_string(text));
}

static FX_MUST bool put_number(json_t *json, const char *name, float value,
                               struct gw_problem *problem) {
    if (!isfinite(value))
        return gw_refuse(problem, GW_BAD_VALUE, name, "%s is not a finite number", name);
    return put(json, name, json_real((double)value));
}

static bool put_count(json_t *json, const char *name, uint32_t value) {
    return !value || put(json, name, json_integer(value));
}

/* -- sampling -- */

static FX_MUST bool stop_put(const Fractal__V1__SamplingOptions *from, json_t *json) {
    json_t *stop = json_array();
    bool ok = !from->n_stop || put(json, "stop", json_incref(stop));
    for (size_t i = 0; ok && i < from->n_stop; i++)
        ok = json_array_append_new(stop, json_string(from->stop[i])) == 0;
    json_decref(stop);
    return ok;
}

static FX_MUST bool bias_add(json_t *json, const Fractal__V1__TokenBias *from,
                             struct gw_problem *problem) {
    char token[16];
    (void)snprintf(token, sizeof token, "%u", from->token);
    if (!isfinite(from->bias))
        return gw_refuse(problem, GW_BAD_VALUE, "logit_bias", "a bias is not a finite number");
    if (json_object_get(json, token))
        return gw_refuse(problem, GW_BAD_VALUE, "logit_bias", "token %s has two biases", token);
    return put(json, token, json_real((double)from->bias));
}

static FX_MUST bool bias_put(const Fractal__V1__SamplingOptions *from, json_t *json,
                             struct gw_problem *problem) {
    json_t *bias = json_object();
    bool ok = !from->n_logit_bias || put(json, "logit_bias", json_incref(bias));
    for (size_t i = 0; ok && i < from->n_logit_bias; i++)
        ok = bias_add(bias, from->logit_bias[i], problem);
    json_decref(bias);
    return ok;
}

struct number {
    const char *name;
    bool given;
    float value;
};

static FX_MUST bool numbers_put(const Fractal__V1__SamplingOptions *from, json_t *json,
                                struct gw_problem *problem) {
    const struct number numbers[] = {
        {"temperature",        from->temperature_presence_case != 0,        from->temperature      },
        {"top_p",              from->top_p_presence_case != 0,              from->top_p            },
        {"typical_p",          from->typical_p_presence_case != 0,          from->typical_p        },
        {"repetition_penalty", from->repetition_penalty_presence_case != 0,
         from->repetition_penalty                                                                  },
        {"min_p",              true,                                        from->min_p            },
        {"presence_penalty",   true,                                        from->presence_penalty },
        {"frequency_penalty",  true,                                        from->frequency_penalty},
    };
    for (size_t i = 0; i < FX_COUNT(numbers); i++)
        if (numbers[i].given && !put_number(json, numbers[i].name, numbers[i].value, problem))
            return false;
    return true;
}

static FX_MUST bool sampling_put(const Fractal__V1__SamplingOptions *from, json_t *json,
                                 struct gw_problem *problem) {
    return !from || (numbers_put(from, json, problem) &&
                     (!from->seed_presence_case ||
                      put(json, "seed", json_integer((json_int_t)from->seed))) &&
                     put_count(json, "top_k", from->top_k) &&
                     put_count(json, "min_tokens", from->min_tokens) &&
                     (!from->ignore_eos || put(json, "ignore_eos", json_true())) &&
                     stop_put(from, json) && bias_put(from, json, problem));
}

/* -- prompts -- */

static FX_MUST bool messages_put(Fractal__V1__ChatMessage **messages, size_t count, json_t *json) {
    json_t *array = json_array();
    bool ok = put(json, "messages", array);
    for (size_t i = 0; ok && i < count; i++) {
        json_t *message = json_object();
        ok = json_array_append_new(array, message) == 0 &&
             put_text(message, "role", messages[i]->role) &&
             put_text(message, "content", messages[i]->content);
    }
    return ok;
}

/* JSON that came as text. */
static FX_MUST bool text_parse(const char *text, const char *name, json_t **out,
                               struct gw_problem *problem) {
    fx_error err = {0};
    if (fx_json_parse(fx_span_str(text), out, &err)) return true;
    return gw_refuse(problem, err.code == FX_RESOURCE_EXHAUSTED ? GW_UNAVAILABLE : GW_BAD_VALUE,
                     name, "%s: %s", name, err.text);
}

static FX_MUST bool variables_put(const char *text, json_t *json, struct gw_problem *problem) {
    json_t *variables;
    return !*text || (text_parse(text, "chat_template_kwargs", &variables, problem) &&
                      put(json, "chat_template_kwargs", variables));
}

static FX_MUST bool documents_put(const Fractal__V1__TemplateOptions *from, json_t *json,
                                  struct gw_problem *problem) {
    json_t *documents = json_array(), *document;
    bool ok = !from->n_documents || put(json, "documents", json_incref(documents));
    for (size_t i = 0; ok && i < from->n_documents; i++)
        ok = text_parse(from->documents[i], "documents", &document, problem) &&
             json_array_append_new(documents, document) == 0;
    json_decref(documents);
    return ok;
}

static FX_MUST bool template_put(const Fractal__V1__TemplateOptions *from, json_t *json,
                                 struct gw_problem *problem) {
    if (!from) return true;
    return variables_put(from->chat_template_kwargs, json, problem) &&
           documents_put(from, json, problem) &&
           (!from->add_generation_prompt_presence_case ||
            put(json, "add_generation_prompt", json_boolean(from->add_generation_prompt)));
}

static FX_MUST bool ids_put(const Fractal__V1__TokenIds *from, json_t *json) {
    json_t *ids = json_array();
    bool ok = put(json, "prompt", ids);
    for (size_t i = 0; ok && i < from->n_ids; i++)
        ok = json_array_append_new(ids, json_integer(from->ids[i])) == 0;
    return ok;
}

/* -- messages -- */

/* Over HTTP this is one number, `logprobs`, whose absence says no. */
static FX_MUST bool completion_logprobs_put(const Fractal__V1__GenerateRequest *from, json_t *json,
                                            struct gw_problem *problem) {
    if (from->top_logprobs && !from->logprobs)
        return gw_refuse(problem, GW_BAD_VALUE, "top_logprobs",
                         "top_logprobs needs logprobs: true");
    if (from->top_logprobs > GW_COMPLETION_LOGPROBS_MAX)
        return gw_refuse(problem, GW_BAD_VALUE, "top_logprobs",
                         "top_logprobs must be an integer from 0 to %d",
                         GW_COMPLETION_LOGPROBS_MAX);
    return !from->logprobs || put(json, "logprobs", json_integer(from->top_logprobs));
}

static FX_MUST bool generate_put(const Fractal__V1__GenerateRequest *from, json_t *json,
                                 struct gw_problem *problem) {
    if (from->prompt_case == FRACTAL__V1__GENERATE_REQUEST__PROMPT_TEXT &&
        !put_text(json, "prompt", from->text))
        return false;
    if (from->prompt_case == FRACTAL__V1__GENERATE_REQUEST__PROMPT_IDS && !ids_put(from->ids, json))
        return false;
    return put_count(json, "max_tokens", from->max_tokens) && put_count(json, "n", from->n) &&
           completion_logprobs_put(from, json, problem) &&
           sampling_put(from->sampling, json, problem);
}

static FX_MUST bool chat_put(const Fractal__V1__ChatRequest *from, json_t *json,
                             struct gw_problem *problem) {
    return messages_put(from->messages, from->n_messages, json) &&
           template_put(from->template_options, json, problem) &&
           put_count(json, "max_tokens", from->max_tokens) && put_count(json, "n", from->n) &&
           (!from->logprobs || put(json, "logprobs", json_true())) &&
           put_count(json, "top_logprobs", from->top_logprobs) &&
           sampling_put(from->sampling, json, problem);
}

static FX_MUST bool count_put(const Fractal__V1__CountTokensRequest *from, json_t *json,
                              struct gw_problem *problem) {
    if (from->prompt_case == FRACTAL__V1__COUNT_TOKENS_REQUEST__PROMPT_CHAT)
        return messages_put(from->chat->messages, from->chat->n_messages, json) &&
               template_put(from->chat->template_options, json, problem);
    return from->prompt_case != FRACTAL__V1__COUNT_TOKENS_REQUEST__PROMPT_TEXT ||
           put_text(json, "prompt", from->text);
}

static FX_MUST bool fields_put(const ProtobufCMessage *message, json_t *json, enum gw_kind *kind,
                               struct gw_problem *problem) {
    const char *model;
    bool ok;
    if (message->descriptor == &fractal__v1__chat_request__descriptor) {
        const Fractal__V1__ChatRequest *from = (const Fractal__V1__ChatRequest *)message;
        *kind = GW_CHAT;
        model = from->model;
        ok = chat_put(from, json, problem);
    } else if (message->descriptor == &fractal__v1__generate_request__descriptor) {
        const Fractal__V1__GenerateRequest *from = (const Fractal__V1__GenerateRequest *)message;
        *kind = GW_COMPLETION;
        model = from->model;
        ok = generate_put(from, json, problem);
    } else {
        const Fractal__V1__CountTokensRequest *from =
            (const Fractal__V1__CountTokensRequest *)message;
        bool is_chat = from->prompt_case == FRACTAL__V1__COUNT_TOKENS_REQUEST__PROMPT_CHAT;
        *kind = is_chat ? GW_CHAT : GW_COMPLETION;
        model = from->model;
        ok = count_put(from, json, problem);
    }
    return ok && (!*model || put_text(json, "model", model));
}

bool gw_rpc_json(const ProtobufCMessage *message, enum gw_kind *kind, json_t **out,
                 struct gw_problem *problem) {
    json_t *json = json_object();
    gw_problem_set(problem, GW_UNAVAILABLE, NULL, "no memory for the request");
    if (!json || !fields_put(message, json, kind, problem)) {
        json_decref(json);
        return false;
    }
    *out = json;
    return true;
}
