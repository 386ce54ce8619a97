#include "services/worker/config.h"
#include "tests/fx_test.h"

/* Sets the two that have no default and the ones given, and loads. */
static bool load(const char *name, const char *value, struct worker_config *config, fx_error *err) {
    assert_int_equal(clearenv(), 0);
    assert_int_equal(setenv("FX_MODEL", "m", 1), 0);
    assert_int_equal(setenv("FX_MODEL_DIR", "/models", 1), 0);
    if (name) assert_int_equal(setenv(name, value, 1), 0);
    return fx_env_load(worker_env, worker_env_count, config, err) &&
           worker_config_check(config, err);
}

static void test_defaults(void **state) {
    (void)state;
    struct worker_config config;
    fx_error err = {0};
    assert_true(load(NULL, NULL, &config, &err));
    assert_string_equal(config.backend, "cpu");
    assert_string_equal(config.kv_dtype, "f32");
    assert_string_equal(config.numerics, "exact");
    assert_int_equal(config.slots_max, 32);
    assert_int_equal(config.lease_ms, 3000);
    assert_int_equal(config.renew_ms, 800);
    assert_int_equal(config.health.drain_ms, 20000);
    assert_int_equal(config.health.unready_ms, 5000);
    assert_int_equal(config.health.dead_ms, 30000);
    assert_string_equal(config.service.grpc_addr, "127.0.0.1:50054");
    assert_string_equal(config.service.admin_addr, "127.0.0.1:51054");
    assert_false(config.resume_inexact);
    assert_true(worker_threads(&config) >= 1);
    config.threads = 3;
    assert_int_equal(worker_threads(&config), 3);
}

struct row {
    const char *name, *value;
};
static const struct row refused[] = {
    {"FX_BACKEND",     "cuda"},
    {"FX_KV_DTYPE",    "int8"},
    {"FX_NUMERICS",    "fast"},
    {"FX_SLOTS_MAX",   "0"   },
    {"FX_KV_MIB",      "0"   },
    {"FX_THREADS",     "257" },
    {"FX_RENEW_MS",    "1501"}, /* more than half of the lease */
    {"FX_LEASE_MS",    "1599"},
    {"FX_DEAD_MS",     "4999"}, /* before it is unready */
    {"FX_UNREADY_MS",  "299" },
    {"FX_SLOTS_LIMIT", "4"   }, /* no such variable */
};

static void test_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(refused); i++) {
        struct worker_config config;
        fx_error err = {0};
        assert_false(load(refused[i].name, refused[i].value, &config, &err));
        assert_int_equal(err.code, FX_INVALID_ARGUMENT);
        assert_non_null(strstr(err.text, refused[i].name));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
