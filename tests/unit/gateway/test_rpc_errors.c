/* Errors as gRPC statuses: the code, and the details that clients' libraries read. */
#include "tests/fx_test.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "services/gateway/rpc.h"

#define TYPE(name) "type.googleapis.com/google.rpc." name

static const struct row {
    const char *name;
    enum gw_reason reason;
    const char *param;
    uint32_t retry_ms;
    bool no_retry;
    enum fx_code code;
    const char *constant;
    size_t details;
} rows[] = {
    {"bad JSON",    GW_BAD_JSON,      NULL,              0,     false, FX_INVALID_ARGUMENT,   "INVALID_JSON",            1},
    {"bad field",   GW_BAD_VALUE,     "top_p",           0,     false, FX_INVALID_ARGUMENT,   "INVALID_VALUE",           2},
    {"too long",    GW_TOO_LONG,      "messages",        0,     false, FX_INVALID_ARGUMENT,   "CONTEXT_LENGTH_EXCEEDED",
     2                                                                                                                    },
    {"no key",      GW_NO_KEY,        NULL,              0,     false, FX_UNAUTHENTICATED,    "MISSING_API_KEY",         1},
    {"bad key",     GW_BAD_KEY,       NULL,              0,     false, FX_UNAUTHENTICATED,    "INVALID_API_KEY",         1},
    {"no model",    GW_NO_MODEL,      "model",           0,     false, FX_NOT_FOUND,          "MODEL_NOT_FOUND",         2},
    {"queue full",  GW_BUSY,          NULL,              2500,  false, FX_RESOURCE_EXHAUSTED, "QUEUE_FULL",              2},
    {"limited",     GW_LIMITED,       NULL,              61000, true,  FX_RESOURCE_EXHAUSTED, "RATE_LIMIT_EXCEEDED",     1},
    {"away",        GW_UNAVAILABLE,   NULL,              1000,  false, FX_UNAVAILABLE,        "UNAVAILABLE",             2},
    {"failed",      GW_FAILED,        NULL,              0,     false, FX_INTERNAL,           "GENERATION_FAILED",       1},
    {"slow reader", GW_SLOW,          NULL,              0,     false, FX_RESOURCE_EXHAUSTED, "SLOW_READER",             1},
    {"no answer",   GW_NO_GENERATION, "id",              0,     false, FX_NOT_FOUND,          "GENERATION_NOT_FOUND",    2},
    {"key reused",  GW_KEY_REUSED,    "idempotency-key", 0,     false, FX_INVALID_ARGUMENT,
     "IDEMPOTENCY_KEY_REUSED",                                                                                           2},
    {"goes",        GW_SHUTTING_DOWN, NULL,              1000,  false, FX_UNAVAILABLE,        "GATEWAY_SHUTTING_DOWN",   2},
    {"cancelled",   GW_CANCELLED,     NULL,              0,     false, FX_ABORTED,            "GENERATION_CANCELLED",    1},
};

static void info_check(const Google__Protobuf__Any *any, const struct row *row) {
    assert_string_equal(any->type_url, TYPE("ErrorInfo"));
    Google__Rpc__ErrorInfo *info =
        google__rpc__error_info__unpack(NULL, any->value.len, any->value.data);
    assert_non_null(info);
    assert_string_equal(info->reason, row->constant);
    assert_string_equal(info->domain, "fractal");
    assert_int_equal(info->n_metadata, 1);
    assert_string_equal(info->metadata[0]->key, "type");
    assert_non_null(strstr(info->metadata[0]->value, "error"));
    google__rpc__error_info__free_unpacked(info, NULL);
}

static void field_check(const Google__Protobuf__Any *any, const char *param, const char *message) {
    assert_string_equal(any->type_url, TYPE("BadRequest"));
    Google__Rpc__BadRequest *bad =
        google__rpc__bad_request__unpack(NULL, any->value.len, any->value.data);
    assert_non_null(bad);
    assert_int_equal(bad->n_field_violations, 1);
    assert_string_equal(bad->field_violations[0]->field, param);
    assert_string_equal(bad->field_violations[0]->description, message);
    google__rpc__bad_request__free_unpacked(bad, NULL);
}

static void retry_check(const Google__Protobuf__Any *any, uint32_t retry_ms) {
    assert_string_equal(any->type_url, TYPE("RetryInfo"));
    Google__Rpc__RetryInfo *retry =
        google__rpc__retry_info__unpack(NULL, any->value.len, any->value.data);
    assert_non_null(retry);
    assert_int_equal(retry->retry_delay->seconds, retry_ms / 1000);
    assert_int_equal(retry->retry_delay->nanos, retry_ms % 1000 * 1000000);
    google__rpc__retry_info__free_unpacked(retry, NULL);
}

static void test_row(void **state) {
    const struct row *row = *state;
    struct gw_problem problem;
    uint8_t bytes[GW_RPC_STATUS_MAX];
    char longest[GW_MESSAGE_MAX];
    memset(longest, 'm', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    gw_problem_set(&problem, row->reason, row->param, "%s", longest);
    problem.retry_ms = row->retry_ms;
    problem.no_retry = row->no_retry;
    assert_int_equal(gw_rpc_code(&problem), row->code);
    Google__Rpc__Status *status =
        google__rpc__status__unpack(NULL, gw_rpc_status(&problem, bytes), bytes);
    assert_non_null(status);
    assert_int_equal(status->code, row->code);
    assert_string_equal(status->message, longest);
    assert_int_equal(status->n_details, row->details);
    info_check(status->details[0], row);
    if (row->param) field_check(status->details[1], row->param, longest);
    if (row->retry_ms && !row->no_retry)
        retry_check(status->details[row->details - 1], row->retry_ms);
    google__rpc__status__free_unpacked(status, NULL);
}

FX_TEST_MAIN(test_row, rows)
