#include "common/http/server.h"
#include <event2/buffer.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/http/http_internal.h"
#include "common/http/listen.h"

enum { LISTEN_PAUSE_MS = 1000 };

static void or_default(uint32_t *limit, uint32_t fallback) {
    if (!*limit) *limit = fallback;
}

static void defaults_set(struct fx_http_server_opts *opts) {
    or_default(&opts->connections_max, 1024);
    or_default(&opts->head_bytes_max, 16384);
    or_default(&opts->body_bytes_max, 1024 * 1024);
    or_default(&opts->output_bytes_max, 1024 * 1024);
    or_default(&opts->head_ms_max, 10000);
    or_default(&opts->body_ms_max, 60000);
    or_default(&opts->idle_ms_max, 100000);
    or_default(&opts->stall_ms_max, 30000);
    if (!opts->bodies_bytes_max) opts->bodies_bytes_max = UINT64_C(64) << 20;
    FX_ASSERT(opts->head_bytes_max < FX_HTTP_INPUT_MAX);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *addr,
                      int len, void *arg) {
    (void)listener, (void)addr, (void)len;
    fx_http__conn_accept(arg, fd);
}

/* Out of descriptors: a listening socket that stays readable would spin. */
static void on_accept_error(struct evconnlistener *listener, void *arg) {
    fx_http_server *server = arg;
    evconnlistener_disable(listener);
    server->listen_again_ms = fx_clock_ms() + LISTEN_PAUSE_MS;
}

static void drained_check(fx_http_server *server) {
    if (server->listener || !server->draining || server->drain_told || !TAILQ_EMPTY(&server->conns))
        return;
    server->drain_told = true;
    if (server->opts.drained) server->opts.drained(server->opts.ctx);
}

static void on_tick(evutil_socket_t fd, short what, void *arg) {
    fx_http_server *server = arg;
    uint64_t now_ms = fx_clock_ms();
    (void)fd, (void)what;
    if (server->listen_again_ms && now_ms >= server->listen_again_ms && server->listener) {
        server->listen_again_ms = 0;
        evconnlistener_enable(server->listener);
    }
    struct fx_http_conn *conn, *next;
    for (conn = TAILQ_FIRST(&server->conns); conn; conn = next) {
        next = TAILQ_NEXT(conn, entry);
        fx_http__conn_tick(conn, now_ms);
    }
    drained_check(server);
}

static FX_MUST bool listen_start(fx_http_server *server, fx_error *err) {
    int fd;
    if (!fx_listen_open_shared(server->opts.addr, server->opts.share, &fd, &server->port, err))
        return false;
    server->listener = evconnlistener_new(server->opts.base, on_accept, server,
                                          LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    if (!server->listener) {
        close(fd);
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a listener");
    }
    evconnlistener_set_error_cb(server->listener, on_accept_error);
    server->opts.addr = NULL;
    return true;
}

bool fx_http_server_open(const struct fx_http_server_opts *opts, fx_http_server **out,
                         fx_error *err) {
    struct timeval tick = {0, FX_HTTP_TICK_MS * 1000L};
    fx_auto(fx_http_server) server = fx_alloc(1, sizeof *server);
    if (!server) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a server");
    server->opts = *opts;
    defaults_set(&server->opts);
    TAILQ_INIT(&server->conns);
    fx_http__receive_settings(&server->parser_settings);
    server->tick = event_new(opts->base, -1, EV_PERSIST, on_tick, server);
    if (!server->tick || event_add(server->tick, &tick) != 0)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a timer");
    if (!listen_start(server, err)) return false;
    *out = fx_take(server);
    return true;
}

uint16_t fx_http_server_port(const fx_http_server *server) {
    return server->port;
}

void fx_http_server_stats(const fx_http_server *server, struct fx_http_stats *out) {
    *out = server->stats;
}

void fx_http_server_drain(fx_http_server *server) {
    server->draining = true;
}

void fx_http_server_unlisten(fx_http_server *server) {
    server->draining = true;
    if (server->listener) evconnlistener_free(server->listener);
    server->listener = NULL;
    struct fx_http_conn *conn, *next;
    for (conn = TAILQ_FIRST(&server->conns); conn; conn = next) {
        next = TAILQ_NEXT(conn, entry);
        bool unsent = evbuffer_get_length(bufferevent_get_output(conn->bev)) > 0;
        if ((conn->state == CONN_IDLE || conn->state == CONN_HANDSHAKE) && !unsent)
            fx_http__conn_close(conn);
        else if (conn->state == CONN_IDLE)
            fx_http__conn_next(conn);
    }
}

void fx_http_server_free(fx_http_server *server) {
    if (!server) return;
    if (server->listener) evconnlistener_free(server->listener);
    if (server->tick) event_free(server->tick);
    while (!TAILQ_EMPTY(&server->conns))
        fx_http__conn_close(TAILQ_FIRST(&server->conns));
    free(server);
}
