#include <grpc/support/time.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/base/clock.h"
#include "common/rpc/client_internal.h"

enum { RETRY_AFTER_DIGITS_MAX = 9, BACKOFF_MS = 50 /* after the first attempt; then twice that */ };

/* A slot that was never used before. */
static fx_client_call *slot_begin(fx_client *client) {
    uint32_t i = client->begun;
    size_t arena_bytes = client->opts.arena_bytes;
    if (i == client->opts.calls_max) return NULL;
    fx_client_call *call = &client->calls[i];
    call->client = client;
    fx_sink__init(&call->own, -1);
    fx_arena_init(&call->slot_arena, client->memory + i * arena_bytes, arena_bytes);
    client->begun++;
    return call;
}

static fx_client_call *slot_take(fx_client *client) {
    pthread_mutex_lock(&client->lock);
    fx_client_call *call = NULL;
    if (!client->closing) call = client->free ? client->free : slot_begin(client);
    if (call) {
        if (call == client->free) client->free = call->next_free;
        client->active++;
        call->in_use = true;
    }
    pthread_mutex_unlock(&client->lock);
    return call;
}

static void buffer_drop(grpc_byte_buffer **buffer) {
    if (*buffer) grpc_byte_buffer_destroy(*buffer);
    *buffer = NULL;
}

static void attempt_init(fx_client_call *call) {
    grpc_metadata_array_init(&call->initial);
    grpc_metadata_array_init(&call->trailing);
    call->details = grpc_empty_slice();
    call->status = GRPC_STATUS_OK;
    call->out = 0;
}

/* What an attempt left; a new one may begin. */
static void attempt_done(fx_client_call *call) {
    grpc_metadata_array_destroy(&call->initial);
    grpc_metadata_array_destroy(&call->trailing);
    grpc_slice_unref(call->details);
    buffer_drop(&call->received);
    buffer_drop(&call->sending);
    if (call->rpc) grpc_call_unref(call->rpc);
    call->rpc = NULL;
    fx_client__channel_drop(call->client, fx_take(call->channel));
}

void fx_client__release(fx_client_call *call) {
    fx_client *client = call->client;
    for (size_t i = 0; i < call->header_count; i++) {
        grpc_slice_unref(call->headers[i].key);
        grpc_slice_unref(call->headers[i].value);
    }
    attempt_done(call);
    grpc_slice_unref(call->method);
    grpc_slice_unref(call->message);
    fx_arena_reset(&call->slot_arena);
    pthread_mutex_lock(&client->lock);
    call->in_use = false;
    call->next_free = client->free;
    client->free = call;
    client->active--;
    pthread_mutex_unlock(&client->lock);
}

static FX_MUST bool add_header(fx_client_call *call, const char *key, const char *value,
                               fx_error *err) {
    grpc_metadata entry = {.key = grpc_slice_from_copied_string(key),
                           .value = grpc_slice_from_copied_string(value)};
    call->headers[call->header_count++] = entry; /* released with the call */
    if (!grpc_header_key_is_legal(entry.key) || !grpc_header_nonbin_value_is_legal(entry.value))
        return fx_fail(err, FX_INVALID_ARGUMENT, "metadata '%s': not legal in a header", key);
    return true;
}

static FX_MUST bool add_headers(fx_client_call *call, const struct fx_client_request *request,
                                fx_error *err) {
    fx_trace trace;
    if (request->metadata_count > FX_CLIENT_METADATA_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%zu metadata entries, at most %d",
                       request->metadata_count, FX_CLIENT_METADATA_MAX);
    if (request->trace)
        fx_trace_child(request->trace, &trace);
    else
        fx_trace_accept((fx_span){0}, (fx_span){0}, &trace);
    if (!add_header(call, "x-request-id", trace.request_id, err) ||
        !add_header(call, "traceparent", trace.traceparent, err))
        return false;
    for (size_t i = 0; i < request->metadata_count; i++)
        if (!add_header(call, request->metadata[i].key, request->metadata[i].value, err))
            return false;
    return true;
}

