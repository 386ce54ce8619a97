/* Where the CLI finds the gateway and its secrets. */
#include <sys/stat.h>
#include <unistd.h>
#include "tests/fx_test.h"
#include "services/cli/cli.h"

static char folder_[] = "/tmp/fx-cli-XXXXXX";

static struct cli_settings blank(void) {
    return (struct cli_settings){"", "", "", "127.0.0.1:5000", "", "a", "b", "", "", ""};
}

static void write_file(const char *name, const char *text) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder_, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    (void)fclose(file);
}

static void test_url(void **state) {
    static const struct {
        const char *url, *addr, *want; /* want NULL: refused */
    } rows[] = {
        {"",                                                                                 "127.0.0.1:5000", "http://127.0.0.1:5000"},
        {"",                                                                                 "0.0.0.0:5001",   "http://127.0.0.1:5001"},
        {"",                                                                                 "[::]:5001",      "http://127.0.0.1:5001"},
        {"http://h:1/",                                                                      "x:2",            "http://h:1"           },
        {"https://h//",                                                                      "x:2",            "https://h"            },
        {"ftp://h",                                                                          "x:2",            NULL                   },
        {"h:1",                                                                              "x:2",            NULL                   },
        {"http://a,https://b/",                                                              "x:2",            "http://a https://b"   },
        {"http://a,",                                                                        "x:2",            NULL                   },
        {"http://1,http://2,http://3,http://4,http://5,http://6,http://7,http://8,http://9", "x:2",
         NULL                                                                                                                         },
    };
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        struct cli_settings settings = blank();
        struct cli_gateways gateways;
        char urls[128] = "";
        fx_error err = {0};
        settings.gateway_url = rows[i].url;
        settings.http_addr = rows[i].addr;
        bool ok = cli_gateways_read(&settings, &gateways, &err);
        assert_true(ok == (rows[i].want != NULL));
        for (uint32_t g = 0; ok && g < gateways.count; g++)
            (void)snprintf(urls + strlen(urls), sizeof urls - strlen(urls), "%s%s", g ? " " : "",
                           gateways.url[g]);
        if (ok) assert_string_equal(urls, rows[i].want);
    }
}

static void test_key(void **state) {
    struct cli_settings settings = blank();
    char key[CLI_SECRET_MAX], token_file[128];
    fx_error err = {0};
    (void)state;
    settings.data_dir = folder_;
    assert_false(cli_api_key(&settings, key, &err));
    assert_int_equal(err.code, FX_FAILED_PRECONDITION);
    assert_non_null(strstr(err.text, "./fractal up"));
    write_file("api-key", "fx-abc\n");
    assert_true(cli_api_key(&settings, key, &err));
    assert_string_equal(key, "fx-abc");
    settings.data_dir = ""; /* the launcher names the token's file only */
    (void)snprintf(token_file, sizeof token_file, "%s/bootstrap-token", folder_);
    settings.token_file = token_file;
    assert_true(cli_api_key(&settings, key, &err));
    assert_string_equal(key, "fx-abc");
    settings.api_key = "fx-own";
    assert_true(cli_api_key(&settings, key, &err));
    assert_string_equal(key, "fx-own");
}

static void test_empty_key(void **state) {
    static const char *const bad[] = {"", "\n", "  \n"};
    struct cli_settings settings = blank();
    char key[CLI_SECRET_MAX];
    (void)state;
    settings.data_dir = folder_;
    for (size_t i = 0; i < FX_TEST_COUNT(bad); i++) {
        fx_error err = {0};
        write_file("api-key", bad[i]);
        assert_false(cli_api_key(&settings, key, &err));
        assert_int_equal(err.code, FX_FAILED_PRECONDITION);
    }
}

static void test_token(void **state) {
    struct cli_settings settings = blank();
    char token[CLI_SECRET_MAX], path[128];
    fx_error err = {0};
    (void)state;
    settings.data_dir = folder_;
    assert_false(cli_bootstrap_token(&settings, token, &err));
    assert_non_null(strstr(err.text, "bootstrap token"));
    write_file("bootstrap-token", "0123");
    assert_true(cli_bootstrap_token(&settings, token, &err));
    assert_string_equal(token, "0123");
    write_file("other", "4567");
    (void)snprintf(path, sizeof path, "%s/other", folder_);
    settings.token_file = path; /* wins over the data folder */
    assert_true(cli_bootstrap_token(&settings, token, &err));
    assert_string_equal(token, "4567");
}

static int setup(void **state) {
    (void)state;
    return mkdtemp(folder_) ? 0 : 1;
}

static int teardown(void **state) {
    static const char *const names[] = {"api-key", "bootstrap-token", "other"};
    char path[128];
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder_, names[i]);
        (void)unlink(path);
    }
    return rmdir(folder_);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url),
        cmocka_unit_test(test_key),
        cmocka_unit_test(test_empty_key),
        cmocka_unit_test(test_token),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
