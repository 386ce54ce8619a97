#pragma once
#include <jansson.h>
#include "services/gateway/errors.h"

enum gw_kind { GW_CHAT = 1, GW_COMPLETION = 2, GW_TOKENIZE = 4, GW_DETOKENIZE = 8 };
enum {
    GW_COMPLETION_TOKENS_DEFAULT = 16,
    GW_MODEL_NAME_MAX = 128,
    GW_STOPS_MAX = 4,
    GW_STOP_BYTES_MAX = 1024,
    GW_BIASES_MAX = 1024,
    GW_CHOICES_MAX = 16,
    GW_COMPLETION_LOGPROBS_MAX = 5,
    GW_BEST_OF_MAX = 20,
};

/** Added to the logit of a token. */
struct gw_bias {
    uint32_t id;
    float value;
};

/** The body of a POST, checked field by field. */
struct gw_request {
    enum gw_kind kind;
    json_t *json;      /* owns the next six */
    const char *model; /* NUL-terminated UTF-8 */
    json_t *messages;  /* a non-empty array of checked messages; NULL: it is no chat */
    json_t *prompt;    /* completion: a string or an array of ids; tokenize: a string */
    json_t *tokens;    /* detokenize: a non-empty array of ids */
    json_t *variables; /* more names for the chat template, an object; NULL: none */
    json_t *documents; /* for the chat template, an array of objects; NULL: none */
    bool add_special;  /* the tokenizer's own tokens around the text, such as BOS */
    bool add_generation_prompt, token_strs;
    uint32_t max_tokens; /* 0: up to the context */
    float temperature, top_p, min_p;
    float typical_p, presence, frequency, repetition;
    uint32_t top_k, min_tokens;
    bool has_seed, ignore_eos;
    uint64_t seed;
    bool stream, include_usage, logprobs;
    uint32_t top_logprobs, n, best_of; /* n: answers wanted, 1 to GW_CHOICES_MAX */
    char *stop[GW_STOPS_MAX];          /* owned */
    uint32_t stop_count;
    struct gw_bias *bias; /* owned; NULL: none */
    uint32_t bias_count;
};

/** @own `out`: the caller, gw_request_done() */
FX_MUST bool gw_request_parse(enum gw_kind kind, fx_span body, struct gw_request *out,
                              struct gw_problem *problem);
/** The same of JSON that is there already, which it takes over. */
FX_MUST bool gw_request_read(enum gw_kind kind, json_t *json, struct gw_request *out,
                             struct gw_problem *problem);
/** Frees the JSON and forgets what it owned: the prompt is made. The rest stays. */
void gw_request_drop_json(struct gw_request *request);
/** Frees everything; may be called twice. */
void gw_request_done(struct gw_request *request);

/* request_lists.c: `stop` and `logit_bias`. */
FX_MUST bool gw_request__stop(const json_t *value, struct gw_request *out,
                              struct gw_problem *problem);
FX_MUST bool gw_request__logit_bias(json_t *value, struct gw_request *out,
                                    struct gw_problem *problem);
/** Is every biased id one of the vocabulary? */
FX_MUST bool gw_request_check_ids(const struct gw_request *request, uint32_t vocabulary,
                                  struct gw_problem *problem);
