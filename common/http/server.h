#pragma once
#include <event2/event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/base/span.h"
#include "common/http/cors.h"
#include "common/http/tls.h"
#include "common/http/listen.h"

/** An HTTP/1.1 server on the caller's libevent loop. Everything here is @thread the loop's. */
typedef struct fx_http_server fx_http_server;
/** One request being answered. It ends exactly once: by fx_http_reply, by fx_http_stream_end or by
 *  the gone callback; after that it must not be touched. */
typedef struct fx_http_call fx_http_call;

enum {
    FX_HTTP_HEADERS_MAX = 64,      /* of one request */
    FX_HTTP_SEGMENTS_MAX = 16,     /* of one path */
    FX_HTTP_ID_MAX = 64,           /* characters of x-request-id */
    FX_HTTP_PIPELINED_MAX = 16384, /* bytes sent ahead while a call runs; more: cut */
    FX_HTTP_PROBLEM_HEADERS_MAX = 8,
    FX_HTTP_ERROR_BODY_MAX = 4096, /* bytes of an error's JSON */
    FX_HTTP_TICK_MS = 250,         /* how exact the timeouts are */
    FX_HTTP_KERNEL_BYTES = 65536,  /* unsent bytes a socket takes: the rest waits with us */
    FX_HTTP_RETRY_MS_MIN = 1000,   /* Retry-After is kept in 1..60 s */
    FX_HTTP_RETRY_MS_MAX = 60000,
};

enum fx_http_method {
    FX_HTTP_GET,
    FX_HTTP_HEAD,
    FX_HTTP_POST,
    FX_HTTP_PUT,
    FX_HTTP_PATCH,
    FX_HTTP_DELETE,
    FX_HTTP_OPTIONS,
    FX_HTTP_METHOD_OTHER,
};

struct fx_http_header {
    fx_span name; /* of a request: lower case */
    fx_span value;
};

/** A complete request. Borrowed: valid until its call ends or its stream begins (the body until it
 *  is dropped). */
struct fx_http_request {
    enum fx_http_method method;
    fx_span target; /* as sent */
    size_t segment_count;
    fx_span segments[FX_HTTP_SEGMENTS_MAX]; /* split at '/', then percent-decoded; "/" has none */
    fx_span query;                          /* after '?', as sent */
    size_t header_count;
    struct fx_http_header headers[FX_HTTP_HEADERS_MAX];
    fx_span body;
    bool http_1_0; /* can't be streamed to: chunks are unknown there */
};

/** How one request went, told when its last byte was handed to the socket or it was given up. */
struct fx_http_access {
    const char *request_id;
    enum fx_http_method method;
    fx_span target;  /* as sent; empty when the head was malformed */
    unsigned status; /* 0: the client left before a status */
    bool gone;       /* the client left, or was cut, before the end */
    uint64_t duration_us, body_bytes;
};

/** Counters since the start; `open` and `streams` are gauges. */
struct fx_http_stats {
    uint64_t accepted, refused_full, requests, malformed, too_large, timed_out, cut_slow, gone;
    uint64_t open, streams;
};

/** Every member is required unless it says otherwise. */
struct fx_http_server_opts {
    struct event_base *base; /* borrowed */
    const char *addr;        /* borrowed during the call */
    fx_http_tls *tls;        /* NULL: plain; borrowed */
    /** 0, or: one of several servers of this process on one port, among which the kernel deals
     *  connections out. */
    enum fx_listen_share share;
    /** Optional: open connections of several servers, counted together; connections_max is for
     *  all of them. */
    atomic_uint *connections;
    void *ctx;
    /** A complete request arrived. Answer now or later, on this thread. */
    void (*request)(void *ctx, fx_http_call *call, const struct fx_http_request *request);
    /** Optional: the head of a request with a body has arrived, request->body is empty. False: it
     *  was answered by fx_http_reply or _problem, the body is not read and the connection closes.
     */
    bool (*admit)(void *ctx, fx_http_call *call, const struct fx_http_request *request);
    /** Optional. */
    void (*done)(void *ctx, const struct fx_http_access *access);
    /** Optional: no connection is left after fx_http_server_unlisten. */
    void (*drained)(void *ctx);
    struct fx_http_cors cors; /* optional; checked by fx_http_cors_check */
    /* 0 in a limit: the default beside it. */
    uint32_t connections_max;  /* 1024; one more gets 503 and is closed */
    uint32_t head_bytes_max;   /* 16384; more: 431 */
    uint32_t body_bytes_max;   /* 1 MiB; more: 413, also chunked */
    uint64_t bodies_bytes_max; /* 64 MiB of all bodies in memory; more: 503 */
    uint32_t output_bytes_max; /* 1 MiB unsent of one stream; more: the client is cut */
    uint32_t head_ms_max;      /* 10000 from a head's first byte to its last; 408 */
    uint32_t body_ms_max;      /* 60000 for a body; 408 */
    uint32_t idle_ms_max;      /* 100000 between requests; closed */
    uint32_t stall_ms_max;     /* 30000 without the client taking a byte; cut */
};

