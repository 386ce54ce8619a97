#include "common/queue/redis_url.h"
#include "common/base/span.h"
#include "common/base/hash.h"

enum { PORT_DEFAULT = 6379, SENTINEL_PORT_DEFAULT = 26379, DB_MAX = 1 << 20, PATH_MAX_LEN = 107 };

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
        if (byte == 0 || len + 1 >= FX_REDIS_TEXT_MAX) return false;
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

static FX_MUST bool host_read(fx_span rest, uint32_t port, struct fx_redis_host *out,
                              fx_error *err) {
    fx_span host = rest, head;
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
    if (!host.len || !text_read(host, out->name))
        return fx_fail(err, FX_INVALID_ARGUMENT, "Redis URL: no host, or a bad one");
    out->port = (uint16_t)port;
    return true;
}

static FX_MUST bool hosts_read(fx_span rest, struct fx_redis_url *url, fx_error *err) {
    fx_span host;
    for (bool more = true; more; url->host_count++) {
        more = cut(&rest, ',', false, &host);
        if (!more) host = rest;
        if (url->host_count == FX_REDIS_HOSTS_MAX)
            return fx_fail(err, FX_INVALID_ARGUMENT, "Redis URL: more than %d hosts",
                           FX_REDIS_HOSTS_MAX);
        if (!host_read(host, SENTINEL_PORT_DEFAULT, &url->hosts[url->host_count], err))
            return false;
    }
    return true;
}

/* Cuts "/db" off the end of `authority`, if it is there. */
static FX_MUST bool db_read(fx_span *authority, struct fx_redis_url *url, fx_error *err) {
    fx_span db = *authority, head;
    if (!cut(&db, '/', false, &head)) return true;
    if (db.len && !number_read(db, DB_MAX, &url->db))
        return fx_fail(err, FX_INVALID_ARGUMENT, "Redis URL: bad database number");
    *authority = head;
    return true;
}

static FX_MUST bool tcp_read(fx_span rest, struct fx_redis_url *url, fx_error *err) {
    url->host_count = 1;
    return user_read(&rest, url, err) && db_read(&rest, url, err) &&
           host_read(rest, PORT_DEFAULT, &url->hosts[0], err);
}

static FX_MUST bool sentinel_read(fx_span rest, struct fx_redis_url *url, fx_error *err) {
    fx_span hosts;
    if (!user_read(&rest, url, err)) return false;
    if (!cut(&rest, '/', false, &hosts))
        return fx_fail(err, FX_INVALID_ARGUMENT, "Redis URL: no '/' and name of the master");
    if (!db_read(&rest, url, err) || !hosts_read(hosts, url, err)) return false;
    if (!rest.len || !text_read(rest, url->master))
        return fx_fail(err, FX_INVALID_ARGUMENT, "Redis URL: no name of the master, or a bad one");
    return true;
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
    if (!path.len || path.at[0] != '/' || path.len > PATH_MAX_LEN || !text_read(path, url->path))
        return fx_fail(err, FX_INVALID_ARGUMENT,
                       "Redis URL: a unix socket needs an absolute path of at most 107 bytes");
    return true;
}

bool fx_redis__url_parse(const char *text, struct fx_redis_url *out, fx_error *err) {
    static const struct {
        const char *scheme;
        bool tls;
        bool (*read)(fx_span rest, struct fx_redis_url *url, fx_error *err);
    } rows[] = {
        {"redis://",           false, tcp_read     },
        {"rediss://",          true,  tcp_read     },
        {"unix://",            false, unix_read    },
        {"redis+sentinel://",  false, sentinel_read},
        {"rediss+sentinel://", true,  sentinel_read},
    };
    struct fx_redis_url url = {0};
    if (strlen(text) >= FX_REDIS_URL_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "Redis URL: too long");
    for (size_t i = 0; i < FX_COUNT(rows); i++) {
        size_t len = strlen(rows[i].scheme);
        if (strncmp(text, rows[i].scheme, len) != 0) continue;
        url.tls = rows[i].tls;
        if (!rows[i].read(fx_span_str(text + len), &url, err)) return false;
        *out = url;
        return true;
    }
    return fx_fail(err, FX_INVALID_ARGUMENT,
                   "Redis URL: must begin with redis://, rediss://, redis+sentinel://, "
                   "rediss+sentinel:// or unix:///");
}
