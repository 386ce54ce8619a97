#pragma once
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <llhttp.h>
#include <sys/queue.h>
#include "common/http/head.h"
#include "common/http/server.h"

/* Private to common/http: server, connection and call, one owner each, all on the loop's thread. */

enum {
    FX_HTTP_LINGER_MS = 2000,  /* after our last byte, so that the client reads it */
    FX_HTTP_INPUT_MAX = 65536, /* bytes read ahead of the parser */
    FX_HTTP_CORS_ANSWER_MAX = 3,
    FX_HTTP_UNSENT_MAX = 65536, /* bytes of replies not taken: no further request is begun */
};

struct fx_http_call {
    struct fx_http_conn *conn;
    bool active;    /* the handler owes an answer */
    bool streaming; /* the head is out, chunks follow */
    bool head_only; /* HEAD */
    enum fx_http_method method;
    fx_span target; /* in the connection's memory */
    unsigned status;
    uint64_t begun_us, body_bytes;
    void (*gone)(void *ctx);
    void (*taken)(void *ctx);
    void *gone_ctx, *taken_ctx;
    char id[FX_HTTP_ID_MAX + 1];
};

enum fx_http_state {
    CONN_IDLE,      /* between requests */
    CONN_HANDSHAKE, /* TLS */
    CONN_HEAD,
    CONN_BODY,
    CONN_CALL,
    CONN_FLUSH,  /* the last reply leaves, then we close */
    CONN_LINGER, /* our side is shut; what comes is thrown away */
};

struct fx_http_conn {
    TAILQ_ENTRY(fx_http_conn) entry;
    struct fx_http_server *server;
    struct bufferevent *bev;
    enum fx_http_state state;
    bool close_after; /* no further request on this connection */
    bool doomed;      /* cut: closed from the loop at the next turn */
    bool paused;      /* further requests wait until the replies have been taken */
    bool line_seen;   /* the request line was checked */
    bool overflow;    /* the body passed its limit: overflow_status says which */
    unsigned overflow_status;
    uint64_t deadline_ms; /* 0: none */
    uint64_t written_ms;  /* last stream write */
    uint32_t ping_ms;
    uint8_t *memory; /* the request and its head, of a stream the target alone; NULL: neither */
    uint8_t *body;
    size_t body_len, body_cap, raw_body_len;
    llhttp_t parser;
    bool complete; /* llhttp saw the message's end */
    struct fx_http_framing framing;
    struct fx_http_request *request; /* in `memory`; NULL: its head is not whole, or it streams */
    struct fx_http_call call;
};

TAILQ_HEAD(fx_http_conns, fx_http_conn);

struct fx_http_server {
    struct fx_http_server_opts opts;
    struct evconnlistener *listener;
    struct event *tick;
    uint16_t port;
    bool draining, drain_told;
    uint64_t bodies_bytes;
    uint64_t listen_again_ms; /* accept failed: pause until then */
    struct fx_http_conns conns;
    struct fx_http_stats stats;
    llhttp_settings_t parser_settings;
};

/* conn.c */
void fx_http__conn_accept(fx_http_server *server, int fd);
/** Closes at once; a call in flight is told. */
void fx_http__conn_close(struct fx_http_conn *conn);
/** Closes from the loop, not from inside the caller. */
void fx_http__conn_cut(struct fx_http_conn *conn);
void fx_http__conn_tick(struct fx_http_conn *conn, uint64_t now_ms);
/** After the reply: the next request, or flush and close. */
void fx_http__conn_next(struct fx_http_conn *conn);

/* receive.c */
void fx_http__receive_settings(llhttp_settings_t *settings);
/** Reads what is there; starts calls. */
void fx_http__receive(struct fx_http_conn *conn);
/** The request, or an empty one. */
const struct fx_http_request *fx_http__request(const struct fx_http_conn *conn);
/** Frees what the request held. */
void fx_http__request_free(struct fx_http_conn *conn);
/** Frees what a stream no longer needs of it: all but the call's target. */
void fx_http__request_shrink(struct fx_http_conn *conn);
void fx_http__body_free(struct fx_http_conn *conn);

/* cors.c */
/** What tells a browser whether its page may read the answer; how many they are. */
size_t fx_http__cors_headers(const struct fx_http_conn *conn,
                             struct fx_http_header out[FX_HTTP_CORS_ANSWER_MAX]);
/** Answers a preflight; false: it is none that we answer. */
bool fx_http__cors_preflight(struct fx_http_conn *conn);

/* reply.c */
/** A request id where the client has sent none. */
void fx_http__id_draw(char out[FX_HTTP_ID_MAX + 1]);
/** Answers what the handler never saw, then closes. */
void fx_http__refuse(struct fx_http_conn *conn, unsigned status, const char *message);
/** Is the request's body to be read? */
bool fx_http__call_admit(struct fx_http_conn *conn);
void fx_http__call_begin(struct fx_http_conn *conn);
/** The call ended: tells `done`. */
void fx_http__call_done(struct fx_http_conn *conn, bool gone);
