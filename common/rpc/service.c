#include "common/rpc/service.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/hash.h"
#include "common/base/heap.h"
#include "common/base/log.h"

void fx_service_server_opts(const struct fx_service_config *config, struct fx_server_opts *out) {
    *out = (struct fx_server_opts){.address = config->grpc_addr,
                                   .threads = config->rpc_threads,
                                   .tls = fx_service_tls(config),
                                   .plaintext = config->plaintext};
}

struct fx_tls fx_service_tls(const struct fx_service_config *config) {
    return (struct fx_tls){config->tls_ca, config->tls_cert, config->tls_key};
}

void fx_service_log(const char *name, const struct fx_service_config *config) {
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    fx_log_service(name);
    for (size_t i = 0; i < FX_COUNT(levels); i++)
        if (strcmp(config->log_level, levels[i]) == 0) fx_log_level_min((enum fx_log_level)i);
}

bool fx_service_args(int argc, char **argv, const char *program, const char *what,
                     const struct fx_env_row *rows, size_t count, bool *helped, fx_error *err) {
    *helped = false;
    if (argc <= 1) return true;
    if (argc > 2 || strcmp(argv[1], "--help") != 0)
        return fx_fail(err, FX_INVALID_ARGUMENT, "'%s': %s takes no argument but --help", argv[1],
                       program);
    fx_env_help(program, what, rows, count);
    *helped = true;
    return true;
}

static void signal_set(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
}

void fx_signal_block(void) {
    sigset_t set;
    signal_set(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
}

int fx_signal_wait(void) {
    sigset_t set;
    int got = 0;
    signal_set(&set);
    while (sigwait(&set, &got) != 0)
        continue;
    return got;
}

/* The first line of a private file. */
static FX_MUST bool read_private(const char *path, char *out, size_t cap, fx_error *err) {
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fx_fail_errno(err, "open '%s'", path);
    fx_auto(FILE) file = fdopen(fd, "r");
    if (!file) {
        (void)close(fd);
        return fx_fail_errno(err, "open '%s'", path);
    }
    if (fstat(fd, &about) != 0) return fx_fail_errno(err, "stat '%s'", path);
    if (about.st_mode & (S_IRWXG | S_IRWXO))
        return fx_fail(err, FX_PERMISSION_DENIED, "'%s': others may read it; chmod 600 it", path);
    if (!fgets(out, (int)cap, file)) out[0] = '\0';
    return true;
}

bool fx_token_read(const char *path, char out[FX_TOKEN_MAX], fx_error *err) {
    char line[FX_TOKEN_MAX + 2];
    uint8_t bytes[(FX_TOKEN_MAX - 1) / 2];
    if (!read_private(path, line, sizeof line, err)) return false;
    line[strcspn(line, "\r\n")] = '\0';
    if (!fx_unhex(fx_span_str(line), bytes, sizeof bytes))
        return fx_fail(err, FX_INVALID_ARGUMENT, "'%s': want 64 hex digits", path);
    memcpy(out, line, FX_TOKEN_MAX);
    return true;
}

bool fx_token_check(const fx_call *call, const char token[FX_TOKEN_MAX], fx_error *err) {
    fx_span given = fx_call_bearer(call);
    if (!given.at)
        return fx_fail(err, FX_UNAUTHENTICATED, "needs 'authorization: Bearer <bootstrap token>'");
    if (given.len != FX_TOKEN_MAX - 1 || !fx_equal_ct(given.at, token, FX_TOKEN_MAX - 1))
        return fx_fail(err, FX_PERMISSION_DENIED, "not the bootstrap token");
    return true;
}
