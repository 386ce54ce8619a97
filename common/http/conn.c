#include "common/http/http_internal.h"
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/http/sse.h"

enum { FULL_BODY_MAX = 256, FULL_BYTES_MAX = 768 };

static void on_event(struct bufferevent *bev, short what, void *arg);

static void on_read(struct bufferevent *bev, void *arg) {
    struct fx_http_conn *conn = arg;
    struct evbuffer *input = bufferevent_get_input(bev);
    if (conn->doomed) return;
    if (conn->state == CONN_LINGER || conn->state == CONN_FLUSH) {
        evbuffer_drain(input, evbuffer_get_length(input));
        return;
    }
    fx_http__receive(conn);
    if (conn->state == CONN_CALL && evbuffer_get_length(input) > FX_HTTP_PIPELINED_MAX)
        fx_http__conn_cut(conn);
}

/* Everything written has left: when this was the last reply, shut our side. */
static void on_drained(struct bufferevent *bev, void *arg) {
    struct fx_http_conn *conn = arg;
    if (conn->paused && !conn->doomed) on_read(bev, arg);
    if (conn->call.streaming && conn->call.taken && !conn->doomed)
        conn->call.taken(conn->call.taken_ctx);
    if (conn->state != CONN_FLUSH || conn->doomed) return;
    if (evbuffer_get_length(bufferevent_get_output(bev))) return;
    SSL *ssl = bufferevent_openssl_get_ssl(bev);
    if (ssl) (void)SSL_shutdown(ssl);
    (void)shutdown(bufferevent_getfd(bev), SHUT_WR);
    conn->state = CONN_LINGER;
    conn->deadline_ms = fx_clock_ms() + FX_HTTP_LINGER_MS;
    if (!(bufferevent_get_enabled(bev) & EV_READ)) fx_http__conn_close(conn);
}

/* The client's side is shut. A call in flight counts as abandoned; a reply still leaves. */
static void on_eof(struct fx_http_conn *conn) {
    bool unsent = evbuffer_get_length(bufferevent_get_output(conn->bev)) > 0;
    bool replied = conn->state == CONN_FLUSH || conn->state == CONN_IDLE;
    if (!replied || !unsent) {
        fx_http__conn_close(conn);
        return;
    }
    conn->state = CONN_FLUSH;
    conn->deadline_ms = fx_clock_ms() + conn->server->opts.stall_ms_max;
}

static void on_event(struct bufferevent *bev, short what, void *arg) {
    struct fx_http_conn *conn = arg;
    (void)bev;
    if (what & BEV_EVENT_CONNECTED) {
        conn->state = CONN_IDLE;
        conn->deadline_ms = fx_clock_ms() + conn->server->opts.idle_ms_max;
    } else if (what & BEV_EVENT_TIMEOUT) { /* only writing has one: the client takes nothing */
        conn->server->stats.cut_slow++;
        fx_http__conn_close(conn);
    } else if ((what & BEV_EVENT_EOF) && !conn->doomed) {
        on_eof(conn);
    } else if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) {
        fx_http__conn_close(conn);
    }
}

static bool place_take(fx_http_server *server) {
    atomic_uint *all = server->opts.connections;
    if (!all) return server->stats.open < server->opts.connections_max;
    if (atomic_fetch_add(all, 1) < server->opts.connections_max) return true;
    (void)atomic_fetch_sub(all, 1);
    return false;
}

static void place_give(fx_http_server *server) {
    if (server->opts.connections) (void)atomic_fetch_sub(server->opts.connections, 1);
}

void fx_http__conn_close(struct fx_http_conn *conn) {
    fx_http_server *server = conn->server;
    TAILQ_REMOVE(&server->conns, conn, entry);
    place_give(server);
    server->stats.open--;
    if (conn->call.active) {
        server->stats.gone++;
        void (*gone)(void *ctx) = conn->call.gone;
        fx_http__call_done(conn, true);
        if (gone) gone(conn->call.gone_ctx);
    }
    fx_http__request_free(conn);
    bufferevent_free(conn->bev);
    free(conn);
}

void fx_http__conn_cut(struct fx_http_conn *conn) {
    if (conn->doomed) return;
    conn->doomed = true;
    bufferevent_disable(conn->bev, EV_READ | EV_WRITE);
    bufferevent_trigger_event(conn->bev, BEV_EVENT_ERROR, BEV_TRIG_DEFER_CALLBACKS);
}

