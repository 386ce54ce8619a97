#include "tests/bench/child.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { END_MS = 5000, END_POLL_US = 10000, PATH_BYTES = 64 };

void bench_pin(int core) {
    cpu_set_t set;
    if (core == BENCH_ANY_CORE) return;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

bool bench_first(bool on) {
    struct sched_param param = {.sched_priority = on ? sched_get_priority_min(SCHED_RR) : 0};
    return sched_setscheduler(0, on ? SCHED_RR : SCHED_OTHER, &param) == 0;
}

/* In the child: it ends when its parent does. */
static void child_begin(pid_t parent, int core) {
    sigset_t none;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    bench_pin(core);
}

void bench_child_tell(int tell, uint16_t port) {
    (void)!write(tell, &port, sizeof port);
    (void)close(tell);
}

bool bench_fork(int core, void (*serve)(int tell, void *ctx), void *ctx, struct bench_child *out,
                uint16_t *port, fx_error *err) {
    int ends[2];
    pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0) return fx_fail_errno(err, "pipe");
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        child_begin(parent, core);
        serve(ends[1], ctx);
        _exit(0);
    }
    (void)close(ends[1]);
    bool told = pid > 0 && read(ends[0], port, sizeof *port) == sizeof *port;
    (void)close(ends[0]);
    if (pid < 0) return fx_fail_errno(err, "fork");
    *out = (struct bench_child){pid};
    return told || fx_fail(err, FX_UNAVAILABLE, "a server did not start");
}

static void output_to(const char *log) {
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return;
    (void)dup2(fd, STDOUT_FILENO);
    (void)dup2(fd, STDERR_FILENO);
}

bool bench_exec(int core, const char *path, char *const *env, const char *log,
                struct bench_child *out, fx_error *err) {
    pid_t parent = getpid();
    char *argv[] = {(char *)(uintptr_t)path, NULL};
    if (access(path, X_OK) != 0) return fx_fail_errno(err, "'%s'", path);
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        child_begin(parent, core);
        output_to(log);
        (void)execve(path, argv, env);
        _exit(127);
    }
    if (pid < 0) return fx_fail_errno(err, "fork");
    *out = (struct bench_child){pid};
    return true;
}

void bench_child_end(struct bench_child *child) {
    if (!child->pid) return;
    (void)kill(child->pid, SIGTERM);
    for (int waited_ms = 0; waitpid(child->pid, NULL, WNOHANG) == 0;
         waited_ms += END_POLL_US / 1000) {
        if (waited_ms >= END_MS) (void)kill(child->pid, SIGKILL);
        (void)usleep(END_POLL_US);
    }
    child->pid = 0;
}

double bench_cpu_s(pid_t pid) {
    clockid_t clock;
    struct timespec used = {0};
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

bool bench_memory(pid_t pid, uint64_t *private_kib, uint64_t *rss_kib, fx_error *err) {
    char path[PATH_BYTES], line[256];
    unsigned long long value;
    (void)snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) return fx_fail_errno(err, "open '%s'", path);
    *private_kib = *rss_kib = 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "Rss: %llu kB", &value) == 1) *rss_kib = value;
        if (sscanf(line, "Private_Clean: %llu kB", &value) == 1 ||
            sscanf(line, "Private_Dirty: %llu kB", &value) == 1)
            *private_kib += value;
    }
    (void)fclose(file);
    return *rss_kib > 0 || fx_fail(err, FX_UNAVAILABLE, "'%s' has no Rss", path);
}
