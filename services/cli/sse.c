#include "services/cli/sse.h"
#include "common/base/heap.h"

struct cli_sse {
    struct cli_sse_opts opts;
    uint8_t *line, *data; /* [CLI_SSE_EVENT_BYTES_MAX] each */
    size_t line_len, data_len;
    bool has_data; /* the event being read has a data field */
    bool after_cr; /* an LF now belongs to the line end before it */
    bool past_bom; /* the first line's byte order mark has been dealt with */
    bool done;
    uint64_t comments;
};

bool cli_sse_new(const struct cli_sse_opts *opts, cli_sse **out, fx_error *err) {
    fx_auto(cli_sse) sse = fx_alloc(1, sizeof *sse);
    if (sse) {
        sse->opts = *opts;
        sse->line = fx_alloc(CLI_SSE_EVENT_BYTES_MAX, 1);
        sse->data = fx_alloc(CLI_SSE_EVENT_BYTES_MAX, 1);
    }
    if (!sse || !sse->line || !sse->data)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a stream");
    *out = fx_take(sse);
    return true;
}

void cli_sse_free(cli_sse *sse) {
    if (!sse) return;
    free(sse->line);
    free(sse->data);
    free(sse);
}

static FX_MUST bool too_long(fx_error *err) {
    return fx_fail(err, FX_RESOURCE_EXHAUSTED, "an event of the stream is longer than %d bytes",
                   CLI_SSE_EVENT_BYTES_MAX);
}

static FX_MUST bool dispatch(cli_sse *sse, fx_error *err) {
    fx_span data = {sse->data, sse->data_len};
    bool has_data = sse->has_data;
    sse->has_data = false;
    sse->data_len = 0;
    if (!has_data || sse->done) return true;
    sse->done = fx_span_eq_str(data, "[DONE]");
    return sse->done || sse->opts.on_data(sse->opts.user, data, err);
}

static FX_MUST bool add_data(cli_sse *sse, fx_span value, fx_error *err) {
    size_t joint = sse->has_data; /* the LF between two lines */
    if (value.len + joint > CLI_SSE_EVENT_BYTES_MAX - sse->data_len) return too_long(err);
    if (joint) sse->data[sse->data_len++] = '\n';
    if (value.len) memcpy(sse->data + sse->data_len, value.at, value.len);
    sse->data_len += value.len;
    sse->has_data = true;
    return true;
}

static FX_MUST bool take_line(cli_sse *sse, fx_error *err) {
    static const uint8_t bom[3] = {0xef, 0xbb, 0xbf};
    fx_span line = {sse->line, sse->line_len};
    sse->line_len = 0;
    if (!sse->past_bom && line.len >= sizeof bom && memcmp(line.at, bom, sizeof bom) == 0)
        line = (fx_span){line.at + sizeof bom, line.len - sizeof bom};
    sse->past_bom = true;
    if (!line.len) return dispatch(sse, err);
    if (line.at[0] == ':') {
        sse->comments++;
        return true;
    }
    const uint8_t *colon = memchr(line.at, ':', line.len);
    size_t name_len = colon ? (size_t)(colon - line.at) : line.len;
    if (!fx_span_eq_str((fx_span){line.at, name_len}, "data")) return true;
    size_t from = colon ? name_len + 1 : line.len;
    if (from < line.len && line.at[from] == ' ') from++;
    return add_data(sse, (fx_span){line.at + from, line.len - from}, err);
}

static FX_MUST bool take_byte(cli_sse *sse, uint8_t byte, fx_error *err) {
    bool second_half = byte == '\n' && sse->after_cr;
    sse->after_cr = byte == '\r';
    if (second_half) return true;
    if (byte == '\n' || byte == '\r') return take_line(sse, err);
    if (sse->line_len == CLI_SSE_EVENT_BYTES_MAX) return too_long(err);
    sse->line[sse->line_len++] = byte;
    return true;
}

bool cli_sse_feed(cli_sse *sse, fx_span bytes, fx_error *err) {
    for (size_t i = 0; i < bytes.len; i++)
        if (!take_byte(sse, bytes.at[i], err)) return false;
    return true;
}

bool cli_sse_is_done(const cli_sse *sse) {
    return sse->done;
}

uint64_t cli_sse_comments(const cli_sse *sse) {
    return sse->comments;
}
