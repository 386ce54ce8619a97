#include "services/tenant/op.h"
#include <stdio.h>

static void run(void *user) {
    struct op *op = user;
    op->start(op);
}

void op_begin(fx_call *call, const void *request, void *app, void (*start)(struct op *op)) {
    struct op *op = fx_arena_alloc(fx_call_arena(call), sizeof *op);
    if (!op) {
        fx_call_fail(call, FX_RESOURCE_EXHAUSTED, "the request is too large");
        return;
    }
    op->app = app;
    op->call = call;
    op->request = request;
    op->start = start;
    if (!fx_loop_post(op->app->loop, run, op))
        op_refuse(op, FX_UNAVAILABLE, "too many requests wait; try again");
}

void op_begin_admin(fx_call *call, const void *request, void *context,
                    void (*start)(struct op *op)) {
    const struct tenant_app *app = context;
    fx_error err = {0};
    if (!fx_token_check(call, app->token, &err)) {
        fx_call_fail_error(call, &err);
        return;
    }
    op_begin(call, request, context, start);
}

void op_fail(struct op *op, const fx_error *err) {
    char ms[16];
    (void)snprintf(ms, sizeof ms, "%d", TENANT_RETRY_AFTER_MS);
    if (err->code == FX_UNAVAILABLE) fx_call_trailer(op->call, "retry-after-ms", ms);
    fx_call_fail_error(op->call, err);
}

void op_fcall(struct op *op, const struct fx_redis_fcall *call, op_done *done) {
    fx_error err = {0};
    if (!fx_redis_fcall(op->app->redis, call, done, op, &err)) op_fail(op, &err);
}

void *op_alloc(struct op *op, size_t count, size_t size) {
    void *at = fx_arena_array(fx_call_arena(op->call), count, size);
    if (!at) op_refuse(op, FX_RESOURCE_EXHAUSTED, "the answer does not fit");
    return at;
}

static fx_span text_or_end(struct op *op, const char *text) {
    if (text) return fx_span_str(text);
    op_refuse(op, FX_RESOURCE_EXHAUSTED, "the answer does not fit");
    return (fx_span){0};
}

fx_span op_key(struct op *op, const char *kind, fx_span id) {
    return text_or_end(op, fx_arena_printf(fx_call_arena(op->call), "fx:{tenants}:%s:%.*s", kind,
                                           (int)id.len, (const char *)id.at));
}

fx_span op_number(struct op *op, uint64_t number) {
    return text_or_end(
        op, fx_arena_printf(fx_call_arena(op->call), "%llu", (unsigned long long)number));
}

const redisReply *reply_at(const redisReply *reply, size_t at) {
    if (!reply || reply->type != REDIS_REPLY_ARRAY || at >= reply->elements) return NULL;
    return reply->element[at];
}

uint64_t reply_number(const redisReply *reply) {
    fx_span text = fx_redis_span(reply);
    uint64_t number = 0;
    if (text.len == 0 || text.len > 19) return 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') return 0;
        number = number * 10 + (uint64_t)(text.at[i] - '0');
    }
    return number;
}

char *reply_text(struct op *op, const redisReply *reply) {
    return fx_arena_copy(fx_call_arena(op->call), fx_redis_span(reply));
}

bool reply_is(const redisReply *reply, const char *status) {
    return fx_span_eq_str(fx_redis_span(reply_at(reply, 0)), status);
}
