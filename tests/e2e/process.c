#include "tests/e2e/process.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/fx_test.h"
#include "common/base/clock.h"

enum { STOP_MS = 20000, PORTS_MAX = 16 };

/* -- the environment -- */

static char *env_find(struct process_env *env, const char *pair) {
    size_t name = strcspn(pair, "=") + 1;
    for (uint32_t i = 0; i < env->count; i++)
        if (strncmp(env->text[i], pair, name) == 0) return env->text[i];
    return NULL;
}

void process_env_put(struct process_env *env, const char *format, ...) {
    char pair[PROCESS_VALUE_MAX];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(pair, sizeof pair, format, args);
    va_end(args);
    assert_in_range(len, 2, sizeof pair - 1);
    char *at = env_find(env, pair);
    assert_true(at || env->count < PROCESS_ENV_MAX);
    memcpy(at ? at : env->text[env->count++], pair, sizeof pair);
}

void process_env_put_all(struct process_env *env, const char *const *pairs) {
    for (; pairs && *pairs; pairs++)
        process_env_put(env, "%s", *pairs);
}

const char *process_env_get(const struct process_env *env, const char *name) {
    size_t len = strlen(name);
    for (uint32_t i = 0; i < env->count; i++)
        if (strncmp(env->text[i], name, len) == 0 && env->text[i][len] == '=')
            return env->text[i] + len + 1;
    fail_msg("no %s", name);
    return NULL;
}

/* -- life -- */

static void become(const struct process *process, const struct process_opts *opts, pid_t parent) {
    const char *env[PROCESS_ENV_MAX + 1] = {NULL};
    int null = open("/dev/null", O_RDONLY);
    for (uint32_t i = 0; opts->env && i < opts->env->count; i++)
        env[i] = opts->env->text[i];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || (opts->folder && chdir(opts->folder) != 0)) _exit(126);
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(process->out, STDOUT_FILENO);
    (void)dup2(process->err, STDERR_FILENO);
    (void)execvpe(opts->args[0], (char *const *)(uintptr_t)opts->args,
                  (char *const *)(uintptr_t)env);
    _exit(127);
}

void process_start(struct process *process, const char *name, const struct process_opts *opts) {
    pid_t parent = getpid();
    *process = (struct process){.out = memfd_create("out", MFD_CLOEXEC)};
    process->err =
        opts->apart ? memfd_create("err", MFD_CLOEXEC) : fcntl(process->out, F_DUPFD_CLOEXEC, 0);
    assert_true(process->out >= 0 && process->err >= 0);
    (void)snprintf(process->name, sizeof process->name, "%s", name);
    process->pid = fork();
    assert_true(process->pid >= 0);
    if (process->pid == 0) become(process, opts, parent);
}

bool process_runs(struct process *process) {
    int status;
    if (!process->pid) return false;
    if (waitpid(process->pid, &status, WNOHANG) == 0) return true;
    process->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    process->pid = 0;
    return false;
}

bool process_wait(struct process *process, uint32_t ms) {
    uint64_t end_ms = fx_clock_ms() + ms;
    while (process_runs(process)) {
        if (fx_clock_ms() > end_ms) return false;
        (void)usleep(2000);
    }
    return true;
}

void process_signal(const struct process *process, int number) {
    siginfo_t info;
    assert_int_equal(kill(process->pid, number), 0);
    if (number == SIGSTOP) assert_int_equal(waitid(P_PID, (id_t)process->pid, &info, WSTOPPED), 0);
}

static void process_kill(struct process *process) {
    if (!process_runs(process)) return;
    (void)kill(process->pid, SIGKILL);
    (void)process_wait(process, STOP_MS);
}

void process_stop(struct process *process) {
    if (!process_runs(process)) return;
    (void)kill(process->pid, SIGCONT);
    (void)kill(process->pid, SIGTERM);
    if (!process_wait(process, STOP_MS)) process_kill(process);
}

char *process_text(int fd) {
    struct stat stat_;
    assert_int_equal(fstat(fd, &stat_), 0);
    char *text = calloc((size_t)stat_.st_size + 1, 1);
    assert_non_null(text);
    assert_int_equal(pread(fd, text, (size_t)stat_.st_size, 0), stat_.st_size);
    return text;
}

void process_close(struct process *process) {
    if (!process->out) return; /* never started */
    process_kill(process);
    (void)close(process->out);
    (void)close(process->err);
    process->out = process->err = 0;
}

struct output process_run(const struct process_opts *opts, uint32_t ms) {
    struct process process;
    struct process_opts apart = *opts;
    apart.apart = true;
    process_start(&process, opts->args[0], &apart);
    bool ended = process_wait(&process, ms);
    struct output output = {process.code, process_text(process.out), process_text(process.err)};
    process_close(&process);
    if (!ended) fail_msg("%s hangs: %s%s", opts->args[0], output.out, output.err);
    return output;
}

void output_free(struct output *output) {
    free(output->out);
    free(output->err);
    *output = (struct output){0};
}

/* -- places -- */

void free_ports(uint16_t *ports, uint32_t count) {
    int fds[PORTS_MAX];
    assert_true(count <= PORTS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof in;
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(fds[i], (struct sockaddr *)&in, len), 0);
        assert_int_equal(getsockname(fds[i], (struct sockaddr *)&in, &len), 0);
        ports[i] = ntohs(in.sin_port);
    }
    for (uint32_t i = 0; i < count; i++)
        (void)close(fds[i]);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void folder_remove(const char *path) {
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
