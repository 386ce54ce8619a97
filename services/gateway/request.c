#include "services/gateway/request.h"
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include "common/base/heap.h"
#include "common/base/logprob.h"
#include "common/http/json.h"
#include "services/gateway/messages.h"

/* A value that asks for nothing, for fields that are not served yet. null always is one. */
enum neutral {
    NEUTRAL_FALSE = 1,
    NEUTRAL_ZERO = 2,
    NEUTRAL_EMPTY = 4, /* [] or {} */
    NEUTRAL_BLANK = 8, /* "" */
    NEUTRAL_TRUE = 16,
    NEUTRAL_ANY = 32, /* changes nothing here whatever it says */
};

struct field {
    const char *name;
    unsigned kinds;
    bool (*read)(const struct field *field, json_t *value, struct gw_request *out,
                 struct gw_problem *problem);
    size_t offset;
    double min, max;
    unsigned neutral;
    const char *word; /* one more neutral string */
};

static void *member(const struct field *field, struct gw_request *out) {
    return (char *)out + field->offset;
}

static bool read_flag(const struct field *field, json_t *value, struct gw_request *out,
                      struct gw_problem *problem) {
    if (!json_is_boolean(value))
        return gw_refuse(problem, GW_BAD_VALUE, field->name, "%s must be true or false",
                         field->name);
    *(bool *)member(field, out) = json_is_true(value);
    return true;
}

static bool read_number(const struct field *field, json_t *value, struct gw_request *out,
                        struct gw_problem *problem) {
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= field->min && number <= field->max))
        return gw_refuse(problem, GW_BAD_VALUE, field->name, "%s must be a number from %g to %g",
                         field->name, field->min, field->max);
    *(float *)member(field, out) = (float)number;
    return true;
}

/* An integer, also when it is written as 16.0. */
static bool integral(const json_t *value, double *out) {
    *out = json_number_value(value);
    return json_is_number(value) && trunc(*out) == *out;
}

static bool read_count(const struct field *field, json_t *value, struct gw_request *out,
                       struct gw_problem *problem) {
    double number;
    if (!integral(value, &number) || number < field->min || number > field->max)
        return gw_refuse(problem, GW_BAD_VALUE, field->name,
                         "%s must be an integer from %.0f to %.0f", field->name, field->min,
                         field->max);
    *(uint32_t *)member(field, out) = number < 0 ? 0 : (uint32_t)number;
    return true;
}

/* Of a completion: how many of the likeliest. */
static bool read_logprobs(const struct field *field, json_t *value, struct gw_request *out,
                          struct gw_problem *problem) {
    if (json_is_false(value)) return true;
    out->logprobs = true;
    return read_count(field, value, out, problem);
}

/* max_tokens and max_completion_tokens are ceilings: the lower one holds. */
static bool read_ceiling(const struct field *field, json_t *value, struct gw_request *out,
                         struct gw_problem *problem) {
    uint32_t before = out->max_tokens;
    if (!read_count(field, value, out, problem)) return false;
    if (before && before < out->max_tokens) out->max_tokens = before;
    return true;
}

static bool read_seed(const struct field *field, json_t *value, struct gw_request *out,
                      struct gw_problem *problem) {
    if (!json_is_integer(value))
        return gw_refuse(problem, GW_BAD_VALUE, field->name, "seed must be a 64-bit integer");
    out->seed = (uint64_t)json_integer_value(value);
    out->has_seed = true;
    return true;
}

static bool read_model(const struct field *field, json_t *value, struct gw_request *out,
                       struct gw_problem *problem) {
    size_t len = json_string_length(value);
    if (!json_is_string(value) || !len || len > GW_MODEL_NAME_MAX)
        return gw_refuse(problem, GW_BAD_VALUE, field->name,
                         "model must be a name of 1 to %d bytes", GW_MODEL_NAME_MAX);
    out->model = json_string_value(value);
    return true;
}

static bool read_messages(const struct field *field, json_t *value, struct gw_request *out,
                          struct gw_problem *problem) {
    (void)field;
    out->messages = value;
    return gw_messages_check(value, problem);
}

