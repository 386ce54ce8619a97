#pragma once
#include <protobuf-c/protobuf-c.h>
#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/rpc/pb.h"
#include "common/rpc/tls.h"
#include "common/rpc/trace.h"

/** gRPC server. One completion queue a thread; a call lives on one queue. grpc.health.v1 and
 *  reflection (v1, v1alpha) are built in and have call slots of their own. */
typedef struct fx_server fx_server;
/** One call: a slot with an arena, from the handler's start until it is ended and gRPC is done. */
typedef struct fx_call fx_call;

enum {
    FX_METHODS_MAX = 64,
    FX_METADATA_MAX = 32,         /* entries kept of a request; further ones are not seen */
    FX_TRAILERS_MAX = 12,         /* fx_call_trailer of one call */
    FX_HEALTH_WATCHERS_MAX = 512, /* Watch streams; the next is RESOURCE_EXHAUSTED */
    FX_RPC_THREADS_MAX = 16,
    FX_SERVER_CANCEL_MS = 10000, /* what handlers have to end calls cancelled by fx_server_stop */
};

enum fx_rpc_kind {
    FX_RPC_UNARY,         /* handler once; end with fx_call_reply or fx_call_fail */
    FX_RPC_SERVER_STREAM, /* handler once; fx_call_send..., end with fx_call_finish or _fail */
    FX_RPC_CLIENT_STREAM, /* handler per message (fx_call_next for more), then once with NULL;
                             end with fx_call_reply or fx_call_fail */
    FX_RPC_BIDI,          /* as CLIENT_STREAM, with fx_call_send; end with fx_call_finish */
};

/** `request` is the unpacked message of the row's `request` type (NULL = half-closed, client
 *  streams only), in the call's arena; `context` is the server's. Runs on a queue's thread, so it
 *  never blocks: slow work goes elsewhere, and the call is ended later from any thread.
 *  EVERY CALL IS ENDED EXACTLY ONCE by fx_call_reply, _fail, _fail_error, _finish or _cut, also
 * when it was cancelled or its deadline passed; `call` is dead from then on. One owner at a time.
 *  Strings of the request are UTF-8 without NUL. */
typedef void fx_handler(fx_call *call, const void *request, void *context);

struct fx_method {
    const char *name; /* "/fractal.v1.TenantService/CreateTenant" */
    fx_handler *handler;
    const ProtobufCMessageDescriptor *request; /* &fractal__v1__create_tenant_request__descriptor */
    enum fx_rpc_kind kind;
    uint32_t deadline_ms_max;   /* the call's deadline is the sooner of this and the client's;
                                   0 = only the client's */
    uint32_t request_bytes_max; /* a larger message is RESOURCE_EXHAUSTED */
};

struct fx_server_opts {
    const char *address;        /* "127.0.0.1:50051", "[::1]:0", "unix:/path"; port 0 = any */
    uint32_t threads;           /* 2..FX_RPC_THREADS_MAX; 0 = 2 */
    uint32_t calls_max;         /* slots; one more call is RESOURCE_EXHAUSTED; 0 = 256 */
    uint32_t arena_bytes;       /* per slot: must hold the unpacked request; 0 = 64 KiB */
    uint32_t message_bytes_max; /* either direction, the transport's bound; 0 = 4 MiB */
    uint32_t reply_bytes_max;   /* of what is sent; 0 = message_bytes_max */
    uint32_t stall_ms_max;      /* for the client to read one message of ours, else it is cut with
                                   RESOURCE_EXHAUSTED; twice that to send its one message, else
                                   DEADLINE_EXCEEDED; 0 = 30000 */
    /* A connection is asked to end about when it is so old, its calls first: clients then look up
     * the servers anew, and find those that are new. 0 = 60000. */
    uint32_t connection_age_ms;
    struct fx_tls tls;
    bool plaintext; /* allow a non-loopback address without TLS */
    void *context;  /* handed to every handler; must outlive the server */
    /** Of every method; NULL: every call is admitted. Called with the metadata while the message
     *  still waits on the wire, with NULL for a request: ends the call, or hands it to
     * fx_call_next, at once or later from any thread, and then the handler gets message and call. A
     * call that is cancelled in between has no handler: what admit leaves behind (fx_call_set_user)
     * lies in the call's arena, where it stays until the end. */
    fx_handler *admit;
    /** Of every method; NULL: fx_call_fail_error. Ends a call whose message is not one for the
     *  handler: too large, malformed, or with a string that is no text; `field` names it, or "". */
    void (*refuse)(fx_call *call, const fx_error *err, const char *field, void *context);
};

/** Binds, starts the threads and serves; health says NOT_SERVING until fx_server_set_serving.
 *  `methods` is borrowed for the server's life. @own caller, fx_server_free
 *  @err UNAVAILABLE (address in use), INVALID_ARGUMENT, FAILED_PRECONDITION (plaintext refused),
 *  NOT_FOUND (a PEM file), RESOURCE_EXHAUSTED */
FX_MUST bool fx_server_open(const struct fx_server_opts *opts, const struct fx_method *methods,
                            size_t count, fx_server **out, fx_error *err);
