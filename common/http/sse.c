#include "common/http/sse.h"

void fx_sse_open(fx_buf *out) {
    fx_buf_put(out, fx_span_str("data: "));
}

void fx_sse_close(fx_buf *out) {
    fx_buf_put(out, fx_span_str("\n\n"));
}

void fx_sse_data(fx_buf *out, fx_span line) {
    fx_sse_open(out);
    fx_buf_put(out, line);
    fx_sse_close(out);
}

void fx_sse_comment(fx_buf *out, const char *text) {
    fx_buf_put(out, fx_span_str(": "));
    fx_buf_put(out, fx_span_str(text));
    fx_buf_put(out, fx_span_str("\n\n"));
}

void fx_sse_done(fx_buf *out) {
    fx_buf_put(out, fx_span_str("data: [DONE]\n\n"));
}
