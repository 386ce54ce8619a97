#include <stdio.h>
#include "common/base/clock.h"
#include "common/rpc/server_internal.h"

static void changed(fx_server *server) {
    if (!server->draining) return;
    pthread_mutex_lock(&server->stop_lock);
    pthread_cond_broadcast(&server->stop_change);
    pthread_mutex_unlock(&server->stop_lock);
}

static void buffer_drop(grpc_byte_buffer **buffer) {
    if (*buffer) grpc_byte_buffer_destroy(*buffer);
    *buffer = NULL;
}

static void metadata_drop(grpc_metadata *entry) {
    grpc_slice_unref(entry->key);
    grpc_slice_unref(entry->value);
}

/* The last tag is back and the owner is through: the slot is free again. */
static void release(fx_call *call) {
    fx_server *server = call->server;
    fx_queue__remove(call);
    grpc_call_unref(call->rpc);
    grpc_metadata_array_destroy(&call->metadata);
    if (call->header_count) metadata_drop(&call->header);
    for (size_t i = 0; i < call->trailer_count; i++)
        metadata_drop(&call->trailers[i]);
    buffer_drop(&call->received);
    buffer_drop(&call->sending);
    buffer_drop(&call->reply);
    if (call->watching) server->watchers--;
    pthread_mutex_lock(&call->lock);
    call->method = NULL;
    call->watching = false;
    fx_pool__trim(call);
    fx_arena_reset(&call->arena);
    pthread_mutex_unlock(&call->lock);
    fx_pool__give(call);
    changed(server);
}

static void unref(fx_call *call) {
    pthread_mutex_lock(&call->lock);
    bool last = --call->refs == 0;
    pthread_mutex_unlock(&call->lock);
    if (last) release(call);
}

void fx_call__batch(fx_call *call, const grpc_op *ops, size_t count, struct fx_tag *tag) {
    call->refs++;
    grpc_call_error rc = grpc_call_start_batch(call->rpc, ops, count, tag, NULL);
    FX_ASSERT(rc == GRPC_CALL_OK);
}

/* A failure goes out as trailers only (the id among them): a client never retries once it has
 * seen headers. */
size_t fx_call__header_op(fx_call *call, grpc_op *ops, size_t count) {
    if (call->header_sent) return count;
    bool fails = call->closed && call->code != FX_OK;
    grpc_metadata *header = fails ? &call->trailers[call->trailer_count++] : &call->header;
    *header = (grpc_metadata){.key = grpc_slice_from_static_string("x-request-id"),
                              .value = grpc_slice_from_copied_string(call->trace.request_id)};
    call->header_sent = true;
    call->header_count = fails ? 0 : 1;
    ops[count] = (grpc_op){.op = GRPC_OP_SEND_INITIAL_METADATA};
    ops[count].data.send_initial_metadata.count = call->header_count;
    ops[count].data.send_initial_metadata.metadata = &call->header;
    return count + 1;
}

static grpc_op listen_op(fx_call *call) {
    grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
    op.data.recv_close_on_server.cancelled = &call->close_cancelled;
    call->listening = true;
    return op;
}

static void listen_begin(fx_call *call) {
    grpc_op op = listen_op(call);
    fx_call__batch(call, &op, 1, &call->close);
}

static void send_status(fx_call *call) {
    grpc_op ops[4] = {0};
    call->write_ms = fx_clock_ms();
    size_t count = fx_call__header_op(call, ops, 0);
    if (call->reply) {
        ops[count] = (grpc_op){.op = GRPC_OP_SEND_MESSAGE};
        ops[count++].data.send_message.send_message = call->reply;
    }
    grpc_slice details = grpc_slice_from_copied_string(call->text);
    ops[count] = (grpc_op){.op = GRPC_OP_SEND_STATUS_FROM_SERVER};
    ops[count].data.send_status_from_server.status = (grpc_status_code)call->code;
    ops[count].data.send_status_from_server.status_details = &details;
    ops[count].data.send_status_from_server.trailing_metadata = call->trailers;
    ops[count++].data.send_status_from_server.trailing_metadata_count = call->trailer_count;
    if (!call->listening) ops[count++] = listen_op(call);
    fx_call__batch(call, ops, count, &call->status);
    grpc_slice_unref(details);
}

