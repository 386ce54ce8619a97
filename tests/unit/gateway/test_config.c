/* Which settings are refused at the start. */
#include "tests/fx_test.h"
#include "services/gateway/config.h"

static const struct row {
    const char *name, *addr, *cert, *key, *redis;
    bool plaintext;
    const char *names; /* in the error; NULL: accepted */
    const char *cors;
} rows[] = {
    {"loopback",              "127.0.0.1:5000", "",  "",  "redis://127.0.0.1:6379/0", false, NULL,              NULL                   },
    {"public",                "0.0.0.0:5000",   "",  "",  "redis://127.0.0.1:6379/0", false, "FX_PLAINTEXT",    NULL                   },
    {"public, TLS",           "0.0.0.0:5000",   "c", "k", "redis://127.0.0.1:6379/0", false, NULL,              NULL                   },
    {"public, plain",         "0.0.0.0:5000",   "",  "",  "redis://127.0.0.1:6379/0", true,  NULL,              NULL                   },
    {"cert alone",            "127.0.0.1:5000", "c", "",  "redis://127.0.0.1:6379/0", false, "FX_HTTP_TLS_KEY",
     NULL                                                                                                                              },
    {"address",               "127.0.0.1",      "",  "",  "redis://127.0.0.1:6379/0", false, "FX_HTTP_ADDR",    NULL                   },
    {"redis",                 "127.0.0.1:5000", "",  "",  "http://x",                 false, "FX_REDIS_URL",    NULL                   },
    {"web pages",             "127.0.0.1:5000", "",  "",  "redis://127.0.0.1:6379/0", false, NULL,
     "https://a.example,http://localhost:3000"                                                                                         },
    {"any web page",          "127.0.0.1:5000", "",  "",  "redis://127.0.0.1:6379/0", false, NULL,              "*"                    },
    {"a page, not an origin", "127.0.0.1:5000", "",  "",  "redis://127.0.0.1:6379/0", false,
     "FX_CORS_ORIGINS",                                                                                         "https://a.example/app"},
};

static void test_config(void **state) {
    const struct row *row = *state;
    struct gw_config config = {.http_addr = row->addr,
                               .admin_addr = "127.0.0.1:0",
                               .http_tls_cert = row->cert,
                               .http_tls_key = row->key,
                               .redis_url = row->redis,
                               .redis_ledger_url = "",
                               .cors_origins = row->cors,
                               .plaintext = row->plaintext};
    fx_error err = {0};
    bool ok = gw_config_check(&config, &err);
    assert_int_equal(ok, row->names == NULL);
    if (!ok && !strstr(err.text, row->names)) fail_msg("%s", err.text);
}

/* As set, else one a usable core, within bounds. */
static void test_loops(void **state) {
    (void)state;
    assert_int_equal(gw_config_loops(&(struct gw_config){.http_loops = 3}), 3);
    assert_int_equal(gw_config_loops(&(struct gw_config){.http_loops = GW_LOOPS_MAX}),
                     GW_LOOPS_MAX);
    uint32_t loops = gw_config_loops(&(struct gw_config){0});
    assert_true(loops >= 1 && loops <= GW_LOOPS_AUTO_MAX);
}

int main(void) {
    struct CMUnitTest tests[FX_TEST_COUNT(rows) + 1];
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i] =
            (struct CMUnitTest){rows[i].name, test_config, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    tests[FX_TEST_COUNT(rows)] = (struct CMUnitTest)cmocka_unit_test(test_loops);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
