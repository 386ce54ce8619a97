#include "tests/fx_test.h"
#include "common/base/env.h"
#include <unistd.h>

struct config {
    const char *text, *choice;
    uint64_t big;
    uint32_t small;
    bool flag;
};

static const struct fx_env_row table[] = {
    {"FX_MODEL",     FX_ENV_TEXT,   offsetof(struct config, text),   0,   0,          NULL,   NULL,      "the model"},
    {"FX_BACKEND",   FX_ENV_CHOICE, offsetof(struct config, choice), 0,   0,          "cpu",  "cpu|ref", "b"        },
    {"FX_KV_MIB",    FX_ENV_U64,    offsetof(struct config, big),    1,   UINT64_MAX, "64",   NULL,      "kv"       },
    {"FX_LEASE_MS",  FX_ENV_U32,    offsetof(struct config, small),  100, 60000,      "3000", NULL,      "l"        },
    {"FX_PLAINTEXT", FX_ENV_BOOL,   offsetof(struct config, flag),   0,   0,          "0",    NULL,      "p"        },
};

struct row {
    const char *title, *name, *value;
    bool ok;
    const char *says; /* part of the error's text */
};

static const struct row rows[] = {
    {"all defaults",             "FX_BACKEND",   NULL,                   true,  NULL                    },
    {"empty is unset",           "FX_BACKEND",   "",                     true,  NULL                    },
    {"a choice",                 "FX_BACKEND",   "ref",                  true,  NULL                    },
    {"no such choice",           "FX_BACKEND",   "cuda",                 false, "want one of cpu|ref"   },
    {"a prefix is no choice",    "FX_BACKEND",   "cp",                   false, "FX_BACKEND='cp'"       },
    {"a choice with its bar",    "FX_BACKEND",   "cpu|ref",              false, "FX_BACKEND"            },
    {"smallest",                 "FX_LEASE_MS",  "100",                  true,  NULL                    },
    {"largest",                  "FX_LEASE_MS",  "60000",                true,  NULL                    },
    {"below the range",          "FX_LEASE_MS",  "99",                   false, "a number from 100 to"  },
    {"above the range",          "FX_LEASE_MS",  "60001",                false, "to 60000"              },
    {"past 32 bits",             "FX_LEASE_MS",  "4294967396",           false, "FX_LEASE_MS"           },
    {"no number",                "FX_LEASE_MS",  "soon",                 false, "FX_LEASE_MS='soon'"    },
    {"number with a tail",       "FX_LEASE_MS",  "3000ms",               false, "FX_LEASE_MS='3000ms'"  },
    {"signed",                   "FX_LEASE_MS",  "+300",                 false, "FX_LEASE_MS"           },
    {"negative",                 "FX_KV_MIB",    "-1",                   false, "FX_KV_MIB='-1'"        },
    {"leading space",            "FX_KV_MIB",    " 7",                   false, "FX_KV_MIB"             },
    {"largest of 64 bits",       "FX_KV_MIB",    "18446744073709551615", true,  NULL                    },
    {"past 64 bits",             "FX_KV_MIB",    "18446744073709551616", false, "FX_KV_MIB"             },
    {"true",                     "FX_PLAINTEXT", "true",                 true,  NULL                    },
    {"false",                    "FX_PLAINTEXT", "false",                true,  NULL                    },
    {"one",                      "FX_PLAINTEXT", "1",                    true,  NULL                    },
    {"yes is no bool",           "FX_PLAINTEXT", "yes",                  false, "want 0 or 1"           },
    {"unknown variable",         "FX_NO_SUCH",   "1",                    false, "FX_NO_SUCH: no program"},
    {"prefix of a known one",    "FX_LEASE",     "1",                    false, "FX_LEASE:"             },
    {"another's known variable", "FX_HTTP_ADDR", "127.0.0.1:0",          true,  NULL                    },
    {"not ours at all",          "FXX",          "1",                    true,  NULL                    },
};

