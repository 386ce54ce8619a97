#include "common/rpc/trace.h"
#include "tests/fx_test.h"

#define GOOD "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define LONG_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct row {
    const char *name, *request_id, *traceparent;
    bool keeps_id, keeps_trace;
};
static const struct row rows[] = {
    {"both good",          "req-1_a.B", GOOD,                                                      true,  true },
    {"64 characters",      LONG_64,     GOOD,                                                      true,  true },
    {"65 characters",      LONG_64 "0", GOOD,                                                      false, true },
    {"absent",             "",          "",                                                        false, false},
    {"space in id",        "a b",       GOOD,                                                      false, true },
    {"newline in id",      "a\nb",      GOOD,                                                      false, true },
    {"other version",      "a",         "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true,  false},
    {"upper case",         "a",         "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true,  false},
    {"zero trace",         "a",         "00-00000000000000000000000000000000-b7ad6b7169203331-01", true,  false},
    {"zero span",          "a",         "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", true,  false},
    {"zero flags",         "a",         "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true,  true },
    {"one digit short",    "a",         "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",  true,  false},
    {"one digit too many", "a",         GOOD "0",                                                  true,  false},
    {"misplaced dash",     "a",         "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01", true,  false},
};

static void test_accept(void **state) {
    const struct row *row = *state;
    fx_trace trace, child, again;
    fx_trace_accept(fx_span_str(row->request_id), fx_span_str(row->traceparent), &trace);
    assert_int_equal(strcmp(trace.request_id, row->request_id) == 0, row->keeps_id);
    assert_int_equal(strcmp(trace.traceparent, row->traceparent) == 0, row->keeps_trace);
    assert_int_equal(strlen(trace.traceparent), 55);
    if (!row->keeps_id) assert_int_equal(strlen(trace.request_id), 32);
    /* what was made anew is itself accepted */
    fx_trace_accept(fx_span_str(trace.request_id), fx_span_str(trace.traceparent), &again);
    assert_string_equal(again.request_id, trace.request_id);
    assert_string_equal(again.traceparent, trace.traceparent);
    fx_trace_child(&trace, &child);
    assert_string_equal(child.request_id, trace.request_id);
    assert_memory_equal(child.traceparent, trace.traceparent, 36);
    assert_memory_not_equal(child.traceparent + 36, trace.traceparent + 36, 16);
    assert_string_equal(child.traceparent + 52, trace.traceparent + 52);
}

FX_TEST_MAIN(test_accept, rows)
