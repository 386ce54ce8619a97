#include "tests/bench/load.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "common/base/heap.h"
#include "tests/bench/child.h"
#include "tests/bench/load_internal.h"

enum {
    EVENTS = 512,
    RAMP = 32, /* connections opened between two looks at what came */
    REQUEST_BYTES = 1024,
    READ_BYTES = 65536,
    SILENCE_MS = 15000,
    FILES_REST = 256,
};

static uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* -- requests -- */

/* The answer of a streamed request ends a token after the other; without a stream it is one. */
static size_t body_write(const struct load_opts *opts, uint32_t index, char *out, size_t cap) {
    return (size_t)snprintf(out, cap,
                            "{\"model\":\"%s\",\"prompt\":\"" SOURCE_PROMPT
                            "\",\"max_tokens\":%u,\"temperature\":0%s}",
                            opts->model, index, opts->pace_ms, opts->tokens,
                            opts->kind == LOAD_STREAM ? ",\"stream\":true" : "");
}

static FX_MUST bool request_send(struct load *load, struct load_conn *conn) {
    char body[REQUEST_BYTES], text[2 * REQUEST_BYTES];
    const struct load_opts *opts = load->opts;
    size_t len = body_write(opts, conn->index, body, sizeof body);
    int all = snprintf(text, sizeof text,
                       "POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1:%u\r\n"
                       "authorization: Bearer %s\r\ncontent-type: application/json\r\n"
                       "content-length: %zu\r\n\r\n%s",
                       opts->port, opts->key, len, body);
    FX_ASSERT(all > 0 && (size_t)all < sizeof text);
    load_conn_begin(conn);
    conn->body_bytes = len;
    load->running++;
    return send(conn->fd, text, (size_t)all, MSG_NOSIGNAL) == all;
}

/* -- connections -- */

static void conn_close(struct load *load, struct load_conn *conn) {
    if (conn->fd < 0) return;
    (void)close(conn->fd);
    conn->fd = -1;
    load->open--;
}

static void conn_fail(struct load *load, struct load_conn *conn, const char *why) {
    struct load_result *out = load->out;
    out->failed++;
    if (!*out->why) (void)snprintf(out->why, sizeof out->why, "%s", why);
    if (conn->asking) load->running--;
    conn->asking = false;
    conn_close(load, conn);
}

static FX_MUST bool conn_open(struct load *load, struct load_conn *conn, fx_error *err) {
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(load->opts->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    conn->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (conn->fd < 0) return fx_fail_errno(err, "socket");
    load->open++;
    if (connect(conn->fd, (struct sockaddr *)&in, sizeof in) != 0)
        return fx_fail_errno(err, "connect to port %u", load->opts->port);
    (void)setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};
    if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, conn->fd, &event) != 0)
        return fx_fail_errno(err, "epoll");
    if (!request_send(load, conn)) return fx_fail_errno(err, "send");
    return true;
}

/* -- time -- */

static void count_begin(struct load *load) {
    struct load_result *out = load->out;
    load->counted_ns = now_ns();
    load->counting = true;
    out->answers = out->events = out->tokens = out->reads = 0;
    out->cpu_s = -bench_cpu_s(load->opts->server);
    if (load->opts->counting) load->opts->counting(load->opts->ctx, true);
}

static void count_end(struct load *load) {
    struct load_result *out = load->out;
    if (!load->counting || load->counted) return;
    load->counted = true;
    load->asking = false;
    out->cpu_s += bench_cpu_s(load->opts->server);
    if (load->opts->counting) load->opts->counting(load->opts->ctx, false);
    out->seconds = (double)(now_ns() - load->counted_ns) / 1e9;
    load->kept = *out;
}

static void time_check(struct load *load) {
    const struct load_opts *opts = load->opts;
    double passed_s = (double)(now_ns() - load->begun_ns) / 1e9;
    if (opts->seconds <= 0) return;
    if (!load->counting && passed_s >= opts->warm_s) count_begin(load);
    if (passed_s >= opts->warm_s + opts->seconds) count_end(load);
}

/* -- the loop -- */

static void answered(struct load *load, struct load_conn *conn) {
    const struct load_opts *opts = load->opts;
    const char *why = load_conn_check(load, conn);
    conn->asking = false;
    load->running--;
    load->out->answers++;
    if (why) {
        conn_fail(load, conn, why);
        return;
    }
    if (opts->seconds > 0 && load->asking && !request_send(load, conn))
        conn_fail(load, conn, "a request could not be sent");
}

