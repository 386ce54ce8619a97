/* Limits of keys and tenants: set, changed, told by Authenticate and by the lists. */
#include "common/queue/redis.h"
#include "tests/integ/tenant/tenant_process.h"
#include <event2/event.h>

struct fixture {
    struct tenant_process process;
    fx_client *client;
};

static int setup(void **state) {
    static struct fixture fixture;
    fixture = (struct fixture){0};
    tenant_start(&fixture.process);
    fixture.client = tenant_client(&fixture.process, false);
    assert_int_equal(create_tenant(fixture.client, "acme", 1, NULL), FX_OK);
    *state = &fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    fx_client_free(fixture->client);
    assert_int_equal(tenant_stop(&fixture->process), 0);
    return 0;
}

static Fractal__V1__Limits limits_of(uint32_t rpm, uint32_t tpm, uint32_t streams) {
    Fractal__V1__Limits limits = FRACTAL__V1__LIMITS__INIT;
    limits.requests_per_minute = rpm;
    limits.tokens_per_minute = tpm;
    limits.streams = streams;
    return limits;
}

static void assert_limits(const Fractal__V1__Limits *got, uint32_t rpm, uint32_t tpm,
                          uint32_t streams) {
    assert_non_null(got);
    assert_int_equal(got->requests_per_minute, rpm);
    assert_int_equal(got->tokens_per_minute, tpm);
    assert_int_equal(got->streams, streams);
}

static enum fx_code create_limited(fx_client *client, Fractal__V1__Limits *limits, char key[68],
                                   char key_id[17]) {
    Fractal__V1__CreateKeyRequest message = FRACTAL__V1__CREATE_KEY_REQUEST__INIT;
    Fractal__V1__CreateKeyReply *reply = NULL;
    message.tenant = (char *)(uintptr_t) "acme";
    message.limits = limits;
    enum fx_code code =
        tenant_call(client, METHOD("CreateKey", create_key_reply), &message, TOKEN, &reply, NULL);
    if (code != FX_OK) return code;
    (void)snprintf(key, 68, "%s", reply->key);
    (void)snprintf(key_id, 17, "%s", reply->key_id);
    return code;
}

/* Exactly one of `key_id` and `tenant` is not NULL, or none. */
static enum fx_code set_limits(fx_client *client, const char *key_id, const char *tenant,
                               Fractal__V1__Limits *limits) {
    Fractal__V1__SetLimitsRequest message = FRACTAL__V1__SET_LIMITS_REQUEST__INIT;
    Fractal__V1__SetLimitsReply *reply = NULL;
    if (key_id) {
        message.target_case = FRACTAL__V1__SET_LIMITS_REQUEST__TARGET_KEY_ID;
        message.key_id = (char *)(uintptr_t)key_id;
    } else if (tenant) {
        message.target_case = FRACTAL__V1__SET_LIMITS_REQUEST__TARGET_TENANT;
        message.tenant = (char *)(uintptr_t)tenant;
    }
    message.limits = limits;
    return tenant_call(client, METHOD("SetLimits", set_limits_reply), &message, TOKEN, &reply,
                       NULL);
}

static void test_told(void **state) {
    struct fixture *fixture = *state;
    char key[68], key_id[17], plain[68], plain_id[17];
    Fractal__V1__AuthenticateReply *who = NULL;
    Fractal__V1__Limits limits = limits_of(60, 10000, 4), most = limits_of(1000000000, 1, 1000000);
    assert_int_equal(create_limited(fixture->client, &limits, key, key_id), FX_OK);
    assert_int_equal(create_limited(fixture->client, NULL, plain, plain_id), FX_OK);
    assert_int_equal(authenticate(fixture->client, key, &who), FX_OK);
    assert_limits(who->limits, 60, 10000, 4);
    assert_limits(who->tenant->limits, 0, 0, 0);
    assert_int_equal(authenticate(fixture->client, plain, &who), FX_OK);
    assert_limits(who->limits, 0, 0, 0);
    assert_int_equal(set_limits(fixture->client, plain_id, NULL, &most), FX_OK);
    assert_int_equal(set_limits(fixture->client, NULL, "acme", &limits), FX_OK);
    assert_int_equal(set_limits(fixture->client, key_id, NULL, NULL), FX_OK);
    assert_int_equal(authenticate(fixture->client, plain, &who), FX_OK);
    assert_limits(who->limits, 1000000000, 1, 1000000);
    assert_limits(who->tenant->limits, 60, 10000, 4);
    assert_int_equal(authenticate(fixture->client, key, &who), FX_OK);
    assert_limits(who->limits, 0, 0, 0);
}

