#include "common/model/jinja.h"

static FX_MUST bool add_piece(struct fx_jinja_run *run, struct fx_jinja_output *output,
                              fx_span text, bool user) {
    if (!text.len) return true;
    output->bytes += text.len;
    if (output->bytes > FX_TEMPLATE_OUTPUT_BYTES_MAX)
        return fx_fail(run->err, FX_RESOURCE_EXHAUSTED, "chat template: more than %d bytes",
                       FX_TEMPLATE_OUTPUT_BYTES_MAX);
    struct fx_jinja_piece *piece = fx_arena_alloc(run->arena, sizeof *piece);
    if (!piece) return fx_jinja__full(run);
    *piece = (struct fx_jinja_piece){text, user, NULL};
    if (output->last)
        output->last->next = piece;
    else
        output->first = piece;
    output->last = piece;
    return true;
}

bool fx_jinja__print(struct fx_jinja_run *run, struct fx_jinja_output *output,
                     struct fx_jinja_text text) {
    if (!text.origin) return add_piece(run, output, fx_jinja__span(text), text.user);
    for (size_t from = 0, to = 0; from < text.len; from = to) {
        while (to < text.len && text.origin[to] == text.origin[from])
            to++;
        if (!add_piece(run, output, (fx_span){text.at + from, to - from}, text.origin[from]))
            return false;
    }
    return true;
}

bool fx_jinja__gather(struct fx_jinja_run *run, const struct fx_jinja_output *output,
                      struct fx_jinja_text *out) {
    size_t count = 0, used = 0;
    for (const struct fx_jinja_piece *piece = output->first; piece; piece = piece->next)
        count++;
    struct fx_jinja_text *parts = fx_arena_array(run->arena, count, sizeof *parts);
    if (!parts) return fx_jinja__full(run);
    for (const struct fx_jinja_piece *piece = output->first; piece; piece = piece->next)
        parts[used++] =
            (struct fx_jinja_text){piece->text.at, piece->text.len, NULL, piece->user, false};
    return fx_jinja__concat(run, parts, count, out);
}

static size_t count_segments(const struct fx_jinja_piece *piece) {
    size_t count = piece != NULL;
    for (; piece && piece->next; piece = piece->next)
        count += piece->user != piece->next->user;
    return count;
}

bool fx_jinja__segments(struct fx_jinja_run *run, const struct fx_jinja_output *output,
                        struct fx_segments *out) {
    size_t count = count_segments(output->first), used = 0;
    struct fx_segment *segments = fx_arena_array(run->arena, count, sizeof *segments);
    uint8_t *bytes = fx_arena_alloc(run->arena, output->bytes);
    if (!segments || !bytes) return fx_jinja__full(run);
    for (const struct fx_jinja_piece *piece = output->first; piece; piece = piece->next) {
        bool fresh = !used || segments[used - 1].is_template == piece->user;
        if (fresh)
            segments[used++] = (struct fx_segment){
                {bytes, 0},
                !piece->user
            };
        memcpy(bytes, piece->text.at, piece->text.len);
        bytes += piece->text.len;
        segments[used - 1].text.len += piece->text.len;
    }
    *out = (struct fx_segments){segments, used};
    return true;
}
