#pragma once
#include <jansson.h>
#include "services/gateway/errors.h"

enum gw_kind { GW_CHAT = 1, GW_COMPLETION = 2 };
enum { GW_COMPLETION_TOKENS_DEFAULT = 16, GW_MODEL_NAME_MAX = 128 };

/** The body of POST /v1/chat/completions or /v1/completions, checked field by field. */
struct gw_request {
    enum gw_kind kind;
    json_t *json;        /* owns what is below */
    const char *model;   /* NUL-terminated UTF-8 */
    json_t *messages;    /* chat: a non-empty array of checked messages */
    json_t *prompt;      /* completion: a string or an array of ids */
    uint32_t max_tokens; /* 0: up to the context */
    float temperature, top_p, min_p;
    uint32_t top_k;
    bool has_seed;
    uint64_t seed;
    bool stream, include_usage;
};

/** @own `out`: the caller, gw_request_done() */
FX_MUST bool gw_request_parse(enum gw_kind kind, fx_span body, struct gw_request *out,
                              struct gw_problem *problem);
/** The same of JSON that is there already, which it takes over. */
FX_MUST bool gw_request_read(enum gw_kind kind, json_t *json, struct gw_request *out,
                             struct gw_problem *problem);
/** Frees the JSON; may be called twice. */
void gw_request_done(struct gw_request *request);
