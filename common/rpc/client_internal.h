#pragma once
#include <pthread.h>
#include "common/rpc/client.h"
#include "common/rpc/core_internal.h"
#include "common/rpc/sink_internal.h"

enum {
    FX_CLIENT_HEADERS_MAX = FX_CLIENT_METADATA_MAX + 2, /* x-request-id, traceparent */
    FX_CLIENT_TURN_MAX = 256,                           /* completions per turn of the loop */
};

struct event;

/** A channel of core's: the client is a user of its current one, and each call of the one it began
 *  on. It goes with its last user. */
struct fx_client_channel {
    grpc_channel *core;
    uint64_t generation; /* of its certificates; 0: plaintext */
    uint32_t users;      /* under the client's lock */
};

/** A slot. Only the thread behind `sink` touches a call in flight. */
struct fx_client_call {
    fx_client *client;
    struct fx_client_call *next_free;
    struct fx_sink own, *sink;
    bool in_use, waited, waited_done;
    fx_arena slot_arena, *arena;
    size_t arena_mark;

    struct fx_client_channel *channel; /* of `rpc` */
    grpc_call *rpc;
    grpc_slice method, message; /* the latter of what does not stream out; else empty */
    gpr_timespec deadline;
    uint32_t attempts; /* begun */
    bool cancelled;    /* by us: not tried again */
    uint64_t again_ms; /* when it is tried again, on the queue's thread */
    fx_client_call *next_again;
    struct fx_client_request request; /* its callbacks and reply type; `message` is gone */
    grpc_metadata headers[FX_CLIENT_HEADERS_MAX];
    size_t header_count;
    grpc_metadata_array initial, trailing;
    grpc_byte_buffer *received, *sending;
    grpc_status_code status;
    grpc_slice details;
    bool streams_in, streams_out; /* from the server; to the server */
    bool writing, close_pending, half_closed, failed, refused;
    uint32_t out; /* tags that are out */
    struct fx_done_tag send, recv, end, again;

    fx_error refusal; /* why the client itself ended it */
    const void *reply;
    char text[FX_CLIENT_TEXT_MAX];
};

struct fx_client {
    struct fx_client_opts opts;
    fx_certs *certs;                   /* NULL: plaintext */
    struct fx_client_channel *channel; /* the current one */
    grpc_completion_queue *cq;
    pthread_t thread;
    fx_client_call *again; /* of the thread alone: they wait to be tried again */
    bool started, closing;
    pthread_mutex_t lock; /* the free list, the channel */
    struct fx_client_call *calls, *free;
    uint32_t begun; /* calls[begun..] were never used: untouched memory costs nothing */
    uint32_t active;
    uint8_t *memory;
    struct fx_sink inbox;
    struct event *wake;
    int fd;
};

/* client_channel.c @err NOT_FOUND, INVALID_ARGUMENT */
FX_MUST bool fx_client__channel_open(fx_client *client, fx_error *err);
/* The channel for a new attempt; another one than before where the certificates changed. */
struct fx_client_channel *fx_client__channel_take(fx_client *client);
void fx_client__channel_drop(fx_client *client, struct fx_client_channel *channel);
/* After the last call; half-opened ones are fine. */
void fx_client__channel_close(fx_client *client);
/* client_call.c */
FX_MUST bool fx_client__start(fx_client *client, const struct fx_client_request *request,
                              bool waited, fx_client_call **out, fx_error *err);
void fx_client__release(fx_client_call *call);
/* In how many ms an ended unary call is tried again; 0: never. @thread the queue's, its tag back */
uint64_t fx_client__backoff_ms(const fx_client_call *call);
/* Takes what is in the inbox, at most FX_CLIENT_TURN_MAX; true when more is left. */
bool fx_client__turn(fx_client *client);
/* The result of an ended call; `reply` unpacked. */
void fx_client__result(fx_client_call *call, struct fx_client_result *out);