static void batch(fx_client_call *call, const grpc_op *ops, size_t count, struct fx_done_tag *tag) {
    call->out++;
    grpc_call_error rc = grpc_call_start_batch(call->rpc, ops, count, tag, NULL);
    FX_ASSERT(rc == GRPC_CALL_OK);
}

static void read_next(fx_client_call *call) {
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
    op.data.recv_message.recv_message = &call->received;
    batch(call, &op, 1, &call->recv);
}

static void send_close(fx_client_call *call) {
    grpc_op op = {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
    call->close_pending = false;
    call->writing = true;
    batch(call, &op, 1, &call->send);
}

/* What goes out at once; returns how many operations. */
static size_t out_ops(fx_client_call *call, grpc_op ops[3]) {
    size_t count = 1;
    ops[0] = (grpc_op){.op = GRPC_OP_SEND_INITIAL_METADATA};
    if (call->request.wait_for_ready)
        ops[0].flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY |
                       GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET;
    ops[0].data.send_initial_metadata.count = call->header_count;
    ops[0].data.send_initial_metadata.metadata = call->headers;
    if (call->sending) {
        ops[count] = (grpc_op){.op = GRPC_OP_SEND_MESSAGE};
        ops[count++].data.send_message.send_message = call->sending;
        ops[count++] = (grpc_op){.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
    }
    return count;
}

/* The first message that comes back, and the status. */
static void back_ops(fx_client_call *call, grpc_op ops[3]) {
    ops[0] = (grpc_op){.op = GRPC_OP_RECV_INITIAL_METADATA};
    ops[0].data.recv_initial_metadata.recv_initial_metadata = &call->initial;
    ops[1] = (grpc_op){.op = GRPC_OP_RECV_MESSAGE};
    ops[1].data.recv_message.recv_message = &call->received;
    ops[2] = (grpc_op){.op = GRPC_OP_RECV_STATUS_ON_CLIENT};
    ops[2].data.recv_status_on_client.trailing_metadata = &call->trailing;
    ops[2].data.recv_status_on_client.status = &call->status;
    ops[2].data.recv_status_on_client.status_details = &call->details;
}

static bool is_unary(const fx_client_call *call) {
    return !call->streams_in && !call->streams_out;
}

/* A unary call is one line, so that its thread is woken once. A stream is three. */
static void start_batches(fx_client_call *call) {
    grpc_op ops[6];
    size_t count = out_ops(call, ops);
    back_ops(call, ops + count);
    call->writing = true;
    if (is_unary(call)) {
        batch(call, ops, count + 3, &call->end);
        return;
    }
    batch(call, ops, count, &call->send);
    batch(call, ops + count, 2, &call->recv);
    batch(call, ops + count + 2, 1, &call->end);
}

static void unpack_reply(fx_client_call *call, struct fx_client_result *out, fx_error *err) {
    if (call->streams_in || out->code != FX_OK) return;
    if (!call->received) {
        fx_error_set(err, FX_INTERNAL, "the server sent no reply");
    } else if (fx_rpc__unpack(call->request.reply, call->received, call->arena, NULL, &call->reply,
                              err)) {
        out->reply = call->reply;
        return;
    } else if (err->code == FX_INVALID_ARGUMENT) {
        err->code = FX_INTERNAL;
    }
    (void)snprintf(call->text, sizeof call->text, "%s", err->text);
    out->code = err->code;
}

static uint32_t retry_after(const fx_client_call *call) {
    fx_span value = fx_rpc__find(&call->trailing, call->trailing.count, "retry-after-ms");
    uint32_t ms = 0;
    if (value.len > RETRY_AFTER_DIGITS_MAX) return 0;
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] < '0' || value.at[i] > '9') return 0;
        ms = ms * 10 + (uint32_t)(value.at[i] - '0');
    }
    return ms;
}

