#include <stdio.h>
#include "common/base/log.h"
#include "services/tenant/op.h"

bool limits_take(struct op *op, const Fractal__V1__Limits *limits) {
    static const Fractal__V1__Limits none = FRACTAL__V1__LIMITS__INIT;
    const Fractal__V1__Limits *in = limits ? limits : &none;
    if (in->requests_per_minute > TENANT_RATE_MAX || in->tokens_per_minute > TENANT_RATE_MAX) {
        op_refuse(op, FX_INVALID_ARGUMENT, "limits: at most %d a minute", TENANT_RATE_MAX);
        return false;
    }
    if (in->streams > TENANT_STREAMS_MAX) {
        op_refuse(op, FX_INVALID_ARGUMENT, "limits: at most %d streams", TENANT_STREAMS_MAX);
        return false;
    }
    uint32_t values[LIMIT_FIELDS] = {in->requests_per_minute, in->tokens_per_minute, in->streams};
    for (size_t i = 0; i < LIMIT_FIELDS; i++)
        (void)snprintf(op->limits.text[i], sizeof op->limits.text[i], "%u", values[i]);
    return true;
}

void limits_args(const struct op *op, fx_span out[LIMIT_FIELDS]) {
    for (size_t i = 0; i < LIMIT_FIELDS; i++)
        out[i] = fx_span_str(op->limits.text[i]);
}

Fractal__V1__Limits *limits_read(struct op *op, const redisReply *fields, size_t at) {
    Fractal__V1__Limits *out = fx_arena_alloc(fx_call_arena(op->call), sizeof *out);
    if (!out) return NULL;
    fractal__v1__limits__init(out);
    out->requests_per_minute = (uint32_t)reply_number(reply_at(fields, at));
    out->tokens_per_minute = (uint32_t)reply_number(reply_at(fields, at + 1));
    out->streams = (uint32_t)reply_number(reply_at(fields, at + 2));
    return out;
}

static void on_set(void *ctx, const redisReply *reply, const fx_error *err) {
    struct op *op = ctx;
    Fractal__V1__SetLimitsReply out = FRACTAL__V1__SET_LIMITS_REPLY__INIT;
    if (err) {
        op_fail(op, err);
    } else if (!reply_is(reply, "ok")) {
        op_refuse(op, FX_NOT_FOUND, "no %s '%s'", op->label, op->name);
    } else {
        fx_log(FX_LOG_INFO, FX_EVENT("limits_set"), FX_KS(op->label, op->name),
               FX_KS("requests_per_minute", op->limits.text[0]),
               FX_KS("tokens_per_minute", op->limits.text[1]), FX_KS("streams", op->limits.text[2]),
               FX_KS("request_id", fx_call_trace(op->call)->request_id));
        fx_call_reply(op->call, &out);
    }
}

/* Whose: op->label is "key" or "tenant", op->name which one. */
static bool target_read(struct op *op, const Fractal__V1__SetLimitsRequest *in) {
    switch (in->target_case) {
    case FRACTAL__V1__SET_LIMITS_REQUEST__TARGET_KEY_ID:
        op->label = "key";
        op->name = in->key_id;
        return key_id_is_valid(in->key_id);
    case FRACTAL__V1__SET_LIMITS_REQUEST__TARGET_TENANT:
        op->label = "tenant";
        op->name = in->tenant;
        return name_is_valid(in->tenant);
    default: return false;
    }
}

void limits_set(struct op *op) {
    const Fractal__V1__SetLimitsRequest *in = op->request;
    if (!target_read(op, in)) {
        op_refuse(op, FX_INVALID_ARGUMENT, "want a key_id of 16 hex digits or a tenant's name");
        return;
    }
    if (!limits_take(op, in->limits)) return;
    fx_span key = op_key(op, op->label, fx_span_str(op->name));
    if (!key.at) return;
    fx_span args[2 + LIMIT_FIELDS] = {fx_span_str(op->name), fx_span_str("fx:keys")};
    limits_args(op, args + 2);
    op_fcall(op, &(struct fx_redis_fcall){"fx1_tenant_set_limits", &key, 1, args, FX_COUNT(args)},
             on_set);
}
