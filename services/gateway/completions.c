/* The JSON of /v1/completions. */
#include "common/http/json.h"
#include "services/gateway/shapes.h"

#define OBJECT "text_completion"

static void choice_put(const struct gw_piece *piece, fx_buf *out) {
    fx_json_put(out, "{\"index\":");
    fx_json_put_u64(out, piece->index);
    fx_json_put(out, ",\"text\":");
    fx_json_put_string(out, piece->text);
    fx_json_put(out, ",\"logprobs\":");
    gw_logprobs_completion(piece->logprobs, out);
    fx_json_put(out, ",\"finish_reason\":");
    fx_json_put_text(out, piece->reason);
    fx_json_put(out, "}");
}

static void chunk(const struct gw_answer *answer, const struct gw_piece *piece, fx_buf *out) {
    gw_shape__head(answer, OBJECT, out);
    fx_json_put(out, "\"choices\":[");
    choice_put(piece, out);
    fx_json_put(out, "]");
    gw_shape__tail(answer, piece->n, out);
}

static void delta(const struct gw_answer *answer, const struct gw_piece *piece, fx_buf *out) {
    struct gw_piece more = *piece;
    more.reason = NULL;
    chunk(answer, &more, out);
}

static void whole(const struct gw_answer *answer, const struct gw_piece *pieces, size_t count,
                  fx_buf *out) {
    gw_shape__head(answer, OBJECT, out);
    gw_shape__choices(answer, pieces, count, choice_put, out);
}

const struct gw_shape gw_completion_shape = {"cmpl-", NULL, delta, chunk, whole, OBJECT};
