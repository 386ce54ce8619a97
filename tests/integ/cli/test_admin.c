/* keys, tenants, models and import against services of the test's own. */
#include <limits.h>
#include <stdatomic.h>
#include "tests/integ/cli/cli_process.h"
#include "common/rpc/server.h"
#include "fractal/v1/slicer.pb-c.h"
#include "fractal/v1/tenant.pb-c.h"

#define TOKEN "0123456789abcdef"
#define KEY "fx-00112233"

static struct cli_process cli_;
static char folder_[] = "/tmp/fx-cli-XXXXXX", data_dir_[64], tenant_[48], slicer_[48];
static char alpha_[] = "alpha", beta_[] = "beta", more_[] = "more", read_[] = "read",
            pack_[] = "pack";
static fx_server *server_;
static atomic_bool tenant_exists_;
static atomic_int import_steps_;     /* messages of an import; negative: then it fails */
static char seen_[3][PATH_MAX + 64]; /* what the last call asked for */

static bool is_admin(fx_call *call) {
    if (fx_span_eq_str(fx_call_bearer(call), TOKEN)) return true;
    fx_call_fail(call, FX_UNAUTHENTICATED, "wrong token");
    return false;
}

static void see(size_t i, const char *text) {
    (void)snprintf(seen_[i], sizeof seen_[i], "%s", text);
}

/* seen_[2]: "rpm tpm streams" */
static void see_limits(const Fractal__V1__Limits *limits) {
    if (limits)
        (void)snprintf(seen_[2], sizeof seen_[2], "%u %u %u", limits->requests_per_minute,
                       limits->tokens_per_minute, limits->streams);
}

static void create_tenant(fx_call *call, const void *request, void *context) {
    const Fractal__V1__CreateTenantRequest *in = request;
    Fractal__V1__Tenant out = FRACTAL__V1__TENANT__INIT;
    (void)context;
    if (!is_admin(call)) return;
    see(0, in->name);
    (void)snprintf(seen_[1], sizeof seen_[1], "%u", in->weight);
    see_limits(in->limits);
    if (strcmp(in->name, "taken") == 0) {
        fx_call_fail(call, FX_ALREADY_EXISTS, "tenant 'taken' exists");
        return;
    }
    atomic_store(&tenant_exists_, true);
    out.name = in->name;
    fx_call_reply(call, &out);
}

static void create_key(fx_call *call, const void *request, void *context) {
    const Fractal__V1__CreateKeyRequest *in = request;
    Fractal__V1__CreateKeyReply out = FRACTAL__V1__CREATE_KEY_REPLY__INIT;
    (void)context;
    if (!is_admin(call)) return;
    see(0, in->tenant);
    see(1, in->label);
    see_limits(in->limits);
    if (!atomic_load(&tenant_exists_)) {
        fx_call_fail(call, FX_NOT_FOUND, "no tenant");
        return;
    }
    out.key = (char[]){KEY};
    out.key_id = (char[]){"abcd"};
    fx_call_reply(call, &out);
}

static void list_keys(fx_call *call, const void *request, void *context) {
    const Fractal__V1__ListKeysRequest *in = request;
    Fractal__V1__ListKeysReply out = FRACTAL__V1__LIST_KEYS_REPLY__INIT;
    Fractal__V1__Key one = FRACTAL__V1__KEY__INIT, two = FRACTAL__V1__KEY__INIT;
    Fractal__V1__Key *keys[] = {&one, &two};
    Fractal__V1__Limits limits = FRACTAL__V1__LIMITS__INIT;
    limits.requests_per_minute = 60;
    limits.streams = 3;
    (void)context;
    if (!is_admin(call)) return;
    see(0, in->tenant);
    one.key_id = (char[]){"0000000000000001"};
    one.label = (char[]){"first"};
    two.key_id = (char[]){"0000000000000002"};
    two.label = (char[]){"second"};
    two.revoked = true;
    two.limits = &limits;
    out.n_keys = strcmp(in->tenant, "empty") == 0 ? 0 : 2;
    out.keys = keys;
    fx_call_reply(call, &out);
}

static void revoke_key(fx_call *call, const void *request, void *context) {
    const Fractal__V1__RevokeKeyRequest *in = request;
    Fractal__V1__RevokeKeyReply out = FRACTAL__V1__REVOKE_KEY_REPLY__INIT;
    (void)context;
    if (!is_admin(call)) return;
    see(0, in->key_id);
    if (strcmp(in->key_id, "nope") == 0)
        fx_call_fail(call, FX_NOT_FOUND, "no key 'nope'");
    else
        fx_call_reply(call, &out);
}

