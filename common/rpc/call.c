#include <errno.h>
#include <grpc/support/alloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include "common/base/clock.h"
#include "common/rpc/server_internal.h"

fx_arena *fx_call_arena(fx_call *call) {
    return &call->arena;
}

const fx_trace *fx_call_trace(const fx_call *call) {
    return &call->trace;
}

uint64_t fx_call_deadline_ms(const fx_call *call) {
    return call->deadline_ms;
}

fx_span fx_call_metadata(const fx_call *call, const char *key) {
    return fx_rpc__find(&call->metadata, FX_METADATA_MAX, key);
}

fx_span fx_call_bearer(const fx_call *call) {
    static const char prefix[] = "Bearer ";
    fx_span value = fx_call_metadata(call, "authorization");
    size_t len = sizeof prefix - 1;
    if (!value.at || value.len <= len || memcmp(value.at, prefix, len) != 0) return (fx_span){0};
    return (fx_span){value.at + len, value.len - len};
}

static const char *auth_property(fx_call *call, const grpc_auth_context *context,
                                 const char *name) {
    grpc_auth_property_iterator it = grpc_auth_context_find_properties_by_name(context, name);
    const grpc_auth_property *property = grpc_auth_property_iterator_next(&it);
    if (!property || property->value_length == 0) return NULL;
    return fx_arena_copy(&call->arena,
                         (fx_span){(const uint8_t *)property->value, property->value_length});
}

const char *fx_call_peer_name(fx_call *call) {
    if (call->peer_name) return call->peer_name;
    grpc_auth_context *context = grpc_call_auth_context(call->rpc);
    if (!context) return NULL;
    if (grpc_auth_context_peer_is_authenticated(context)) {
        call->peer_name = auth_property(call, context, GRPC_X509_SAN_PROPERTY_NAME);
        if (!call->peer_name)
            call->peer_name = auth_property(call, context, GRPC_X509_CN_PROPERTY_NAME);
    }
    grpc_auth_context_release(context);
    return call->peer_name;
}

const char *fx_call_peer_address(fx_call *call) {
    if (call->peer_address) return call->peer_address;
    char *peer = grpc_call_get_peer(call->rpc);
    call->peer_address = fx_arena_copy(&call->arena, fx_span_str(peer ? peer : ""));
    gpr_free(peer);
    return call->peer_address ? call->peer_address : "";
}

void fx_call_set_user(fx_call *call, void *user) {
    call->user = user;
}

void *fx_call_user(const fx_call *call) {
    return call->user;
}

void fx_call_on_cancel(fx_call *call, void (*fn)(fx_call *call, void *user), void *user) {
    pthread_mutex_lock(&call->lock);
    FX_ASSERT(!call->ended);
    call->on_cancel = fn;
    call->cancel_user = user;
    if (call->cancelled) fx_call__cancelled(call);
    pthread_mutex_unlock(&call->lock);
}

bool fx_call_cancelled(const fx_call *call) {
    fx_call *locked = (fx_call *)(uintptr_t)call;
    pthread_mutex_lock(&locked->lock);
    bool cancelled = call->cancelled;
    pthread_mutex_unlock(&locked->lock);
    return cancelled;
}

void fx_call_on_writable(fx_call *call, void (*fn)(fx_call *call, void *user), void *user) {
    pthread_mutex_lock(&call->lock);
    call->on_writable = fn;
    call->writable_user = user;
    pthread_mutex_unlock(&call->lock);
}

/* A deadline may close the call meanwhile: then its trailers are on their way. */
static void trailer_add(fx_call *call, grpc_metadata *entry, bool legal) {
    pthread_mutex_lock(&call->lock);
    bool fits = legal && !call->closed && call->trailer_count < FX_TRAILERS_MAX;
    if (fits) call->trailers[call->trailer_count++] = *entry;
    pthread_mutex_unlock(&call->lock);
    if (fits) return;
    grpc_slice_unref(entry->key);
    grpc_slice_unref(entry->value);
}

void fx_call_trailer(fx_call *call, const char *key, const char *value) {
    grpc_metadata entry = {.key = grpc_slice_from_copied_string(key),
                           .value = grpc_slice_from_copied_string(value)};
    trailer_add(call, &entry,
                grpc_header_key_is_legal(entry.key) &&
                    grpc_header_nonbin_value_is_legal(entry.value));
}

