#include "tests/integ/queue/redis_fixture.h"
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/error.h"

enum { ARGS_MAX = 40, WAIT_STEPS = 500, STEP_US = 20000, MEMORY_BYTES_MIN = 256 << 20 };

static void run_server(const struct redis_fixture *redis, const char *const *extra) {
    const char *args[ARGS_MAX] = {"redis-server", "--port",      "0",
                                  "--unixsocket", redis->socket, "--dir",
                                  redis->folder,  "--save",      "",
                                  "--appendonly", "yes",         "--appendfsync",
                                  "always",       "--logfile",   "redis.log",
                                  "--daemonize",  "no",          "--enable-debug-command",
                                  "yes"};
    size_t n = 19;
    for (; extra && *extra && n < ARGS_MAX - 1; extra++)
        args[n++] = *extra;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)execvp(args[0], (char *const *)(void *)args);
    _exit(127);
}

static bool answers(const struct redis_fixture *redis) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", redis->socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0) (void)close(fd);
    return ok;
}

void redis_fixture_restart(struct redis_fixture *redis, const char *const *extra) {
    (void)unlink(redis->socket);
    redis->pid = fork();
    FX_ASSERT(redis->pid >= 0);
    if (redis->pid == 0) run_server(redis, extra);
    for (int i = 0; i < WAIT_STEPS; i++) {
        if (answers(redis)) return;
        FX_ASSERT(waitpid(redis->pid, NULL, WNOHANG) == 0);
        (void)usleep(STEP_US);
    }
    fx_assert_failed("redis-server did not start", __FILE__, __LINE__);
}

/* In memory where there is room: another test's disk traffic delays no fsync. */
static const char *root(void) {
    struct statvfs memory;
    bool roomy = statvfs("/dev/shm", &memory) == 0 &&
                 (uint64_t)memory.f_bavail * memory.f_frsize > MEMORY_BYTES_MIN;
    return roomy && access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

void redis_fixture_start(struct redis_fixture *redis, const char *const *extra) {
    *redis = (struct redis_fixture){0};
    (void)snprintf(redis->folder, sizeof redis->folder, "%s/fx-redis-XXXXXX", root());
    FX_ASSERT(mkdtemp(redis->folder) != NULL);
    (void)snprintf(redis->socket, sizeof redis->socket, "%s/s", redis->folder);
    (void)snprintf(redis->url, sizeof redis->url, "unix://%s", redis->socket);
    redis_fixture_restart(redis, extra);
}

void redis_fixture_kill(struct redis_fixture *redis) {
    if (redis->pid <= 0) return;
    (void)kill(redis->pid, SIGKILL);
    (void)waitpid(redis->pid, NULL, 0);
    redis->pid = 0;
}

int redis_fixture_end(struct redis_fixture *redis) {
    int status = 0;
    for (int i = 0; i < WAIT_STEPS && redis->pid > 0; i++) {
        (void)kill(redis->pid, SIGTERM);
        (void)usleep(STEP_US);
        if (waitpid(redis->pid, &status, WNOHANG) != 0) redis->pid = 0;
    }
    FX_ASSERT(redis->pid <= 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void redis_fixture_wipe(const struct redis_fixture *redis) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/appendonlydir", redis->folder);
    FX_ASSERT(nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

void redis_fixture_stop(struct redis_fixture *redis) {
    redis_fixture_kill(redis);
    (void)nftw(redis->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
