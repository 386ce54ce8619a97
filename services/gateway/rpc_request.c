/* A gRPC request as the JSON body of the HTTP API, so that one parser checks both. */
#include <stdio.h>
#include "fractal/v1/inference.pb-c.h"
#include "services/gateway/rpc.h"

/* Every json_object_set_new below takes its value, NULL too, and then fails. */

static bool put(json_t *json, const char *name, json_t *value) {
    return json_object_set_new(json, name, value) == 0;
}

static bool put_number(json_t *json, const char *name, float value) {
    return put(json, name, json_real((double)value)); /* NULL when it is not finite */
}

static bool put_count(json_t *json, const char *name, uint32_t value) {
    return !value || put(json, name, json_integer(value));
}

static bool put_nonzero(json_t *json, const char *name, float value) {
    return (value >= 0 && value <= 0) || put_number(json, name, value);
}

static FX_MUST bool put_text(json_t *json, const char *name, const char *text,
                             struct gw_problem *problem) {
    if (put(json, name, json_string(text))) return true;
    return gw_refuse(problem, GW_BAD_VALUE, name, "%s is not valid UTF-8", name);
}

static FX_MUST bool stop_put(const Fractal__V1__SamplingOptions *from, json_t *json,
                             struct gw_problem *problem) {
    json_t *stop = json_array();
    bool ok = true;
    for (size_t i = 0; ok && i < from->n_stop; i++)
        ok = json_array_append_new(stop, json_string(from->stop[i])) == 0;
    if (!ok) {
        json_decref(stop);
        return gw_refuse(problem, GW_BAD_VALUE, "stop", "stop is not valid UTF-8");
    }
    return put(json, "stop", stop);
}

static bool bias_put(const Fractal__V1__SamplingOptions *from, json_t *json) {
    json_t *bias = json_object();
    bool ok = true;
    for (size_t i = 0; ok && i < from->n_logit_bias; i++) {
        char token[16];
        (void)snprintf(token, sizeof token, "%u", from->logit_bias[i]->token);
        ok = put_number(bias, token, from->logit_bias[i]->bias);
    }
    if (ok) return put(json, "logit_bias", bias);
    json_decref(bias);
    return false;
}

static bool present_put(const Fractal__V1__SamplingOptions *from, json_t *json) {
    return (!from->temperature_presence_case ||
            put_number(json, "temperature", from->temperature)) &&
           (!from->top_p_presence_case || put_number(json, "top_p", from->top_p)) &&
           (!from->typical_p_presence_case || put_number(json, "typical_p", from->typical_p)) &&
           (!from->repetition_penalty_presence_case ||
            put_number(json, "repetition_penalty", from->repetition_penalty)) &&
           (!from->seed_presence_case || put(json, "seed", json_integer((json_int_t)from->seed)));
}

static FX_MUST bool sampling_put(const Fractal__V1__SamplingOptions *from, json_t *json,
                                 struct gw_problem *problem) {
    if (!from) return true;
    bool ok = present_put(from, json) && put_count(json, "top_k", from->top_k) &&
              put_nonzero(json, "min_p", from->min_p) &&
              put_nonzero(json, "presence_penalty", from->presence_penalty) &&
              put_nonzero(json, "frequency_penalty", from->frequency_penalty) &&
              put_count(json, "min_tokens", from->min_tokens) &&
              (!from->ignore_eos || put(json, "ignore_eos", json_true())) &&
              (!from->n_logit_bias || bias_put(from, json));
    if (!ok)
        return gw_refuse(problem, GW_BAD_VALUE, "sampling", "a number of sampling is not finite");
    return !from->n_stop || stop_put(from, json, problem);
}

static FX_MUST bool messages_put(Fractal__V1__ChatMessage **messages, size_t count, json_t *json,
                                 struct gw_problem *problem) {
    json_t *array = json_array();
    bool ok = put(json, "messages", array);
    for (size_t i = 0; ok && i < count; i++) {
        json_t *message = json_object();
        ok = json_array_append_new(array, message) == 0 &&
             put(message, "role", json_string(messages[i]->role)) &&
             put(message, "content", json_string(messages[i]->content));
    }
    return ok || gw_refuse(problem, GW_BAD_VALUE, "messages", "messages are not valid UTF-8");
}

static FX_MUST bool ids_put(const Fractal__V1__TokenIds *from, json_t *json,
                            struct gw_problem *problem) {
    json_t *ids = json_array();
    bool ok = put(json, "prompt", ids);
    for (size_t i = 0; ok && i < from->n_ids; i++)
        ok = json_array_append_new(ids, json_integer(from->ids[i])) == 0;
    return ok || gw_refuse(problem, GW_UNAVAILABLE, NULL, "no memory for the prompt");
}

static FX_MUST bool generate_put(const Fractal__V1__GenerateRequest *from, json_t *json,
                                 struct gw_problem *problem) {
    if (from->prompt_case == FRACTAL__V1__GENERATE_REQUEST__PROMPT_TEXT &&
        !put_text(json, "prompt", from->text, problem))
        return false;
    if (from->prompt_case == FRACTAL__V1__GENERATE_REQUEST__PROMPT_IDS &&
        !ids_put(from->ids, json, problem))
        return false;
    return put_count(json, "max_tokens", from->max_tokens) &&
           sampling_put(from->sampling, json, problem);
}

static FX_MUST bool chat_put(const Fractal__V1__ChatRequest *from, json_t *json,
                             struct gw_problem *problem) {
    return messages_put(from->messages, from->n_messages, json, problem) &&
           put_count(json, "max_tokens", from->max_tokens) &&
           sampling_put(from->sampling, json, problem);
}

static FX_MUST bool count_put(const Fractal__V1__CountTokensRequest *from, json_t *json,
                              struct gw_problem *problem) {
    if (from->prompt_case == FRACTAL__V1__COUNT_TOKENS_REQUEST__PROMPT_CHAT)
        return messages_put(from->chat->messages, from->chat->n_messages, json, problem);
    return from->prompt_case != FRACTAL__V1__COUNT_TOKENS_REQUEST__PROMPT_TEXT ||
           put_text(json, "prompt", from->text, problem);
}

static FX_MUST bool fields_put(const ProtobufCMessage *message, json_t *json, enum gw_kind *kind,
                               struct gw_problem *problem) {
    const char *model;
    bool ok;
    if (message->descriptor == &fractal__v1__chat_request__descriptor) {
        const Fractal__V1__ChatRequest *from = (const Fractal__V1__ChatRequest *)message;
        *kind = GW_CHAT;
        model = from->model;
        ok = put(json, "stream", json_true()) && chat_put(from, json, problem);
    } else if (message->descriptor == &fractal__v1__generate_request__descriptor) {
        const Fractal__V1__GenerateRequest *from = (const Fractal__V1__GenerateRequest *)message;
        *kind = GW_COMPLETION;
        model = from->model;
        ok = put(json, "stream", json_true()) && generate_put(from, json, problem);
    } else {
        const Fractal__V1__CountTokensRequest *from =
            (const Fractal__V1__CountTokensRequest *)message;
        bool is_chat = from->prompt_case == FRACTAL__V1__COUNT_TOKENS_REQUEST__PROMPT_CHAT;
        *kind = is_chat ? GW_CHAT : GW_COMPLETION;
        model = from->model;
        ok = count_put(from, json, problem);
    }
    return ok && (!*model || put_text(json, "model", model, problem));
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
