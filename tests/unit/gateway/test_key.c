/* Where a request's API key is looked for. */
#include "tests/fx_test.h"
#include "services/gateway/auth.h"

static const struct row {
    const char *name, *authorization, *token;
    const char *want; /* NULL: refused */
    enum gw_reason reason;
} rows[] = {
    {"bearer",             "Bearer fx-1",      NULL,   "fx-1", 0         },
    {"scheme's case",      "bearer fx-1",      NULL,   "fx-1", 0         },
    {"more spaces",        "Bearer   fx-1",    NULL,   "fx-1", 0         },
    {"token header",       NULL,               "fx-2", "fx-2", 0         },
    {"bearer goes first",  "Bearer fx-1",      "fx-2", "fx-1", 0         },
    {"none",               NULL,               NULL,   NULL,   GW_NO_KEY },
    {"another scheme",     "Basic YTpi",       NULL,   NULL,   GW_BAD_KEY},
    {"another, and token", "Basic YTpi",       "fx-2", NULL,   GW_BAD_KEY},
    {"no key",             "Bearer ",          NULL,   NULL,   GW_BAD_KEY},
    {"only a scheme",      "Bearer",           NULL,   NULL,   GW_BAD_KEY},
    {"a space inside",     "Bearer fx 1",      NULL,   NULL,   GW_BAD_KEY},
    {"not ASCII",          "Bearer f\xc3\xa9", NULL,   NULL,   GW_BAD_KEY},
};

static void test_key(void **state) {
    const struct row *row = *state;
    struct fx_http_request request = {0};
    struct gw_problem problem = {0};
    fx_span key = {0};
    if (row->authorization)
        request.headers[request.header_count++] =
            (struct fx_http_header){fx_span_str("authorization"), fx_span_str(row->authorization)};
    if (row->token)
        request.headers[request.header_count++] =
            (struct fx_http_header){fx_span_str("x-auth-token"), fx_span_str(row->token)};
    bool ok = gw_auth_key(&request, &key, &problem);
    assert_int_equal(ok, row->want != NULL);
    if (ok) {
        assert_true(fx_span_eq_str(key, row->want));
    } else {
        assert_int_equal(problem.reason, row->reason);
        assert_int_equal(gw_problem_http(&problem).status, 401);
    }
}

FX_TEST_MAIN(test_key, rows)