static void test_listed(void **state) {
    struct fixture *fixture = *state;
    char key[68], key_id[17];
    Fractal__V1__Limits limits = limits_of(7, 8, 9);
    Fractal__V1__ListKeysRequest keys = FRACTAL__V1__LIST_KEYS_REQUEST__INIT;
    Fractal__V1__ListKeysReply *listed = NULL;
    Fractal__V1__CreateTenantRequest create = FRACTAL__V1__CREATE_TENANT_REQUEST__INIT;
    Fractal__V1__ListTenantsRequest list = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    Fractal__V1__ListTenantsReply *tenants = NULL;
    Fractal__V1__Tenant *tenant = NULL;
    assert_int_equal(create_limited(fixture->client, &limits, key, key_id), FX_OK);
    keys.tenant = (char *)(uintptr_t) "acme";
    assert_int_equal(tenant_call(fixture->client, METHOD("ListKeys", list_keys_reply), &keys, TOKEN,
                                 &listed, NULL),
                     FX_OK);
    assert_int_equal(listed->n_keys, 1);
    assert_limits(listed->keys[0]->limits, 7, 8, 9);
    create.name = (char *)(uintptr_t) "capped";
    create.limits = &limits;
    assert_int_equal(
        tenant_call(fixture->client, METHOD("CreateTenant", tenant), &create, TOKEN, &tenant, NULL),
        FX_OK);
    assert_limits(tenant->limits, 7, 8, 9);
    assert_int_equal(tenant_call(fixture->client, METHOD("ListTenants", list_tenants_reply), &list,
                                 TOKEN, &tenants, NULL),
                     FX_OK);
    assert_int_equal(tenants->n_tenants, 2);
    assert_limits(tenants->tenants[0]->limits, 0, 0, 0);
    assert_limits(tenants->tenants[1]->limits, 7, 8, 9);
}

static void test_refused(void **state) {
    struct fixture *fixture = *state;
    fx_client *client = fixture->client;
    char key[68], key_id[17];
    Fractal__V1__Limits good = limits_of(1, 1, 1),
                        refused[] = {limits_of(1000000001, 0, 0), limits_of(0, 1000000001, 0),
                                     limits_of(0, 0, 1000001)};
    assert_int_equal(create_limited(client, &good, key, key_id), FX_OK);
    for (size_t i = 0; i < FX_TEST_COUNT(refused); i++) {
        Fractal__V1__CreateTenantRequest create = FRACTAL__V1__CREATE_TENANT_REQUEST__INIT;
        Fractal__V1__Tenant *tenant = NULL;
        create.name = (char *)(uintptr_t) "other";
        create.limits = &refused[i];
        assert_int_equal(
            tenant_call(client, METHOD("CreateTenant", tenant), &create, TOKEN, &tenant, NULL),
            FX_INVALID_ARGUMENT);
        assert_int_equal(create_limited(client, &refused[i], key, key_id), FX_INVALID_ARGUMENT);
        assert_int_equal(set_limits(client, key_id, NULL, &refused[i]), FX_INVALID_ARGUMENT);
    }
    assert_int_equal(set_limits(client, NULL, NULL, &good), FX_INVALID_ARGUMENT);
    assert_int_equal(set_limits(client, "0123456789ABCDEF", NULL, &good), FX_INVALID_ARGUMENT);
    assert_int_equal(set_limits(client, NULL, "No Name", &good), FX_INVALID_ARGUMENT);
    assert_int_equal(set_limits(client, "0123456789abcdef", NULL, &good), FX_NOT_FOUND);
    assert_int_equal(set_limits(client, NULL, "nobody", &good), FX_NOT_FOUND);
}

struct heard {
    unsigned messages;
    bool subscribed;
    char last[64];
};

static void on_message(void *ctx, enum fx_redis_event event, fx_span payload) {
    struct heard *heard = ctx;
    if (event == FX_REDIS_SUBSCRIBED) heard->subscribed = true;
    if (event != FX_REDIS_MESSAGE) return;
    heard->messages++;
    (void)snprintf(heard->last, sizeof heard->last, "%.*s", (int)payload.len,
                   (const char *)payload.at);
}

/* Caches of Authenticate are told of a change as of a revocation. */
static void test_published(void **state) {
    struct fixture *fixture = *state;
    char key[68], key_id[17];
    struct heard heard = {0};
    Fractal__V1__Limits limits = limits_of(1, 2, 3);
    fx_error err = {0};
    fx_redis *redis = NULL;
    fx_redis_sub *sub = NULL;
    struct event_base *base = event_base_new();
    struct fx_redis_opts opts = {.base = base, .url = fixture->process.redis.url};
    assert_true(fx_redis_open(&opts, &redis, &err));
    assert_true(fx_redis_subscribe(redis, fx_span_str("fx:keys"), on_message, &heard, &sub, &err));
    for (int i = 0; i < 5000 && !heard.subscribed; i++, usleep(1000))
        (void)event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(create_limited(fixture->client, NULL, key, key_id), FX_OK);
    assert_int_equal(set_limits(fixture->client, key_id, NULL, &limits), FX_OK);
    for (int i = 0; i < 5000 && heard.messages < 1; i++, usleep(1000))
        (void)event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(heard.messages, 1);
    assert_string_equal(heard.last, key_id);
    assert_int_equal(set_limits(fixture->client, NULL, "acme", &limits), FX_OK);
    for (int i = 0; i < 5000 && heard.messages < 2; i++, usleep(1000))
        (void)event_base_loop(base, EVLOOP_NONBLOCK);
    assert_string_equal(heard.last, "acme");
    fx_redis_unsubscribe(sub);
    fx_redis_free(redis);
    event_base_free(base);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_listed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_published, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
