#include "services/scheduler/op.h"
#include <stdarg.h>
#include <stdio.h>

struct op *op_new(fx_call *call, const void *request, void *app) {
    struct op *op = fx_arena_alloc(fx_call_arena(call), sizeof *op);
    if (!op) {
        fx_call_fail(call, FX_RESOURCE_EXHAUSTED, "the request is too large");
        return NULL;
    }
    op->app = app;
    op->call = call;
    op->request = request;
    return op;
}

static void run(void *user) {
    struct op *op = user;
    op->start(op);
}

void op_post(struct op *op, void (*start)(struct op *op)) {
    op->start = start;
    if (!fx_loop_post(op->app->loop, run, op))
        op_refuse(op, FX_RESOURCE_EXHAUSTED, OP_RETRY_AFTER_MS,
                  "too many requests wait; try again");
}

void op_refuse(struct op *op, enum fx_code code, uint32_t retry_after_ms, const char *fmt, ...) {
    char text[256], ms[16];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    (void)snprintf(ms, sizeof ms, "%u", retry_after_ms);
    if (retry_after_ms) fx_call_trailer(op->call, "retry-after-ms", ms);
    fx_call_fail(op->call, code, "%s", text);
}

void op_fail(struct op *op, const fx_error *err) {
    bool again = err->code == FX_UNAVAILABLE || err->code == FX_RESOURCE_EXHAUSTED ||
                 err->code == FX_CANCELLED;
    enum fx_code code = err->code == FX_CANCELLED ? FX_UNAVAILABLE : err->code;
    op_refuse(op, code, again ? OP_RETRY_AFTER_MS : 0, "%s", err->text);
}

void *op_alloc(struct op *op, size_t count, size_t size) {
    void *at = fx_arena_array(fx_call_arena(op->call), count, size);
    if (!at) op_refuse(op, FX_RESOURCE_EXHAUSTED, 0, "the answer does not fit");
    return at;
}

bool id_read(ProtobufCBinaryData bytes, fx_gen_id *out, fx_error *err) {
    if (bytes.len != FX_GEN_ID_BYTES)
        return fx_fail(err, FX_INVALID_ARGUMENT, "id: %zu bytes instead of %d", bytes.len,
                       FX_GEN_ID_BYTES);
    memcpy(out->bytes, bytes.data, FX_GEN_ID_BYTES);
    return true;
}
