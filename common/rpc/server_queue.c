#include <grpc/support/time.h>
#include "common/base/clock.h"
#include "common/rpc/server_internal.h"

static void changed(fx_server *server) {
    pthread_mutex_lock(&server->stop_lock);
    pthread_cond_broadcast(&server->stop_change);
    pthread_mutex_unlock(&server->stop_lock);
}

static const struct fx_method *find_row(const struct fx_method *rows, size_t count,
                                        const grpc_slice *name) {
    for (size_t i = 0; i < count; i++)
        if (fx_span_eq_str(fx_rpc__span(name), rows[i].name)) return &rows[i];
    return NULL;
}

/* The row, and the pool that its calls live in. */
static const struct fx_method *find_method(fx_server *server, const grpc_slice *name,
                                           struct fx_pool **pool) {
    *pool = &server->calls;
    const struct fx_method *row = find_row(server->methods, server->method_count, name);
    if (row) return row;
    *pool = &server->builtin;
    row = find_row(fx_health__methods, FX_COUNT(fx_health__methods), name);
    return row ? row : find_row(fx_reflection__methods, FX_COUNT(fx_reflection__methods), name);
}

static void acceptor_clear(struct fx_acceptor *acceptor) {
    grpc_call_details_destroy(&acceptor->details);
    grpc_metadata_array_destroy(&acceptor->metadata);
    acceptor->rpc = NULL;
}

static void acceptor_post(struct fx_acceptor *acceptor) {
    struct fx_queue *queue = acceptor->queue;
    grpc_call_details_init(&acceptor->details);
    grpc_metadata_array_init(&acceptor->metadata);
    grpc_call_error rc =
        grpc_server_request_call(queue->server->core, &acceptor->rpc, &acceptor->details,
                                 &acceptor->metadata, queue->cq, queue->cq, &acceptor->accept);
    FX_ASSERT(rc == GRPC_CALL_OK);
}

static void acceptor_again(struct fx_acceptor *acceptor) {
    acceptor_clear(acceptor);
    if (!acceptor->queue->server->draining) {
        acceptor_post(acceptor);
        return;
    }
    acceptor->queue->server->posted--;
    changed(acceptor->queue->server);
}

/* Nothing waits for it: clients that read no answers must not keep the acceptors. */
static void reject(struct fx_acceptor *acceptor, enum fx_code code, const char *text) {
    (void)grpc_call_cancel_with_status(acceptor->rpc, (grpc_status_code)code, text, NULL);
    grpc_call_unref(acceptor->rpc);
    acceptor_again(acceptor);
}

/* The sooner of the method's maximum and the client's deadline, on fx_clock_ms. */
static uint64_t deadline_of(const struct fx_method *method, gpr_timespec client) {
    uint64_t now = fx_clock_ms();
    uint64_t deadline = method->deadline_ms_max ? now + method->deadline_ms_max : UINT64_MAX;
    if (gpr_time_cmp(client, gpr_inf_future(client.clock_type)) == 0) return deadline;
    int32_t left = gpr_time_to_millis(gpr_time_sub(client, gpr_now(client.clock_type)));
    uint64_t theirs = now + (left > 0 ? (uint64_t)left : 0);
    return theirs < deadline ? theirs : deadline;
}

/* The acceptor's call moves into the slot. */
static void hand_over(struct fx_acceptor *acceptor, fx_call *call, const struct fx_method *method) {
    call->queue = acceptor->queue;
    call->method = method;
    call->rpc = acceptor->rpc;
    call->metadata = acceptor->metadata;
    call->deadline_ms = deadline_of(method, acceptor->details.deadline);
    grpc_metadata_array_init(&acceptor->metadata);
}

static void on_accept(void *owner, bool ok) {
    struct fx_acceptor *acceptor = owner;
    fx_server *server = acceptor->queue->server;
    struct fx_pool *pool;
    if (!ok) { /* the server shuts down */
        acceptor_again(acceptor);
        return;
    }
    const struct fx_method *method = find_method(server, &acceptor->details.method, &pool);
    if (!method || pool == &server->calls) server->calls_total++;
    if (!method) {
        reject(acceptor, FX_UNIMPLEMENTED, "this server has no such method");
        return;
    }
    fx_call *call = fx_pool__take(pool);
    if (!call) {
        server->calls_refused++;
        reject(acceptor, FX_RESOURCE_EXHAUSTED, "all call slots are taken; try again");
        return;
    }
    hand_over(acceptor, call, method);
    fx_call__start(call);
    acceptor_again(acceptor);
}

void fx_queue__post(struct fx_queue *queue) {
    for (size_t i = 0; i < FX_ACCEPTORS; i++) {
        struct fx_acceptor *acceptor = &queue->acceptors[i];
        acceptor->queue = queue;
        acceptor->accept = (struct fx_tag){on_accept, acceptor};
        queue->server->posted++;
        acceptor_post(acceptor);
    }
}

void fx_queue__add(fx_call *call) {
    struct fx_queue *queue = call->queue;
    call->prev = NULL;
    call->next = queue->calls;
    if (queue->calls) queue->calls->prev = call;
    queue->calls = call;
    if (call->deadline_ms != UINT64_MAX) queue->timed++;
}

void fx_queue__remove(fx_call *call) {
    struct fx_queue *queue = call->queue;
    if (call->prev)
        call->prev->next = call->next;
    else
        queue->calls = call->next;
    if (call->next) call->next->prev = call->prev;
    if (call->deadline_ms != UINT64_MAX) queue->timed--;
}

static void sweep(struct fx_queue *queue) {
    if (!queue->calls) return;
    uint64_t now = fx_clock_ms();
    if (now < queue->sweep_at_ms) return;
    queue->sweep_at_ms = now + FX_SWEEP_MS;
    for (fx_call *call = queue->calls; call; call = call->next)
        fx_call__sweep(call, now);
}

static gpr_timespec sweep_time(const struct fx_queue *queue) {
    if (!queue->calls) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    return fx_rpc__in_ms(queue->timed ? FX_SWEEP_MS : FX_STALLS_MS);
}

void *fx_queue__run(void *argument) {
    struct fx_queue *queue = argument;
    for (;;) {
        grpc_event event = grpc_completion_queue_next(queue->cq, sweep_time(queue), NULL);
        if (event.type == GRPC_QUEUE_SHUTDOWN) return NULL;
        if (event.type == GRPC_OP_COMPLETE) {
            struct fx_tag *tag = event.tag;
            tag->fn(tag->owner, event.success != 0);
        }
        sweep(queue);
    }
}
