/* TenantService by the real program and a real Redis. */
#include <dirent.h>
#include <event2/event.h>
#include <pthread.h>
#include "common/base/hash.h"
#include "common/queue/redis.h"
#include "tests/integ/tenant/tenant_process.h"

struct fixture {
    struct tenant_process process;
    fx_client *client;
};

static int setup(void **state) {
    static struct fixture fixture;
    fixture = (struct fixture){0};
    tenant_start(&fixture.process);
    fixture.client = tenant_client(&fixture.process, false);
    *state = &fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    fx_client_free(fixture->client);
    assert_int_equal(tenant_stop(&fixture->process), 0); /* drained, nothing leaked */
    return 0;
}

static void test_admin_only(void **state) {
    struct fixture *fixture = *state;
    static const struct method methods[] = {
        {"/fractal.v1.TenantService/CreateTenant", &fractal__v1__tenant__descriptor            },
        {"/fractal.v1.TenantService/GetTenant",    &fractal__v1__tenant__descriptor            },
        {"/fractal.v1.TenantService/ListTenants",  &fractal__v1__list_tenants_reply__descriptor},
        {"/fractal.v1.TenantService/CreateKey",    &fractal__v1__create_key_reply__descriptor  },
        {"/fractal.v1.TenantService/RevokeKey",    &fractal__v1__revoke_key_reply__descriptor  },
        {"/fractal.v1.TenantService/ListKeys",     &fractal__v1__list_keys_reply__descriptor   },
        {"/fractal.v1.TenantService/SetLimits",    &fractal__v1__set_limits_reply__descriptor  },
    };
    static const char wrong[] = TOKEN;
    char near[sizeof wrong];
    memcpy(near, wrong, sizeof wrong);
    near[sizeof wrong - 2] = 'e'; /* the last digit */
    for (size_t i = 0; i < FX_TEST_COUNT(methods); i++) {
        Fractal__V1__ListTenantsRequest message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
        void *out = NULL;
        fx_client *client = fixture->client;
        assert_int_equal(tenant_call(client, methods[i], &message, NULL, &out, NULL),
                         FX_UNAUTHENTICATED);
        assert_int_equal(tenant_call(client, methods[i], &message, near, &out, NULL),
                         FX_PERMISSION_DENIED);
        assert_int_equal(tenant_call(client, methods[i], &message, "short", &out, NULL),
                         FX_PERMISSION_DENIED);
        assert_null(out);
    }
}

static void test_create_and_get(void **state) {
    struct fixture *fixture = *state;
    Fractal__V1__GetTenantRequest get = FRACTAL__V1__GET_TENANT_REQUEST__INIT;
    Fractal__V1__Tenant *tenant = NULL;
    assert_int_equal(create_tenant(fixture->client, "acme", 0, &tenant), FX_OK);
    assert_int_equal(tenant->number, 1);
    assert_int_equal(tenant->weight, 1);
    assert_string_equal(tenant->name, "acme");
    assert_in_range(tenant->created_ms, fx_wall_ms() - 60000, fx_wall_ms());
    uint64_t created_ms = tenant->created_ms;
    assert_int_equal(create_tenant(fixture->client, "acme", 7, NULL), FX_ALREADY_EXISTS);
    assert_int_equal(create_tenant(fixture->client, "other", 1000, &tenant), FX_OK);
    assert_int_equal(tenant->number, 2); /* the refused one took no number */
    get.name = (char *)(uintptr_t) "acme";
    assert_int_equal(
        tenant_call(fixture->client, METHOD("GetTenant", tenant), &get, TOKEN, &tenant, NULL),
        FX_OK);
    assert_int_equal(tenant->number, 1);
    assert_int_equal(tenant->weight, 1);
    assert_int_equal(tenant->created_ms, created_ms);
    get.name = (char *)(uintptr_t) "nobody";
    assert_int_equal(
        tenant_call(fixture->client, METHOD("GetTenant", tenant), &get, TOKEN, &tenant, NULL),
        FX_NOT_FOUND);
}