static bool read_prompt(const struct field *field, json_t *value, struct gw_request *out,
                        struct gw_problem *problem) {
    (void)field;
    return gw_prompt_check(value, &out->prompt, problem);
}

static bool read_text(const struct field *field, json_t *value, struct gw_request *out,
                      struct gw_problem *problem) {
    out->prompt = value;
    return json_is_string(value) ||
           gw_refuse(problem, GW_BAD_VALUE, field->name, "%s must be a string", field->name);
}

static bool read_tokens(const struct field *field, json_t *value, struct gw_request *out,
                        struct gw_problem *problem) {
    out->tokens = value;
    return gw_ids_check(value, field->name, problem);
}

static bool read_variables(const struct field *field, json_t *value, struct gw_request *out,
                           struct gw_problem *problem) {
    out->variables = value;
    return gw_variables_check(value, field->name, problem);
}

static bool read_documents(const struct field *field, json_t *value, struct gw_request *out,
                           struct gw_problem *problem) {
    out->documents = value;
    return gw_documents_check(value, field->name, problem);
}

static bool read_stop(const struct field *field, json_t *value, struct gw_request *out,
                      struct gw_problem *problem) {
    (void)field;
    return gw_request__stop(value, out, problem);
}

static bool read_logit_bias(const struct field *field, json_t *value, struct gw_request *out,
                            struct gw_problem *problem) {
    (void)field;
    return gw_request__logit_bias(value, out, problem);
}

static bool read_stream_options(const struct field *field, json_t *value, struct gw_request *out,
                                struct gw_problem *problem) {
    const char *key;
    json_t *option;
    if (!json_is_object(value))
        return gw_refuse(problem, GW_BAD_VALUE, field->name, "stream_options must be an object");
    json_object_foreach(value, key, option) {
        bool usage = strcmp(key, "include_usage") == 0;
        if (!usage && strcmp(key, "include_obfuscation") != 0)
            return gw_refuse(problem, GW_UNKNOWN, field->name,
                             "stream_options knows include_usage");
        if (!json_is_boolean(option) || (!usage && json_is_true(option)))
            return gw_refuse(problem, GW_BAD_VALUE, field->name,
                             "stream_options.include_usage must be true or false");
        if (usage) out->include_usage = json_is_true(option);
    }
    return true;
}

static bool is_neutral(const struct field *field, const json_t *value) {
    double number = json_number_value(value);
    unsigned n = field->neutral;
    if (n & NEUTRAL_ANY) return true;
    if ((n & NEUTRAL_FALSE) && json_is_false(value)) return true;
    if ((n & NEUTRAL_TRUE) && json_is_true(value)) return true;
    if ((n & NEUTRAL_ZERO) && json_is_number(value) && fpclassify(number) == FP_ZERO) return true;
    if (json_is_string(value) && field->word && strcmp(json_string_value(value), field->word) == 0)
        return true;
    if ((n & NEUTRAL_BLANK) && json_is_string(value) && !json_string_length(value)) return true;
    if (!(n & NEUTRAL_EMPTY)) return false;
    return (json_is_array(value) && !json_array_size(value)) ||
           (json_is_object(value) && !json_object_size(value));
}

static bool read_neutral(const struct field *field, json_t *value, struct gw_request *out,
                         struct gw_problem *problem) {
    (void)out;
    if (is_neutral(field, value)) return true;
    return gw_refuse(problem, GW_UNSUPPORTED, field->name, "%s is not supported with this value",
                     field->name);
}

/* response_format and modalities ask for nothing when they ask for text. */
static bool read_text_only(const struct field *field, json_t *value, struct gw_request *out,
                           struct gw_problem *problem) {
    const json_t *inner = json_is_object(value) ? json_object_get(value, "type")
                          : json_is_array(value) && json_array_size(value) == 1
                              ? json_array_get(value, 0)
                              : NULL;
    (void)out;
    if (json_is_string(inner) && strcmp(json_string_value(inner), "text") == 0) return true;
    return gw_refuse(problem, GW_UNSUPPORTED, field->name, "%s other than text is not supported",
                     field->name);
}

