#include <stdio.h>
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/http/json.h"
#include "services/tenant/op.h"

enum { KEY_BYTES = 32, KEY_ID_DIGITS = 16, ATTEMPTS_MAX = 3 };

static void log_key(const struct op *op, const char *event) {
    fx_log(FX_LOG_INFO, FX_EVENT(event), FX_KS("key_id", op->key_id),
           FX_KS("request_id", fx_call_trace(op->call)->request_id));
}

static bool label_is_valid(const char *label) {
    size_t len = strlen(label);
    if (len > TENANT_LABEL_MAX) return false;
    for (const char *c = label; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) return false;
    return fx_utf8_valid(fx_span_str(label));
}

/* A fresh key, and what of it is stored. */
static void draw(struct op *op) {
    uint8_t bytes[KEY_BYTES], digest[FX_SHA256_BYTES];
    fx_random(bytes, sizeof bytes);
    memcpy(op->key, "fx-", 3);
    fx_hex((fx_span){bytes, sizeof bytes}, op->key + 3);
    fx_sha256(fx_span_str(op->key), digest);
    fx_hex((fx_span){digest, sizeof digest}, op->digest);
    memcpy(op->key_id, op->digest, KEY_ID_DIGITS);
    op->key_id[KEY_ID_DIGITS] = '\0';
}

static void create_send(struct op *op);

static void on_created(void *ctx, const redisReply *reply, const fx_error *err) {
    struct op *op = ctx;
    Fractal__V1__CreateKeyReply out = FRACTAL__V1__CREATE_KEY_REPLY__INIT;
    if (err) {
        op_fail(op, err);
    } else if (reply_is(reply, "no tenant")) {
        op_refuse(op, FX_NOT_FOUND, "no tenant '%s'", op->name);
    } else if (reply_is(reply, "full")) {
        op_refuse(op, FX_RESOURCE_EXHAUSTED, "'%s' has %d keys", op->name, TENANT_KEYS_MAX);
    } else if (reply_is(reply, "exists") && ++op->attempt < ATTEMPTS_MAX) {
        create_send(op); /* 64 bits of another key's digest are the same */
    } else if (!reply_is(reply, "ok")) {
        op_refuse(op, FX_INTERNAL, "no free key id");
    } else {
        out.key = op->key;
        out.key_id = op->key_id;
        op->app->keys_created++;
        log_key(op, "key_created");
        fx_call_reply(op->call, &out);
    }
}

static void create_send(struct op *op) {
    draw(op);
    fx_span name = fx_span_str(op->name);
    fx_span keys[] = {op_key(op, "tenant", name), {0}, {0}};
    if (!keys[0].at) return;
    keys[1] = op_key(op, "keys", name);
    if (!keys[1].at) return;
    keys[2] = op_key(op, "key", fx_span_str(op->key_id));
    if (!keys[2].at) return;
    char created[24], most[16];
    (void)snprintf(created, sizeof created, "%llu", (unsigned long long)op->created_ms);
    (void)snprintf(most, sizeof most, "%d", TENANT_KEYS_MAX);
    fx_span args[6 + LIMIT_FIELDS] = {
        fx_span_str(op->key_id), fx_span_str(op->digest), name,
        fx_span_str(op->label),  fx_span_str(created),    fx_span_str(most)};
    limits_args(op, args + 6);
    op_fcall(op,
             &(struct fx_redis_fcall){"fx1_tenant_create_key", keys, FX_COUNT(keys), args,
                                      FX_COUNT(args)},
             on_created);
}

void keys_create(struct op *op) {
    const Fractal__V1__CreateKeyRequest *in = op->request;
    if (!name_is_valid(in->tenant)) {
        op_refuse(op, FX_INVALID_ARGUMENT, "tenant: want [a-z0-9-]{1,%d}", TENANT_NAME_MAX);
        return;
    }
    if (!label_is_valid(in->label)) {
        op_refuse(op, FX_INVALID_ARGUMENT,
                  "label: at most %d bytes of UTF-8, no control characters", TENANT_LABEL_MAX);
        return;
    }
    if (!limits_take(op, in->limits)) return;
    op->name = in->tenant;
    op->label = in->label;
    op->created_ms = fx_wall_ms();
    create_send(op);
}

bool key_id_is_valid(const char *key_id) {
    return strlen(key_id) == KEY_ID_DIGITS && strspn(key_id, "0123456789abcdef") == KEY_ID_DIGITS;
}

static void on_revoked(void *ctx, const redisReply *reply, const fx_error *err) {
    struct op *op = ctx;
    Fractal__V1__RevokeKeyReply out = FRACTAL__V1__REVOKE_KEY_REPLY__INIT;
    if (err) {
        op_fail(op, err);
    } else if (!reply_is(reply, "ok")) {
        op_refuse(op, FX_NOT_FOUND, "no key '%s'", op->key_id);
    } else {
        op->app->keys_revoked++;
        log_key(op, "key_revoked");
        fx_call_reply(op->call, &out);
    }
}

void keys_revoke(struct op *op) {
    const Fractal__V1__RevokeKeyRequest *in = op->request;
    if (!key_id_is_valid(in->key_id)) {
        op_refuse(op, FX_INVALID_ARGUMENT, "key_id: want %d hex digits", KEY_ID_DIGITS);
        return;
    }
    memcpy(op->key_id, in->key_id, sizeof op->key_id);
    fx_span key = op_key(op, "key", fx_span_str(op->key_id));
    if (!key.at) return;
    char now[24];
    (void)snprintf(now, sizeof now, "%llu", (unsigned long long)fx_wall_ms());
    fx_span args[] = {fx_span_str(op->key_id), fx_span_str(now), fx_span_str("fx:keys")};
    op_fcall(op, &(struct fx_redis_fcall){"fx1_tenant_revoke_key", &key, 1, args, FX_COUNT(args)},
             on_revoked);
}
