#pragma once
/* A server on a thread of its own and a raw client that sends bytes as they stand. */
#include "tests/fx_test.h"
#include <arpa/inet.h>
#include <event2/event.h>
#include <event2/thread.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/http/server.h"

enum { WIRE_REPLY_MAX = 1 << 20, WIRE_WAIT_MS = 5000 };

struct wire {
    struct event_base *base;
    fx_http_server *server;
    struct event *stop, *poke;
    void (*poked)(struct wire *wire); /* runs on the loop after wire_poke */
    pthread_t thread;
    fx_http_call *_Atomic call; /* the one held by the handler */
    atomic_int gone, done, drained, poked_count;
    atomic_uint last_status;
    atomic_ullong gone_ms;
    struct fx_http_stats stats;
};

static inline void wire_on_stop(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what;
    event_base_loopbreak(((struct wire *)arg)->base);
}

static inline void wire_on_poke(evutil_socket_t fd, short what, void *arg) {
    struct wire *wire = arg;
    (void)fd, (void)what;
    if (wire->poked) wire->poked(wire);
    if (wire->server) fx_http_server_stats(wire->server, &wire->stats);
    wire->poked_count++;
}

static inline void *wire_run(void *arg) {
    event_base_loop(((struct wire *)arg)->base, EVLOOP_NO_EXIT_ON_EMPTY);
    return NULL;
}

static inline void wire_done(void *ctx, const struct fx_http_access *access) {
    struct wire *wire = ctx;
    wire->last_status = access->status;
    wire->done++;
}

static inline void wire_drained(void *ctx) {
    ((struct wire *)ctx)->drained++;
}

static inline void wire_start(struct wire *wire, struct fx_http_server_opts opts) {
    fx_error err = {0};
    (void)signal(SIGPIPE, SIG_IGN); /* as a service does */
    assert_int_equal(evthread_use_pthreads(), 0);
    wire->base = event_base_new();
    opts.base = wire->base;
    opts.addr = "127.0.0.1:0";
    opts.ctx = wire;
    opts.done = wire_done;
    opts.drained = wire_drained;
    if (!fx_http_server_open(&opts, &wire->server, &err)) fail_msg("%s", err.text);
    wire->stop = event_new(wire->base, -1, EV_PERSIST, wire_on_stop, wire);
    wire->poke = event_new(wire->base, -1, EV_PERSIST, wire_on_poke, wire);
    assert_int_equal(pthread_create(&wire->thread, NULL, wire_run, wire), 0);
}

static inline void wire_stop(struct wire *wire) {
    event_active(wire->stop, 0, 0);
    pthread_join(wire->thread, NULL);
    event_free(wire->stop);
    event_free(wire->poke);
    fx_http_server_free(wire->server);
    (void)event_base_loop(wire->base, EVLOOP_NONBLOCK); /* what libevent defers */
    event_base_free(wire->base);
}

/* Runs `poked` on the loop and waits for it; also refreshes wire->stats. */
static inline void wire_poke(struct wire *wire, void (*poked)(struct wire *wire)) {
    int before = wire->poked_count;
    wire->poked = poked;
    event_active(wire->poke, 0, 0);
    while (wire->poked_count == before)
        usleep(500);
}

static inline bool wire_wait(atomic_int *counter, int want) {
    uint64_t end = fx_clock_ms() + WIRE_WAIT_MS;
    while (*counter < want && fx_clock_ms() < end)
        usleep(500);
    return *counter >= want;
}

static inline int wire_connect(const struct wire *wire) {
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(fx_http_server_port(wire->server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
    return fd;
}

static inline void wire_send(int fd, const void *bytes, size_t len) {
    for (size_t done = 0; done < len;) {
        ssize_t sent = send(fd, (const char *)bytes + done, len - done, MSG_NOSIGNAL);
        if (sent <= 0) return; /* the server may have closed already */
        done += (size_t)sent;
    }
}

static inline void wire_say(int fd, const char *text) {
    wire_send(fd, text, strlen(text));
}

/* Reads until `until` is in the text, the end, or the time is over; NUL-terminated. */
static inline char *wire_read(int fd, const char *until, bool *closed) {
    char *text = calloc(1, WIRE_REPLY_MAX + 1);
    size_t len = 0;
    uint64_t end = fx_clock_ms() + WIRE_WAIT_MS;
    *closed = false;
    while (len < WIRE_REPLY_MAX && (!until || !strstr(text, until))) {
        uint64_t now = fx_clock_ms();
        struct pollfd one = {fd, POLLIN, 0};
        if (now >= end || poll(&one, 1, (int)(end - now)) <= 0) break;
        ssize_t got = recv(fd, text + len, WIRE_REPLY_MAX - len, 0);
        if (got <= 0) {
            *closed = true;
            break;
        }
        len += (size_t)got;
    }
    return text;
}

static inline unsigned wire_status(const char *text) {
    unsigned status = 0;
    return sscanf(text, "HTTP/1.1 %u", &status) == 1 ? status : 0;
}
