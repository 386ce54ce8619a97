#pragma once
/* An HTTP server on a free loopback port that plays back one reply a connection. In a reply, what
 * stands between \1 and \2 becomes one chunk of a chunked body. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include "tests/integ/cli/cli_process.h"

enum { SCRIPT_REQUESTS_MAX = 4, SCRIPT_REQUEST_BYTES_MAX = 65536, SCRIPT_PIECE_BYTES = 7 };

struct http_script {
    const char *replies[SCRIPT_REQUESTS_MAX]; /* for connection 0, 1, ...; NULL: end */
    bool hold; /* after the last reply: wait until the client hangs up */
    int listener;
    unsigned port;
    pthread_t thread;
    char requests[SCRIPT_REQUESTS_MAX][SCRIPT_REQUEST_BYTES_MAX];
    bool hung_up; /* the client did, while held */
};

static inline void script_read_request(int fd, char *text) {
    size_t len = 0, need = SIZE_MAX;
    while (len < need) {
        ssize_t got = recv(fd, text + len, SCRIPT_REQUEST_BYTES_MAX - 1 - len, 0);
        if (got <= 0) return;
        len += (size_t)got;
        text[len] = '\0';
        const char *body = strstr(text, "\r\n\r\n");
        const char *length = strstr(text, "Content-Length: ");
        if (body) need = (size_t)(body + 4 - text) + (length ? strtoul(length + 16, NULL, 10) : 0);
    }
}

static inline void script_send(int fd, const char *bytes, size_t len) {
    while (len > 0) {
        ssize_t sent =
            send(fd, bytes, len < SCRIPT_PIECE_BYTES ? len : SCRIPT_PIECE_BYTES, MSG_NOSIGNAL);
        if (sent <= 0) return;
        bytes += sent;
        len -= (size_t)sent;
    }
}

static inline void script_reply(int fd, const char *reply) {
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    while (*reply) {
        char size[16];
        size_t plain = strcspn(reply, "\1");
        script_send(fd, reply, plain);
        reply += plain;
        if (!*reply) return;
        size_t chunk = strcspn(++reply, "\2");
        script_send(fd, size, (size_t)snprintf(size, sizeof size, "%zx\r\n", chunk));
        script_send(fd, reply, chunk);
        script_send(fd, "\r\n", 2);
        reply += chunk + (reply[chunk] != 0);
    }
}

static inline void *script_run(void *user) {
    struct http_script *script = user;
    char rest[64];
    for (size_t i = 0; i < SCRIPT_REQUESTS_MAX && script->replies[i]; i++) {
        int fd = accept(script->listener, NULL, NULL);
        if (fd < 0) return NULL;
        script_read_request(fd, script->requests[i]);
        script_reply(fd, script->replies[i]);
        bool last = i + 1 == SCRIPT_REQUESTS_MAX || !script->replies[i + 1];
        if (last && script->hold) script->hung_up = recv(fd, rest, sizeof rest, 0) <= 0;
        (void)close(fd);
    }
    return NULL;
}

static inline void script_start(struct http_script *script) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    script->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(script->listener >= 0);
    assert_int_equal(bind(script->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(script->listener, SCRIPT_REQUESTS_MAX), 0);
    assert_int_equal(getsockname(script->listener, (struct sockaddr *)&at, &len), 0);
    script->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&script->thread, NULL, script_run, script), 0);
}

static inline void script_stop(struct http_script *script) {
    (void)shutdown(script->listener, SHUT_RDWR);
    (void)pthread_join(script->thread, NULL);
    (void)close(script->listener);
}
