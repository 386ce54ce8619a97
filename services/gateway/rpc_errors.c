/* Errors of the HTTP API as a gRPC status and its details. */
#include <ctype.h>
#include <stdio.h>
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "services/gateway/rpc.h"

enum { REASON_MAX = 48, DETAIL_BYTES = 1024, DETAILS = 3 };

enum fx_code gw_rpc_code(const struct gw_problem *problem) {
    if (problem->reason == GW_CANCELLED) return FX_ABORTED; /* by somebody else */
    switch (gw_problem_http(problem).status) {
    case 400:
    case 422: return FX_INVALID_ARGUMENT;
    case 401: return FX_UNAUTHENTICATED;
    case 404: return FX_NOT_FOUND;
    case 408:
    case 413:
    case 429: return FX_RESOURCE_EXHAUSTED;
    case 503: return FX_UNAVAILABLE;
    default: return FX_INTERNAL;
    }
}

struct details {
    Google__Protobuf__Any any[DETAILS], *at[DETAILS];
    uint8_t bytes[DETAILS][DETAIL_BYTES];
    size_t count;
};

static void detail_add(struct details *details, const ProtobufCMessage *message, char *url) {
    size_t len = protobuf_c_message_get_packed_size(message), i = details->count++;
    FX_ASSERT(len <= DETAIL_BYTES);
    (void)protobuf_c_message_pack(message, details->bytes[i]);
    details->any[i] = (Google__Protobuf__Any)GOOGLE__PROTOBUF__ANY__INIT;
    details->any[i].type_url = url;
    details->any[i].value = (ProtobufCBinaryData){len, details->bytes[i]};
    details->at[i] = &details->any[i];
}

static void info_add(struct details *details, const struct fx_http_problem *http) {
    static char url[] = "type.googleapis.com/google.rpc.ErrorInfo", domain[] = "fractal",
                type_key[] = "type";
    Google__Rpc__ErrorInfo info = GOOGLE__RPC__ERROR_INFO__INIT;
    Google__Rpc__ErrorInfo__MetadataEntry type = GOOGLE__RPC__ERROR_INFO__METADATA_ENTRY__INIT;
    Google__Rpc__ErrorInfo__MetadataEntry *entries[] = {&type};
    char reason[REASON_MAX], type_text[REASON_MAX];
    (void)snprintf(reason, sizeof reason, "%s", http->code);
    for (char *at = reason; *at; at++)
        *at = (char)toupper((unsigned char)*at);
    (void)snprintf(type_text, sizeof type_text, "%s", http->type);
    type.key = type_key;
    type.value = type_text;
    info.reason = reason;
    info.domain = domain;
    info.metadata = entries;
    info.n_metadata = 1;
    detail_add(details, &info.base, url);
}

static void field_add(struct details *details, struct gw_problem *problem) {
    static char url[] = "type.googleapis.com/google.rpc.BadRequest";
    Google__Rpc__BadRequest bad = GOOGLE__RPC__BAD_REQUEST__INIT;
    Google__Rpc__BadRequest__FieldViolation field = GOOGLE__RPC__BAD_REQUEST__FIELD_VIOLATION__INIT;
    Google__Rpc__BadRequest__FieldViolation *fields[] = {&field};
    field.field = problem->param;
    field.description = problem->message;
    bad.field_violations = fields;
    bad.n_field_violations = 1;
    detail_add(details, &bad.base, url);
}

static void retry_add(struct details *details, uint32_t retry_ms) {
    static char url[] = "type.googleapis.com/google.rpc.RetryInfo";
    Google__Rpc__RetryInfo retry = GOOGLE__RPC__RETRY_INFO__INIT;
    Google__Protobuf__Duration delay = GOOGLE__PROTOBUF__DURATION__INIT;
    delay.seconds = retry_ms / 1000;
    delay.nanos = (int32_t)(retry_ms % 1000) * 1000000;
    retry.retry_delay = &delay;
    detail_add(details, &retry.base, url);
}

size_t gw_rpc_status(const struct gw_problem *problem, uint8_t out[GW_RPC_STATUS_MAX]) {
    struct gw_problem copy = *problem;
    struct fx_http_problem http = gw_problem_http(&copy);
    struct details details = {.count = 0};
    Google__Rpc__Status status = GOOGLE__RPC__STATUS__INIT;
    info_add(&details, &http);
    if (*copy.param) field_add(&details, &copy);
    if (copy.retry_ms && !copy.no_retry) retry_add(&details, copy.retry_ms);
    status.code = (int32_t)gw_rpc_code(&copy);
    status.message = copy.message;
    status.details = details.at;
    status.n_details = details.count;
    FX_ASSERT(google__rpc__status__get_packed_size(&status) <= GW_RPC_STATUS_MAX);
    return google__rpc__status__pack(&status, out);
}

void gw_rpc_details(fx_call *call, const struct gw_problem *problem) {
    uint8_t bytes[GW_RPC_STATUS_MAX];
    char ms[16];
    if (problem->no_retry) {
        fx_call_trailer(call, "x-should-retry", "false");
    } else if (problem->retry_ms) {
        (void)snprintf(ms, sizeof ms, "%u", problem->retry_ms);
        fx_call_trailer(call, "retry-after-ms", ms);
    }
    fx_call_trailer_bytes(call, "grpc-status-details-bin",
                          (fx_span){bytes, gw_rpc_status(problem, bytes)});
}
