#include "common/http/listen.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOST_MAX = 64, BACKLOG = 512 };

static FX_MUST bool port_parse(const char *text, uint16_t *out, fx_error *err) {
    size_t len = strlen(text);
    if (len < 1 || len > 5 || strspn(text, "0123456789") != len)
        return fx_fail(err, FX_INVALID_ARGUMENT, "'%.32s' is not a port", text);
    unsigned long port = strtoul(text, NULL, 10);
    if (port > UINT16_MAX) return fx_fail(err, FX_INVALID_ARGUMENT, "port %lu is over 65535", port);
    *out = (uint16_t)port;
    return true;
}

static bool set_v4(const char *host, uint16_t port, struct fx_listen_addr *out) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, host, &in.sin_addr) != 1) return false;
    out->loopback = (ntohl(in.sin_addr.s_addr) >> 24) == 127;
    out->len = sizeof in;
    memcpy(&out->at, &in, sizeof in);
    return true;
}

static bool set_v6(const char *host, uint16_t port, struct fx_listen_addr *out) {
    struct sockaddr_in6 in = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    if (inet_pton(AF_INET6, host, &in.sin6_addr) != 1) return false;
    out->loopback = IN6_IS_ADDR_LOOPBACK(&in.sin6_addr);
    out->len = sizeof in;
    memcpy(&out->at, &in, sizeof in);
    return true;
}

/* The part before the last colon, without the brackets of IPv6. */
static bool host_cut(const char *text, const char *colon, char host[HOST_MAX]) {
    size_t len = (size_t)(colon - text);
    bool brackets = len >= 2 && text[0] == '[' && text[len - 1] == ']';
    if (brackets) text++, len -= 2;
    if (len >= HOST_MAX || (!brackets && memchr(text, ':', len))) return false;
    memcpy(host, text, len);
    host[len] = 0;
    return true;
}

bool fx_listen_parse(const char *text, struct fx_listen_addr *out, fx_error *err) {
    const char *colon = strrchr(text, ':');
    char host[HOST_MAX];
    if (!colon || !host_cut(text, colon, host))
        return fx_fail(err, FX_INVALID_ARGUMENT, "address '%.64s' is not host:port", text);
    uint16_t port;
    if (!port_parse(colon + 1, &port, err)) return fx_wrap(err, "address '%.64s'", text);
    const char *numeric = !*host ? "0.0.0.0" : strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    struct fx_listen_addr addr = {0};
    if (!set_v4(numeric, port, &addr) && !set_v6(numeric, port, &addr))
        return fx_fail(err, FX_INVALID_ARGUMENT, "address '%.64s': the host must be numeric", text);
    *out = addr;
    return true;
}

static void bind_explain(const char *text, fx_error *err) {
    if (errno == EADDRINUSE)
        fx_error_set(err, FX_UNAVAILABLE,
                     "%.64s is in use by another program: stop it, or choose another address",
                     text);
    else if (errno == EADDRNOTAVAIL)
        fx_error_set(err, FX_INVALID_ARGUMENT, "%.64s is no address of this machine", text);
    else
        fx_error_set_errno(err, "listen on %.64s", text);
}

static uint16_t port_of(int fd) {
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof at;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    if (getsockname(fd, (struct sockaddr *)&at, &len) != 0) return 0;
    memcpy(&in, &at, sizeof in);
    memcpy(&in6, &at, sizeof in6);
    return ntohs(at.ss_family == AF_INET6 ? in6.sin6_port : in.sin_port);
}

static bool option_set(int fd, int name) {
    int on = 1;
    return setsockopt(fd, SOL_SOCKET, name, &on, sizeof on) == 0;
}

/* FIRST is bound before it may be joined, so that a second program is told of the first. */
static bool bind_listen(int fd, const struct fx_listen_addr *addr, enum fx_listen_share share) {
    if (!option_set(fd, SO_REUSEADDR)) return false;
    if (share == FX_LISTEN_JOIN && !option_set(fd, SO_REUSEPORT)) return false;
    if (bind(fd, (const struct sockaddr *)&addr->at, addr->len) != 0) return false;
    if (share == FX_LISTEN_FIRST && !option_set(fd, SO_REUSEPORT)) return false;
    return listen(fd, BACKLOG) == 0;
}

bool fx_listen_open_shared(const char *text, enum fx_listen_share share, int *out, uint16_t *port,
                           fx_error *err) {
    struct fx_listen_addr addr;
    if (!fx_listen_parse(text, &addr, err)) return false;
    int fd = socket(addr.at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return fx_fail_errno(err, "socket for %.64s", text);
    if (!bind_listen(fd, &addr, share)) {
        bind_explain(text, err);
        close(fd);
        return false;
    }
    *out = fd;
    *port = port_of(fd);
    return true;
}

bool fx_listen_open(const char *text, int *out, uint16_t *port, fx_error *err) {
    return fx_listen_open_shared(text, FX_LISTEN_ALONE, out, port, err);
}