void fx_client__result(fx_client_call *call, struct fx_client_result *out) {
    fx_error err = {0};
    fx_span details = fx_rpc__span(&call->details);
    bool known = call->status >= GRPC_STATUS_OK && call->status <= GRPC_STATUS_UNAUTHENTICATED;
    *out = (struct fx_client_result){.code = known ? (enum fx_code)call->status : FX_UNKNOWN,
                                     .text = call->text,
                                     .retry_after_ms = retry_after(call)};
    size_t len = details.len < sizeof call->text ? details.len : sizeof call->text - 1;
    if (len) memcpy(call->text, details.at, len);
    call->text[len] = '\0';
    if (call->refused) {
        out->code = call->refusal.code;
        out->text = call->refusal.text;
    } else {
        unpack_reply(call, out, &err);
    }
}

static void finish(fx_client_call *call) {
    struct fx_client_result result;
    if (call->waited) {
        call->waited_done = true;
        return;
    }
    fx_client__result(call, &result);
    if (call->request.on_done) call->request.on_done(call->request.user, &result);
    fx_client__release(call);
}

static void tag_back(fx_client_call *call) {
    if (--call->out == 0) finish(call);
}

static void on_end(fx_client_call *call, bool ok) {
    (void)ok;
    call->failed = true; /* nothing more can be sent */
    tag_back(call);
}

static void on_sent(fx_client_call *call, bool ok) {
    bool was_message = call->sending != NULL;
    call->writing = false;
    buffer_drop(&call->sending);
    if (ok && call->close_pending)
        send_close(call);
    else if (ok && was_message && call->streams_out && !call->half_closed && !call->failed &&
             call->request.on_writable)
        call->request.on_writable(call->request.user);
    tag_back(call);
}

/* False: the call is to be cancelled, for the reason in `refusal`. */
static bool give_message(fx_client_call *call) {
    const void *message = NULL;
    fx_arena *arena = call->arena;
    size_t mark = arena->used;
    fx_error *err = &call->refusal;
    if (!fx_rpc__unpack(call->request.reply, call->received, arena, NULL, &message, err)) {
        if (err->code == FX_INVALID_ARGUMENT) err->code = FX_INTERNAL;
        return false;
    }
    bool wanted = call->request.on_message(call->request.user, message);
    if (arena == &call->slot_arena) fx_arena_rewind(arena, mark);
    if (!wanted) fx_error_set(err, FX_CANCELLED, "cancelled");
    return wanted;
}

static void on_received(fx_client_call *call, bool ok) {
    if (call->streams_in && ok && call->received && !call->refused) {
        if (!give_message(call)) {
            call->refused = true;
            grpc_call_cancel(call->rpc, NULL);
        }
        buffer_drop(&call->received);
        read_next(call);
    }
    tag_back(call);
}

static void attempt(fx_client_call *call) {
    fx_client *client = call->client;
    call->attempts++;
    if (!call->streams_out) call->sending = grpc_raw_byte_buffer_create(&call->message, 1);
    call->channel = fx_client__channel_take(client);
    call->rpc = grpc_channel_create_call(call->channel->core, NULL, GRPC_PROPAGATE_DEFAULTS,
                                         client->cq, call->method, NULL, call->deadline, NULL);
    start_batches(call);
}

/* Core's own retries would keep a copy of each call's every operation. */
uint64_t fx_client__backoff_ms(const fx_client_call *call) {
    uint64_t ms = (uint64_t)BACKOFF_MS << (call->attempts - 1);
    bool fails = is_unary(call) && call->status == GRPC_STATUS_UNAVAILABLE;
    bool answered = call->initial.count || call->received; /* the server has begun */
    if (!fails || answered || call->attempts >= call->client->opts.attempts_max) return 0;
    ms += fx_clock_us() % (ms / 2); /* not all at once */
    return gpr_time_cmp(fx_rpc__in_ms(ms), call->deadline) < 0 ? ms : 0;
}

