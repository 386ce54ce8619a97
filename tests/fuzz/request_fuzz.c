/* A body of the routes that take one: taken, or refused by an error that is itself valid JSON. */
#include "common/http/json.h"
#include "services/gateway/request.h"
#include "tests/fuzz/fuzz.h"

static void refusal_check(const struct gw_problem *problem) {
    uint8_t bytes[FX_HTTP_ERROR_BODY_MAX];
    fx_buf out = {bytes, 0, sizeof bytes};
    struct fx_http_problem http = gw_problem_http(problem);
    fx_auto(json_t) json = NULL;
    fx_error err = {0};
    fx_http_problem_json(&http, &out);
    FX_ASSERT(fx_buf_fits(&out) && http.status >= 400);
    FX_ASSERT(fx_json_parse((fx_span){bytes, out.len}, &json, &err));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const enum gw_kind kinds[] = {GW_CHAT, GW_COMPLETION, GW_TOKENIZE, GW_DETOKENIZE};
    for (size_t i = 0; i < FX_COUNT(kinds); i++) {
        struct gw_request request = {0};
        struct gw_problem problem = {0};
        if (gw_request_parse(kinds[i], (fx_span){data, size}, &request, &problem))
            FX_ASSERT(request.model && (request.messages || request.prompt || request.tokens));
        else
            refusal_check(&problem);
        gw_request_done(&request);
    }
    return 0;
}
