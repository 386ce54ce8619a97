/* The JSON of /v1/completions. */
#include "common/http/json.h"
#include "services/gateway/shapes.h"

#define OBJECT "text_completion"

static void choice(fx_span text, const char *reason, fx_buf *out) {
    fx_json_put(out, "\"choices\":[{\"index\":0,\"text\":");
    fx_json_put_string(out, text);
    fx_json_put(out, ",\"logprobs\":null,\"finish_reason\":");
    fx_json_put_text(out, reason);
    fx_json_put(out, "}]");
}

static void delta(const struct gw_answer *answer, uint32_t n, fx_span text, fx_buf *out) {
    gw_shape__head(answer, OBJECT, out);
    choice(text, NULL, out);
    gw_shape__tail(answer, n, out);
}

static void finish(const struct gw_answer *answer, uint32_t n, const char *reason, fx_buf *out) {
    gw_shape__head(answer, OBJECT, out);
    choice((fx_span){0}, reason, out);
    gw_shape__tail(answer, n, out);
}

static void whole(const struct gw_answer *answer, uint32_t n, fx_span text, const char *reason,
                  fx_buf *out) {
    gw_shape__head(answer, OBJECT, out);
    choice(text, reason, out);
    fx_json_put(out, ",");
    gw_shape__usage(answer, n, out);
    fx_json_put(out, ",\"fractal\":{\"n\":");
    fx_json_put_u64(out, n);
    fx_json_put(out, "}}");
}

const struct gw_shape gw_completion_shape = {"cmpl-", NULL, delta, finish, whole, OBJECT};
