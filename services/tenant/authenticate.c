#include "common/base/hash.h"
#include "services/tenant/op.h"

enum { KEY_DIGITS = 64, KEY_ID_DIGITS = 16 };

static const fx_span key_fields[] = {
    {(const uint8_t *)"digest",     6 },
    {(const uint8_t *)"tenant",     6 },
    {(const uint8_t *)"revoked_ms", 10},
    LIMIT_FIELD_NAMES,
};

/* Says no more than that: which part was wrong is nobody's business. */
static void refuse(struct op *op) {
    op->app->refused++;
    op_refuse(op, FX_UNAUTHENTICATED, "no such key");
}

static void on_tenant(void *ctx, const redisReply *reply, const fx_error *err) {
    struct op *op = ctx;
    Fractal__V1__Tenant tenant;
    Fractal__V1__AuthenticateReply out = FRACTAL__V1__AUTHENTICATE_REPLY__INIT;
    if (err) {
        op_fail(op, err);
    } else if (!tenant_fill(op, reply_at(reply, 0), &tenant)) {
        op_refuse(op, FX_DATA_LOSS, "the key's tenant is missing");
    } else {
        out.tenant = &tenant;
        out.key_id = op->key_id;
        out.limits = op->key_limits;
        op->app->authenticated++;
        fx_call_reply(op->call, &out);
    }
}

static bool is_good(const struct op *op, const redisReply *fields) {
    fx_span digest = fx_redis_span(reply_at(fields, 0));
    bool revoked = fx_redis_span(reply_at(fields, 2)).len > 0;
    return digest.len == sizeof op->digest - 1 &&
           fx_equal_ct(digest.at, op->digest, sizeof op->digest - 1) && !revoked;
}

static void on_key(void *ctx, const redisReply *reply, const fx_error *err) {
    struct op *op = ctx;
    if (err) {
        op_fail(op, err);
        return;
    }
    const redisReply *fields = reply_at(reply, 0);
    if (!is_good(op, fields)) {
        refuse(op);
        return;
    }
    op->name = reply_text(op, reply_at(fields, 1));
    op->key_limits = limits_read(op, fields, 3);
    if (!op->name || !op->key_limits)
        op_refuse(op, FX_RESOURCE_EXHAUSTED, "the answer does not fit");
    else
        tenant_read(op, on_tenant);
}

/* Of the key, or as given instead of one. */
static FX_MUST bool digest_read(const Fractal__V1__AuthenticateRequest *in,
                                uint8_t digest[FX_SHA256_BYTES]) {
    if (!*in->key && in->digest.len == FX_SHA256_BYTES) {
        memcpy(digest, in->digest.data, FX_SHA256_BYTES);
        return true;
    }
    if (strlen(in->key) != 3 + KEY_DIGITS || strncmp(in->key, "fx-", 3) != 0) return false;
    fx_sha256(fx_span_str(in->key), digest);
    return true;
}

void keys_authenticate(struct op *op) {
    uint8_t digest[FX_SHA256_BYTES];
    if (!digest_read(op->request, digest)) {
        refuse(op);
        return;
    }
    fx_hex((fx_span){digest, sizeof digest}, op->digest);
    memcpy(op->key_id, op->digest, KEY_ID_DIGITS);
    fx_span key = op_key(op, "key", fx_span_str(op->key_id));
    if (!key.at) return;
    op_fcall(op,
             &(struct fx_redis_fcall){"fx1_tenant_read", &key, 1, key_fields, FX_COUNT(key_fields)},
             on_key);
}
