/* The JSON of /v1/chat/completions. */
#include "common/http/json.h"
#include "services/gateway/shapes.h"

#define CHUNK "chat.completion.chunk"

static void first(const struct gw_answer *answer, fx_buf *out) {
    gw_shape__head(answer, CHUNK, out);
    fx_json_put(out,
                "\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
                "\"logprobs\":null,\"finish_reason\":null}]");
    gw_shape__tail(answer, 0, out);
}

static void delta(const struct gw_answer *answer, uint32_t n, fx_span text, fx_buf *out) {
    gw_shape__head(answer, CHUNK, out);
    fx_json_put(out, "\"choices\":[{\"index\":0,\"delta\":{\"content\":");
    fx_json_put_string(out, text);
    fx_json_put(out, "},\"logprobs\":null,\"finish_reason\":null}]");
    gw_shape__tail(answer, n, out);
}

static void finish(const struct gw_answer *answer, uint32_t n, const char *reason, fx_buf *out) {
    gw_shape__head(answer, CHUNK, out);
    fx_json_put(out, "\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":");
    fx_json_put_text(out, reason);
    fx_json_put(out, "}]");
    gw_shape__tail(answer, n, out);
}

static void whole(const struct gw_answer *answer, uint32_t n, fx_span text, const char *reason,
                  fx_buf *out) {
    gw_shape__head(answer, "chat.completion", out);
    fx_json_put(out, "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
    fx_json_put_string(out, text);
    fx_json_put(out, ",\"refusal\":null},\"logprobs\":null,\"finish_reason\":");
    fx_json_put_text(out, reason);
    fx_json_put(out, "}],");
    gw_shape__usage(answer, n, out);
    fx_json_put(out, ",\"fractal\":{\"n\":");
    fx_json_put_u64(out, n);
    fx_json_put(out, "}}");
}

const struct gw_shape gw_chat_shape = {"chatcmpl-", first, delta, finish, whole, CHUNK};
