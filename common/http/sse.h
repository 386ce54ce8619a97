#pragma once
#include "common/base/span.h"

/** Server-sent events as the official clients read them: only `data:` lines and comments, never
 *  `id:`, `retry:` or `event:`. The writers count what does not fit, as fx_buf does. */

/** `data: <line>` and a blank line. `line` holds no line break (JSON does not). */
void fx_sse_data(fx_buf *out, fx_span line);
/** The same in parts: `data: `, then the line by other writers, then its end. */
void fx_sse_open(fx_buf *out);
void fx_sse_close(fx_buf *out);
/** `: <text>` and a blank line. */
void fx_sse_comment(fx_buf *out, const char *text);
/** `data: [DONE]` and a blank line, byte-exact. */
void fx_sse_done(fx_buf *out);
