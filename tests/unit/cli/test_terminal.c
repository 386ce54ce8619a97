/* A model's text on a terminal (a pseudo-terminal here) and in a pipe. */
#include <fcntl.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>
#include "tests/fx_test.h"
#include "services/cli/terminal.h"

static const struct {
    const char *in, *want;
} rows[] = {
    {"plain text\n",                      "plain text\n"                     },
    {"tab\tand\nlines\n",                 "tab\tand\nlines\n"                },
    {"a\x1b[31mred",                      "a?[31mred"                        },
    {"bell\a back\b del\x7f cr\r",        "bell? back? del? cr?"             },
    {"\xc2\x9b"
     "31m",                          "?31m"                             }, /* CSI as one character */
    {"caf\xc3\xa9 \xc2\xa0 \xe4\xba\x9c", "caf\xc3\xa9 \xc2\xa0 \xe4\xba\x9c"},
    {"\xf0\x9f\x9b\x9b",                  "\xf0\x9f\x9b\x9b"                 }, /* 9b inside a character stays */
};

static void test_pipe(void **state) {
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        int ends[2];
        char got[64];
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        FILE *out = fdopen(ends[1], "w");
        cli_put_text(out, fx_span_str(rows[i].in));
        ssize_t len = read(ends[0], got, sizeof got);
        assert_int_equal(len, strlen(rows[i].in));
        assert_memory_equal(got, rows[i].in, (size_t)len);
        (void)fclose(out);
        (void)close(ends[0]);
    }
}

static void test_terminal(void **state) {
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        int master, slave;
        char got[64];
        struct termios raw = {0};
        cfmakeraw(&raw);
        assert_int_equal(openpty(&master, &slave, NULL, &raw, NULL), 0);
        FILE *out = fdopen(slave, "w");
        cli_put_text(out, fx_span_str(rows[i].in));
        ssize_t len = read(master, got, sizeof got);
        assert_int_equal(len, strlen(rows[i].want));
        assert_memory_equal(got, rows[i].want, (size_t)len);
        (void)fclose(out);
        (void)close(master);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pipe),
                                       cmocka_unit_test(test_terminal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