static void test_load(void **state) {
    const struct row *row = *state;
    struct config config = {0};
    fx_error err = {0};
    (void)clearenv();
    assert_int_equal(setenv("FX_MODEL", "tiny", 1), 0);
    if (row->value) assert_int_equal(setenv(row->name, row->value, 1), 0);
    bool ok = fx_env_load(table, FX_COUNT(table), &config, &err);
    if (!row->ok) {
        assert_false(ok);
        assert_int_equal(err.code, FX_INVALID_ARGUMENT);
        assert_non_null(strstr(err.text, row->says));
        return;
    }
    if (!ok) fail_msg("%s", err.text);
    assert_string_equal(config.text, "tiny");
    bool ref = strcmp(row->name, "FX_BACKEND") == 0 && row->value && *row->value;
    assert_string_equal(config.choice, ref ? "ref" : "cpu");
    bool big = strcmp(row->name, "FX_KV_MIB") == 0;
    assert_true(config.big == (big ? UINT64_MAX : 64));
    uint32_t lease =
        strcmp(row->name, "FX_LEASE_MS") == 0 ? (uint32_t)strtoul(row->value, NULL, 10) : 3000;
    assert_int_equal(config.small, lease);
    bool flag = strcmp(row->title, "true") == 0 || strcmp(row->title, "one") == 0;
    assert_int_equal(config.flag, flag);
}

static void test_missing_is_named_with_its_help(void **state) {
    (void)state;
    struct config config = {0};
    fx_error err = {0};
    (void)clearenv();
    assert_false(fx_env_load(table, FX_COUNT(table), &config, &err));
    assert_string_equal(err.text, "FX_MODEL is not set: the model");
    assert_int_equal(setenv("FX_MODEL", "", 1), 0);
    assert_false(fx_env_load(table, FX_COUNT(table), &config, &err));
}

static void test_names_are_sorted_once_each(void **state) {
    (void)state;
    for (size_t i = 1; fx_env_names[0] && fx_env_names[i]; i++)
        if (strcmp(fx_env_names[i - 1], fx_env_names[i]) >= 0)
            fail_msg("%s stands after %s", fx_env_names[i], fx_env_names[i - 1]);
}

static void test_help_shows_name_default_and_range(void **state) {
    (void)state;
    char path[] = "/tmp/fx-env-XXXXXX", text[4096];
    int file = mkstemp(path), old = dup(STDOUT_FILENO);
    assert_true(file >= 0 && old >= 0);
    (void)fflush(stdout);
    assert_true(dup2(file, STDOUT_FILENO) >= 0);
    fx_env_help("fractal-test", "tests", table, FX_COUNT(table), "\nmore\n");
    (void)fflush(stdout);
    assert_true(dup2(old, STDOUT_FILENO) >= 0);
    ssize_t len = pread(file, text, sizeof text - 1, 0);
    (void)unlink(path);
    (void)close(file);
    (void)close(old);
    assert_true(len > 0);
    text[len] = '\0';
    assert_non_null(strstr(text, "fractal-test "));
    assert_non_null(strstr(text, "  FX_MODEL                 the model\n"));
    assert_non_null(strstr(text, "default: (must be set)"));
    assert_non_null(strstr(text, "default: cpu; one of cpu|ref"));
    assert_non_null(strstr(text, "default: 3000; 100 to 60000"));
}

int main(void) {
    static struct CMUnitTest tests[FX_COUNT(rows) + 3];
    for (size_t i = 0; i < FX_COUNT(rows); i++)
        tests[i] =
            (struct CMUnitTest){rows[i].title, test_load, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    tests[FX_COUNT(rows)] =
        (struct CMUnitTest)cmocka_unit_test(test_missing_is_named_with_its_help);
    tests[FX_COUNT(rows) + 1] =
        (struct CMUnitTest)cmocka_unit_test(test_names_are_sorted_once_each);
    tests[FX_COUNT(rows) + 2] =
        (struct CMUnitTest)cmocka_unit_test(test_help_shows_name_default_and_range);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