#define BOTH (GW_CHAT | GW_COMPLETION)
#define ALL (BOTH | GW_TOKENIZE | GW_DETOKENIZE)
#define TEMPLATED (GW_CHAT | GW_TOKENIZE)
#define AT(member) offsetof(struct gw_request, member)
#define NEUTRAL(name, kinds, neutral, word)                                                        \
    { name, kinds, read_neutral, 0, 0, 0, neutral, word }

static const struct field fields[] = {
    {"model",                 ALL,           read_model,          0,                         0,   0,                          0, NULL},
    {"messages",              TEMPLATED,     read_messages,       0,                         0,   0,                          0, NULL},
    {"prompt",                GW_COMPLETION, read_prompt,         0,                         0,   0,                          0, NULL},
    {"prompt",                GW_TOKENIZE,   read_text,           0,                         0,   0,                          0, NULL},
    {"tokens",                GW_DETOKENIZE, read_tokens,         0,                         0,   0,                          0, NULL},
    {"chat_template_kwargs",  TEMPLATED,     read_variables,      0,                         0,   0,                          0, NULL},
    {"documents",             TEMPLATED,     read_documents,      0,                         0,   0,                          0, NULL},
    {"add_generation_prompt", TEMPLATED,     read_flag,           AT(add_generation_prompt), 0,   0,                          0, NULL},
    {"add_special_tokens",    GW_TOKENIZE,   read_flag,           AT(add_special),           0,   0,                          0, NULL},
    {"return_token_strs",     GW_TOKENIZE,   read_flag,           AT(token_strs),            0,   0,                          0, NULL},
    {"max_tokens",            BOTH,          read_ceiling,        AT(max_tokens),            1,   INT32_MAX,                  0, NULL},
    {"max_completion_tokens", GW_CHAT,       read_ceiling,        AT(max_tokens),            1,   INT32_MAX,                  0, NULL},
    {"temperature",           BOTH,          read_number,         AT(temperature),           0,   2,                          0, NULL},
    {"top_p",                 BOTH,          read_number,         AT(top_p),                 0,   1,                          0, NULL},
    {"top_k",                 BOTH,          read_count,          AT(top_k),                 -1,  INT32_MAX,                  0, NULL},
    {"min_p",                 BOTH,          read_number,         AT(min_p),                 0,   1,                          0, NULL},
    {"seed",                  BOTH,          read_seed,           0,                         0,   0,                          0, NULL},
    {"typical_p",             BOTH,          read_number,         AT(typical_p),             0,   1,                          0, NULL},
    {"presence_penalty",      BOTH,          read_number,         AT(presence),              -2,  2,                          0, NULL},
    {"frequency_penalty",     BOTH,          read_number,         AT(frequency),             -2,  2,                          0, NULL},
    {"repetition_penalty",    BOTH,          read_number,         AT(repetition),            0.1, 10,                         0, NULL},
    {"logit_bias",            BOTH,          read_logit_bias,     0,                         0,   0,                          0, NULL},
    {"stop",                  BOTH,          read_stop,           0,                         0,   0,                          0, NULL},
    {"ignore_eos",            BOTH,          read_flag,           AT(ignore_eos),            0,   0,                          0, NULL},
    {"min_tokens",            BOTH,          read_count,          AT(min_tokens),            0,   INT32_MAX,                  0, NULL},
    {"n",                     BOTH,          read_count,          AT(n),                     1,   GW_CHOICES_MAX,             0, NULL},
    {"logprobs",              GW_CHAT,       read_flag,           AT(logprobs),              0,   0,                          0, NULL},
    {"logprobs",              GW_COMPLETION, read_logprobs,       AT(top_logprobs),          0,   GW_COMPLETION_LOGPROBS_MAX, 0,
     NULL                                                                                                                            },
    {"top_logprobs",          GW_CHAT,       read_count,          AT(top_logprobs),          0,   FX_TOP_LOGPROBS_MAX,        0, NULL},
    {"stream",                BOTH,          read_flag,           AT(stream),                0,   0,                          0, NULL},
    {"stream_options",        BOTH,          read_stream_options, 0,                         0,   0,                          0, NULL},
    {"response_format",       BOTH,          read_text_only,      0,                         0,   0,                          0, NULL},
    {"modalities",            GW_CHAT,       read_text_only,      0,                         0,   0,                          0, NULL},
    NEUTRAL("user", BOTH, NEUTRAL_ANY, NULL),
    NEUTRAL("metadata", BOTH, NEUTRAL_ANY, NULL),
    NEUTRAL("safety_identifier", BOTH, NEUTRAL_ANY, NULL),
    NEUTRAL("prompt_cache_key", BOTH, NEUTRAL_ANY, NULL),
    NEUTRAL("prompt_cache_retention", BOTH, NEUTRAL_ANY, NULL),
    NEUTRAL("service_tier", BOTH, NEUTRAL_ANY, NULL),
    NEUTRAL("parallel_tool_calls", GW_CHAT, NEUTRAL_ANY, NULL),
    NEUTRAL("store", BOTH, NEUTRAL_FALSE, NULL),
    {"best_of",               GW_COMPLETION, read_count,          AT(best_of),               1,   GW_BEST_OF_MAX,             0, NULL},
    NEUTRAL("stop_token_ids", BOTH, NEUTRAL_EMPTY, NULL),
    NEUTRAL("skip_special_tokens", BOTH, NEUTRAL_TRUE, NULL),
    NEUTRAL("spaces_between_special_tokens", BOTH, NEUTRAL_TRUE, NULL),
    NEUTRAL("include_stop_str_in_output", BOTH, NEUTRAL_FALSE, NULL),
    NEUTRAL("use_beam_search", BOTH, NEUTRAL_FALSE, NULL),
    NEUTRAL("truncate_prompt_tokens", BOTH, 0, NULL),
    NEUTRAL("priority", BOTH, NEUTRAL_ZERO, NULL),
    NEUTRAL("tools", TEMPLATED, NEUTRAL_EMPTY, NULL),
    NEUTRAL("chat_template", TEMPLATED, 0, NULL),
    NEUTRAL("continue_final_message", TEMPLATED, NEUTRAL_FALSE, NULL),
    NEUTRAL("tool_choice", GW_CHAT, 0, "none"),
    NEUTRAL("functions", GW_CHAT, NEUTRAL_EMPTY, NULL),
    NEUTRAL("function_call", GW_CHAT, 0, "none"),
    NEUTRAL("echo", GW_COMPLETION, NEUTRAL_FALSE, NULL),
    NEUTRAL("suffix", GW_COMPLETION, NEUTRAL_BLANK, NULL),
    NEUTRAL("audio", GW_CHAT, 0, NULL),
    NEUTRAL("prediction", GW_CHAT, 0, NULL),
    NEUTRAL("reasoning_effort", GW_CHAT, 0, "none"),
    NEUTRAL("verbosity", GW_CHAT, 0, NULL),
    NEUTRAL("web_search_options", GW_CHAT, 0, NULL),
};

