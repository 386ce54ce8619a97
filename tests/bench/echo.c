#include "tests/bench/echo.h"
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <llhttp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "common/base/heap.h"
#include "tests/bench/child.h"

enum { BODY_MAX = 4096, BACKLOG = 512 };

struct client {
    struct bufferevent *bev;
    llhttp_t parser;
    size_t len;
    char body[BODY_MAX];
};

static int on_body(llhttp_t *parser, const char *at, size_t len) {
    struct client *client = parser->data;
    if (client->len + len > BODY_MAX) return HPE_USER;
    memcpy(client->body + client->len, at, len);
    client->len += len;
    return HPE_OK;
}

static int on_complete(llhttp_t *parser) {
    struct client *client = parser->data;
    char head[128];
    int len = snprintf(head, sizeof head,
                       "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                       "content-length: %zu\r\n\r\n",
                       client->len);
    (void)bufferevent_write(client->bev, head, (size_t)len);
    (void)bufferevent_write(client->bev, client->body, client->len);
    client->len = 0;
    return HPE_OK;
}

static const llhttp_settings_t settings = {.on_body = on_body, .on_message_complete = on_complete};

static void client_free(struct client *client) {
    bufferevent_free(client->bev);
    free(client);
}

static void on_event(struct bufferevent *bev, short what, void *arg) {
    (void)bev, (void)what;
    client_free(arg);
}

static void on_read(struct bufferevent *bev, void *arg) {
    struct client *client = arg;
    struct evbuffer *input = bufferevent_get_input(bev);
    size_t len = evbuffer_get_length(input);
    const char *at = (const char *)evbuffer_pullup(input, -1);
    llhttp_errno_t rc = llhttp_execute(&client->parser, at, len);
    evbuffer_drain(input, len);
    if (rc != HPE_OK) client_free(client);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from,
                      int from_len, void *arg) {
    int on = 1;
    struct client *client = fx_alloc(1, sizeof *client);
    (void)listener, (void)from, (void)from_len;
    FX_ASSERT(client);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    client->bev = bufferevent_socket_new(arg, fd, BEV_OPT_CLOSE_ON_FREE);
    FX_ASSERT(client->bev);
    llhttp_init(&client->parser, HTTP_REQUEST, &settings);
    client->parser.data = client;
    bufferevent_setcb(client->bev, on_read, NULL, on_event, client);
    (void)bufferevent_enable(client->bev, EV_READ | EV_WRITE);
}

void echo_serve(int tell, void *unused) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    struct event_base *base = event_base_new();
    (void)unused;
    struct evconnlistener *listener = evconnlistener_new_bind(
        base, on_accept, base, LEV_OPT_CLOSE_ON_FREE, BACKLOG, (struct sockaddr *)&in, sizeof in);
    if (!listener ||
        getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&in, &len) != 0)
        return;
    bench_child_tell(tell, ntohs(in.sin_port));
    (void)event_base_dispatch(base);
}
