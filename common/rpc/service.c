#include "common/rpc/service.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/heap.h"
#include "common/base/log.h"
#include "common/base/probe.h"

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

/* The rest of the environment may be missing or wrong. */
static FX_MUST bool probe(const struct fx_env_row *rows, size_t count, const char *what,
                          fx_error *err) {
    const char *addr = fx_env_text(rows, count, "FX_ADMIN_ADDR");
    if (strcmp(what, "livez") == 0) return fx_probe(addr, "/livez", err);
    if (strcmp(what, "readyz") == 0) return fx_probe(addr, "/readyz", err);
    return fx_fail(err, FX_INVALID_ARGUMENT, "--probe %s: want livez or readyz", what);
}

bool fx_service_args(int argc, char **argv, const char *program, const char *what,
                     const struct fx_env_row *rows, size_t count, bool *done, fx_error *err) {
    *done = argc > 1;
    if (argc <= 1) return true;
    if (strcmp(argv[1], "--probe") == 0 && argc <= 3)
        return probe(rows, count, argc == 3 ? argv[2] : "readyz", err);
    if (argc > 2 || strcmp(argv[1], "--help") != 0)
        return fx_fail(err, FX_INVALID_ARGUMENT,
                       "'%s': %s takes no argument but --help and --probe [livez|readyz]", argv[1],
                       program);
    fx_env_help(program, what, rows, count,
                "\n--probe [livez|readyz] asks a running one at FX_ADMIN_ADDR (readyz) and ends "
                "with 0 if it is.\n");
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

static int wait_any(const struct timespec *within) {
    sigset_t set;
    int got;
    signal_set(&set);
    do
        got = within ? sigtimedwait(&set, NULL, within) : sigwaitinfo(&set, NULL);
    while (got < 0 && errno == EINTR);
    return got < 0 ? 0 : got;
}

static void *end_at_the_next(void *first_ms) {
    uint64_t until_ms = (uint64_t)(uintptr_t)first_ms + FX_SIGNAL_AGAIN_MS;
    sigset_t set;
    int got;
    do
        got = wait_any(NULL);
    while (fx_clock_ms() < until_ms);
    sigemptyset(&set);
    sigaddset(&set, got);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    (void)raise(got);
    return NULL;
}

/* Without a thread for it the next one waits for the drain. */
static int came(int got) {
    pthread_t thread;
    void *now_ms = (void *)(uintptr_t)fx_clock_ms();
    if (got && pthread_create(&thread, NULL, end_at_the_next, now_ms) == 0)
        (void)pthread_detach(thread);
    return got;
}

int fx_signal_wait(void) {
    return came(wait_any(NULL));
}

int fx_signal_wait_ms(uint32_t ms) {
    return came(wait_any(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000}));
}

bool fx_health_check(const struct fx_health_config *config, fx_error *err) {
    return config->dead_ms >= config->unready_ms ||
           fx_fail(err, FX_INVALID_ARGUMENT, "FX_DEAD_MS=%u must be at least FX_UNREADY_MS=%u",
                   config->dead_ms, config->unready_ms);
}

/* Ours alone; a file of root's may be read by our group, as orchestrators mount secrets. */
static bool is_private(const struct stat *about) {
    mode_t others = S_IRWXG | S_IRWXO;
    if (about->st_uid == 0 && geteuid() != 0) others &= ~(mode_t)S_IRGRP;
    return !(about->st_mode & others);
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
    if (!is_private(&about))
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
