#pragma once
#include <protobuf-c/protobuf-c.h>
#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/rpc/pb.h"
#include "common/rpc/tls.h"
#include "common/rpc/trace.h"

struct event_base;
/** A channel to one target: round robin over its addresses, client-side health checks, retries of
 *  UNAVAILABLE, keepalive. With a loop, callbacks run on the loop's thread and every function here
 *  but the _wait ones is called there. Without one, only the _wait functions work; they may be
 *  called from any thread (not the loop's), several at once. */
typedef struct fx_client fx_client;
/** One call in flight; dead when its on_done returns. */
typedef struct fx_client_call fx_client_call;

enum { FX_CLIENT_METADATA_MAX = 16, FX_CLIENT_TEXT_MAX = 256 };

struct fx_client_opts {
    const char *target; /* "host:port", "a:1,b:2", "dns:///name:port", "ipv4:...", "unix:/path" */
    struct event_base *base; /* NULL: blocking use only; must outlive the client */
    struct fx_tls tls;
    const char *tls_name; /* the name the server's certificate must carry; NULL: target's */
    uint32_t calls_max;   /* in flight; one more is RESOURCE_EXHAUSTED; 0 = 64 */
    uint32_t arena_bytes; /* per call, for replies without an arena of their own; 0 = 64 KiB */
    uint32_t message_bytes_max; /* either direction; 0 = 4 MiB */
    uint32_t attempts_max;      /* tries of a unary call that ends UNAVAILABLE, 1..5; 0 = 3 */
    uint32_t keepalive_ms;      /* 0 = 10000, at least 1000 */
    bool health_check_off;      /* for a server without grpc.health.v1 */
};

/** Opens lazily: a server that is away is an UNAVAILABLE of the calls. @own caller,
 *  fx_client_free @err INVALID_ARGUMENT, NOT_FOUND (a PEM file), RESOURCE_EXHAUSTED */
FX_MUST bool fx_client_open(const struct fx_client_opts *opts, fx_client **out, fx_error *err);
/** Cancels what is in flight, delivers every on_done, then frees; NULL is fine.
 *  @thread the loop's (or, when the loop has ended, its last) */
void fx_client_free(fx_client *client);
FX_DEFINE_AUTO(fx_client, fx_client_free)
uint32_t fx_client_calls_active(const fx_client *client);

struct fx_client_metadata {
    const char *key, *value;
};
/** How a call ended. Valid during on_done. */
struct fx_client_result {
    enum fx_code code;
    const char *text;        /* "" when OK */
    const void *reply;       /* unary and client stream, OK only: a message of `reply` */
    uint32_t retry_after_ms; /* from the trailing metadata retry-after-ms, else 0 */
};

struct fx_client_request {
    const char *method;  /* "/fractal.v1.TenantService/Authenticate" */
    const void *message; /* packed before the call returns; NULL: client stream */
    const ProtobufCMessageDescriptor *reply; /* type of the reply, or of each streamed message */
    uint32_t deadline_ms;                    /* from now, >= 1 */
    const struct fx_client_metadata *metadata;
    size_t metadata_count;
    const fx_trace *trace; /* sent on with a new span id; NULL: a new trace */
    bool wait_for_ready;   /* wait for a connection until the deadline instead of UNAVAILABLE */
    fx_arena *arena; /* replies go here and stay the caller's; NULL: the call's own, reset after
                        each callback. Untouched by others until on_done */
    void *user;
    /** Once, for every call that was started, last of its callbacks. */
    void (*on_done)(void *user, const struct fx_client_result *result);
    /** Server streams (not NULL makes it one): each message; the next is read when it returns.
     *  False cancels. */
    bool (*on_message)(void *user, const void *message);
    /** Client streams: the previous write has completed. */
    void (*on_writable)(void *user);
};

/** Starts a call. On failure nothing is called back. `out` may be NULL.
 *  @err RESOURCE_EXHAUSTED (calls_max), INVALID_ARGUMENT (metadata), UNAVAILABLE (closing) */
FX_MUST bool fx_client_start(fx_client *client, const struct fx_client_request *request,
                             fx_client_call **out, fx_error *err);
/** on_done still comes, with CANCELLED. */
void fx_client_cancel(fx_client_call *call);
/** Client streams. BUSY: wait for on_writable; GONE: the call is ending, wait for on_done. */
enum fx_client_send { FX_CLIENT_SEND_OK, FX_CLIENT_SEND_BUSY, FX_CLIENT_SEND_GONE };
enum fx_client_send fx_client_send(fx_client_call *call, const void *message);
/** Client streams: no more messages, after the write in flight. */
void fx_client_half_close(fx_client_call *call);

/** Blocking unary call: `*(T **)out` is a message in request->arena (required). Callbacks of
 *  `request` are not used. @err the call's own status */
FX_MUST bool fx_client_call_wait(fx_client *client, const struct fx_client_request *request,
                                 void *out, fx_error *err);
/** Blocking server stream: on_message runs on the calling thread. @err the call's own status */
FX_MUST bool fx_client_stream_wait(fx_client *client, const struct fx_client_request *request,
                                   fx_error *err);
