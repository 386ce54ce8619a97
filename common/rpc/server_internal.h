#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include "common/rpc/core_internal.h"
#include "common/rpc/server.h"

enum {
    FX_BUILTIN_CALLS_MAX = FX_HEALTH_WATCHERS_MAX + 32,
    FX_BUILTIN_ARENA_BYTES = 32 * 1024,
    FX_ACCEPTORS = 8,   /* requests for a call that wait on each queue */
    FX_SWEEP_MS = 10,   /* how late a deadline may be noticed */
    FX_STALLS_MS = 500, /* how late a client that does not read */
    FX_READ_STALLS = 2, /* of stall_ms_max, for a message to come */
    FX_STATUS_TEXT_MAX = 256,
};

/** What a completion queue hands back: `fn(owner, ok)` on the queue's thread. */
struct fx_tag {
    void (*fn)(void *owner, bool ok);
    void *owner;
};

struct fx_acceptor {
    struct fx_queue *queue;
    grpc_call *rpc;
    grpc_call_details details;
    grpc_metadata_array metadata;
    struct fx_tag accept;
};

/** A completion queue and its thread; only that thread touches `calls`. */
struct fx_queue {
    fx_server *server;
    grpc_completion_queue *cq;
    pthread_t thread;
    bool started;
    fx_call *calls; /* live on this queue */
    uint32_t timed; /* of them with a deadline of ours */
    uint64_t sweep_at_ms;
    struct fx_acceptor acceptors[FX_ACCEPTORS];
};

/** Guarded by `lock` (recursive: callbacks run under it and may end the call), but for what the
 *  owner or the queue's thread alone touches. */
struct fx_call {
    pthread_mutex_t lock;
    pthread_cond_t idle_write;
    fx_server *server;
    struct fx_queue *queue;
    fx_call *next, *prev; /* free list; the queue's list */
    struct fx_pool *pool;
    fx_arena arena;
    size_t message_mark;

    const struct fx_method *method; /* NULL: the slot is free */
    void *context;
    grpc_call *rpc;
    grpc_metadata_array metadata;
    fx_trace trace;
    uint64_t deadline_ms;
    const char *peer_name, *peer_address;

    int refs;       /* the owner's, and one for each tag that is out */
    bool ended;     /* the owner is through with it */
    bool closed;    /* its status is chosen (and sent once no write is in flight) */
    bool cancelled; /* client gone or deadline passed */
    bool header_sent, writing, half_closed;
    bool admitted;     /* a message is read, or was */
    bool listening;    /* for the client's end */
    uint64_t write_ms; /* when the write in flight began; 0: none */
    uint64_t read_ms;  /* since when its one message is waited for; 0: it is not */
    int close_cancelled;
    int health_sent; /* a Watch stream: the last status sent; -1: none */
    bool watching;

    grpc_byte_buffer *received, *sending, *reply;
    grpc_metadata header;
    grpc_metadata trailers[FX_TRAILERS_MAX + 1]; /* and x-request-id */
    size_t header_count, trailer_count;
    enum fx_code code;
    char text[FX_STATUS_TEXT_MAX];
    struct fx_tag recv, send, close, status, hand_back;

    void *user, *cancel_user, *writable_user;
    void (*on_cancel)(fx_call *call, void *user);
    void (*on_writable)(fx_call *call, void *user);
};

/** A fixed number of call slots. */
struct fx_pool {
    pthread_mutex_t lock;
    fx_call *slots, *free;
    uint8_t *memory;
    fx_server *server;
    size_t arena_bytes;
    uint32_t count, active;
    uint32_t begun; /* slots[begun..] were never used: untouched memory costs nothing */
};

struct fx_descriptors;

struct fx_server {
    grpc_server *core;
    struct fx_tls_server tls;
    struct fx_server_opts opts;
    const struct fx_method *methods;
    size_t method_count;
    struct fx_pool calls, builtin;
    struct fx_queue queues[FX_RPC_THREADS_MAX];
    uint32_t threads;
    uint16_t port;
    struct fx_descriptors *descriptors;
    bool initialised, stopped, leaked;

    _Atomic bool serving, draining;
    _Atomic uint32_t watchers, posted;
    _Atomic uint64_t calls_total, calls_failed, calls_refused, cut_slow;
    pthread_mutex_t stop_lock;
    pthread_cond_t stop_change;
    bool shutdown_done;
    struct fx_tag shutdown;
};

/* server_pool.c */
FX_MUST bool fx_pool__init(struct fx_pool *pool, fx_server *server, uint32_t count,
                           size_t arena_bytes, fx_error *err);
void fx_pool__done(struct fx_pool *pool);
/** NULL when every slot is taken. */
fx_call *fx_pool__take(struct fx_pool *pool);
void fx_pool__give(fx_call *call);
/** Gives the memory of a large request back to the system, before the arena is reset. */
void fx_pool__trim(fx_call *call);
uint32_t fx_pool__active(struct fx_pool *pool);
/** How many slots, from the first on, have been used. */
uint32_t fx_pool__begun(struct fx_pool *pool);

/* server_queue.c */
void *fx_queue__run(void *queue);
void fx_queue__post(struct fx_queue *queue);
void fx_queue__add(fx_call *call);
void fx_queue__remove(fx_call *call);

/* call_core.c: the life of a slot */
void fx_call__start(fx_call *call);
/** Chooses the status, once; sends it when no write is in flight. Under the lock. */
void fx_call__close(fx_call *call, enum fx_code code, const char *text);
/** Marks cancelled and tells the owner. Under the lock. */
void fx_call__cancelled(fx_call *call);
/** Has its deadline passed, or the time to read? @thread the queue's */
void fx_call__sweep(fx_call *call, uint64_t now_ms);
/** Chooses the status and sends it past what the client has not read. Under the lock. */
void fx_call__cut(fx_call *call, enum fx_code code, const char *text);
/** Starts a batch whose tag holds a reference. Under the lock. */
void fx_call__batch(fx_call *call, const grpc_op *ops, size_t count, struct fx_tag *tag);
void fx_call__read(fx_call *call);
/** Adds the initial metadata op unless it went out already. */
size_t fx_call__header_op(fx_call *call, grpc_op *ops, size_t count);

/* health.c, reflection.c: the built-in methods; their context is the server */
extern const struct fx_method fx_health__methods[2];
extern const struct fx_method fx_reflection__methods[2];
void fx_health__push_all(fx_server *server);
/** Does the server have methods of `service`? "" is the server itself. */
bool fx_server__has_service(const fx_server *server, fx_span service);