static void test_refused_names(void **state) {
    struct fixture *fixture = *state;
    char longest[65];
    memset(longest, 'a', sizeof longest);
    longest[64] = '\0';
    static const char *const names[] = {"",     "Acme",      "a b", "a:b",
                                        "a{b}", "a\xc3\xa9", "a_b", "a/b"};
    for (size_t i = 0; i < FX_TEST_COUNT(names); i++)
        assert_int_equal(create_tenant(fixture->client, names[i], 1, NULL), FX_INVALID_ARGUMENT);
    assert_int_equal(create_tenant(fixture->client, longest, 1, NULL), FX_INVALID_ARGUMENT);
    longest[63] = '\0';
    assert_int_equal(create_tenant(fixture->client, longest, 1, NULL), FX_OK);
    assert_int_equal(create_tenant(fixture->client, "heavy", 1001, NULL), FX_INVALID_ARGUMENT);
}

static void test_pages(void **state) {
    struct fixture *fixture = *state;
    Fractal__V1__ListTenantsRequest ask = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    Fractal__V1__ListTenantsReply *page = NULL;
    char token[32] = "", name[32];
    uint32_t seen = 0;
    for (int i = 1; i <= 25; i++) {
        (void)snprintf(name, sizeof name, "tenant-%d", i);
        assert_int_equal(create_tenant(fixture->client, name, (uint32_t)i, NULL), FX_OK);
    }
    ask.page_size = 10;
    for (int pages = 1; pages <= 3; pages++) {
        ask.page_token = token;
        assert_int_equal(tenant_call(fixture->client, METHOD("ListTenants", list_tenants_reply),
                                     &ask, TOKEN, &page, NULL),
                         FX_OK);
        assert_int_equal(page->n_tenants, pages < 3 ? 10 : 5);
        for (size_t i = 0; i < page->n_tenants; i++) {
            seen++;
            (void)snprintf(name, sizeof name, "tenant-%u", seen);
            assert_string_equal(page->tenants[i]->name, name);
            assert_int_equal(page->tenants[i]->number, seen);
            assert_int_equal(page->tenants[i]->weight, seen);
        }
        (void)snprintf(token, sizeof token, "%s", page->next_page_token);
    }
    assert_string_equal(token, "");
    ask.page_size = 0;
    ask.page_token = (char *)(uintptr_t) "";
    assert_int_equal(tenant_call(fixture->client, METHOD("ListTenants", list_tenants_reply), &ask,
                                 TOKEN, &page, NULL),
                     FX_OK);
    assert_int_equal(page->n_tenants, 25);
    ask.page_token = (char *)(uintptr_t) "1 +inf";
    assert_int_equal(tenant_call(fixture->client, METHOD("ListTenants", list_tenants_reply), &ask,
                                 TOKEN, &page, NULL),
                     FX_INVALID_ARGUMENT);
}

struct race {
    fx_client *client;
    enum fx_code code;
    pthread_t thread;
};

static void *race_create(void *argument) {
    struct race *race = argument;
    race->code = create_tenant(race->client, "contested", 1, NULL);
    return NULL;
}