static void set_limits(fx_call *call, const void *request, void *context) {
    const Fractal__V1__SetLimitsRequest *in = request;
    Fractal__V1__SetLimitsReply out = FRACTAL__V1__SET_LIMITS_REPLY__INIT;
    bool is_key = in->target_case == FRACTAL__V1__SET_LIMITS_REQUEST__TARGET_KEY_ID;
    (void)context;
    if (!is_admin(call)) return;
    see(0, is_key ? in->key_id : in->tenant);
    see(1, is_key ? "key" : "tenant");
    see_limits(in->limits);
    fx_call_reply(call, &out);
}

/* Two pages. */
static void list_tenants(fx_call *call, const void *request, void *context) {
    const Fractal__V1__ListTenantsRequest *in = request;
    Fractal__V1__ListTenantsReply out = FRACTAL__V1__LIST_TENANTS_REPLY__INIT;
    Fractal__V1__Tenant tenant = FRACTAL__V1__TENANT__INIT, *tenants[] = {&tenant};
    bool first = !*in->page_token;
    (void)context;
    if (!is_admin(call)) return;
    tenant.name = first ? alpha_ : beta_;
    tenant.number = first ? 1 : 2;
    tenant.weight = 3;
    out.n_tenants = 1;
    out.tenants = tenants;
    if (first) out.next_page_token = more_;
    fx_call_reply(call, &out);
}

static void list_models(fx_call *call, const void *request, void *context) {
    Fractal__V1__ListModelsReply out = FRACTAL__V1__LIST_MODELS_REPLY__INIT;
    Fractal__V1__Model model = FRACTAL__V1__MODEL__INIT, *models[] = {&model};
    (void)request;
    (void)context;
    model.name = (char[]){"org/model"};
    model.dtype = (char[]){"int4"};
    model.version = (char[]){"v-1"};
    model.bytes = 4300000;
    model.context_max = 1024;
    out.n_models = 1;
    out.models = models;
    fx_call_reply(call, &out);
}

/* The next message of an import; `user` counts those sent. */
static void import_next(fx_call *call, void *user) {
    Fractal__V1__ImportProgress out = FRACTAL__V1__IMPORT_PROGRESS__INIT;
    Fractal__V1__Model model = FRACTAL__V1__MODEL__INIT;
    int steps = atomic_load(&import_steps_), sent = (int)(intptr_t)fx_call_user(call);
    int last = steps < 0 ? -steps : steps;
    (void)user;
    if (sent > last) {
        fx_call_finish(call);
        return;
    }
    if (sent == last && steps < 0) {
        fx_call_fail(call, FX_INVALID_ARGUMENT, "tensor 'x': shape");
        return;
    }
    out.stage = sent < 2 ? read_ : pack_;
    out.done_bytes = (uint64_t)sent * 1000000;
    out.total_bytes = 4000000;
    out.done = sent == last;
    model.name = (char[]){"org/model"};
    model.dtype = (char[]){"f16"};
    model.version = (char[]){"v-2"};
    model.bytes = 15000000;
    if (out.done) out.model = &model;
    fx_call_set_user(call, (void *)(intptr_t)(sent + 1));
    if (fx_call_send(call, &out) == FX_SEND_GONE) fx_call_finish(call);
}

static void import_model(fx_call *call, const void *request, void *context) {
    const Fractal__V1__ImportModelRequest *in = request;
    (void)context;
    if (!is_admin(call)) return;
    see(0, in->folder);
    see(1, in->name);
    see(2, in->dtype);
    fx_call_on_writable(call, import_next, NULL);
    import_next(call, NULL);
}

static const struct fx_method methods[] = {
    {"/fractal.v1.TenantService/CreateTenant", create_tenant,
     &fractal__v1__create_tenant_request__descriptor,                                                      FX_RPC_UNARY,         10000, 65536},
    {"/fractal.v1.TenantService/CreateKey",    create_key,
     &fractal__v1__create_key_request__descriptor,                                                         FX_RPC_UNARY,         10000, 65536},
    {"/fractal.v1.TenantService/ListKeys",     list_keys,     &fractal__v1__list_keys_request__descriptor,
     FX_RPC_UNARY,                                                                                                               10000, 65536},
    {"/fractal.v1.TenantService/RevokeKey",    revoke_key,
     &fractal__v1__revoke_key_request__descriptor,                                                         FX_RPC_UNARY,         10000, 65536},
    {"/fractal.v1.TenantService/SetLimits",    set_limits,
     &fractal__v1__set_limits_request__descriptor,                                                         FX_RPC_UNARY,         10000, 65536},
    {"/fractal.v1.TenantService/ListTenants",  list_tenants,
     &fractal__v1__list_tenants_request__descriptor,                                                       FX_RPC_UNARY,         10000, 65536},
    {"/fractal.v1.SlicerService/ListModels",   list_models,
     &fractal__v1__list_models_request__descriptor,                                                        FX_RPC_UNARY,         10000, 65536},
    {"/fractal.v1.SlicerService/ImportModel",  import_model,
     &fractal__v1__import_model_request__descriptor,                                                       FX_RPC_SERVER_STREAM, 60000, 65536},
};

