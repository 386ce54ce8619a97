/* The JSON of /v1/chat/completions. */
#include "common/http/json.h"
#include "services/gateway/shapes.h"

#define CHUNK "chat.completion.chunk"

static void index_put(uint32_t index, fx_buf *out) {
    fx_json_put(out, "{\"index\":");
    fx_json_put_u64(out, index);
}

static void end_put(const struct gw_logprobs *logprobs, const char *reason, fx_buf *out) {
    fx_json_put(out, "},\"logprobs\":");
    gw_logprobs_chat(logprobs, out);
    fx_json_put(out, ",\"finish_reason\":");
    fx_json_put_text(out, reason);
    fx_json_put(out, "}");
}

static void first(const struct gw_answer *answer, uint32_t index, fx_buf *out) {
    gw_shape__head(answer, CHUNK, out);
    fx_json_put(out, "\"choices\":[");
    index_put(index, out);
    fx_json_put(out, ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"");
    end_put(NULL, NULL, out);
    fx_json_put(out, "]");
    gw_shape__tail(answer, 0, out);
}

static void delta(const struct gw_answer *answer, const struct gw_piece *piece, fx_buf *out) {
    gw_shape__head(answer, CHUNK, out);
    fx_json_put(out, "\"choices\":[");
    index_put(piece->index, out);
    fx_json_put(out, ",\"delta\":{\"content\":");
    fx_json_put_string(out, piece->text);
    end_put(piece->logprobs, NULL, out);
    fx_json_put(out, "]");
    gw_shape__tail(answer, piece->n, out);
}

static void finish(const struct gw_answer *answer, const struct gw_piece *piece, fx_buf *out) {
    gw_shape__head(answer, CHUNK, out);
    fx_json_put(out, "\"choices\":[");
    index_put(piece->index, out);
    fx_json_put(out, ",\"delta\":{");
    if (piece->text.len) {
        fx_json_put(out, "\"content\":");
        fx_json_put_string(out, piece->text);
    }
    end_put(piece->logprobs, piece->reason, out);
    fx_json_put(out, "]");
    gw_shape__tail(answer, piece->n, out);
}

static void message_put(const struct gw_piece *piece, fx_buf *out) {
    index_put(piece->index, out);
    fx_json_put(out, ",\"message\":{\"role\":\"assistant\",\"content\":");
    fx_json_put_string(out, piece->text);
    fx_json_put(out, ",\"refusal\":null");
    end_put(piece->logprobs, piece->reason, out);
}

static void whole(const struct gw_answer *answer, const struct gw_piece *pieces, size_t count,
                  fx_buf *out) {
    gw_shape__head(answer, "chat.completion", out);
    gw_shape__choices(answer, pieces, count, message_put, out);
}

const struct gw_shape gw_chat_shape = {"chatcmpl-", first, delta, finish, whole, CHUNK};
