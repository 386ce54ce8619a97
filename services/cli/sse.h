#pragma once
#include "common/base/error.h"
#include "common/base/span.h"

/** Reads a stream of server-sent events from bytes cut anywhere. Only `data` fields and comments
 *  matter to us; other fields are skipped. @thread one owner */
typedef struct cli_sse cli_sse;

enum { CLI_SSE_EVENT_BYTES_MAX = 1024 * 1024 };

struct cli_sse_opts {
    /** One event's data, its lines joined by LF. False stops; `err` is set. */
    bool (*on_data)(void *user, fx_span data, fx_error *err);
    void *user;
};

/** @own caller, cli_sse_free @err RESOURCE_EXHAUSTED */
FX_MUST bool cli_sse_new(const struct cli_sse_opts *opts, cli_sse **out, fx_error *err);
void cli_sse_free(cli_sse *sse);
FX_DEFINE_AUTO(cli_sse, cli_sse_free)
/** @err RESOURCE_EXHAUSTED (an event over the limit), or what on_data said. Data after [DONE] is
 *  ignored. */
FX_MUST bool cli_sse_feed(cli_sse *sse, fx_span bytes, fx_error *err);
/** `data: [DONE]` was seen: the stream is whole. An event without its blank line does not count. */
bool cli_sse_is_done(const cli_sse *sse);
/** Comments seen so far. */
uint64_t cli_sse_comments(const cli_sse *sse);
