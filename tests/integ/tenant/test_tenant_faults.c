/* Redis away and back, SIGTERM, and starts that must be refused. */
#include "tests/integ/rpc/certificates.h"
#include "tests/integ/tenant/tenant_process.h"

static void until_code(fx_client *client, const char *key, enum fx_code want) {
    uint64_t end = fx_clock_ms() + 10000;
    enum fx_code code;
    while ((code = authenticate(client, key, NULL)) != want && fx_clock_ms() < end)
        usleep(20000);
    assert_int_equal(code, want);
}

static void until_status(struct tenant_process *process, int want) {
    uint64_t end = fx_clock_ms() + 10000;
    int status;
    while ((status = admin_get(process, "/readyz", NULL, 0)) != want && fx_clock_ms() < end)
        usleep(20000);
    assert_int_equal(status, want);
}

static void test_redis_away(void **state) {
    struct tenant_process process;
    char key[68], key_id[17];
    (void)state;
    tenant_start(&process);
    fx_client *careful = tenant_client(&process, false), *direct = tenant_client(&process, true);
    assert_int_equal(create_tenant(direct, "acme", 1, NULL), FX_OK);
    assert_int_equal(create_key(direct, "acme", "", key, key_id), FX_OK);
    assert_int_equal(authenticate(careful, key, NULL), FX_OK);
    redis_fixture_kill(&process.redis);
    until_code(direct, key, FX_UNAVAILABLE);
    until_code(careful, key, FX_UNAVAILABLE); /* its health check says so */
    until_status(&process, 503);
    assert_int_equal(admin_get(&process, "/livez", NULL, 0), 200); /* alive all the while */
    assert_int_equal(create_tenant(direct, "more", 1, NULL), FX_UNAVAILABLE);
    redis_fixture_restart(&process.redis, NULL);
    until_code(direct, key, FX_OK); /* the key was on disk */
    until_code(careful, key, FX_OK);
    until_status(&process, 200);
    assert_int_equal(create_tenant(direct, "acme", 1, NULL), FX_ALREADY_EXISTS);
    assert_int_equal(create_tenant(direct, "more", 1, NULL), FX_OK);
    fx_client_free(careful);
    fx_client_free(direct);
    assert_int_equal(tenant_stop(&process), 0);
}

static void test_second_replica(void **state) {
    struct tenant_process first, second = {0};
    char token[192], redis[192], key[68], key_id[17];
    (void)state;
    tenant_start(&first);
    (void)snprintf(token, sizeof token, "FX_BOOTSTRAP_TOKEN_FILE=%s", first.token_file);
    (void)snprintf(redis, sizeof redis, "FX_REDIS_LEDGER_URL=%s", first.redis.url);
    const char *const env[] = {"FX_GRPC_ADDR=127.0.0.1:0", "FX_ADMIN_ADDR=127.0.0.1:0", token,
                               redis, NULL};
    tenant_exec(&second, env, NULL);
    assert_true(tenant_log_until(&second, "event=redis_ready"));
    assert_true(tenant_log_until(&second, "event=started"));
    second.port = log_number(second.log, " port=");
    fx_client *one = tenant_client(&first, false), *two = tenant_client(&second, false);
    assert_int_equal(create_tenant(one, "acme", 1, NULL), FX_OK);
    assert_int_equal(create_tenant(two, "acme", 1, NULL), FX_ALREADY_EXISTS);
    assert_int_equal(create_key(two, "acme", "", key, key_id), FX_OK);
    assert_int_equal(authenticate(one, key, NULL), FX_OK);
    fx_client_free(one);
    fx_client_free(two);
    (void)kill(second.pid, SIGINT); /* as good as SIGTERM */
    assert_int_equal(tenant_wait(&second), 0);
    assert_int_equal(tenant_stop(&first), 0);
}

/* mTLS by FX_TLS_*: with it plaintext and strangers stay out. */
static void test_tls(void **state) {
    struct tenant_process process;
    char folder[] = "/tmp/fx-tenant-XXXXXX", env[3][96], paths[5][64], out[64];
    static const char *const names[] = {"ca.pem", "worker.pem", "worker.key", "stranger.pem",
                                        "stranger.key"};
    (void)state;
    assert_non_null(mkdtemp(folder));
    certificates_make(folder);
    (void)snprintf(env[0], sizeof env[0], "FX_TLS_CA=%s/ca.pem", folder);
    (void)snprintf(env[1], sizeof env[1], "FX_TLS_CERT=%s/server.pem", folder);
    (void)snprintf(env[2], sizeof env[2], "FX_TLS_KEY=%s/server.key", folder);
    for (size_t i = 0; i < FX_TEST_COUNT(names); i++)
        (void)snprintf(paths[i], sizeof paths[i], "%s/%s", folder, names[i]);
    tenant_start_with(&process, (const char *const[]){env[0], env[1], env[2], NULL});
    fx_client *ours =
        tenant_client_tls(&process, false, (struct fx_tls){paths[0], paths[1], paths[2]});
    fx_client *stranger =
        tenant_client_tls(&process, false, (struct fx_tls){paths[0], paths[3], paths[4]});
    fx_client *plain = tenant_client(&process, true);
    assert_int_equal(create_tenant(ours, "acme", 1, NULL), FX_OK);
    assert_int_equal(create_tenant(stranger, "other", 1, NULL), FX_UNAVAILABLE);
    assert_int_equal(create_tenant(plain, "other", 1, NULL), FX_UNAVAILABLE);
    fx_client_free(ours);
    fx_client_free(stranger);
    fx_client_free(plain);
    assert_int_equal(tenant_stop(&process), 0);
    assert_int_equal(shell("rm -rf \"$0\"", folder, out, sizeof out), 0);
}

