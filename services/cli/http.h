#pragma once
#include "common/base/error.h"
#include "common/base/span.h"

/** One HTTP request by libcurl, blocking; Ctrl-C ends it (the gateway then cancels the work). */

enum { CLI_HTTP_BODY_BYTES_MAX = 4 * 1024 * 1024, CLI_HTTP_SILENCE_S_MAX = 60 };

struct cli_http_request {
    const char *url;     /* whole */
    const char *api_key; /* Authorization: Bearer */
    const char *body;    /* JSON; NULL: GET */
    const char *once;    /* Idempotency-Key; NULL: none */
    /** Bytes of a 200 reply that is an event stream, as they come; NULL: kept as the body. False
     *  stops, `err` is set. */
    bool (*on_stream)(void *user, fx_span bytes, fx_error *err);
    void *user;
    bool last_words; /* sent although Ctrl-C was pressed */
};
struct cli_http_reply {
    long status;
    char *body; /* what on_stream did not get; NUL at the end, never NULL. @own caller, free */
    size_t body_len;
};

/** Any status is a reply. @err UNAVAILABLE (nobody answers), CANCELLED (Ctrl-C), DATA_LOSS (cut
 *  off), DEADLINE_EXCEEDED (silent too long), RESOURCE_EXHAUSTED, or what on_stream said */
FX_MUST bool cli_http(const struct cli_http_request *request, struct cli_http_reply *reply,
                      fx_error *err);
/** What a reply that isn't 200 says: {"error":{"message"}} or its status, with a remedy. False. */
bool cli_http_refused(const struct cli_http_reply *reply, fx_error *err);