/** Listens. @own caller, fx_http_server_free @err as fx_listen_open, RESOURCE_EXHAUSTED */
FX_MUST bool fx_http_server_open(const struct fx_http_server_opts *opts, fx_http_server **out,
                                 fx_error *err);
uint16_t fx_http_server_port(const fx_http_server *server);
void fx_http_server_stats(const fx_http_server *server, struct fx_http_stats *out);
/** From now on each reply says that it is its connection's last. It still listens: whoever comes is
 *  to be refused with reasons. */
void fx_http_server_drain(fx_http_server *server);
/** Stops listening and closes idle connections; calls in flight finish, then `drained`. */
void fx_http_server_unlisten(fx_http_server *server);
/** Closes everything (gone callbacks run); NULL is fine. Not from inside a callback. libevent frees
 *  some of it in the base's next turn: run one (EVLOOP_NONBLOCK) before freeing the base. */
void fx_http_server_free(fx_http_server *server);
FX_DEFINE_AUTO(fx_http_server, fx_http_server_free)

/** The value of a header (lower-case name), {NULL, 0} when absent; of several the first. */
fx_span fx_http_header(const struct fx_http_request *request, const char *name);
/** The value of `name=` in the query, as sent; {NULL, 0} when absent; of several the first. */
fx_span fx_http_query(const struct fx_http_request *request, const char *name);
/** "GET", ... */
const char *fx_http_method_name(enum fx_http_method method);
/** "Not Found", ... */
const char *fx_http_status_text(unsigned status);

/** x-request-id of the reply: the client's if it is [A-Za-z0-9._-]{1,64}, else drawn. */
const char *fx_http_call_id(const fx_http_call *call);
/** Frees the body before the call ends; request->body is gone with it. */
void fx_http_call_drop_body(fx_http_call *call);
/** `gone(ctx)` runs at once when the client hangs up or is cut before the call ended. A half-close
 *  counts as hanging up. The call is dead when it runs. */
void fx_http_call_on_gone(fx_http_call *call, void (*gone)(void *ctx), void *ctx);

/** A whole reply; content-length and x-request-id are added. HEAD and 204 send no body. Copies. */
struct fx_http_reply {
    unsigned status;
    const char *content_type; /* NULL: application/json */
    fx_span body;
    const struct fx_http_header *headers;
    size_t header_count;
};
void fx_http_reply(fx_http_call *call, const struct fx_http_reply *reply);

/** {"error":{"message","type","param","code"}}, at most FX_HTTP_ERROR_BODY_MAX bytes (the message
 *  is cut). `param` and `code` may be NULL. retry_ms > 0 adds Retry-After and retry-after-ms, kept
 *  in 1..60 s; `no_retry` adds x-should-retry: false, `retry` true. At most
 *  FX_HTTP_PROBLEM_HEADERS_MAX headers of the caller's. */
struct fx_http_problem {
    unsigned status;
    const char *type, *code, *param, *message;
    const char *allow; /* of a 405: the methods, else NULL. A 401 gets www-authenticate */
    uint32_t retry_ms;
    bool no_retry, retry;
    const struct fx_http_header *headers;
    size_t header_count;
};
void fx_http_reply_problem(fx_http_call *call, const struct fx_http_problem *problem);
/** The same JSON without a reply, for an event inside a stream. */
void fx_http_problem_json(const struct fx_http_problem *problem, fx_buf *out);

/** 200 and an open chunked body of text/event-stream; the connection stays usable. `ping_ms` > 0:
 *  an SSE comment after so long without a write. The request is gone: a stream lives long. */
void fx_http_stream_begin(fx_http_call *call, const struct fx_http_header *headers, size_t count,
                          uint32_t ping_ms);
bool fx_http_stream_open(const fx_http_call *call);
/** One chunk, one write. A client that leaves more than output_bytes_max unread is cut: the gone
 *  callback comes from the loop, never from inside this call. */
void fx_http_stream_write(fx_http_call *call, fx_span bytes);
/** Bytes written that the socket has not taken yet. */
size_t fx_http_stream_unsent(const fx_http_call *call);
/** `taken(ctx)` runs from the loop whenever the socket has taken all of an open stream. */
void fx_http_stream_on_taken(fx_http_call *call, void (*taken)(void *ctx), void *ctx);
/** Breaks off a stream that its client does not read: counted, then as fx_http_stream_abort. */
void fx_http_stream_cut(fx_http_call *call);
/** The final chunk; the call ends. */
void fx_http_stream_end(fx_http_call *call);
/** Breaks the connection off, so that the client can't take what it has for the whole. The gone
 *  callback comes from the loop. */
void fx_http_stream_abort(fx_http_call *call);
