#include "common/queue/redis_url.h"
#include "common/base/span.h"
#include "common/base/hash.h"

enum { PORT_DEFAULT = 6379, DB_MAX = 1 << 20 };

static FX_MUST bool number_read(fx_span text, uint32_t max, uint32_t *out) {
    uint32_t value = 0;
    if (text.len == 0 || text.len > 9) return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') return false;
        value = value * 10 + (uint32_t)(text.at[i] - '0');
    }
    if (value > max) return false;
    *out = value;
    return true;
}

/* Copies, %XX decoded; false when it does not fit, holds a NUL or a bad escape. */
static FX_MUST bool text_read(fx_span text, char *out) {
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t byte = text.at[i];
        if (byte == '%') {
            if (text.len - i < 3 || !fx_unhex((fx_span){text.at + i + 1, 2}, &byte, 1))
                return false;
            i += 2;
        }
        if (byte == 0 || len + 1 >= FX_REDIS_URL_MAX) return false;
        out[len++] = (char)byte;
    }
    out[len] = 0;
    return true;
}

/* Cuts `text` at the last or first `c`: `head` before it, `text` after; false if there is none. */
static bool cut(fx_span *text, char c, bool last, fx_span *head) {
    const uint8_t *at = !text->len ? NULL
                        : last     ? memrchr(text->at, c, text->len)
                                   : memchr(text->at, c, text->len);
    if (!at) return false;
    *head = (fx_span){text->at, (size_t)(at - text->at)};
    *text = (fx_span){at + 1, text->len - head->len - 1};
    return true;
}

static FX_MUST bool user_read(fx_span *rest, struct fx_redis_url *url, fx_error *err) {
    fx_span credentials, user = {NULL, 0};
    if (!cut(rest, '@', true, &credentials)) return true;
    if (!cut(&credentials, ':', false, &user))
        return fx_fail(err, FX_INVALID_ARGUMENT, "Redis URL: user without ':password'");
    if (!text_read(user, url->user) || !text_read(credentials, url->password))
        return fx_fail(err, FX_INVALID_ARGUMENT, "Redis URL: bad user or password");
    return true;
}

static FX_MUST bool host_read(fx_span rest, struct fx_redis_url *url, fx_error *err) {
    fx_span host = rest, head;
    uint32_t port = PORT_DEFAULT;
    if (host.len && host.at[0] == '[') {
        rest = (fx_span){rest.at + 1, rest.len - 1};
        if (!cut(&rest, ']', false, &host))
            return fx_fail(err, FX_INVALID_ARGUMENT, "Redis URL: '[' without ']'");
        if (rest.len && rest.at[0] != ':')
            return fx_fail(err, FX_INVALID_ARGUMENT, "Redis URL: text after ']'");
        if (rest.len) rest = (fx_span){rest.at + 1, rest.len - 1};
    } else if (cut(&rest, ':', true, &head)) {
        host = head;
    } else {
        rest = (fx_span){NULL, 0};
    }
    if (rest.len && (!number_read(rest, 65535, &port) || port == 0))
        return fx_fail(err, FX_INVALID_ARGUMENT, "Redis URL: bad port");
    if (!host.len || !text_read(host, url->host))
        return fx_fail(err, FX_INVALID_ARGUMENT, "Redis URL: no host, or a bad one");
    url->port = (uint16_t)port;
    return true;
}

static FX_MUST bool tcp_read(fx_span rest, struct fx_redis_url *url, fx_error *err) {
    fx_span authority = rest;
    if (!user_read(&authority, url, err)) return false;
    fx_span db = authority, host;
    if (cut(&db, '/', false, &host)) {
        if (db.len && !number_read(db, DB_MAX, &url->db))
            return fx_fail(err, FX_INVALID_ARGUMENT, "Redis URL: bad database number");
        authority = host;
    }
    return host_read(authority, url, err);
}

static FX_MUST bool unix_read(fx_span rest, struct fx_redis_url *url, fx_error *err) {
    fx_span path = rest, head;
    if (!user_read(&path, url, err)) return false;
    fx_span query = path;
    if (cut(&query, '?', false, &head)) {
        path = head;
        if (query.len < 4 || memcmp(query.at, "db=", 3) != 0 ||
            !number_read((fx_span){query.at + 3, query.len - 3}, DB_MAX, &url->db))
            return fx_fail(err, FX_INVALID_ARGUMENT, "Redis URL: only ?db=N may follow a path");
    }
    if (!path.len || path.at[0] != '/' || path.len > 107 || !text_read(path, url->path))
        return fx_fail(err, FX_INVALID_ARGUMENT,
                       "Redis URL: a unix socket needs an absolute path of at most 107 bytes");
    return true;
}

bool fx_redis__url_parse(const char *text, struct fx_redis_url *out, fx_error *err) {
    struct fx_redis_url url = {0};
    bool ok;
    if (strlen(text) >= FX_REDIS_URL_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "Redis URL: too long");
    if (strncmp(text, "redis://", 8) == 0)
        ok = tcp_read(fx_span_str(text + 8), &url, err);
    else if (strncmp(text, "unix://", 7) == 0)
        ok = unix_read(fx_span_str(text + 7), &url, err);
    else
        ok = fx_fail(err, FX_INVALID_ARGUMENT, "Redis URL: must begin with redis:// or unix:///");
    if (ok) *out = url;
    return ok;
}