void fx_call_trailer_bytes(fx_call *call, const char *key, fx_span value) {
    grpc_metadata entry = {.key = grpc_slice_from_copied_string(key),
                           .value =
                               grpc_slice_from_copied_buffer((const char *)value.at, value.len)};
    trailer_add(call, &entry,
                grpc_header_key_is_legal(entry.key) && grpc_is_binary_header(entry.key));
}

/* A slot is always freed on its queue, by a tag: the last reference goes to an empty batch. */
static void end(fx_call *call, enum fx_code code, const char *text, grpc_byte_buffer *reply) {
    pthread_mutex_lock(&call->lock);
    FX_ASSERT(!call->ended);
    call->ended = true;
    if (call->closed && reply) grpc_byte_buffer_destroy(reply);
    if (!call->closed) call->reply = reply;
    fx_call__close(call, code, text);
    if (--call->refs == 0) fx_call__batch(call, NULL, 0, &call->hand_back);
    pthread_mutex_unlock(&call->lock);
}

void fx_call_reply(fx_call *call, const void *message) {
    end(call, FX_OK, "", fx_rpc__pack(message));
}

void fx_call_finish(fx_call *call) {
    end(call, FX_OK, "", NULL);
}

void fx_call_fail(fx_call *call, enum fx_code code, const char *fmt, ...) {
    char text[FX_STATUS_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    end(call, code, text, NULL);
}

void fx_call_fail_error(fx_call *call, const fx_error *err) {
    end(call, err->code, err->text, NULL);
}

void fx_call_cut(fx_call *call, enum fx_code code, const char *fmt, ...) {
    char text[FX_STATUS_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pthread_mutex_lock(&call->lock);
    if (!call->closed) fx_call__cut(call, code, text);
    end(call, code, text, NULL);
    pthread_mutex_unlock(&call->lock);
}

static void write_message(fx_call *call, grpc_byte_buffer *message) {
    grpc_op ops[2] = {0};
    size_t count = fx_call__header_op(call, ops, 0);
    call->sending = message;
    call->writing = true;
    call->write_ms = fx_clock_ms();
    ops[count] = (grpc_op){.op = GRPC_OP_SEND_MESSAGE};
    ops[count++].data.send_message.send_message = message;
    fx_call__batch(call, ops, count, &call->send);
}

/* Under the lock. */
static enum fx_send try_send(fx_call *call, const void *message) {
    if (call->cancelled || call->closed) return FX_SEND_GONE;
    if (call->writing) return FX_SEND_BUSY;
    write_message(call, fx_rpc__pack(message));
    return FX_SEND_OK;
}

enum fx_send fx_call_send(fx_call *call, const void *message) {
    pthread_mutex_lock(&call->lock);
    enum fx_send sent = try_send(call, message);
    pthread_mutex_unlock(&call->lock);
    return sent;
}

bool fx_call_busy(const fx_call *call) {
    fx_call *locked = (fx_call *)(uintptr_t)call;
    pthread_mutex_lock(&locked->lock);
    bool busy = call->writing;
    pthread_mutex_unlock(&locked->lock);
    return busy;
}

static struct timespec clock_in_ms(uint32_t ms) {
    uint64_t at_us = fx_clock_us() + (uint64_t)ms * 1000;
    return (struct timespec){(time_t)(at_us / 1000000), (long)(at_us % 1000000) * 1000};
}

enum fx_send fx_call_send_wait(fx_call *call, const void *message, uint32_t timeout_ms) {
    struct timespec until = clock_in_ms(timeout_ms);
    int rc = 0;
    pthread_mutex_lock(&call->lock);
    while (call->writing && !call->cancelled && !call->closed && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&call->idle_write, &call->lock, &until);
    enum fx_send sent = try_send(call, message);
    pthread_mutex_unlock(&call->lock);
    return sent;
}

void fx_call_next(fx_call *call) {
    pthread_mutex_lock(&call->lock);
    FX_ASSERT(!call->ended && !call->half_closed);
    if (call->admitted)
        fx_arena_rewind(&call->arena, call->message_mark);
    else
        call->message_mark = call->arena.used;
    call->admitted = true;
    call->peer_name = call->peer_address = NULL;
    fx_call__read(call);
    pthread_mutex_unlock(&call->lock);
}
