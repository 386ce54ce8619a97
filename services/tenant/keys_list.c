#include "services/tenant/op.h"

static const fx_span key_fields[] = {
    {(const uint8_t *)"key_id",     6 },
    {(const uint8_t *)"label",      5 },
    {(const uint8_t *)"created_ms", 10},
    {(const uint8_t *)"revoked_ms", 10},
    LIMIT_FIELD_NAMES,
};

static bool fill(struct op *op, const redisReply *fields, Fractal__V1__Key *out) {
    fractal__v1__key__init(out);
    out->key_id = reply_text(op, reply_at(fields, 0));
    out->label = reply_text(op, reply_at(fields, 1));
    out->created_ms = reply_number(reply_at(fields, 2));
    out->revoked = reply_number(reply_at(fields, 3)) > 0;
    out->limits = limits_read(op, fields, 4);
    return out->key_id && out->label && out->limits;
}

static void on_keys(void *ctx, const redisReply *reply, const fx_error *err) {
    struct op *op = ctx;
    Fractal__V1__ListKeysReply out = FRACTAL__V1__LIST_KEYS_REPLY__INIT;
    if (err) {
        op_fail(op, err);
        return;
    }
    size_t count = reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
    Fractal__V1__Key *rows = op_alloc(op, count + 1, sizeof *rows);
    if (!rows) return;
    out.keys = op_alloc(op, count + 1, sizeof(void *));
    if (!out.keys) return;
    for (size_t i = 0; i < count; i++) {
        if (!fill(op, reply_at(reply, i), &rows[i])) {
            op_refuse(op, FX_RESOURCE_EXHAUSTED, "the answer does not fit");
            return;
        }
        out.keys[out.n_keys++] = &rows[i];
    }
    fx_call_reply(op->call, &out);
}

static void on_ids(void *ctx, const redisReply *reply, const fx_error *err) {
    struct op *op = ctx;
    Fractal__V1__ListKeysReply none = FRACTAL__V1__LIST_KEYS_REPLY__INIT;
    if (err) {
        op_fail(op, err);
        return;
    }
    size_t count = reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
    if (count == 0) {
        fx_call_reply(op->call, &none);
        return;
    }
    fx_span *keys = op_alloc(op, count, sizeof *keys);
    if (!keys) return;
    for (size_t i = 0; i < count; i++) {
        keys[i] = op_key(op, "key", fx_redis_span(reply_at(reply, i)));
        if (!keys[i].at) return;
    }
    op_fcall(
        op,
        &(struct fx_redis_fcall){"fx1_tenant_read", keys, count, key_fields, FX_COUNT(key_fields)},
        on_keys);
}

static void on_tenant(void *ctx, const redisReply *reply, const fx_error *err) {
    struct op *op = ctx;
    Fractal__V1__Tenant tenant;
    fx_error sent = {0};
    if (err)
        op_fail(op, err);
    else if (!tenant_fill(op, reply_at(reply, 0), &tenant))
        op_refuse(op, FX_NOT_FOUND, "no tenant '%s'", op->name);
    else if (!fx_redis_command(op->app->redis, on_ids, op, &sent,
                               "ZRANGE fx:{tenants}:keys:%s 0 %d", op->name, TENANT_KEYS_MAX - 1))
        op_fail(op, &sent);
}

void keys_list(struct op *op) {
    const Fractal__V1__ListKeysRequest *in = op->request;
    if (!name_is_valid(in->tenant)) {
        op_refuse(op, FX_INVALID_ARGUMENT, "tenant: want [a-z0-9-]{1,%d}", TENANT_NAME_MAX);
        return;
    }
    op->name = in->tenant;
    tenant_read(op, on_tenant);
}