static const struct field *find(const char *name, enum gw_kind kind) {
    for (size_t i = 0; i < FX_COUNT(fields); i++)
        if ((fields[i].kinds & kind) && strcmp(fields[i].name, name) == 0) return &fields[i];
    return NULL;
}

static bool fields_read(struct gw_request *out, struct gw_problem *problem) {
    const char *key;
    json_t *value;
    json_object_foreach(out->json, key, value) {
        const struct field *field = find(key, out->kind);
        if (!field) return gw_refuse(problem, GW_UNKNOWN, key, "this parameter is not known here");
        if (json_is_null(value)) continue;
        if (!field->read(field, value, out, problem)) return false;
    }
    return true;
}

static bool required_check(const struct gw_request *out, struct gw_problem *problem) {
    const bool is_tokenize = out->kind == GW_TOKENIZE;
    if (!out->model) return gw_refuse(problem, GW_MISSING, "model", "model is required");
    if (out->kind == GW_CHAT && !out->messages)
        return gw_refuse(problem, GW_MISSING, "messages", "messages is required");
    if (out->kind == GW_COMPLETION && !out->prompt)
        return gw_refuse(problem, GW_MISSING, "prompt", "prompt is required");
    if (is_tokenize && !out->prompt && !out->messages)
        return gw_refuse(problem, GW_MISSING, "prompt", "prompt or messages is required");
    if (is_tokenize && out->prompt && out->messages)
        return gw_refuse(problem, GW_BAD_VALUE, "messages", "either prompt or messages");
    if (out->kind == GW_DETOKENIZE && !out->tokens)
        return gw_refuse(problem, GW_MISSING, "tokens", "tokens is required");
    return true;
}

