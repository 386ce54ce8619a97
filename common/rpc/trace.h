#pragma once
#include <stdbool.h>
#include "common/base/span.h"

enum { FX_REQUEST_ID_MAX = 65, FX_TRACEPARENT_MAX = 56 };

/** What travels with a request through every service: metadata x-request-id and traceparent
 *  (W3C Trace Context, version 00). Plain data, copied freely. */
typedef struct fx_trace {
    char request_id[FX_REQUEST_ID_MAX];   /* [A-Za-z0-9._-]{1,64} */
    char traceparent[FX_TRACEPARENT_MAX]; /* 00-<32 hex>-<16 hex>-<2 hex> */
} fx_trace;

/** Takes what the caller sent; a missing or malformed part is made anew at random. */
void fx_trace_accept(fx_span request_id, fx_span traceparent, fx_trace *out);
/** The same trace with a new span id: what a service sends onwards. */
void fx_trace_child(const fx_trace *parent, fx_trace *out);