static void test_starts_without_redis(void **state) {
    struct tenant_process process = {0};
    char folder[] = "/tmp/fx-tenant-XXXXXX", path[64], token[96], redis[96];
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/token", folder);
    write_file(path, TOKEN "\n", 0600);
    (void)snprintf(token, sizeof token, "FX_BOOTSTRAP_TOKEN_FILE=%s", path);
    (void)snprintf(redis, sizeof redis, "FX_REDIS_URL=unix://%s/none", folder);
    const char *const env[] = {"FX_GRPC_ADDR=127.0.0.1:0", "FX_ADMIN_ADDR=127.0.0.1:0", token,
                               redis, NULL};
    tenant_exec(&process, env, NULL);
    assert_true(tenant_log_until(&process, "event=redis_lost"));
    assert_true(tenant_log_until(&process, "remedy="));
    assert_true(tenant_log_until(&process, "admin_port="));
    process.admin_port = log_number(process.log, "admin_port=");
    assert_int_equal(admin_get(&process, "/readyz", NULL, 0), 503);
    (void)kill(process.pid, SIGTERM);
    assert_int_equal(tenant_wait(&process), 0);
    (void)unlink(path);
    (void)rmdir(folder);
}

struct row {
    const char *name, *env[4], *token_text;
    mode_t token_mode;
    const char *argument, *want; /* in what it says; it ends with status 1 */
};
static const struct row rows[] = {
    {"no token file",          {NULL},                             NULL,     0,    NULL,     "FX_BOOTSTRAP_TOKEN_FILE"},
    {"open token file",        {NULL},                             TOKEN,    0644, NULL,     "chmod 600"              },
    {"bad token",              {NULL},                             "secret", 0600, NULL,     "64 hex digits"          },
    {"plaintext to the world", {"FX_GRPC_ADDR=0.0.0.0:0"},         TOKEN,    0600, NULL,     "FX_PLAINTEXT"           },
    {"half of TLS",            {"FX_TLS_CERT=/tmp/none.pem"},      TOKEN,    0600, NULL,     "all three"              },
    {"missing PEM",
     {"FX_TLS_CERT=/nx/c", "FX_TLS_CA=/nx/a", "FX_TLS_KEY=/nx/k"},
     TOKEN,                                                                  0600,
     NULL,                                                                                   "/nx/a"                  },
    {"unknown variable",       {"FX_REDIS_URI=redis://x"},         TOKEN,    0600, NULL,     "FX_REDIS_URI"           },
    {"bad Redis URL",          {"FX_REDIS_URL=http://x"},          TOKEN,    0600, NULL,     "FX_REDIS_URL"           },
    {"one thread",             {"FX_RPC_THREADS=1"},               TOKEN,    0600, NULL,     "FX_RPC_THREADS"         },
    {"bad address",            {"FX_GRPC_ADDR=127.0.0.1:99999"},   TOKEN,    0600, NULL,     "FX_GRPC_ADDR"           },
    {"bad argument",           {NULL},                             TOKEN,    0600, "--port", "--help"                 },
};

static void test_refused_start(void **state) {
    const struct row *row = *state;
    struct tenant_process process = {0};
    char folder[] = "/tmp/fx-tenant-XXXXXX", path[64], token[96];
    const char *env[8] = {"FX_ADMIN_ADDR=127.0.0.1:0", token};
    size_t count = 2;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/token", folder);
    if (row->token_text) write_file(path, row->token_text, row->token_mode);
    (void)snprintf(token, sizeof token, "FX_BOOTSTRAP_TOKEN_FILE=%s", path);
    for (size_t i = 0; i < FX_TEST_COUNT(row->env) && row->env[i]; i++)
        env[count++] = row->env[i];
    tenant_exec(&process, env, row->argument);
    int status = tenant_wait(&process);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    if (!strstr(process.log, row->want)) print_error("%s\n", process.log);
    assert_non_null(strstr(process.log, row->want));
    (void)unlink(path);
    (void)rmdir(folder);
}

static void test_help(void **state) {
    static const char *const env[] = {NULL};
    struct tenant_process process = {0};
    (void)state;
    tenant_exec(&process, env, "--help");
    assert_int_equal(tenant_wait(&process), 0);
    assert_non_null(strstr(process.log, "FX_BOOTSTRAP_TOKEN_FILE"));
    assert_non_null(strstr(process.log, "127.0.0.1:50051"));
}

int main(void) {
    struct CMUnitTest tests[5 + FX_TEST_COUNT(rows)] = {
        cmocka_unit_test(test_redis_away),
        cmocka_unit_test(test_second_replica),
        cmocka_unit_test(test_starts_without_redis),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_tls),
    };
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[5 + i] = (struct CMUnitTest){rows[i].name, test_refused_start, NULL, NULL,
                                           (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