/** The port really bound; 0 for a unix socket. @thread any */
uint16_t fx_server_port(const fx_server *server);
/** Flips health of every service and "" (Check and all Watch streams). @thread any */
void fx_server_set_serving(fx_server *server, bool serving);
bool fx_server_serving(const fx_server *server);

/** Counters since the start, for /metrics; without the built-in services. @thread any */
struct fx_server_stats {
    uint64_t calls, calls_failed, calls_refused; /* refused: no free slot */
    uint64_t cut_slow;                           /* calls of clients that did not read */
    uint32_t calls_active;
};
struct fx_server_stats fx_server_stats(const fx_server *server);

/** Drains: health flips to NOT_SERVING, no new call is admitted, running ones may end within
 *  `grace_ms`, then they are cancelled and their handlers have FX_SERVER_CANCEL_MS to end them.
 *  @thread the opener's (not a handler's) @err DEADLINE_EXCEEDED: a handler never ended its call
 *  (a bug); fx_server_free then leaks the server rather than freeing under its feet */
FX_MUST bool fx_server_stop(fx_server *server, uint32_t grace_ms, fx_error *err);
/** Stops with no grace if it still runs, then frees; NULL is fine. @thread the opener's */
void fx_server_free(fx_server *server);
FX_DEFINE_AUTO(fx_server, fx_server_free)

/* ---- a call; by its owner, on any thread, unless said otherwise ---- */

/** Reset when gRPC is done with the ended call. In client streams fx_call_next gives back
 *  everything allocated since the handler was entered for that message. */
fx_arena *fx_call_arena(fx_call *call);
const fx_trace *fx_call_trace(const fx_call *call);
/** Absolute, on fx_clock_ms; UINT64_MAX without one. */
uint64_t fx_call_deadline_ms(const fx_call *call);
/** A request header by its lower-case name; .at NULL when there is none. Borrowed until the end. */
fx_span fx_call_metadata(const fx_call *call, const char *key);
/** The token of `authorization: Bearer <token>`; .at NULL when there is none. */
fx_span fx_call_bearer(const fx_call *call);
/** The first SAN, else the CN, of the peer's verified certificate; NULL over plaintext. */
const char *fx_call_peer_name(fx_call *call);
/** "ipv4:127.0.0.1:40000", never proof of who it is. */
const char *fx_call_peer_address(fx_call *call);
/** A word of the handler's own, NULL at first; read it back in the callbacks. */
void fx_call_set_user(fx_call *call, void *user);
void *fx_call_user(const fx_call *call);

/** `fn(call, user)` runs at most once, on a queue's thread (or at once, if it already happened):
 *  the client went away or cancelled, or the deadline passed. Never after the call was ended;
 *  ending waits for it while it runs, so hold no lock in `fn` that you hold when ending. `fn` may
 *  end the call itself. */
void fx_call_on_cancel(fx_call *call, void (*fn)(fx_call *call, void *user), void *user);
bool fx_call_cancelled(const fx_call *call);

/** Trailing metadata, copied; before the end. e.g. "retry-after-ms", "250".
 *  Further than FX_TRAILERS_MAX, or with an illegal key or value, are dropped. */
void fx_call_trailer(fx_call *call, const char *key, const char *value);
/** As fx_call_trailer, any bytes: the key ends in "-bin". */
void fx_call_trailer_bytes(fx_call *call, const char *key, fx_span value);
/** Ends with OK and a message (packed before it returns). */
void fx_call_reply(fx_call *call, const void *message);
/** Ends with a status. Text is cut to 255 bytes. */
void fx_call_fail(fx_call *call, enum fx_code code, const char *fmt, ...) FX_PRINTF(3, 4);
void fx_call_fail_error(fx_call *call, const fx_error *err);
/** Ends a stream with OK, after the write in flight. */
void fx_call_finish(fx_call *call);
/** Ends a call whose client does not read: with this status at once, in place of what is still
 *  unread; trailers are not sent. Counted in cut_slow. */
void fx_call_cut(fx_call *call, enum fx_code code, const char *fmt, ...) FX_PRINTF(3, 4);

enum fx_send { FX_SEND_OK, FX_SEND_BUSY, FX_SEND_GONE };
/** Streams one message (packed before it returns). BUSY: the previous write has not completed,
 *  nothing was sent; GONE: cancelled, end the call. */
enum fx_send fx_call_send(fx_call *call, const void *message);
/** Would fx_call_send say BUSY? */
bool fx_call_busy(const fx_call *call);
/** As fx_call_send, waiting up to timeout_ms while BUSY. @thread not a handler's */
enum fx_send fx_call_send_wait(fx_call *call, const void *message, uint32_t timeout_ms);
/** `fn(call, user)` runs on the queue's thread after each completed write, under the same promise
 *  as fx_call_on_cancel. */
void fx_call_on_writable(fx_call *call, void (*fn)(fx_call *call, void *user), void *user);
/** Client streams: read the next message; the handler is called again. The message before and
 *  what was allocated with it are gone. For an admit function: the call is admitted; it is the
 *  handler's from here on. */
void fx_call_next(fx_call *call);
