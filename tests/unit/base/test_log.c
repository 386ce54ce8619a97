#include "tests/fx_test.h"
#include "common/base/log.h"
#include "common/base/span.h"
#include <unistd.h>

static char captured[8192];

/* Runs `body` with stderr in a file and keeps what it wrote. */
static void capture(void (*body)(const void *), const void *arg) {
    char path[] = "/tmp/fx-log-XXXXXX";
    int file = mkstemp(path), old = dup(STDERR_FILENO);
    assert_true(file >= 0 && old >= 0);
    (void)unlink(path);
    assert_true(dup2(file, STDERR_FILENO) >= 0);
    body(arg);
    assert_true(dup2(old, STDERR_FILENO) >= 0);
    ssize_t len = pread(file, captured, sizeof captured - 1, 0);
    (void)close(file);
    (void)close(old);
    assert_true(len >= 0);
    captured[len] = '\0';
}

static void log_text(const void *text) {
    fx_log(FX_LOG_WARN, FX_EVENT("e"), FX_KS("v", (const char *)text), FX_KI("n", -7));
}

struct row {
    const char *title, *value, *want;
};
static const struct row rows[] = {
    {"plain",                "ready",                " event=e v=ready n=-7\n"              },
    {"empty is quoted",      "",                     " v=\"\" n=-7\n"                       },
    {"space",                "a b",                  " v=\"a b\" n=-7\n"                    },
    {"equals sign",          "a=b",                  " v=\"a=b\" n=-7\n"                    },
    {"quote and backslash",  "a\"\\",                " v=\"a\\\"\\\\\" n=-7\n"              },
    {"newline can't forge",  "x\ntime=0 level=info", " v=\"x\\x0atime=0 level=info\" n=-7\n"},
    {"carriage return, tab", "\r\t",                 " v=\"\\x0d\\x09\" n=-7\n"             },
    {"escape sequence",      "\x1b[2J",              " v=\"\\x1b[2J\" n=-7\n"               },
    {"delete",               "\x7f",                 " v=\"\\x7f\" n=-7\n"                  },
    {"utf-8 stays",          "caf\xc3\xa9",          " v=caf\xc3\xa9 n=-7\n"                },
};

static void test_escaping(void **state) {
    const struct row *row = *state;
    capture(log_text, row->value);
    const char *end = captured + strlen(captured) - strlen(row->want);
    if (end < captured || strcmp(end, row->want) != 0) fail_msg("%s", captured);
    assert_ptr_equal(strchr(captured, '\n'), captured + strlen(captured) - 1);
}

static void test_head(void **state) {
    (void)state;
    fx_log_service("tester");
    capture(log_text, "x");
    int year = 0, ms = 0, used = 0;
    assert_int_equal(
        sscanf(captured, "time=%4d-%*2d-%*2dT%*2d:%*2d:%*2d.%3dZ %n", &year, &ms, &used), 2);
    assert_in_range(year, 2024, 9999);
    assert_int_equal(strncmp(captured + used, "level=warn service=tester event=e ", 34), 0);
}

static void test_long_line_is_cut_and_marked(void **state) {
    (void)state;
    for (int quoted = 0; quoted < 2; quoted++) {
        char text[4000];
        memset(text, 'y', sizeof text);
        text[sizeof text - 1] = '\0';
        if (quoted) text[0] = '\n';
        capture(log_text, text);
        size_t len = strlen(captured);
        assert_int_equal(len, 2048);
        assert_string_equal(captured + len - 5, "y...\n");
        for (const char *c = strstr(captured, "v=") + 8; c < captured + len - 4; c++)
            assert_int_equal(*c, 'y'); /* and nothing of the stack */
    }
}

static void log_each_level(const void *unused) {
    (void)unused;
    for (int level = FX_LOG_DEBUG; level <= FX_LOG_ERROR; level++)
        fx_log((enum fx_log_level)level, FX_KI("at", level));
}

static void test_levels_below_the_minimum_are_silent(void **state) {
    (void)state;
    capture(log_each_level, NULL);
    assert_null(strstr(captured, "at=0"));
    assert_non_null(strstr(captured, "level=info service=tester at=1"));
    fx_log_level_min(FX_LOG_ERROR);
    capture(log_each_level, NULL);
    fx_log_level_min(FX_LOG_INFO);
    assert_null(strstr(captured, "at=2"));
    assert_non_null(strstr(captured, "level=error service=tester at=3"));
}

static void exit_failed(const void *err) {
    assert_int_equal(fx_exit(false, err), EXIT_FAILURE);
}
static void exit_well(const void *err) {
    assert_int_equal(fx_exit(true, err), EXIT_SUCCESS);
}

static void test_exit_logs_a_failure_once(void **state) {
    (void)state;
    fx_error err = {.code = FX_NOT_FOUND, .text = "no model"};
    capture(exit_failed, &err);
    assert_non_null(strstr(captured, "event=failed code=NOT_FOUND error=\"no model\"\n"));
    capture(exit_well, &err);
    assert_string_equal(captured, "");
}

int main(void) {
    static struct CMUnitTest tests[FX_COUNT(rows) + 4] = {
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_long_line_is_cut_and_marked),
        cmocka_unit_test(test_levels_below_the_minimum_are_silent),
        cmocka_unit_test(test_exit_logs_a_failure_once),
    };
    for (size_t i = 0; i < FX_COUNT(rows); i++)
        tests[4 + i] = (struct CMUnitTest){rows[i].title, test_escaping, NULL, NULL,
                                           (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