static void readable(struct load *load, struct load_conn *conn) {
    static uint8_t bytes[READ_BYTES];
    ssize_t got = recv(conn->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    load->heard_ns = now_ns();
    if (got <= 0) {
        conn_fail(load, conn, conn->asking ? "closed within an answer" : "closed");
        return;
    }
    load->out->reads++;
    if (!load_conn_feed(load, conn, (fx_span){bytes, (size_t)got}))
        conn_fail(load, conn, "no HTTP came");
    else if (conn->asking && conn->state == LOAD_END)
        answered(load, conn);
}

static FX_MUST bool opening(struct load *load, uint32_t *opened, fx_error *err) {
    for (uint32_t i = 0; i < RAMP && *opened < load->opts->connections; i++, (*opened)++) {
        load->conns[*opened].index = *opened;
        if (!conn_open(load, &load->conns[*opened], err)) return false;
    }
    return true;
}

static void midway_check(struct load *load) {
    if (!load->opts->midway || load->seconds_seen < load->opts->connections) return;
    if (!load->midway_told) load->opts->midway(load->opts->ctx);
    load->midway_told = true;
}

static FX_MUST bool turn(struct load *load, bool more, fx_error *err) {
    struct epoll_event events[EVENTS];
    int count = epoll_wait(load->epoll, events, EVENTS, more ? 0 : 10);
    for (int i = 0; i < count; i++)
        if (((struct load_conn *)events[i].data.ptr)->fd >= 0) readable(load, events[i].data.ptr);
    time_check(load);
    midway_check(load);
    if (now_ns() - load->heard_ns < SILENCE_MS * 1000000ULL) return true;
    return fx_fail(err, FX_UNAVAILABLE, "nothing came for %d ms, %u answers are missing",
                   SILENCE_MS, load->running);
}

static FX_MUST bool drive(struct load *load, fx_error *err) {
    uint32_t opened = 0;
    load->begun_ns = load->heard_ns = now_ns();
    load->asking = true;
    if (load->opts->seconds <= 0) count_begin(load);
    while (opened < load->opts->connections || load->running || !load->counted) {
        bool more = opened < load->opts->connections;
        if (!opening(load, &opened, err) || !turn(load, more, err)) return false;
        if (load->opts->seconds <= 0 && !more && !load->running) count_end(load);
        if (!load->open && !more) count_end(load); /* every one of them failed */
    }
    return true;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Failures count whenever they come, the rest as it stood when the time was over. */
static void result_finish(struct load *load) {
    struct load_result *out = load->out, *kept = &load->kept;
    out->answers = kept->answers;
    out->events = kept->events;
    out->tokens = kept->tokens;
    out->reads = kept->reads;
    if (out->latency_count)
        qsort(out->latency_us, out->latency_count, sizeof *out->latency_us, by_size);
}

static FX_MUST bool files_raise(uint32_t connections, fx_error *err) {
    struct rlimit limit;
    rlim_t want = (rlim_t)connections + FILES_REST;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return fx_fail_errno(err, "getrlimit");
    if (limit.rlim_cur >= want) return true;
    limit.rlim_cur = want;
    if (limit.rlim_max < want) limit.rlim_max = want; /* root may */
    return setrlimit(RLIMIT_NOFILE, &limit) == 0 ||
           fx_fail_errno(err, "%llu descriptors (ulimit -n)", (unsigned long long)want);
}

bool load_run(const struct load_opts *opts, struct load_result *out, fx_error *err) {
    struct load load = {.opts = opts, .out = out, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    *out = (struct load_result){0};
    load.conns = fx_alloc(opts->connections, sizeof *load.conns);
    if (opts->times) out->latency_us = fx_alloc(LOAD_LATENCIES_MAX, sizeof *out->latency_us);
    bool ok = load.conns && load.epoll >= 0 && (out->latency_us || !opts->times);
    if (!ok)
        fx_error_set(err, FX_RESOURCE_EXHAUSTED, "memory for %u connections", opts->connections);
    for (uint32_t i = 0; ok && i < opts->connections; i++)
        load.conns[i].fd = -1;
    ok = ok && files_raise(opts->connections, err) && drive(&load, err);
    for (uint32_t i = 0; load.conns && i < opts->connections; i++)
        if (load.conns[i].fd > 0) conn_close(&load, &load.conns[i]);
    if (load.epoll >= 0) (void)close(load.epoll);
    free(load.conns);
    result_finish(&load);
    return ok;
}

unsigned load_get(uint16_t port, const char *path, const char *key) {
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval wait = {2, 0};
    char text[REQUEST_BYTES];
    unsigned status = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int len = snprintf(text, sizeof text,
                       "GET %s HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer %s\r\n"
                       "connection: close\r\n\r\n",
                       path, key);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (connect(fd, (struct sockaddr *)&in, sizeof in) == 0 &&
        send(fd, text, (size_t)len, MSG_NOSIGNAL) == len) {
        ssize_t got = recv(fd, text, sizeof text - 1, 0);
        text[got > 0 ? got : 0] = 0;
        if (sscanf(text, "HTTP/1.1 %3u", &status) != 1) status = 0;
    }
    (void)close(fd);
    return status;
}

bool load_free_port(uint16_t *out, fx_error *err) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&in, sizeof in) == 0 &&
              getsockname(fd, (struct sockaddr *)&in, &len) == 0;
    *out = ntohs(in.sin_port);
    if (fd >= 0) (void)close(fd);
    return ok || fx_fail_errno(err, "a free port");
}
