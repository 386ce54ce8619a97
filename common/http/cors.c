#include "common/http/cors.h"
#include "common/http/http_internal.h"

enum { PORT_DIGITS_MAX = 5, PORT_MAX = 65535 };
#define MAX_AGE "600" /* seconds a browser may keep a preflight's answer */

/* -- the list -- */

static fx_span trim(fx_span text) {
    while (text.len && text.at[0] == ' ')
        text = (fx_span){text.at + 1, text.len - 1};
    while (text.len && text.at[text.len - 1] == ' ')
        text.len--;
    return text;
}

/* Takes the first item off the list; false: there is none. */
static bool next_origin(const char **list, fx_span *out) {
    if (!*list) return false;
    size_t len = strcspn(*list, ",");
    *out = trim((fx_span){(const uint8_t *)*list, len});
    *list = (*list)[len] ? *list + len + 1 : NULL;
    return true;
}

static size_t count_while(fx_span text, const char *others, bool digits, bool letters) {
    size_t len = 0;
    for (; len < text.len; len++) {
        uint8_t c = text.at[len];
        if (digits && c >= '0' && c <= '9') continue;
        if (letters && c >= 'a' && c <= 'z') continue;
        if (!c || !strchr(others, c)) break;
    }
    return len;
}

static fx_span behind(fx_span text, size_t len) {
    return (fx_span){text.at + len, text.len - len};
}

/* `:1` to `:65535`, but for the scheme's own, which browsers leave out. */
static bool port_is_good(fx_span scheme, fx_span port) {
    unsigned number = 0;
    if (!port.len) return true;
    port = behind(port, 1);
    if (!port.len || port.len > PORT_DIGITS_MAX || port.at[0] == '0') return false;
    if (count_while(port, "", true, false) != port.len) return false;
    for (size_t i = 0; i < port.len; i++)
        number = number * 10 + (unsigned)(port.at[i] - '0');
    if (fx_span_eq_str(scheme, "http") && number == 80) return false;
    if (fx_span_eq_str(scheme, "https") && number == 443) return false;
    return number <= PORT_MAX;
}

/* A name, an IPv4 address, or an IPv6 address in brackets. */
static size_t host_len(fx_span text) {
    if (!text.len || text.at[0] != '[') return count_while(text, "-._", true, true);
    size_t len = 1 + count_while(behind(text, 1), ":abcdef", true, false);
    return len > 1 && len < text.len && text.at[len] == ']' ? len + 1 : 0;
}

static bool origin_is_good(fx_span origin) {
    size_t len = count_while(origin, "+-.", true, true);
    fx_span scheme = {origin.at, len}, rest = behind(origin, len);
    if (!len || origin.len > FX_HTTP_ORIGIN_BYTES_MAX || rest.len < 3) return false;
    if (memcmp(rest.at, "://", 3) != 0) return false;
    rest = behind(rest, 3);
    len = host_len(rest);
    fx_span port = behind(rest, len);
    return len && (!port.len || port.at[0] == ':') && port_is_good(scheme, port);
}

bool fx_http_cors_check(const char *origins, fx_error *err) {
    fx_span origin;
    size_t count = 0;
    if (!origins || !*origins || strcmp(origins, "*") == 0) return true;
    while (next_origin(&origins, &origin)) {
        if (++count > FX_HTTP_ORIGINS_MAX)
            return fx_fail(err, FX_INVALID_ARGUMENT, "more than %d origins", FX_HTTP_ORIGINS_MAX);
        if (!origin_is_good(origin))
            return fx_fail(err, FX_INVALID_ARGUMENT,
                           "'%.*s' is no origin as browsers send it, such as https://a.example or "
                           "http://localhost:3000 (or * alone for all)",
                           origin.len < 64 ? (int)origin.len : 64, (const char *)origin.at);
    }
    return true;
}

/* -- answers -- */

static bool is_on(const struct fx_http_conn *conn) {
    const char *origins = conn->server->opts.cors.origins;
    return origins && *origins;
}

/* What allow-origin says to this request; empty: nothing. */
static fx_span allowed(const struct fx_http_conn *conn) {
    const char *origins = conn->server->opts.cors.origins;
    fx_span sent = fx_http_header(fx_http__request(conn), "origin"), one;
    if (!sent.len) return (fx_span){0};
    if (strcmp(origins, "*") == 0) return fx_span_str("*");
    while (next_origin(&origins, &one))
        if (fx_span_eq(one, sent)) return sent;
    return (fx_span){0};
}

static struct fx_http_header header(const char *name, fx_span value) {
    return (struct fx_http_header){fx_span_str(name), value};
}

size_t fx_http__cors_headers(const struct fx_http_conn *conn,
                             struct fx_http_header out[FX_HTTP_CORS_ANSWER_MAX]) {
    if (!is_on(conn)) return 0;
    fx_span origin = allowed(conn);
    out[0] = header("vary", fx_span_str("origin"));
    if (!origin.len) return 1;
    out[1] = header("access-control-allow-origin", origin);
    out[2] = header("access-control-expose-headers", fx_span_str(conn->server->opts.cors.exposed));
    return 3;
}

/* Names by comma, and no more of them than anybody needs: they may be repeated. */
static bool names_are_good(fx_span names) {
    static const char others[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_, ";
    return names.len && names.len <= FX_HTTP_CORS_HEADERS_MAX &&
           count_while(names, others, true, true) == names.len;
}

bool fx_http__cors_preflight(struct fx_http_conn *conn) {
    const struct fx_http_cors *cors = &conn->server->opts.cors;
    fx_span names = fx_http_header(conn->request, "access-control-request-headers");
    if (!is_on(conn) || conn->request->method != FX_HTTP_OPTIONS || !allowed(conn).len)
        return false;
    if (!fx_http_header(conn->request, "access-control-request-method").len) return false;
    const struct fx_http_header headers[] = {
        header("access-control-allow-methods", fx_span_str(cors->methods)),
        header("access-control-allow-headers",
               names_are_good(names) ? names : fx_span_str(cors->headers)),
        header("access-control-max-age", fx_span_str(MAX_AGE)),
    };
    fx_http_reply(&conn->call, &(struct fx_http_reply){.status = 204,
                                                       .headers = headers,
                                                       .header_count = FX_COUNT(headers)});
    return true;
}
