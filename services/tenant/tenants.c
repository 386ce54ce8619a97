#include <stdio.h>
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/rpc/pb.h"
#include "services/tenant/op.h"

enum { NUMBER_TEXT = 16 };

const fx_span tenant_fields[4 + LIMIT_FIELDS] = {
    {(const uint8_t *)"number",     6 },
    {(const uint8_t *)"name",       4 },
    {(const uint8_t *)"created_ms", 10},
    {(const uint8_t *)"weight",     6 },
    LIMIT_FIELD_NAMES,
};

bool name_is_valid(const char *name) {
    size_t len = strlen(name);
    if (len == 0 || len > TENANT_NAME_MAX) return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

bool tenant_fill(struct op *op, const redisReply *fields, Fractal__V1__Tenant *out) {
    fractal__v1__tenant__init(out);
    out->number = reply_number(reply_at(fields, 0));
    out->name = reply_text(op, reply_at(fields, 1));
    out->created_ms = reply_number(reply_at(fields, 2));
    out->weight = (uint32_t)reply_number(reply_at(fields, 3));
    out->limits = limits_read(op, fields, 4);
    return out->number > 0 && out->name && out->limits;
}

void tenant_read(struct op *op, op_done *done) {
    fx_span key = op_key(op, "tenant", fx_span_str(op->name));
    if (!key.at) return;
    op_fcall(op,
             &(struct fx_redis_fcall){"fx1_tenant_read", &key, 1, tenant_fields,
                                      FX_COUNT(tenant_fields)},
             done);
}

static void on_created(void *ctx, const redisReply *reply, const fx_error *err) {
    struct op *op = ctx;
    Fractal__V1__Tenant tenant = FRACTAL__V1__TENANT__INIT;
    if (err) {
        op_fail(op, err);
    } else if (reply_is(reply, "exists")) {
        op_refuse(op, FX_ALREADY_EXISTS, "there is a tenant '%s'", op->name);
    } else if (reply_is(reply, "full")) {
        op_refuse(op, FX_RESOURCE_EXHAUSTED, "there are %d tenants", TENANT_TENANTS_MAX);
    } else {
        tenant.number = reply_number(reply_at(reply, 1));
        tenant.name = fx_pb_text(op->name);
        tenant.created_ms = op->created_ms;
        tenant.weight = op->weight;
        tenant.limits = ((const Fractal__V1__CreateTenantRequest *)op->request)->limits;
        op->app->tenants_created++;
        fx_log(FX_LOG_INFO, FX_EVENT("tenant_created"), FX_KS("tenant", op->name),
               FX_KI("number", tenant.number),
               FX_KS("request_id", fx_call_trace(op->call)->request_id));
        fx_call_reply(op->call, &tenant);
    }
}

static void create_send(struct op *op) {
    fx_span tenant = op_key(op, "tenant", fx_span_str(op->name));
    if (!tenant.at) return;
    fx_span keys[] = {fx_span_str("fx:{tenants}:next"), fx_span_str("fx:{tenants}:index"), tenant};
    char created[24], weight[NUMBER_TEXT], most[NUMBER_TEXT];
    (void)snprintf(created, sizeof created, "%llu", (unsigned long long)op->created_ms);
    (void)snprintf(weight, sizeof weight, "%u", op->weight);
    (void)snprintf(most, sizeof most, "%d", TENANT_TENANTS_MAX);
    fx_span args[4 + LIMIT_FIELDS] = {fx_span_str(op->name), fx_span_str(created),
                                      fx_span_str(weight), fx_span_str(most)};
    limits_args(op, args + 4);
    op_fcall(
        op,
        &(struct fx_redis_fcall){"fx1_tenant_create", keys, FX_COUNT(keys), args, FX_COUNT(args)},
        on_created);
}

void tenants_create(struct op *op) {
    const Fractal__V1__CreateTenantRequest *in = op->request;
    if (!name_is_valid(in->name)) {
        op_refuse(op, FX_INVALID_ARGUMENT, "name: want [a-z0-9-]{1,%d}", TENANT_NAME_MAX);
        return;
    }
    if (in->weight > TENANT_WEIGHT_MAX) {
        op_refuse(op, FX_INVALID_ARGUMENT, "weight %u: want 1 to %d", in->weight,
                  TENANT_WEIGHT_MAX);
        return;
    }
    if (!limits_take(op, in->limits)) return;
    op->name = in->name;
    op->weight = in->weight ? in->weight : 1;
    op->created_ms = fx_wall_ms();
    create_send(op);
}

static void on_got(void *ctx, const redisReply *reply, const fx_error *err) {
    struct op *op = ctx;
    Fractal__V1__Tenant tenant;
    if (err)
        op_fail(op, err);
    else if (!tenant_fill(op, reply_at(reply, 0), &tenant))
        op_refuse(op, FX_NOT_FOUND, "no tenant '%s'", op->name);
    else
        fx_call_reply(op->call, &tenant);
}

void tenants_get(struct op *op) {
    const Fractal__V1__GetTenantRequest *in = op->request;
    if (!name_is_valid(in->name)) {
        op_refuse(op, FX_INVALID_ARGUMENT, "name: want [a-z0-9-]{1,%d}", TENANT_NAME_MAX);
        return;
    }
    op->name = in->name;
    tenant_read(op, on_got);
}

/* The page as it was read: as many tenants as keys were asked for. */
static void on_page(void *ctx, const redisReply *reply, const fx_error *err) {
    struct op *op = ctx;
    Fractal__V1__ListTenantsReply out = FRACTAL__V1__LIST_TENANTS_REPLY__INIT;
    if (err) {
        op_fail(op, err);
        return;
    }
    size_t count = reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
    Fractal__V1__Tenant *tenants = op_alloc(op, count + 1, sizeof *tenants);
    if (!tenants) return;
    out.tenants = op_alloc(op, count + 1, sizeof(void *));
    if (!out.tenants) return;
    for (size_t i = 0; i < count; i++)
        if (tenant_fill(op, reply_at(reply, i), &tenants[out.n_tenants])) {
            out.tenants[out.n_tenants] = &tenants[out.n_tenants];
            out.n_tenants++;
        }
    if (op->more && out.n_tenants > 0) {
        fx_span token = op_number(op, tenants[out.n_tenants - 1].number);
        if (!token.at) return;
        out.next_page_token = fx_pb_text((const char *)token.at);
    }
    fx_call_reply(op->call, &out);
}

static void on_names(void *ctx, const redisReply *reply, const fx_error *err) {
    struct op *op = ctx;
    Fractal__V1__ListTenantsReply none = FRACTAL__V1__LIST_TENANTS_REPLY__INIT;
    if (err) {
        op_fail(op, err);
        return;
    }
    size_t count = reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
    op->more = count > op->page_size;
    if (op->more) count = op->page_size;
    if (count == 0) {
        fx_call_reply(op->call, &none);
        return;
    }
    fx_span *keys = op_alloc(op, count, sizeof *keys);
    if (!keys) return;
    for (size_t i = 0; i < count; i++) {
        keys[i] = op_key(op, "tenant", fx_redis_span(reply_at(reply, i)));
        if (!keys[i].at) return;
    }
    op_fcall(op,
             &(struct fx_redis_fcall){"fx1_tenant_read", keys, count, tenant_fields,
                                      FX_COUNT(tenant_fields)},
             on_page);
}

/* A page token is the number of the last tenant that was told. */
static bool token_read(const char *token, uint64_t *out) {
    uint64_t number = 0;
    size_t len = strlen(token);
    if (len > 15 || strspn(token, "0123456789") != len) return false;
    for (; *token; token++)
        number = number * 10 + (uint64_t)(*token - '0');
    *out = number;
    return true;
}

void tenants_list(struct op *op) {
    const Fractal__V1__ListTenantsRequest *in = op->request;
    fx_error err = {0};
    if (!token_read(in->page_token, &op->after)) {
        op_refuse(op, FX_INVALID_ARGUMENT, "page_token: not one of ours");
        return;
    }
    op->page_size = in->page_size ? in->page_size : TENANT_PAGE_DEFAULT;
    if (op->page_size > TENANT_PAGE_MAX) op->page_size = TENANT_PAGE_MAX;
    if (!fx_redis_command(op->app->redis, on_names, op, &err,
                          "ZRANGE fx:{tenants}:index (%llu +inf BYSCORE LIMIT 0 %u",
                          (unsigned long long)op->after, op->page_size + 1))
        op_fail(op, &err);
}
