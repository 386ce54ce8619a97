#pragma once
#include "fractal/v1/tenant.pb-c.h"
#include "services/tenant/app.h"

enum { LIMIT_FIELDS = 3 }; /* rpm, tpm, streams */

/** Limits as arguments of a function. */
struct limits_text {
    char text[LIMIT_FIELDS][12];
};

/** One call on its way through Redis; lives in the call's arena. Everything after op_begin runs on
 *  the loop's thread; each step either sends the next command or ends the call. */
struct op {
    struct tenant_app *app;
    fx_call *call;
    const void *request;
    void (*start)(struct op *op);
    const char *name, *label; /* of a tenant; of a key */
    char key[3 + 64 + 1];     /* fx-<64 hex> */
    char digest[64 + 1], key_id[16 + 1];
    struct limits_text limits;
    Fractal__V1__Limits *key_limits; /* Authenticate */
    uint64_t created_ms;
    uint32_t weight, page_size;
    uint64_t after; /* ListTenants: the last number of the page before */
    bool more;
    uint32_t attempt;
};

typedef void op_done(void *op, const redisReply *reply, const fx_error *err);

/** Hands the call to the loop, or ends it. */
void op_begin(fx_call *call, const void *request, void *app, void (*start)(struct op *op));
/** As op_begin, after the check of the bootstrap token. */
void op_begin_admin(fx_call *call, const void *request, void *app, void (*start)(struct op *op));
/** Ends the call; UNAVAILABLE carries retry-after-ms. */
void op_fail(struct op *op, const fx_error *err);
#define op_refuse(op, code, ...)                                                                   \
    do {                                                                                           \
        fx_error refused_ = {0};                                                                   \
        fx_error_set(&refused_, (code), __VA_ARGS__);                                              \
        op_fail((op), &refused_);                                                                  \
    } while (0)

/** Calls a function, or ends the call. */
void op_fcall(struct op *op, const struct fx_redis_fcall *call, op_done *done);
/** `fx:{tenants}:<kind>:<id>` in the arena; ends the call and gives .at NULL when it is full. */
fx_span op_key(struct op *op, const char *kind, fx_span id);
fx_span op_number(struct op *op, uint64_t number);
void *op_alloc(struct op *op, size_t count, size_t size);

/** Element `at` of an array reply; NULL beyond its end. */
const redisReply *reply_at(const redisReply *reply, size_t at);
/** A reply's decimal number; 0 when it is none. */
uint64_t reply_number(const redisReply *reply);
/** A NUL-terminated copy of a string reply in the arena; "" when it is none. */
char *reply_text(struct op *op, const redisReply *reply);
/** Is the first element of the reply this status? */
bool reply_is(const redisReply *reply, const char *status);

/** 16 hex digits. */
bool key_id_is_valid(const char *key_id);
/** [a-z0-9-]{1,63} */
bool name_is_valid(const char *name);
/** The fields fx1_tenant_read is asked for, and what it says about one tenant. */
extern const fx_span tenant_fields[4 + LIMIT_FIELDS];
/** Reads the tenant op->name. */
void tenant_read(struct op *op, op_done *done);
/** False when there is none (or the arena is full). */
bool tenant_fill(struct op *op, const redisReply *fields, Fractal__V1__Tenant *out);

/* limits.c */
#define LIMIT_FIELD_NAMES                                                                          \
    {(const uint8_t *)"rpm", 3}, {(const uint8_t *)"tpm", 3}, {                                    \
        (const uint8_t *)"streams", 7                                                              \
    }
/** Limits from a request (NULL = none) into op->limits; ends the call when one is too large. */
bool limits_take(struct op *op, const Fractal__V1__Limits *limits);
/** op->limits as arguments. */
void limits_args(const struct op *op, fx_span out[LIMIT_FIELDS]);
/** LIMIT_FIELD_NAMES as fx1_tenant_read told them, from element `at` on; NULL when the arena is
 *  full. */
Fractal__V1__Limits *limits_read(struct op *op, const redisReply *fields, size_t at);

/* The starts of each method. */
void tenants_create(struct op *op);
void tenants_get(struct op *op);
void tenants_list(struct op *op);
void keys_create(struct op *op);
void keys_revoke(struct op *op);
void keys_list(struct op *op);
void keys_authenticate(struct op *op);
void limits_set(struct op *op);