static void write_token(const char *token) {
    char path[96];
    (void)snprintf(path, sizeof path, "%s/bootstrap-token", folder_);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    (void)fprintf(file, "%s\n", token);
    (void)fclose(file);
}

static int setup(void **state) {
    fx_error err = {0};
    struct fx_server_opts opts = {.address = "127.0.0.1:0"};
    (void)state;
    if (!mkdtemp(folder_)) return 1;
    if (!fx_server_open(&opts, methods, FX_TEST_COUNT(methods), &server_, &err)) return 1;
    (void)snprintf(data_dir_, sizeof data_dir_, "FX_DATA_DIR=%s", folder_);
    (void)snprintf(tenant_, sizeof tenant_, "FX_TENANT_ADDR=127.0.0.1:%u", fx_server_port(server_));
    (void)snprintf(slicer_, sizeof slicer_, "FX_SLICER_ADDR=127.0.0.1:%u", fx_server_port(server_));
    write_token(TOKEN);
    return 0;
}

static int teardown(void **state) {
    char path[96];
    (void)state;
    fx_server_free(server_);
    (void)snprintf(path, sizeof path, "%s/bootstrap-token", folder_);
    (void)unlink(path);
    return rmdir(folder_);
}

static void run(const char *const *args) {
    const char *env[] = {data_dir_, tenant_, slicer_, "TZ=UTC", NULL};
    memset(seen_, 0, sizeof seen_);
    cli_start(&cli_, args, env);
    cli_finish(&cli_);
}
#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static void test_create_key(void **state) {
    (void)state;
    atomic_store(&tenant_exists_, true);
    RUN("keys", "create", "--tenant", "acme", "--label", "for tests");
    cli_want(&cli_, 0, KEY "\n", "key id abcd, tenant 'acme'");
    assert_string_equal(seen_[0], "acme");
    assert_string_equal(seen_[1], "for tests");
}

static void test_default_tenant(void **state) {
    (void)state;
    atomic_store(&tenant_exists_, false);
    RUN("keys", "create");
    cli_want(&cli_, 0, KEY "\n", "created the tenant 'default'");
    assert_string_equal(seen_[0], "default");
}

static void test_unknown_tenant(void **state) {
    (void)state;
    atomic_store(&tenant_exists_, false);
    RUN("keys", "create", "--tenant", "acmee");
    cli_want(&cli_, 1, "", "no tenant 'acmee' (./fractal tenants create acmee)");
    assert_false(atomic_load(&tenant_exists_));
}

static void test_list_keys(void **state) {
    (void)state;
    RUN("keys", "list", "--tenant", "acme");
    cli_want(&cli_, 0,
             "KEY ID            STATE    CREATED           LIMITS                    LABEL\n"
             "0000000000000001  active   1970-01-01 00:00  -                         first\n"
             "0000000000000002  revoked  1970-01-01 00:00  60 rpm, 3 streams         second\n",
             "");
    assert_string_equal(seen_[0], "acme");
    RUN("keys", "list", "--tenant", "empty");
    cli_want(&cli_, 0, "", "");
}

static void test_revoke_key(void **state) {
    (void)state;
    RUN("keys", "revoke", "0000000000000001");
    cli_want(&cli_, 0, "revoked 0000000000000001\n", "");
    assert_string_equal(seen_[0], "0000000000000001");
    RUN("keys", "revoke", "nope");
    cli_want(&cli_, 1, "", "fractal: tenant: no key 'nope'");
}

static void test_tenants(void **state) {
    (void)state;
    RUN("tenants", "create", "acme", "--weight", "7");
    cli_want(&cli_, 0, "created acme; ./fractal keys create --tenant acme makes a key\n", "");
    assert_string_equal(seen_[0], "acme");
    assert_string_equal(seen_[1], "7");
    RUN("tenants", "create", "taken");
    cli_want(&cli_, 1, "", "tenant 'taken' exists");
    RUN("tenants", "list");
    assert_int_equal(cli_.status, 0);
    assert_non_null(strstr(cli_.out_text, "alpha"));
    assert_non_null(strstr(cli_.out_text, "beta"));
    const char *head = strstr(cli_.out_text, "NAME"); /* once, not for each page */
    assert_non_null(head);
    assert_null(strstr(head + 1, "NAME"));
}