static bool is_builtin(const fx_call *call) {
    return call->pool == &call->server->builtin;
}

static void choose(fx_call *call, enum fx_code code, const char *text) {
    call->closed = true;
    call->code = code;
    (void)snprintf(call->text, sizeof call->text, "%s", text);
    if (code != FX_OK && !is_builtin(call)) call->server->calls_failed++;
}

void fx_call__close(fx_call *call, enum fx_code code, const char *text) {
    if (call->closed) return;
    choose(call, code, text);
    if (!call->writing) send_status(call);
}

/* Core's own end of a call waits for no flow control; the write in flight comes back failed. */
void fx_call__cut(fx_call *call, enum fx_code code, const char *text) {
    if (!call->closed) choose(call, code, text);
    call->write_ms = 0;
    call->server->cut_slow++;
    (void)grpc_call_cancel_with_status(call->rpc, (grpc_status_code)code, text, NULL);
}

void fx_call__cancelled(fx_call *call) {
    call->cancelled = true;
    pthread_cond_broadcast(&call->idle_write);
    void (*fn)(fx_call *, void *) = call->on_cancel;
    call->on_cancel = NULL;
    if (fn && !call->ended) fn(call, call->cancel_user);
}

static void cut_stalled(fx_call *call) {
    bool told = call->cancelled;
    fx_call__cut(call, FX_RESOURCE_EXHAUSTED, "the client does not read");
    if (!told) fx_call__cancelled(call);
}

void fx_call__sweep(fx_call *call, uint64_t now_ms) {
    pthread_mutex_lock(&call->lock);
    if (call->deadline_ms <= now_ms && !call->closed && !call->cancelled) {
        fx_call__close(call, FX_DEADLINE_EXCEEDED, "the deadline passed");
        fx_call__cancelled(call);
    }
    uint64_t read_ms_max = FX_READ_STALLS * (uint64_t)call->server->opts.stall_ms_max;
    if (call->read_ms && call->read_ms + read_ms_max <= now_ms && !call->closed)
        fx_call__close(call, FX_DEADLINE_EXCEEDED, "the message did not come");
    /* a write that began after the sweep did is newer than `now_ms` */
    if (call->write_ms && call->write_ms + call->server->opts.stall_ms_max <= now_ms)
        cut_stalled(call);
    pthread_mutex_unlock(&call->lock);
}

static void on_status(void *owner, bool ok) {
    fx_call *call = owner;
    (void)ok;
    pthread_mutex_lock(&call->lock);
    call->write_ms = 0;
    pthread_mutex_unlock(&call->lock);
    unref(call);
}

static void on_closed(void *owner, bool ok) {
    (void)ok;
    fx_call *call = owner;
    pthread_mutex_lock(&call->lock);
    if (call->close_cancelled && !call->cancelled) fx_call__cancelled(call);
    pthread_mutex_unlock(&call->lock);
    unref(call);
}

static void on_sent(void *owner, bool ok) {
    fx_call *call = owner;
    pthread_mutex_lock(&call->lock);
    call->writing = false;
    call->write_ms = 0;
    buffer_drop(&call->sending);
    pthread_cond_broadcast(&call->idle_write);
    if (call->closed)
        send_status(call);
    else if (ok && !call->ended && !call->cancelled && call->on_writable)
        call->on_writable(call, call->writable_user);
    pthread_mutex_unlock(&call->lock);
    unref(call);
}

static bool streams_in(const fx_call *call) {
    return call->method->kind == FX_RPC_CLIENT_STREAM || call->method->kind == FX_RPC_BIDI;
}