/* Fields that must agree. */
static bool together_check(const struct gw_request *out, struct gw_problem *problem) {
    if (!out->messages && (out->variables || out->documents))
        return gw_refuse(problem, GW_BAD_VALUE,
                         out->variables ? "chat_template_kwargs" : "documents",
                         "only a chat's template takes it: messages is missing");
    if (out->best_of && out->best_of < out->n)
        return gw_refuse(problem, GW_BAD_VALUE, "best_of", "best_of is below n");
    if (out->best_of > out->n)
        return gw_refuse(problem, GW_UNSUPPORTED, "best_of",
                         "best_of above n is not supported: every answer made is sent");
    if (out->top_logprobs && !out->logprobs)
        return gw_refuse(problem, GW_BAD_VALUE, "top_logprobs",
                         "top_logprobs needs logprobs: true");
    if (out->max_tokens && out->min_tokens > out->max_tokens)
        return gw_refuse(problem, GW_BAD_VALUE, "min_tokens", "min_tokens is above max_tokens");
    return true;
}

static void defaults_set(struct gw_request *out) {
    if (out->messages) /* a template writes its own */
        out->add_special = json_is_true(json_object_get(out->json, "add_special_tokens"));
    if (out->kind == GW_COMPLETION && !out->max_tokens)
        out->max_tokens = GW_COMPLETION_TOKENS_DEFAULT;
    /* 0 means "off" in the task: keep only the best */
    if (!(out->top_p > 0)) out->top_p = FLT_MIN;
    if (!(out->typical_p > 0)) out->typical_p = FLT_MIN;
}

bool gw_request_parse(enum gw_kind kind, fx_span body, struct gw_request *out,
                      struct gw_problem *problem) {
    json_t *json;
    fx_error err = {0};
    if (!fx_json_parse(body, &json, &err))
        return gw_refuse(problem, err.code == FX_RESOURCE_EXHAUSTED ? GW_UNAVAILABLE : GW_BAD_JSON,
                         NULL, "the body: %s", err.text);
    return gw_request_read(kind, json, out, problem);
}

bool gw_request_read(enum gw_kind kind, json_t *json, struct gw_request *out,
                     struct gw_problem *problem) {
    struct gw_request request = {.kind = kind,
                                 .json = json,
                                 .add_special = true,
                                 .add_generation_prompt = true,
                                 .temperature = 1,
                                 .top_p = 1,
                                 .typical_p = 1,
                                 .repetition = 1,
                                 .n = 1};
    bool ok = json_is_object(request.json) ||
              gw_refuse(problem, GW_BAD_JSON, NULL, "the body must be a JSON object");
    if (!ok || !fields_read(&request, problem) || !required_check(&request, problem) ||
        !together_check(&request, problem)) {
        gw_request_done(&request);
        return false;
    }
    defaults_set(&request);
    *out = request;
    return true;
}

void gw_request_drop_json(struct gw_request *request) {
    json_decref(request->json);
    request->json = request->messages = request->prompt = request->tokens = NULL;
    request->variables = request->documents = NULL;
    request->model = NULL;
}

void gw_request_done(struct gw_request *request) {
    gw_request_drop_json(request);
    for (uint32_t i = 0; i < request->stop_count; i++)
        free(request->stop[i]);
    request->stop_count = 0;
    free(fx_take(request->bias));
    request->bias_count = 0;
}
