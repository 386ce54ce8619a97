#pragma once
/* Runs fractal-cli and keeps what it printed. Helpers assert, they don't fail. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/fx_test.h"
#include "common/base/clock.h"

enum { CLI_ARGS_MAX = 16, CLI_ENV_MAX = 16, CLI_TEXT_MAX = 65536, CLI_RUN_MS_MAX = 30000 };

struct cli_process {
    pid_t pid;
    int out, err; /* pipes */
    char out_text[CLI_TEXT_MAX], err_text[CLI_TEXT_MAX];
    size_t out_len, err_len;
    int status; /* exit status, 128 + signal */
};

/* `args` and `env` end with NULL; env is the whole environment. */
static inline void cli_start(struct cli_process *cli, const char *const *args,
                             const char *const *env) {
    char *argv[CLI_ARGS_MAX + 2] = {(char[]){FX_BIN_DIR "/fractal-cli"}}, *envp[CLI_ENV_MAX + 1];
    int out[2], err[2], argc = 1, envc = 0;
    posix_spawn_file_actions_t actions;
    memset(cli, 0, sizeof *cli);
    for (; *args; args++)
        argv[argc++] = (char *)(uintptr_t)*args;
    argv[argc] = NULL;
    for (; *env; env++)
        envp[envc++] = (char *)(uintptr_t)*env;
    envp[envc] = NULL;
    assert_true(argc <= CLI_ARGS_MAX && envc <= CLI_ENV_MAX);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    (void)posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    assert_int_equal(posix_spawn(&cli->pid, argv[0], &actions, NULL, argv, envp), 0);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(out[1]);
    (void)close(err[1]);
    cli->out = out[0];
    cli->err = err[0];
}

/* One read of a pipe that has something; false at its end. */
static inline bool cli_read(int fd, char *text, size_t *len) {
    ssize_t got = read(fd, text + *len, CLI_TEXT_MAX - 1 - *len);
    if (got > 0) *len += (size_t)got;
    return got > 0;
}

/* Reads until stdout holds `wanted` (NULL: to the end of both pipes). */
static inline void cli_await(struct cli_process *cli, const char *wanted) {
    uint64_t end = fx_clock_ms() + CLI_RUN_MS_MAX;
    while ((cli->out >= 0 || cli->err >= 0) && !(wanted && strstr(cli->out_text, wanted))) {
        struct pollfd fds[2] = {
            {cli->out, POLLIN, 0},
            {cli->err, POLLIN, 0}
        };
        if (fx_clock_ms() >= end) {
            (void)kill(cli->pid, SIGKILL);
            fail_msg("fractal-cli hangs; stdout '%s' stderr '%s'", cli->out_text, cli->err_text);
        }
        if (poll(fds, 2, 100) <= 0) continue;
        if (fds[0].revents && !cli_read(cli->out, cli->out_text, &cli->out_len)) {
            (void)close(cli->out);
            cli->out = -1;
        }
        if (fds[1].revents && !cli_read(cli->err, cli->err_text, &cli->err_len)) {
            (void)close(cli->err);
            cli->err = -1;
        }
    }
}

static inline void cli_finish(struct cli_process *cli) {
    int status = 0;
    cli_await(cli, NULL);
    assert_int_equal(waitpid(cli->pid, &status, 0), cli->pid);
    cli->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline void cli_want(const struct cli_process *cli, int status, const char *out,
                            const char *err_part) {
    if (cli->status != status || strcmp(cli->out_text, out) != 0 ||
        !strstr(cli->err_text, err_part))
        fail_msg("status %d, want %d\nstdout '%s'\nwant   '%s'\nstderr '%s'\nwant   '%s'",
                 cli->status, status, cli->out_text, out, cli->err_text, err_part);
}
