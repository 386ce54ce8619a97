/* `fractal top` against streams played back, on a pipe and on a terminal. */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include "tests/integ/cli/http_script.h"

#define STREAM                                                                                     \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"                        \
    "Transfer-Encoding: chunked\r\n\r\n"
#define END "0\r\n\r\n"
#define SNAPSHOT(name)                                                                             \
    "{\"at_ms\":1,\"models\":[{\"model\":\"" name                                                  \
    "\",\"queue\":{\"waiting\":2,\"running\":1},\"slots\":{\"total\":4,\"free\":3},"               \
    "\"tokens_per_s\":null,\"tokens\":null,\"batch\":null,\"kv_pages\":null,"                      \
    "\"latency_ms\":null,\"workers\":[]}],\"models_omitted\":0}"
#define EVENT(name) "\1data: " SNAPSHOT(name) "\n\n\2"
#define PING "\1: ping\n\n\2"
#define JSON(status, body)                                                                         \
    "HTTP/1.1 " status "\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" body

struct row {
    const char *name;
    const char *replies[4];
    const char *args[4]; /* after "top" */
    int status;
    const char *out[3], *err; /* parts; out[0] NULL: nothing */
};
static const struct row rows[] = {
    {"one table on a pipe",
     {STREAM PING EVENT("one") EVENT("two")},
     {NULL},
     0,                                                                                                                               {"models 1  workers 0  running 1  waiting 2  0.0 tokens/s\nMODEL ", "\none  ", "1/4"},
     ""                                                                                                                                                                                                                                          },
    {"once",                                                                 {STREAM EVENT("one") EVENT("two")}, {"--once", NULL}, 0, {"\none  "},                                                                           ""                  },
    {"one event",
     {STREAM EVENT("one") EVENT("two")},
     {"--once", "--json", NULL},
     0,                                                                                                                               {SNAPSHOT("one") "\n"},
     ""                                                                                                                                                                                                                                          },
    {"comes back after a cut, an end and a refusal, until it is not wanted",
     {STREAM EVENT("one"), STREAM EVENT("two") END,
      JSON("503 Service Unavailable", "{\"error\":{\"message\":\"full\"}}"),
      JSON("401 Unauthorized", "{\"error\":{\"message\":\"no such key\"}}")},
     {"--json", NULL},
     1,                                                                                                                               {SNAPSHOT("one") "\n" SNAPSHOT("two") "\n"},
     "HTTP 401: no such key"                                                                                                                                                                                                                     },
    {"wrong key",
     {JSON("401 Unauthorized", "{\"error\":{\"message\":\"no such key\"}}")},
     {NULL},
     1,                                                                                                                               {NULL},
     "HTTP 401: no such key (create a key: ./fractal keys create)"                                                                                                                                                                               },
    {"refused at first",
     {JSON("503 Service Unavailable", "{\"error\":{\"message\":\"full\"}}")},
     {NULL},
     1,                                                                                                                               {NULL},
     "HTTP 503: full"                                                                                                                                                                                                                            },
    {"no snapshot",                                                          {STREAM "\1data: []\n\n\2"},        {NULL},           1, {NULL},                                                                                "a bad event"       },
    {"a word too many",                                                      {NULL},                             {"now", NULL},    2, {NULL},                                                                                "what is 'now'?"    },
    {"nobody there",                                                         {NULL},                             {NULL},           1, {NULL},                                                                                "nothing answers at"},
};

static void start(struct cli_process *cli, const struct http_script *script,
                  const char *const *more) {
    static char url[64];
    const char *args[8] = {"top"};
    (void)snprintf(url, sizeof url, "FX_GATEWAY_URL=http://127.0.0.1:%u", script->port);
    const char *const env[] = {url, "FX_API_KEY=fx-key", NULL};
    for (size_t i = 0; more[i]; i++)
        args[i + 1] = more[i];
    cli_start(cli, args, env);
}

