#pragma once
#include "common/http/server.h"

/* Private to common/http: the strict reading of a request's head. llhttp frames the body, but lets
 * some heads through that two servers could read differently; this grammar does not. */

/** How the body is framed and what becomes of the connection. */
struct fx_http_framing {
    bool chunked, has_length, expect_continue, close;
    uint64_t length;
};

/** `head`: from the method to the blank line's CRLF, in memory of the request's; names become lower
 *  case in place. On failure `status` is what to answer. @err INVALID_ARGUMENT */
FX_MUST bool fx_http__head_parse(uint8_t *head, size_t len, fx_arena *arena,
                                 struct fx_http_request *request, struct fx_http_framing *framing,
                                 unsigned *status, fx_error *err);
/** Only the request line, as soon as it is there. */
FX_MUST bool fx_http__line_check(fx_span line, unsigned *status, fx_error *err);
/** Splits request->target into segments and query. @err INVALID_ARGUMENT */
FX_MUST bool fx_http__target_parse(fx_arena *arena, struct fx_http_request *request, fx_error *err);