void fx_http__conn_next(struct fx_http_conn *conn) {
    fx_http__request_free(conn);
    if (conn->close_after || conn->server->draining) {
        conn->state = CONN_FLUSH;
        conn->deadline_ms = fx_clock_ms() + conn->server->opts.stall_ms_max;
        return; /* the reply's last byte leads to on_drained */
    }
    conn->state = CONN_IDLE;
    conn->deadline_ms = fx_clock_ms() + conn->server->opts.idle_ms_max;
    if (evbuffer_get_length(bufferevent_get_input(conn->bev)))
        bufferevent_trigger(conn->bev, EV_READ,
                            BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

static void ping(struct fx_http_conn *conn) {
    uint8_t text[16];
    fx_buf buf = {text, 0, sizeof text};
    fx_sse_comment(&buf, "ping");
    fx_http_stream_write(&conn->call, (fx_span){text, buf.len});
}

void fx_http__conn_tick(struct fx_http_conn *conn, uint64_t now_ms) {
    if (conn->doomed) return;
    if (conn->call.streaming && conn->ping_ms && now_ms - conn->written_ms >= conn->ping_ms)
        ping(conn);
    bool unsent = evbuffer_get_length(bufferevent_get_output(conn->bev)) > 0;
    if (conn->state == CONN_IDLE && unsent) /* not idle: the stall's time counts */
        conn->deadline_ms = now_ms + conn->server->opts.idle_ms_max;
    if (!conn->deadline_ms || now_ms < conn->deadline_ms) return;
    if (conn->state != CONN_HEAD && conn->state != CONN_BODY) {
        fx_http__conn_close(conn);
        return;
    }
    conn->server->stats.timed_out++;
    fx_http__refuse(conn, 408, "the request did not arrive in time");
}

static struct bufferevent *bufferevent_of(fx_http_server *server, int fd) {
    int options = BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS;
    if (!server->opts.tls) return bufferevent_socket_new(server->opts.base, fd, options);
    SSL *ssl = fx_http_tls_new(server->opts.tls);
    if (!ssl) return NULL;
    struct bufferevent *bev = bufferevent_openssl_socket_new(server->opts.base, fd, ssl,
                                                             BUFFEREVENT_SSL_ACCEPTING, options);
    if (!bev) SSL_free(ssl);
    return bev;
}

static void start(struct fx_http_conn *conn) {
    fx_http_server *server = conn->server;
    struct timeval stall = {server->opts.stall_ms_max / 1000,
                            (suseconds_t)(server->opts.stall_ms_max % 1000) * 1000};
    conn->state = server->opts.tls ? CONN_HANDSHAKE : CONN_IDLE;
    conn->deadline_ms =
        fx_clock_ms() + (server->opts.tls ? server->opts.head_ms_max : server->opts.idle_ms_max);
    conn->call.conn = conn;
    TAILQ_INSERT_TAIL(&server->conns, conn, entry);
    server->stats.open++;
    bufferevent_setcb(conn->bev, on_read, on_drained, on_event, conn);
    bufferevent_setwatermark(conn->bev, EV_READ, 0, FX_HTTP_INPUT_MAX);
    bufferevent_set_timeouts(conn->bev, NULL, &stall);
    bufferevent_enable(conn->bev, EV_READ | EV_WRITE);
}

/* One client too many: told so as well as a socket that is closed at once allows. */
static void refuse_full(fx_http_server *server, int fd) {
    static const struct fx_http_problem problem = {.type = "server_error",
                                                   .code = "too_many_connections",
                                                   .message = "too many connections are open"};
    uint8_t json[FULL_BODY_MAX];
    char text[FULL_BYTES_MAX], id[FX_HTTP_ID_MAX + 1];
    fx_buf body = {json, 0, sizeof json};
    server->stats.refused_full++;
    if (!server->opts.tls) {
        fx_http__id_draw(id);
        fx_http_problem_json(&problem, &body);
        int len =
            snprintf(text, sizeof text,
                     "HTTP/1.1 503 Service Unavailable\r\nx-request-id: %s\r\n"
                     "content-type: application/json\r\ncontent-length: %zu\r\n"
                     "retry-after: 1\r\nretry-after-ms: 1000\r\nconnection: close\r\n\r\n%.*s",
                     id, body.len, (int)body.len, (const char *)json);
        (void)!send(fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    close(fd);
}

void fx_http__conn_accept(fx_http_server *server, int fd) {
    int on = 1, kernel = FX_HTTP_KERNEL_BYTES;
    server->stats.accepted++;
    if (!place_take(server)) {
        refuse_full(server, fd);
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kernel, sizeof kernel);
    struct fx_http_conn *conn = fx_alloc(1, sizeof *conn);
    struct bufferevent *bev = conn ? bufferevent_of(server, fd) : NULL;
    if (!bev) {
        free(conn);
        place_give(server);
        refuse_full(server, fd);
        return;
    }
    conn->server = server;
    conn->bev = bev;
    start(conn);
}
