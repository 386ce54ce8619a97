#include "services/gateway/shapes.h"
#include "common/http/json.h"

void gw_shape__head(const struct gw_answer *answer, const char *object, fx_buf *out) {
    fx_json_put(out, "{\"id\":");
    fx_json_put_text(out, answer->id);
    fx_json_put(out, ",\"object\":");
    fx_json_put_text(out, object);
    fx_json_put(out, ",\"created\":");
    fx_json_put_u64(out, answer->created_s);
    fx_json_put(out, ",\"model\":");
    fx_json_put_text(out, answer->model);
    fx_json_put(out, ",");
}

static void put_usage(const struct gw_answer *answer, uint32_t n, fx_buf *out) {
    fx_json_put(out, "\"usage\":{\"prompt_tokens\":");
    fx_json_put_u64(out, answer->prompt_tokens);
    fx_json_put(out, ",\"completion_tokens\":");
    fx_json_put_u64(out, n);
    fx_json_put(out, ",\"total_tokens\":");
    fx_json_put_u64(out, (uint64_t)answer->prompt_tokens + n);
    fx_json_put(out, "}");
}

static void put_n(uint32_t n, fx_buf *out) {
    fx_json_put(out, ",\"fractal\":{\"n\":");
    fx_json_put_u64(out, n);
    fx_json_put(out, "}}");
}

void gw_shape__tail(const struct gw_answer *answer, uint32_t n, fx_buf *out) {
    if (answer->include_usage) fx_json_put(out, ",\"usage\":null");
    put_n(n, out);
}

void gw_shape_usage(const struct gw_shape *shape, const struct gw_answer *answer, uint32_t n,
                    fx_buf *out) {
    gw_shape__head(answer, shape->object_chunk, out);
    fx_json_put(out, "\"choices\":[],");
    put_usage(answer, n, out);
    put_n(n, out);
}

void gw_shape__choices(const struct gw_answer *answer, const struct gw_piece *pieces, size_t count,
                       void (*put)(const struct gw_piece *piece, fx_buf *out), fx_buf *out) {
    uint32_t n = 0;
    fx_json_put(out, "\"choices\":[");
    for (size_t i = 0; i < count; i++) {
        if (i) fx_json_put(out, ",");
        put(&pieces[i], out);
        n += pieces[i].n;
    }
    fx_json_put(out, "],");
    put_usage(answer, n, out);
    put_n(n, out);
}