static void test_row(void **state) {
    const struct row *row = *state;
    static struct http_script script;
    static struct cli_process cli;
    script = (struct http_script){0};
    memcpy(script.replies, row->replies, sizeof row->replies);
    script_start(&script);
    if (!row->replies[0]) script_stop(&script);
    start(&cli, &script, row->args);
    cli_finish(&cli);
    if (row->replies[0]) script_stop(&script);
    if (cli.status != row->status || !strstr(cli.err_text, row->err))
        fail_msg("status %d, stderr '%s'", cli.status, cli.err_text);
    if (!row->out[0]) assert_string_equal(cli.out_text, "");
    for (size_t i = 0; i < FX_TEST_COUNT(row->out) && row->out[i]; i++)
        if (!strstr(cli.out_text, row->out[i])) fail_msg("stdout '%s'", cli.out_text);
    if (row->replies[0])
        assert_non_null(strstr(script.requests[0], "GET /v1/telemetry HTTP/1.1\r\n"));
    if (row->replies[0])
        assert_non_null(strstr(script.requests[0], "Authorization: Bearer fx-key\r\n"));
}

/* -- on a terminal -- */

struct terminal {
    int fd;
    pid_t pid;
    char text[CLI_TEXT_MAX];
    size_t len;
};

static void terminal_start(struct terminal *terminal, unsigned port) {
    struct winsize size = {.ws_col = 60, .ws_row = 10};
    char url[64], *argv[] = {(char[]){FX_BIN_DIR "/fractal-cli"}, (char[]){"top"}, NULL};
    char key[] = "FX_API_KEY=fx-key", *env[] = {url, key, NULL};
    posix_spawn_file_actions_t actions;
    *terminal = (struct terminal){.fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
    assert_true(terminal->fd >= 0);
    assert_int_equal(grantpt(terminal->fd), 0);
    assert_int_equal(unlockpt(terminal->fd), 0);
    assert_int_equal(ioctl(terminal->fd, TIOCSWINSZ, &size), 0);
    (void)snprintf(url, sizeof url, "FX_GATEWAY_URL=http://127.0.0.1:%u", port);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&actions, 1, ptsname(terminal->fd), O_RDWR | O_NOCTTY,
                                           0);
    assert_int_equal(posix_spawn(&terminal->pid, argv[0], &actions, NULL, argv, env), 0);
    (void)posix_spawn_file_actions_destroy(&actions);
}

/* False: the end, or too long. */
static bool terminal_until(struct terminal *terminal, const char *wanted) {
    uint64_t end = fx_clock_ms() + CLI_RUN_MS_MAX;
    while (!wanted || !strstr(terminal->text, wanted)) {
        struct pollfd one = {terminal->fd, POLLIN, 0};
        if (fx_clock_ms() > end || terminal->len == CLI_TEXT_MAX - 1) return false;
        if (poll(&one, 1, 100) <= 0) continue;
        if (!cli_read(terminal->fd, terminal->text, &terminal->len)) return false;
    }
    return true;
}

static void test_terminal(void **state) {
    (void)state;
    static struct http_script script;
    static struct terminal terminal;
    int status = 0;
    script = (struct http_script){
        .replies = {STREAM EVENT("one"), STREAM EVENT("two")},
          .hold = true
    };
    script_start(&script);
    terminal_start(&terminal, script.port);
    assert_true(terminal_until(&terminal, "coming back: "));
    assert_non_null(strstr(terminal.text, "\x1b[?1049h\x1b[?25l\x1b[H")); /* the other screen */
    assert_non_null(strstr(terminal.text, "\r\none "));
    assert_non_null(strstr(terminal.text, "          KV\x1b[K\r\n")); /* 60 columns end here */
    assert_true(terminal_until(&terminal, "\r\ntwo "));
    assert_null(strstr(terminal.text, "\x1b[?1049l"));
    assert_int_equal(kill(terminal.pid, SIGINT), 0);
    (void)terminal_until(&terminal, NULL);
    assert_int_equal(waitpid(terminal.pid, &status, 0), terminal.pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 130);
    static const char restored[] = "\x1b[?25h\x1b[?1049l";
    const char *end = terminal.text + terminal.len - (sizeof restored - 1);
    assert_true(end > terminal.text);
    assert_string_equal(end, restored); /* and nothing behind it */
    (void)close(terminal.fd);
    script_stop(&script);
}

int main(void) {
    static struct CMUnitTest tests[FX_TEST_COUNT(rows) + 1];
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i] =
            (struct CMUnitTest){rows[i].name, test_row, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    tests[FX_TEST_COUNT(rows)] = (struct CMUnitTest)cmocka_unit_test(test_terminal);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
