#include "common/base/probe.h"
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/clock.h"

enum { HOST_MAX = 256, ANSWER_MAX = 1024 };

/* "[::]:1" and "0.0.0.0:1" are where a server listens, not where it is reached. */
static FX_MUST bool split(const char *addr, char host[HOST_MAX], const char **port, fx_error *err) {
    const char *colon = strrchr(addr, ':');
    size_t len = colon ? (size_t)(colon - addr) : 0;
    if (!colon || len >= HOST_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "'%.80s': want host:port", addr);
    bool bracketed = len >= 2 && addr[0] == '[' && addr[len - 1] == ']';
    (void)snprintf(host, HOST_MAX, "%.*s", (int)(bracketed ? len - 2 : len), addr + bracketed);
    if (strcmp(host, "0.0.0.0") == 0 || !*host) (void)snprintf(host, HOST_MAX, "127.0.0.1");
    if (strcmp(host, "::") == 0) (void)snprintf(host, HOST_MAX, "::1");
    *port = colon + 1;
    return true;
}

/* A timeout on the socket bounds connect and send as well. */
static FX_MUST bool dial(const char *addr, int *out, fx_error *err) {
    const struct timeval limit = {FX_PROBE_MS / 1000, FX_PROBE_MS % 1000 * 1000};
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char host[HOST_MAX];
    const char *port;
    if (!split(addr, host, &port, err)) return false;
    int why = getaddrinfo(host, port, &hints, &found);
    if (why) return fx_fail(err, FX_UNAVAILABLE, "%s: %s", addr, gai_strerror(why));
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
              connect(fd, found->ai_addr, found->ai_addrlen) == 0;
    int error = errno;
    freeaddrinfo(found);
    *out = fd;
    if (ok) return true;
    if (fd >= 0) (void)close(fd);
    return fx_fail(err, FX_UNAVAILABLE, "%s: %s", addr, strerror(error));
}

/* Until the server closes, the buffer is full or the time is over. */
static void read_answer(int fd, uint64_t until_ms, char answer[ANSWER_MAX]) {
    size_t len = 0;
    while (len < ANSWER_MAX - 1) {
        uint64_t now_ms = fx_clock_ms();
        struct pollfd wait = {fd, POLLIN, 0};
        if (now_ms >= until_ms || poll(&wait, 1, (int)(until_ms - now_ms)) <= 0) break;
        ssize_t got = recv(fd, answer + len, ANSWER_MAX - 1 - len, 0);
        if (got <= 0) break;
        len += (size_t)got;
    }
    answer[len] = '\0';
}

static FX_MUST bool judge(const char *addr, const char *path, const char *answer, fx_error *err) {
    int status = 0;
    const char *body = strstr(answer, "\r\n\r\n");
    if (sscanf(answer, "HTTP/1.%*d %d", &status) != 1)
        return fx_fail(err, FX_UNAVAILABLE, "%s%s: no HTTP answer within %d ms", addr, path,
                       FX_PROBE_MS);
    body = body ? body + 4 : "";
    return status == 200 || fx_fail(err, FX_UNAVAILABLE, "%s%s: %d %.*s", addr, path, status,
                                    (int)strcspn(body, "\r\n"), body);
}

static FX_MUST bool ask(int fd, const char *addr, const char *path, uint64_t until_ms,
                        fx_error *err) {
    char request[HOST_MAX], answer[ANSWER_MAX];
    int len = snprintf(request, sizeof request,
                       "GET %.128s HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n", path);
    if (send(fd, request, (size_t)len, MSG_NOSIGNAL) != len)
        return fx_fail(err, FX_UNAVAILABLE, "%s: %s", addr, strerror(errno));
    read_answer(fd, until_ms, answer);
    return judge(addr, path, answer, err);
}

bool fx_probe(const char *addr, const char *path, fx_error *err) {
    uint64_t until_ms = fx_clock_ms() + FX_PROBE_MS; /* from before connecting on */
    int fd;
    if (!dial(addr, &fd, err)) return false;
    bool ok = ask(fd, addr, path, until_ms, err);
    (void)close(fd);
    return ok;
}
