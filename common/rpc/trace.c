#include "common/rpc/trace.h"
#include <stdio.h>
#include "common/base/hash.h"

enum { TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8, SPAN_AT = 36 };

static void random_hex(char *out, size_t bytes) {
    uint8_t raw[TRACE_ID_BYTES];
    fx_random(raw, bytes);
    fx_hex((fx_span){raw, bytes}, out);
}

static bool is_id_char(uint8_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

static bool is_request_id(fx_span text) {
    if (!text.at || text.len == 0 || text.len >= FX_REQUEST_ID_MAX) return false;
    for (size_t i = 0; i < text.len; i++)
        if (!is_id_char(text.at[i])) return false;
    return true;
}

/* "-<2*bytes lower-case hex>", not all zero */
static bool is_hex_part(const uint8_t *at, size_t digits) {
    bool any = false;
    if (at[0] != '-') return false;
    for (size_t i = 1; i <= digits; i++) {
        if (!((at[i] >= '0' && at[i] <= '9') || (at[i] >= 'a' && at[i] <= 'f'))) return false;
        any = any || at[i] != '0';
    }
    return any || digits == 2;
}

static bool is_traceparent(fx_span text) {
    return text.at && text.len == FX_TRACEPARENT_MAX - 1 && memcmp(text.at, "00", 2) == 0 &&
           is_hex_part(text.at + 2, 2 * (size_t)TRACE_ID_BYTES) &&
           is_hex_part(text.at + SPAN_AT - 1, 2 * (size_t)SPAN_ID_BYTES) &&
           is_hex_part(text.at + 52, 2);
}

void fx_trace_accept(fx_span request_id, fx_span traceparent, fx_trace *out) {
    enum { ID_AT = TRACE_ID_BYTES + SPAN_ID_BYTES, RANDOM_BYTES = ID_AT + TRACE_ID_BYTES };
    fx_trace trace = {0};
    uint8_t raw[RANDOM_BYTES];
    char hex[2 * RANDOM_BYTES + 1];
    bool has_id = is_request_id(request_id), has_parent = is_traceparent(traceparent);
    if (!has_id || !has_parent) {
        fx_random(raw, sizeof raw);
        fx_hex((fx_span){raw, sizeof raw}, hex);
    }
    if (has_id)
        memcpy(trace.request_id, request_id.at, request_id.len);
    else
        memcpy(trace.request_id, hex + 2 * (size_t)ID_AT, 2 * (size_t)TRACE_ID_BYTES);
    if (has_parent)
        memcpy(trace.traceparent, traceparent.at, traceparent.len);
    else
        (void)snprintf(trace.traceparent, sizeof trace.traceparent, "00-%.*s-%.*s-00",
                       2 * TRACE_ID_BYTES, hex, 2 * SPAN_ID_BYTES, hex + 2 * TRACE_ID_BYTES);
    *out = trace;
}

void fx_trace_child(const fx_trace *parent, fx_trace *out) {
    char span_id[2 * SPAN_ID_BYTES + 1];
    *out = *parent;
    random_hex(span_id, SPAN_ID_BYTES);
    memcpy(out->traceparent + SPAN_AT, span_id, sizeof span_id - 1);
}