static void test_limits(void **state) {
    (void)state;
    atomic_store(&tenant_exists_, true);
    RUN("keys", "create", "--tenant", "acme", "--rpm", "60", "--tpm=10000", "--streams", "4");
    cli_want(&cli_, 0, KEY "\n", "");
    assert_string_equal(seen_[2], "60 10000 4");
    RUN("keys", "limit", "0000000000000001", "--tpm", "5");
    cli_want(&cli_, 0, "limits of 0000000000000001: 5 tpm\n", "");
    assert_string_equal(seen_[0], "0000000000000001");
    assert_string_equal(seen_[1], "key");
    assert_string_equal(seen_[2], "0 5 0");
    RUN("tenants", "create", "capped", "--rpm", "1000000000");
    assert_string_equal(seen_[2], "1000000000 0 0");
    RUN("tenants", "limit", "acme");
    cli_want(&cli_, 0, "limits of acme: -\n", "");
    assert_string_equal(seen_[1], "tenant");
    assert_string_equal(seen_[2], "0 0 0");
    RUN("keys", "create", "--rpm", "1000000001");
    cli_want(&cli_, 2, "", "--rpm '1000000001': want a whole number from 0 to 1000000000");
}

static void test_wrong_token(void **state) {
    (void)state;
    write_token("ffff");
    RUN("keys", "list");
    cli_want(&cli_, 1, "", "refuses the bootstrap token");
    write_token(TOKEN);
}

static void test_models(void **state) {
    (void)state;
    RUN("models");
    assert_int_equal(cli_.status, 0);
    assert_non_null(strstr(cli_.out_text, "org/model "));
    assert_non_null(strstr(cli_.out_text, " int4 "));
    assert_non_null(strstr(cli_.out_text, " 4.3 MB "));
    assert_non_null(strstr(cli_.out_text, " 1024 "));
    assert_non_null(strstr(cli_.out_text, " v-1\n"));
}

static void test_import(void **state) {
    char dots[96];
    (void)state;
    atomic_store(&import_steps_, 4);
    (void)snprintf(dots, sizeof dots, "%s/../%s", folder_, strrchr(folder_, '/') + 1);
    RUN("import", dots, "--name", "org/model", "--dtype", "f16");
    cli_want(&cli_, 0, "imported org/model: f16, 15.0 MB, version v-2\n",
             "read:   0%  0 B of 4.0 MB\nread:  25%  1.0 MB of 4.0 MB\n"
             "pack:  50%  2.0 MB of 4.0 MB\npack:  75%  3.0 MB of 4.0 MB");
    assert_string_equal(seen_[0], folder_); /* absolute, without the dots */
    assert_string_equal(seen_[1], "org/model");
    assert_string_equal(seen_[2], "f16");
}

static void test_import_default(void **state) {
    (void)state;
    atomic_store(&import_steps_, 1);
    RUN("import", folder_, "--name", "m");
    assert_int_equal(cli_.status, 0);
    assert_string_equal(seen_[2], "int4");
}

static void test_import_fails(void **state) {
    (void)state;
    atomic_store(&import_steps_, -2);
    RUN("import", folder_, "--name", "m");
    cli_want(&cli_, 1, "", "slicer: tensor 'x': shape");
}

static void test_services_away(void **state) {
    char address[48];
    (void)state;
    memcpy(address, tenant_, sizeof address);
    (void)snprintf(tenant_, sizeof tenant_, "FX_TENANT_ADDR=127.0.0.1:1");
    RUN("keys", "list");
    cli_want(&cli_, 1, "", "the tenant service does not answer at 127.0.0.1:1 (run ./fractal up)");
    memcpy(tenant_, address, sizeof address);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_key),     cmocka_unit_test(test_default_tenant),
        cmocka_unit_test(test_limits),         cmocka_unit_test(test_unknown_tenant),
        cmocka_unit_test(test_list_keys),      cmocka_unit_test(test_revoke_key),
        cmocka_unit_test(test_tenants),        cmocka_unit_test(test_wrong_token),
        cmocka_unit_test(test_models),         cmocka_unit_test(test_import),
        cmocka_unit_test(test_import_default), cmocka_unit_test(test_import_fails),
        cmocka_unit_test(test_services_away),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
