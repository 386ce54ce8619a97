#pragma once
#include "common/base/span.h"
#include "services/cli/cli.h"

/** A chat request whose answer is streamed. */
struct cli_question {
    const struct cli_gateways *gateways;
    const char *key, *body; /* of POST /v1/chat/completions, with "stream": true and one choice */
    void (*on_text)(void *user, fx_span text); /* the answer, piece by piece; never empty */
    void *user;
};

/** Asks, and follows the answer to its end. When the connection breaks or the gateway ends, it
 * comes back for exactly the rest, to the next gateway, until CLI_RETURN_MS_MAX without a new
 * token. Ctrl-C cancels the answer. @err as cli_http, or what the gateway said */
enum { CLI_RETURN_MS_MAX = 30000 };
FX_MUST bool cli_answer_follow(const struct cli_question *question, fx_error *err);
