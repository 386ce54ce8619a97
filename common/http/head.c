#include "common/http/head.h"

enum { LENGTH_DIGITS_MAX = 15 };

struct reading {
    struct fx_http_request *request;
    struct fx_http_framing *framing;
    unsigned *status;
    fx_error *err;
    unsigned hosts;
};

static bool refuse(unsigned *status, unsigned answer, fx_error *err, const char *why) {
    *status = answer;
    return fx_fail(err, FX_INVALID_ARGUMENT, "%s", why);
}

static bool is_token(fx_span text) {
    static const char others[] = "!#$%&'*+-.^_`|~";
    if (!text.len) return false;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.at[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && (c == 0 || !strchr(others, c))) return false;
    }
    return true;
}

static bool is_visible(fx_span text, bool spaces) {
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.at[i];
        if (c == 0x7F || c < 0x20 || (c == ' ' && !spaces))
            if (c != '\t' || !spaces) return false;
    }
    return true;
}

static bool equals_nocase(fx_span text, const char *word) {
    return text.len == strlen(word) && strncasecmp((const char *)text.at, word, text.len) == 0;
}

static fx_span trim(fx_span text) {
    while (text.len && (text.at[0] == ' ' || text.at[0] == '\t'))
        text.at++, text.len--;
    while (text.len && (text.at[text.len - 1] == ' ' || text.at[text.len - 1] == '\t'))
        text.len--;
    return text;
}

/* Cuts `text` at the first `c`; false when there is none. */
static bool cut(fx_span text, uint8_t c, fx_span *before, fx_span *after) {
    const uint8_t *at = text.len ? memchr(text.at, c, text.len) : NULL;
    if (!at) return false;
    size_t len = (size_t)(at - text.at);
    *before = (fx_span){text.at, len};
    *after = (fx_span){at + 1, text.len - len - 1};
    return true;
}

static bool has_item(fx_span list, const char *word) {
    fx_span item, rest;
    while (cut(list, ',', &item, &rest)) {
        if (equals_nocase(trim(item), word)) return true;
        list = rest;
    }
    return equals_nocase(trim(list), word);
}

/* -- the headers that frame a request -- */

static bool on_length(struct reading *r, fx_span value) {
    if (r->framing->has_length) return refuse(r->status, 400, r->err, "two Content-Length headers");
    if (!value.len || value.len > LENGTH_DIGITS_MAX)
        return refuse(r->status, 400, r->err, "bad Content-Length");
    uint64_t length = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return refuse(r->status, 400, r->err, "bad Content-Length");
        length = length * 10 + (uint64_t)(value.at[i] - '0');
    }
    r->framing->has_length = true;
    r->framing->length = length;
    return true;
}

static bool on_encoding(struct reading *r, fx_span value) {
    if (r->framing->chunked) return refuse(r->status, 400, r->err, "two Transfer-Encoding headers");
    if (!equals_nocase(value, "chunked"))
        return refuse(r->status, 501, r->err, "the only Transfer-Encoding known here is chunked");
    r->framing->chunked = true;
    return true;
}

static bool on_connection(struct reading *r, fx_span value) {
    if (has_item(value, "close")) r->framing->close = true;
    return true;
}

static bool on_expect(struct reading *r, fx_span value) {
    if (!equals_nocase(value, "100-continue"))
        return refuse(r->status, 417, r->err, "the only expectation known here is 100-continue");
    r->framing->expect_continue = true;
    return true;
}

static bool on_host(struct reading *r, fx_span value) {
    (void)value;
    r->hosts++;
    return true;
}

static const struct {
    const char *name;
    bool (*read)(struct reading *r, fx_span value);
} known[] = {
    {"content-length",    on_length    },
    {"transfer-encoding", on_encoding  },
    {"connection",        on_connection},
    {"expect",            on_expect    },
    {"host",              on_host      },
};

static bool framing_check(struct reading *r) {
    const struct fx_http_framing *f = r->framing;
    bool old = r->request->http_1_0;
    if (r->hosts > 1 || (!old && r->hosts == 0))
        return refuse(r->status, 400, r->err, "exactly one Host header is needed");
    if (f->chunked && f->has_length)
        return refuse(r->status, 400, r->err, "both Content-Length and Transfer-Encoding");
    if (f->chunked && old)
        return refuse(r->status, 400, r->err, "HTTP/1.0 has no Transfer-Encoding");
    return true;
}

/* -- lines -- */

static bool header_read(struct reading *r, fx_span line) {
    struct fx_http_request *request = r->request;
    fx_span name, value;
    if (!cut(line, ':', &name, &value))
        return refuse(r->status, 400, r->err, "a header line without a colon");
    if (!is_token(name)) return refuse(r->status, 400, r->err, "a header name that is no token");
    value = trim(value);
    if (!is_visible(value, true))
        return refuse(r->status, 400, r->err, "a header value with a control character");
    if (request->header_count == FX_HTTP_HEADERS_MAX)
        return refuse(r->status, 431, r->err, "too many headers");
    request->headers[request->header_count++] = (struct fx_http_header){name, value};
    for (size_t i = 0; i < FX_COUNT(known); i++)
        if (fx_span_eq_str(name, known[i].name)) return known[i].read(r, value);
    return true;
}