static FX_MUST bool unpack(fx_call *call, void *out, char *field, fx_error *err) {
    size_t bytes = grpc_byte_buffer_length(call->received);
    *field = '\0';
    if (bytes > call->method->request_bytes_max)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "the request has %zu bytes, at most %u fit",
                       bytes, call->method->request_bytes_max);
    return fx_rpc__unpack(call->method->request, call->received, &call->arena, field, out, err);
}

static void refuse(fx_call *call, const fx_error *err, const char *field) {
    if (!is_builtin(call) && call->server->opts.refuse)
        call->server->opts.refuse(call, err, field, call->context);
    else
        fx_call_fail_error(call, err);
}

/* A message, or its absence, for the handler: it owns the call from here. */
static void deliver(fx_call *call) {
    const ProtobufCMessage *message = NULL;
    fx_error err = {0};
    char field[FX_PB_FIELD_MAX];
    bool over = call->received == NULL;
    if (!over && !unpack(call, &message, field, &err)) {
        refuse(call, &err, field);
        return;
    }
    buffer_drop(&call->received);
    if (over && !streams_in(call)) {
        fx_error_set(&err, FX_INVALID_ARGUMENT, "the request has no message");
        refuse(call, &err, "");
        return;
    }
    call->method->handler(call, message, call->context);
}

static void on_received(void *owner, bool ok) {
    fx_call *call = owner;
    pthread_mutex_lock(&call->lock);
    bool ended = call->ended;
    bool lost = !ok || call->cancelled || call->closed;
    call->read_ms = 0;
    if (lost) buffer_drop(&call->received);
    if (!call->received) call->half_closed = true;
    pthread_mutex_unlock(&call->lock);
    if (!ended && lost && !streams_in(call))
        fx_call_fail(call, FX_CANCELLED, "cancelled before the request arrived");
    else if (!ended)
        deliver(call);
    pthread_mutex_lock(&call->lock);
    if (!call->listening) listen_begin(call);
    pthread_mutex_unlock(&call->lock);
    unref(call);
}

static void on_handed_back(void *owner, bool ok) {
    (void)ok;
    unref(owner);
}

void fx_call__read(fx_call *call) {
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
    op.data.recv_message.recv_message = &call->received;
    if (!streams_in(call)) call->read_ms = fx_clock_ms();
    fx_call__batch(call, &op, 1, &call->recv);
}

/* A taken slot has the values of the call before; all of them begin anew here. */
static void begin(fx_call *call) {
    call->context = is_builtin(call) ? call->server : call->server->opts.context;
    call->peer_name = call->peer_address = NULL;
    call->message_mark = 0;
    call->write_ms = call->read_ms = 0;
    call->admitted = is_builtin(call) || !call->server->opts.admit;
    call->refs = 1;
    call->ended = call->closed = call->cancelled = false;
    call->header_sent = call->writing = call->half_closed = call->watching = false;
    call->listening = false;
    call->close_cancelled = 0;
    call->health_sent = -1;
    call->trailer_count = call->header_count = 0;
    call->user = call->cancel_user = call->writable_user = NULL;
    call->on_cancel = call->on_writable = NULL;
    call->recv = (struct fx_tag){on_received, call};
    call->send = (struct fx_tag){on_sent, call};
    call->close = (struct fx_tag){on_closed, call};
    call->status = (struct fx_tag){on_status, call};
    call->hand_back = (struct fx_tag){on_handed_back, call};
    fx_trace_accept(fx_call_metadata(call, "x-request-id"), fx_call_metadata(call, "traceparent"),
                    &call->trace);
}

/* The client's end is listened for once its message is there: a handler that answers at once never
 * needs to. */
void fx_call__start(fx_call *call) {
    pthread_mutex_lock(&call->lock);
    begin(call);
    fx_queue__add(call);
    if (streams_in(call)) listen_begin(call);
    bool admitted = call->admitted;
    if (admitted) fx_call__read(call);
    pthread_mutex_unlock(&call->lock);
    if (!admitted) call->server->opts.admit(call, NULL, call->context);
}
