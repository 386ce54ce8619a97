#include "common/http/head.h"

/* The absolute form `http://host/path` is an origin form with a prefix. */
static fx_span origin_form(fx_span target) {
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < FX_COUNT(schemes); i++) {
        size_t len = strlen(schemes[i]);
        if (target.len < len || strncasecmp((const char *)target.at, schemes[i], len) != 0)
            continue;
        const uint8_t *slash = memchr(target.at + len, '/', target.len - len);
        if (!slash) return fx_span_str("/");
        return (fx_span){slash, target.len - (size_t)(slash - target.at)};
    }
    return target;
}

static int hex(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static FX_MUST bool decode(fx_arena *arena, fx_span raw, fx_span *out, fx_error *err) {
    uint8_t *text = fx_arena_alloc(arena, raw.len + 1);
    if (!text) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "the request's arena is full");
    size_t len = 0;
    for (size_t i = 0; i < raw.len; i++) {
        uint8_t c = raw.at[i];
        if (c == '%') {
            int high = i + 2 < raw.len ? hex(raw.at[i + 1]) : -1;
            int low = i + 2 < raw.len ? hex(raw.at[i + 2]) : -1;
            if (high < 0 || low < 0)
                return fx_fail(err, FX_INVALID_ARGUMENT, "the path has a bad %%-escape");
            c = (uint8_t)(high << 4 | low);
            i += 2;
        }
        if (c == 0) return fx_fail(err, FX_INVALID_ARGUMENT, "the path holds a NUL");
        text[len++] = c;
    }
    *out = (fx_span){text, len};
    return true;
}

static FX_MUST bool segments_split(fx_arena *arena, fx_span path, struct fx_http_request *request,
                                   fx_error *err) {
    request->segment_count = 0;
    if (path.len == 1) return true;
    while (path.len) {
        if (request->segment_count == FX_HTTP_SEGMENTS_MAX)
            return fx_fail(err, FX_INVALID_ARGUMENT, "the path has more than %d segments",
                           FX_HTTP_SEGMENTS_MAX);
        const uint8_t *from = path.at + 1;
        const uint8_t *slash = path.len > 1 ? memchr(from, '/', path.len - 1) : NULL;
        size_t len = slash ? (size_t)(slash - from) : path.len - 1;
        if (!decode(arena, (fx_span){from, len}, &request->segments[request->segment_count], err))
            return false;
        request->segment_count++;
        path = (fx_span){from + len, path.len - 1 - len};
    }
    return true;
}

bool fx_http__target_parse(fx_arena *arena, struct fx_http_request *request, fx_error *err) {
    fx_span path = origin_form(request->target);
    request->query = (fx_span){0};
    if (fx_span_eq_str(path, "*") && request->method == FX_HTTP_OPTIONS) {
        request->segment_count = 0;
        return true;
    }
    if (!path.len || path.at[0] != '/')
        return fx_fail(err, FX_INVALID_ARGUMENT, "the request target must begin with '/'");
    const uint8_t *mark = memchr(path.at, '?', path.len);
    if (mark) {
        size_t len = (size_t)(mark - path.at);
        request->query = (fx_span){mark + 1, path.len - len - 1};
        path.len = len;
    }
    return segments_split(arena, path, request, err);
}