static void test_one_of_many_wins(void **state) {
    struct fixture *fixture = *state;
    struct race races[8];
    int won = 0;
    for (int i = 0; i < 8; i++) {
        races[i] = (struct race){.client = fixture->client};
        assert_int_equal(pthread_create(&races[i].thread, NULL, race_create, &races[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(races[i].thread, NULL);
        won += races[i].code == FX_OK;
        if (races[i].code != FX_OK) assert_int_equal(races[i].code, FX_ALREADY_EXISTS);
    }
    assert_int_equal(won, 1);
}

static enum fx_code authenticate_digest(fx_client *client, const char *key, fx_span digest,
                                        Fractal__V1__AuthenticateReply **out) {
    Fractal__V1__AuthenticateRequest message = FRACTAL__V1__AUTHENTICATE_REQUEST__INIT;
    Fractal__V1__AuthenticateReply *ignored;
    message.key = (char *)(uintptr_t)key;
    message.digest = (ProtobufCBinaryData){digest.len, (uint8_t *)(uintptr_t)digest.at};
    return tenant_call(client, METHOD("Authenticate", authenticate_reply), &message, NULL,
                       out ? out : &ignored, NULL);
}

/* What a gateway asks that has not kept the key. */
static void test_by_digest(void **state) {
    fx_client *client = ((struct fixture *)*state)->client;
    Fractal__V1__AuthenticateReply *who = NULL;
    char key[68], key_id[17];
    uint8_t digest[FX_SHA256_BYTES], wrong[FX_SHA256_BYTES];
    assert_int_equal(create_tenant(client, "acme", 5, NULL), FX_OK);
    assert_int_equal(create_key(client, "acme", "laptop", key, key_id), FX_OK);
    fx_sha256(fx_span_str(key), digest);
    fx_span whole = {digest, sizeof digest}, cut = {digest, sizeof digest - 1};
    assert_int_equal(authenticate_digest(client, "", whole, &who), FX_OK);
    assert_string_equal(who->key_id, key_id);
    assert_int_equal(who->tenant->number, 1);
    assert_int_equal(authenticate_digest(client, "", cut, NULL), FX_UNAUTHENTICATED);
    assert_int_equal(authenticate_digest(client, "fx-", whole, NULL), FX_UNAUTHENTICATED);
    memcpy(wrong, digest, sizeof wrong);
    wrong[FX_SHA256_BYTES - 1] ^= 1; /* behind the key's id */
    assert_int_equal(authenticate_digest(client, "", (fx_span){wrong, sizeof wrong}, NULL),
                     FX_UNAUTHENTICATED);
    assert_int_equal(revoke_key(client, key_id), FX_OK);
    assert_int_equal(authenticate_digest(client, "", whole, NULL), FX_UNAUTHENTICATED);
}

static void test_key_life(void **state) {
    struct fixture *fixture = *state;
    Fractal__V1__AuthenticateReply *who = NULL;
    char key[68], key_id[17], other[68], other_id[17], digest_hex[FX_SHA256_HEX];
    uint8_t bytes[32], digest[FX_SHA256_BYTES];
    assert_int_equal(create_tenant(fixture->client, "acme", 5, NULL), FX_OK);
    assert_int_equal(create_key(fixture->client, "nobody", "", key, key_id), FX_NOT_FOUND);
    assert_int_equal(create_key(fixture->client, "acme", "laptop", key, key_id), FX_OK);
    assert_int_equal(create_key(fixture->client, "acme", "server", other, other_id), FX_OK);
    assert_memory_equal(key, "fx-", 3);
    assert_true(fx_unhex(fx_span_str(key + 3), bytes, sizeof bytes));
    assert_string_not_equal(key, other);
    fx_sha256(fx_span_str(key), digest);
    fx_hex((fx_span){digest, sizeof digest}, digest_hex);
    assert_memory_equal(key_id, digest_hex, 16);
    assert_int_equal(authenticate(fixture->client, key, &who), FX_OK);
    assert_string_equal(who->tenant->name, "acme");
    assert_int_equal(who->tenant->number, 1);
    assert_int_equal(who->tenant->weight, 5);
    assert_string_equal(who->key_id, key_id);
    assert_int_equal(revoke_key(fixture->client, key_id), FX_OK);
    assert_int_equal(authenticate(fixture->client, key, NULL), FX_UNAUTHENTICATED);
    assert_int_equal(authenticate(fixture->client, other, NULL), FX_OK);
    assert_int_equal(revoke_key(fixture->client, key_id), FX_OK); /* again: the same */
    assert_int_equal(revoke_key(fixture->client, "0123456789abcdef"), FX_NOT_FOUND);
    assert_int_equal(revoke_key(fixture->client, "0123456789abcde"), FX_INVALID_ARGUMENT);
    assert_int_equal(revoke_key(fixture->client, "0123456789ABCDEF"), FX_INVALID_ARGUMENT);
}

static void test_refused_keys(void **state) {
    struct fixture *fixture = *state;
    char key[68], key_id[17];
    assert_int_equal(create_tenant(fixture->client, "acme", 1, NULL), FX_OK);
    assert_int_equal(create_key(fixture->client, "acme", "", key, key_id), FX_OK);
    assert_int_equal(authenticate(fixture->client, "", NULL), FX_UNAUTHENTICATED);
    assert_int_equal(authenticate(fixture->client, key + 3, NULL), FX_UNAUTHENTICATED);
    assert_int_equal(authenticate(fixture->client, TOKEN, NULL), FX_UNAUTHENTICATED);
    for (size_t i = 0; i < strlen(key); i += 11) {
        char flipped[68];
        memcpy(flipped, key, sizeof flipped);
        flipped[i] = flipped[i] == '0' ? '1' : '0';
        assert_int_equal(authenticate(fixture->client, flipped, NULL), FX_UNAUTHENTICATED);
    }
    static const char *const labels[] = {"line\nbreak", "\xff", "half \xc3", "del\x7f"};
    for (size_t i = 0; i < FX_TEST_COUNT(labels); i++)
        assert_int_equal(create_key(fixture->client, "acme", labels[i], key, key_id),
                         FX_INVALID_ARGUMENT);
    assert_int_equal(create_key(fixture->client, "acme", "caf\xc3\xa9", key, key_id), FX_OK);
}

/* Does a file of Redis's append-only folder have this text? */
static bool is_on_disk(const struct fixture *fixture, const char *text) {
    static char bytes[1 << 20];
    char path[512];
    bool found = false;
    (void)snprintf(path, sizeof path, "%s/appendonlydir", fixture->process.redis.folder);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        (void)snprintf(path, sizeof path, "%s/appendonlydir/%s", fixture->process.redis.folder,
                       entry->d_name);
        FILE *file = fopen(path, "rbe");
        size_t len = file ? fread(bytes, 1, sizeof bytes, file) : 0;
        if (file) (void)fclose(file);
        found = found || memmem(bytes, len, text, strlen(text)) != NULL;
    }
    (void)closedir(folder);
    return found;
}

/* Neither the key nor its digits are on disk or in the log; its digest is. */
static void test_only_the_digest_is_stored(void **state) {
    struct fixture *fixture = *state;
    char key[68], key_id[17];
    assert_int_equal(create_tenant(fixture->client, "acme", 1, NULL), FX_OK);
    assert_int_equal(create_key(fixture->client, "acme", "", key, key_id), FX_OK);
    key[3 + 32] = '\0'; /* half of the digits must not be there either */
    assert_false(is_on_disk(fixture, key + 3));
    assert_true(is_on_disk(fixture, key_id));
    assert_true(tenant_log_until(&fixture->process, "event=key_created"));
    assert_null(strstr(fixture->process.log, key + 3));
    assert_non_null(strstr(fixture->process.log, key_id));
}

struct listener {
    struct event_base *base;
    bool subscribed;
    char told[32];
};

static void on_message(void *ctx, enum fx_redis_event event, fx_span payload) {
    struct listener *listener = ctx;
    if (event == FX_REDIS_SUBSCRIBED) listener->subscribed = true;
    if (event == FX_REDIS_MESSAGE)
        (void)snprintf(listener->told, sizeof listener->told, "%.*s", (int)payload.len,
                       (const char *)payload.at);
}

static void turn(struct listener *listener, const bool *until) {
    uint64_t end = fx_clock_ms() + 5000;
    while (!*until && fx_clock_ms() < end) {
        event_base_loop(listener->base, EVLOOP_NONBLOCK);
        usleep(1000);
    }
}

static void test_revocation_is_published(void **state) {
    struct fixture *fixture = *state;
    struct listener listener = {.base = event_base_new()};
    struct fx_redis_opts opts = {.base = listener.base, .url = fixture->process.redis.url};
    fx_redis *redis = NULL;
    fx_redis_sub *sub = NULL;
    fx_error err = {0};
    char key[68], key_id[17];
    assert_int_equal(create_tenant(fixture->client, "acme", 1, NULL), FX_OK);
    assert_int_equal(create_key(fixture->client, "acme", "", key, key_id), FX_OK);
    assert_true(fx_redis_open(&opts, &redis, &err));
    assert_true(fx_redis_wait_ready(redis, 5000, &err));
    assert_true(
        fx_redis_subscribe(redis, fx_span_str("fx:keys"), on_message, &listener, &sub, &err));
    turn(&listener, &listener.subscribed);
    assert_true(listener.subscribed);
    assert_int_equal(revoke_key(fixture->client, key_id), FX_OK);
    uint64_t end = fx_clock_ms() + 5000;
    while (!listener.told[0] && fx_clock_ms() < end)
        event_base_loop(listener.base, EVLOOP_NONBLOCK);
    assert_string_equal(listener.told, key_id);
    fx_redis_unsubscribe(sub);
    fx_redis_free(redis);
    event_base_free(listener.base);
}

static enum fx_code list_keys(fx_client *client, const char *tenant,
                              Fractal__V1__ListKeysReply **out) {
    Fractal__V1__ListKeysRequest message = FRACTAL__V1__LIST_KEYS_REQUEST__INIT;
    message.tenant = (char *)(uintptr_t)tenant;
    return tenant_call(client, METHOD("ListKeys", list_keys_reply), &message, TOKEN, out, NULL);
}

static void test_list_keys(void **state) {
    struct fixture *fixture = *state;
    Fractal__V1__ListKeysReply *list = NULL;
    char key[68], ids[3][17];
    assert_int_equal(list_keys(fixture->client, "acme", &list), FX_NOT_FOUND);
    assert_int_equal(create_tenant(fixture->client, "acme", 1, NULL), FX_OK);
    assert_int_equal(create_tenant(fixture->client, "other", 1, NULL), FX_OK);
    assert_int_equal(list_keys(fixture->client, "acme", &list), FX_OK);
    assert_int_equal(list->n_keys, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(create_key(fixture->client, "acme", i ? "second" : "first", key, ids[i]),
                         FX_OK);
        usleep(2000); /* another millisecond: another place in the list */
    }
    assert_int_equal(create_key(fixture->client, "other", "", key, key), FX_OK);
    assert_int_equal(revoke_key(fixture->client, ids[1]), FX_OK);
    assert_int_equal(list_keys(fixture->client, "acme", &list), FX_OK);
    assert_int_equal(list->n_keys, 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(list->keys[i]->key_id, ids[i]);
        assert_string_equal(list->keys[i]->label, i ? "second" : "first");
        assert_int_equal(list->keys[i]->revoked, i == 1);
        assert_true(list->keys[i]->created_ms > 0);
    }
}

static void test_keys_max(void **state) {
    struct fixture *fixture = *state;
    Fractal__V1__ListKeysReply *list = NULL;
    char key[68], key_id[17], label[129];
    memset(label, 'x', sizeof label);
    label[128] = '\0';
    assert_int_equal(create_tenant(fixture->client, "acme", 1, NULL), FX_OK);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(create_key(fixture->client, "acme", label, key, key_id), FX_OK);
    assert_int_equal(create_key(fixture->client, "acme", label, key, key_id),
                     FX_RESOURCE_EXHAUSTED);
    assert_int_equal(list_keys(fixture->client, "acme", &list), FX_OK);
    assert_int_equal(list->n_keys, 1000); /* the largest answer fits */
    assert_string_equal(list->keys[999]->label, label);
}

static void test_admin_endpoints(void **state) {
    struct fixture *fixture = *state;
    char body[16384];
    assert_int_equal(admin_get(&fixture->process, "/livez", NULL, 0), 200);
    assert_int_equal(admin_get(&fixture->process, "/readyz", NULL, 0), 200);
    assert_int_equal(create_tenant(fixture->client, "acme", 1, NULL), FX_OK);
    assert_int_equal(authenticate(fixture->client, "nonsense", NULL), FX_UNAUTHENTICATED);
    assert_int_equal(admin_get(&fixture->process, "/metrics", body, sizeof body), 200);
    assert_non_null(strstr(body, "fx_tenant_tenants_created_total 1\n"));
    assert_non_null(strstr(body, "fx_tenant_refused_total 1\n"));
    assert_non_null(strstr(body, "fx_tenant_redis_up 1\n"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_admin_only),
        TEST(test_create_and_get),
        TEST(test_refused_names),
        TEST(test_pages),
        TEST(test_one_of_many_wins),
        TEST(test_key_life),
        TEST(test_by_digest),
        TEST(test_refused_keys),
        TEST(test_only_the_digest_is_stored),
        TEST(test_revocation_is_published),
        TEST(test_list_keys),
        TEST(test_keys_max),
        TEST(test_admin_endpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
