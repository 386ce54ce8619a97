#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "tests/bench/echo.h"
#include "tests/bench/gateway_internal.h"

enum {
    READY_MS = 20000,
    POLL_US = 20000,
    ENV_MAX = 16,
    ENV_BYTES = 256,
    TAIL_BYTES = 2000,
    FILES_REST = 1000
};

/* -- the gateway's process -- */

struct environment {
    char text[ENV_MAX][ENV_BYTES];
    char *words[ENV_MAX + 1];
};

static void environment_fill(const struct stand *stand, struct environment *out) {
    char(*at)[ENV_BYTES] = out->text;
    (void)snprintf(*at++, ENV_BYTES, "PATH=/usr/bin:/bin");
    (void)snprintf(*at++, ENV_BYTES, "FX_HTTP_ADDR=127.0.0.1:%u", stand->port);
    (void)snprintf(*at++, ENV_BYTES, "FX_GRPC_ADDR=127.0.0.1:0");
    (void)snprintf(*at++, ENV_BYTES, "FX_ADMIN_ADDR=127.0.0.1:0");
    (void)snprintf(*at++, ENV_BYTES, "FX_TENANT_ADDR=127.0.0.1:%u", stand->source_port);
    (void)snprintf(*at++, ENV_BYTES, "FX_SCHEDULER_ADDR=127.0.0.1:%u", stand->source_port);
    (void)snprintf(*at++, ENV_BYTES, "FX_SLICER_ADDR=127.0.0.1:%u", stand->source_port);
    (void)snprintf(*at++, ENV_BYTES, "FX_REDIS_URL=unix://%s", stand->source_opts.socket);
    (void)snprintf(*at++, ENV_BYTES, "FX_HTTP_LOOPS=1");
    (void)snprintf(*at++, ENV_BYTES, "FX_CONNECTIONS_MAX=%d", STAND_CONNECTIONS_MAX);
    for (size_t i = 0; &out->text[i] < at; i++)
        out->words[i] = out->text[i];
}

static void log_show(const struct stand *stand) {
    char text[TAIL_BYTES + 1];
    FILE *file = fopen(stand->log, "re");
    if (!file) return;
    (void)fseek(file, 0, SEEK_END);
    long size = ftell(file);
    (void)fseek(file, size > TAIL_BYTES ? size - TAIL_BYTES : 0, SEEK_SET);
    text[fread(text, 1, TAIL_BYTES, file)] = 0;
    (void)fclose(file);
    (void)fprintf(stderr, "--- gateway\n%s", text);
}

static FX_MUST bool await_ready(const struct stand *stand, fx_error *err) {
    uint64_t end_ms = fx_clock_ms() + READY_MS;
    while (load_get(stand->port, "/v1/models/" SOURCE_MODEL, SOURCE_KEY) != 200) {
        bool runs = waitpid(stand->gateway.pid, NULL, WNOHANG) == 0;
        if (!runs || fx_clock_ms() > end_ms) {
            log_show(stand);
            return fx_fail(err, FX_UNAVAILABLE, "the gateway %s",
                           runs ? "is not ready" : "did not start");
        }
        (void)usleep(POLL_US);
    }
    return true;
}

static FX_MUST bool warm(struct stand *stand, fx_error *err) {
    struct load_result result;
    struct load_opts opts = {.kind = LOAD_STREAM, .connections = 64, .tokens = 8, .seconds = 0.5};
    return stand_load(stand, opts, &result, err) || fx_wrap(err, "warm-up");
}

bool stand_gateway(struct stand *stand, fx_error *err) {
    struct environment env = {0};
    bench_child_end(&stand->gateway);
    if (!load_free_port(&stand->port, err)) return false;
    environment_fill(stand, &env);
    return bench_exec(STAND_SERVER_CORE, FX_BIN_DIR "/fractal-gateway", env.words, stand->log,
                      &stand->gateway, err) &&
           await_ready(stand, err) && warm(stand, err);
}

/* -- the stand -- */

static FX_MUST bool folder_make(struct stand *stand, fx_error *err) {
    (void)snprintf(stand->folder, sizeof stand->folder, "/tmp/fx-bench-XXXXXX");
    if (!mkdtemp(stand->folder)) return fx_fail_errno(err, "a folder in /tmp");
    (void)snprintf(stand->log, sizeof stand->log, "%s/gateway.log", stand->folder);
    (void)snprintf(stand->source_opts.socket, sizeof stand->source_opts.socket, "%s/redis",
                   stand->folder);
    void *times = mmap(NULL, sizeof(struct source_times), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (times == MAP_FAILED) return fx_fail_errno(err, "shared memory");
    stand->source_opts.times = times;
    return true;
}

/* Children inherit it: as many descriptors as the gateway wants for its connections. */
static FX_MUST bool files_raise(fx_error *err) {
    struct rlimit limit;
    const rlim_t want = STAND_CONNECTIONS_MAX + FILES_REST;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return fx_fail_errno(err, "getrlimit");
    if (limit.rlim_max < want) limit.rlim_max = want;
    if (limit.rlim_cur < want) limit.rlim_cur = want;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0 ||
           fx_fail_errno(err, "%d descriptors are needed (ulimit -n)", (int)want);
}

bool stand_open(struct stand *stand, fx_error *err) {
    *stand = (struct stand){0};
    if (!folder_make(stand, err) || !files_raise(err)) return false;
    if (!bench_fork(STAND_SERVER_CORE, echo_serve, NULL, &stand->echo, &stand->echo_port, err) ||
        !bench_fork(STAND_CLIENT_CORE, source_serve, &stand->source_opts, &stand->source,
                    &stand->source_port, err))
        return false;
    bench_pin(STAND_CLIENT_CORE);
    return stand_gateway(stand, err);
}

void stand_close(struct stand *stand) {
    bench_child_end(&stand->gateway);
    bench_child_end(&stand->source);
    bench_child_end(&stand->echo);
    if (stand->source_opts.times)
        (void)munmap(stand->source_opts.times, sizeof *stand->source_opts.times);
    if (!*stand->folder) return;
    (void)unlink(stand->log);
    (void)unlink(stand->source_opts.socket);
    (void)rmdir(stand->folder);
}

bool stand_load(struct stand *stand, struct load_opts opts, struct load_result *out,
                fx_error *err) {
    bool echo = opts.kind == LOAD_ECHO;
    opts.port = echo ? stand->echo_port : stand->port;
    opts.server = echo ? stand->echo.pid : stand->gateway.pid;
    opts.model = SOURCE_MODEL;
    opts.key = SOURCE_KEY;
    bool ok = load_run(&opts, out, err);
    if (ok && (out->failed || out->wrong))
        ok = fx_fail(err, FX_DATA_LOSS, "%llu answers failed, %llu of them had wrong letters: %s",
                     (unsigned long long)out->failed, (unsigned long long)out->wrong, out->why);
    if (ok && stand->source_opts.times->odd)
        ok = fx_fail(err, FX_FAILED_PRECONDITION,
                     "the gateway asked the token source what it does not know: figures of other "
                     "work than a real one's");
    if (!ok) log_show(stand);
    return ok;
}
