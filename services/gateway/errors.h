#pragma once
#include <stdbool.h>
#include "common/base/error.h"
#include "common/http/server.h"

/** What a client is told, each with its status, type and code (errors.c has the table). */
enum gw_reason {
    GW_BAD_JSON,
    GW_BAD_VALUE,   /* a field's value; param names it */
    GW_MISSING,     /* a required field */
    GW_UNKNOWN,     /* a field nobody knows */
    GW_UNSUPPORTED, /* a field we know and do not serve yet, with a value that matters */
    GW_TOO_LONG,    /* the prompt does not fit the context */
    GW_BAD_PROMPT,  /* the template or the tokenizer refuses it */
    GW_NO_TEMPLATE,
    GW_NO_KEY,
    GW_BAD_KEY,
    GW_NO_MODEL,
    GW_NO_GENERATION, /* none that the key may see */
    GW_NO_ROUTE,
    GW_NO_METHOD,
    GW_OLD_HTTP,
    GW_KEY_REUSED,  /* an Idempotency-Key with another request */
    GW_BUSY,        /* 429: a queue is full */
    GW_LIMITED,     /* 429: a rate limit of the key or its tenant */
    GW_UNAVAILABLE, /* 503: a part of the system is away */
    GW_SHUTTING_DOWN,
    GW_FAILED,      /* the generation ended in an error */
    GW_STALLED,     /* no token for too long */
    GW_WORKER_LOST, /* no worker is left to go on with it */
    GW_SLOW,        /* the client does not read its answer */
    GW_CANCELLED,   /* somebody else cancelled it */
    GW_INTERNAL,
};

enum { GW_PARAM_MAX = 96, GW_MESSAGE_MAX = 480, GW_RETRY_MS = 1000 };

/** A problem with texts of its own; plain data. */
struct gw_problem {
    enum gw_reason reason;
    char param[GW_PARAM_MAX]; /* "" = null */
    char message[GW_MESSAGE_MAX];
    uint32_t retry_ms; /* 0: none */
    bool no_retry;     /* waiting won't do, whatever the status says to a client that retries */
};

/** `return gw_refuse(problem, GW_BAD_VALUE, "temperature", "must be ...");` fills and is false.
 *  `param` may be NULL. */
#define gw_refuse(problem, reason, param, ...)                                                     \
    (gw_problem_set((problem), (reason), (param), __VA_ARGS__), false)
void gw_problem_set(struct gw_problem *problem, enum gw_reason reason, const char *param,
                    const char *fmt, ...) FX_PRINTF(4, 5);
/** How a call to another service failed: what the client sees of it. `what` says whom we asked. */
void gw_problem_of_rpc(struct gw_problem *problem, enum fx_code code, const char *text,
                       uint32_t retry_ms, const char *what);
/** Borrows from `problem`. */
struct fx_http_problem gw_problem_http(const struct gw_problem *problem);
