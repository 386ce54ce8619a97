/* Options of a command line: forms, order, and what is wrong with them. */
#include "tests/fx_test.h"
#include "services/cli/cli.h"

enum { ARGS_MAX = 10 };

struct args {
    const char *text, *choice;
    struct cli_u64 whole;
    struct cli_real real;
    bool flag;
};
static const struct cli_option options[] = {
    {"text",   CLI_TEXT,   offsetof(struct args, text),   0, 0,   "T", NULL,           "text"  },
    {"choice", CLI_ONE_OF, offsetof(struct args, choice), 0, 0,   "C", "f32|f16|int4", "choice"},
    {"whole",  CLI_U64,    offsetof(struct args, whole),  1, 100, "N", NULL,           "number"},
    {"real",   CLI_REAL,   offsetof(struct args, real),   0, 2,   "R", NULL,           "number"},
    {"flag",   CLI_FLAG,   offsetof(struct args, flag),   0, 0,   "",  NULL,           "flag"  },
};

struct row {
    const char *name;
    const char *argv[ARGS_MAX];
    int want;         /* arguments left, -1: refused */
    const char *says; /* or the arguments left, each with a comma */
};

static const struct row rows[] = {
    {"nothing",              {NULL},                                                                    0,  ""                                              },
    {"plain",                {"a", "b", NULL},                                                          2,  "a,b,"                                          },
    {"option before",        {"--text", "t", "a", NULL},                                                1,  "a,"                                            },
    {"option after",         {"a", "--text", "t", NULL},                                                1,  "a,"                                            },
    {"option between",       {"a", "--text", "t", "b", NULL},                                           2,  "a,b,"                                          },
    {"equals",               {"--text=t", "a", NULL},                                                   1,  "a,"                                            },
    {"equals nothing",       {"--text=", "a", NULL},                                                    1,  "a,"                                            },
    {"equals twice",         {"--text=a=b", NULL},                                                      0,  ""                                              },
    {"value like an option", {"--text", "--whole", NULL},                                               0,  ""                                              },
    {"dashes end",           {"--", "--text", "x", NULL},                                               2,  "--text,x,"                                     },
    {"dash alone",           {"-", NULL},                                                               1,  "-,"                                            },
    {"all",                  {"--choice", "f16", "--whole", "7", "--real", "0.5", "--text", "t", NULL}, 0,  ""                                              },
    {"flag",                 {"--flag", "a", NULL},                                                     1,  "a,"                                            },
    {"flag twice",           {"--flag", "--flag", NULL},                                                0,  ""                                              },
    {"flag with a value",    {"--flag=1", NULL},                                                        -1, "--flag takes no value"                         },
    {"the last wins",        {"--whole", "7", "--whole=8", NULL},                                       0,  ""                                              },
    {"unknown",              {"--nope", "1", NULL},                                                     -1, "unknown option '--nope'"                       },
    {"unknown with a value", {"--nope=1", NULL},                                                        -1, "unknown option '--nope'"                       },
    {"only a beginning",     {"--tex", "1", NULL},                                                      -1, "unknown option '--tex'"                        },
    {"short",                {"-t", NULL},                                                              -1, "unknown option '-t'"                           },
    {"no value",             {"a", "--text", NULL},                                                     -1, "--text needs a value"                          },
    {"choice",               {"--choice", "f64", NULL},                                                 -1, "--choice 'f64': want one of f32|f16|int4"      },
    {"half a choice",        {"--choice", "f3", NULL},                                                  -1, "want one of"                                   },
    {"two choices",          {"--choice", "f32|f16", NULL},                                             -1, "want one of"                                   },
    {"whole is text",        {"--whole", "x", NULL},                                                    -1, "--whole 'x': want a whole number from 1 to 100"},
    {"whole is empty",       {"--whole=", NULL},                                                        -1, "--whole ''"                                    },
    {"whole too small",      {"--whole", "0", NULL},                                                    -1, "from 1 to 100"                                 },
    {"whole too large",      {"--whole", "101", NULL},                                                  -1, "from 1 to 100"                                 },
    {"whole overflows",      {"--whole", "99999999999999999999", NULL},                                 -1, "from 1 to 100"                                 },
    {"whole is negative",    {"--whole", "-1", NULL},                                                   -1, "from 1 to 100"                                 },
    {"whole is not",         {"--whole", "1.5", NULL},                                                  -1, "from 1 to 100"                                 },
    {"whole with a tail",    {"--whole", "1x", NULL},                                                   -1, "from 1 to 100"                                 },
    {"real is text",         {"--real", "hot", NULL},                                                   -1, "--real 'hot': want a number from 0 to 2"       },
    {"real too large",       {"--real", "2.01", NULL},                                                  -1, "from 0 to 2"                                   },
    {"real is negative",     {"--real", "-0.1", NULL},                                                  -1, "from 0 to 2"                                   },
    {"real is nan",          {"--real", "nan", NULL},                                                   -1, "from 0 to 2"                                   },
    {"real with a tail",     {"--real", "1x", NULL},                                                    -1, "from 0 to 2"                                   },
};

static void test_row(void **state) {
    const struct row *row = *state;
    char *argv[ARGS_MAX + 1] = {NULL}, left[64] = "";
    struct args args = {0};
    fx_error err = {0};
    int argc = 0;
    for (; row->argv[argc]; argc++)
        argv[argc] = (char *)(uintptr_t)row->argv[argc];
    int got = cli_options(options, FX_COUNT(options), argc, argv, &args, &err);
    assert_int_equal(got, row->want);
    if (got < 0) {
        if (!strstr(err.text, row->says)) fail_msg("'%s' lacks '%s'", err.text, row->says);
        assert_int_equal(err.code, FX_INVALID_ARGUMENT);
        return;
    }
    for (int i = 0; i < got; i++) {
        size_t len = strlen(left);
        (void)snprintf(left + len, sizeof left - len, "%s,", argv[i]);
    }
    assert_string_equal(left, row->says);
}

static void test_values(void **state) {
    char *argv[] = {(char[]){"--choice=f16"}, (char[]){"--whole=7"}, (char[]){"--real"},
                    (char[]){".5"},           (char[]){"--text"},    (char[]){"--whole"}};
    struct args args = {0};
    fx_error err = {0};
    (void)state;
    assert_int_equal(cli_options(options, FX_COUNT(options), 6, argv, &args, &err), 0);
    assert_string_equal(args.choice, "f16");
    assert_string_equal(args.text, "--whole");
    assert_true(args.whole.given && args.whole.value == 7);
    assert_true(args.real.given && args.real.value == 0.5);
    assert_false(args.flag);
    char *flags[] = {(char[]){"--flag"}, (char[]){"word"}};
    assert_int_equal(cli_options(options, FX_COUNT(options), 2, flags, &args, &err), 1);
    assert_true(args.flag);
    assert_string_equal(flags[0], "word");
}

int main(void) {
    static struct CMUnitTest tests[FX_TEST_COUNT(rows) + 1];
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i] =
            (struct CMUnitTest){rows[i].name, test_row, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    tests[FX_TEST_COUNT(rows)] = (struct CMUnitTest)cmocka_unit_test(test_values);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