static const char *const methods[] = {
    [FX_HTTP_GET] = "GET",         [FX_HTTP_HEAD] = "HEAD",          [FX_HTTP_POST] = "POST",
    [FX_HTTP_PUT] = "PUT",         [FX_HTTP_PATCH] = "PATCH",        [FX_HTTP_DELETE] = "DELETE",
    [FX_HTTP_OPTIONS] = "OPTIONS", [FX_HTTP_METHOD_OTHER] = "other",
};

const char *fx_http_method_name(enum fx_http_method method) {
    return methods[method];
}

static enum fx_http_method method_of(fx_span name) {
    for (size_t i = 0; i < FX_HTTP_METHOD_OTHER; i++)
        if (fx_span_eq_str(name, methods[i])) return (enum fx_http_method)i;
    return FX_HTTP_METHOD_OTHER;
}

static bool line_split(fx_span line, fx_span part[3], unsigned *status, fx_error *err) {
    fx_span rest;
    if (!cut(line, ' ', &part[0], &rest) || !cut(rest, ' ', &part[1], &part[2]))
        return refuse(status, 400, err, "the request line is not 'METHOD target HTTP/1.1'");
    if (!is_token(part[0]) || !part[1].len || !is_visible(part[1], false))
        return refuse(status, 400, err, "a malformed request line");
    if (fx_span_eq_str(part[2], "HTTP/1.1") || fx_span_eq_str(part[2], "HTTP/1.0")) return true;
    bool versioned = part[2].len == 8 && memcmp(part[2].at, "HTTP/", 5) == 0;
    return refuse(status, versioned ? 505 : 400, err, "only HTTP/1.1 and HTTP/1.0 are spoken here");
}

bool fx_http__line_check(fx_span line, unsigned *status, fx_error *err) {
    fx_span part[3];
    return line_split(line, part, status, err);
}

/* Cuts the next line; every line ends in CRLF and holds no other CR or LF. */
static bool next_line(fx_span *rest, fx_span *line) {
    if (!cut(*rest, '\n', line, rest)) return false;
    if (!line->len || line->at[line->len - 1] != '\r') return false;
    line->len--;
    return !line->len || !memchr(line->at, '\r', line->len);
}

static void names_lower(uint8_t *head, size_t len) {
    bool name = false;
    for (size_t i = 0; i < len; i++) {
        if (head[i] == '\n')
            name = true;
        else if (head[i] == ':')
            name = false;
        else if (name && head[i] >= 'A' && head[i] <= 'Z')
            head[i] = (uint8_t)(head[i] | 0x20);
    }
}

bool fx_http__head_parse(uint8_t *head, size_t len, fx_arena *arena,
                         struct fx_http_request *request, struct fx_http_framing *framing,
                         unsigned *status, fx_error *err) {
    struct reading r = {request, framing, status, err, 0};
    fx_span rest = {head, len}, line, part[3];
    *framing = (struct fx_http_framing){0};
    names_lower(head, len);
    if (!next_line(&rest, &line)) return refuse(status, 400, err, "lines must end in CR LF");
    if (!line_split(line, part, status, err)) return false;
    request->method = method_of(part[0]);
    request->target = part[1];
    request->http_1_0 = part[2].at[7] == '0';
    framing->close = request->http_1_0;
    request->header_count = 0;
    for (;;) {
        if (!next_line(&rest, &line)) return refuse(status, 400, err, "lines must end in CR LF");
        if (!line.len) break;
        if (!header_read(&r, line)) return false;
    }
    if (!framing_check(&r)) return false;
    *status = 400;
    return fx_http__target_parse(arena, request, err);
}

fx_span fx_http_header(const struct fx_http_request *request, const char *name) {
    for (size_t i = 0; i < request->header_count; i++)
        if (fx_span_eq_str(request->headers[i].name, name)) return request->headers[i].value;
    return (fx_span){0};
}

fx_span fx_http_query(const struct fx_http_request *request, const char *name) {
    fx_span query = request->query;
    size_t len = strlen(name);
    while (query.len) {
        const uint8_t *amp = memchr(query.at, '&', query.len);
        size_t part = amp ? (size_t)(amp - query.at) : query.len;
        if (part > len && query.at[len] == '=' && memcmp(query.at, name, len) == 0)
            return (fx_span){query.at + len + 1, part - len - 1};
        query = (fx_span){query.at + part + (amp != NULL), query.len - part - (amp != NULL)};
    }
    return (fx_span){NULL, 0};
}