static void on_again(fx_client_call *call, bool ok) {
    (void)ok;
    if (!call->cancelled && !call->client->closing) {
        attempt_done(call);
        attempt_init(call);
        attempt(call);
        return;
    }
    call->refused = true;
    fx_error_set(&call->refusal, FX_CANCELLED, "cancelled");
    tag_back(call);
}

static void begin(fx_client_call *call, const struct fx_client_request *request, bool waited) {
    call->request = *request;
    call->waited = waited;
    call->waited_done = false;
    call->sink = waited ? &call->own : &call->client->inbox;
    call->arena = request->arena ? request->arena : &call->slot_arena;
    call->header_count = 0;
    attempt_init(call);
    call->method = grpc_slice_from_copied_string(request->method);
    call->message = grpc_empty_slice();
    call->deadline = fx_rpc__in_ms(request->deadline_ms);
    call->attempts = 0;
    call->cancelled = false;
    call->streams_in = request->on_message != NULL;
    call->streams_out = request->message == NULL;
    call->writing = call->close_pending = call->failed = call->refused = false;
    call->half_closed = !call->streams_out;
    call->refusal = (fx_error){0};
    call->reply = NULL;
    call->send = (struct fx_done_tag){.call = call, .fn = on_sent};
    call->recv = (struct fx_done_tag){.call = call, .fn = on_received};
    call->end = (struct fx_done_tag){.call = call, .fn = on_end};
    call->again = (struct fx_done_tag){.call = call, .fn = on_again};
}

bool fx_client__start(fx_client *client, const struct fx_client_request *request, bool waited,
                      fx_client_call **out, fx_error *err) {
    FX_ASSERT(request->method && request->reply && request->deadline_ms > 0);
    if (client->closing) return fx_fail(err, FX_UNAVAILABLE, "the client is closing");
    fx_client_call *call = slot_take(client);
    if (!call)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "%u calls are in flight",
                       client->opts.calls_max);
    begin(call, request, waited);
    if (!add_headers(call, request, err)) {
        fx_client__release(call);
        return false;
    }
    if (request->message) call->message = fx_rpc__slice(request->message);
    call->request.message = NULL;
    call->request.metadata = NULL;
    call->request.trace = NULL;
    attempt(call);
    if (out) *out = call;
    return true;
}

bool fx_client_start(fx_client *client, const struct fx_client_request *request,
                     fx_client_call **out, fx_error *err) {
    FX_ASSERT(client->opts.base);
    return fx_client__start(client, request, false, out, err);
}

void fx_client_cancel(fx_client_call *call) {
    call->cancelled = true;
    grpc_call_cancel(call->rpc, NULL);
}

enum fx_client_send fx_client_send(fx_client_call *call, const void *message) {
    if (call->failed || call->half_closed) return FX_CLIENT_SEND_GONE;
    if (call->writing) return FX_CLIENT_SEND_BUSY;
    grpc_op op = {.op = GRPC_OP_SEND_MESSAGE};
    call->sending = fx_rpc__pack(message);
    op.data.send_message.send_message = call->sending;
    call->writing = true;
    batch(call, &op, 1, &call->send);
    return FX_CLIENT_SEND_OK;
}

void fx_client_half_close(fx_client_call *call) {
    if (call->failed || call->half_closed) return;
    call->half_closed = true;
    if (call->writing)
        call->close_pending = true;
    else
        send_close(call);
}

bool fx_client__turn(fx_client *client) {
    for (int i = 0; i < FX_CLIENT_TURN_MAX; i++) {
        struct fx_done_tag *tag = fx_sink__pop(&client->inbox);
        if (!tag) return false;
        tag->fn(tag->call, tag->ok);
    }
    return true;
}
