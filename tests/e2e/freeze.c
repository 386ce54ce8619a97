#include "tests/e2e/freeze.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include "tests/fx_test.h"

enum { NAME_MAX_ = 16 };

static bool is_named(pid_t pid, const char *tid, const char *name) {
    char path[64], comm[NAME_MAX_ + 1] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/task/%.16s/comm", (int)pid, tid);
    FILE *file = fopen(path, "re");
    if (!file) return false;
    bool got = fgets(comm, sizeof comm, file) != NULL;
    (void)fclose(file);
    comm[strcspn(comm, "\n")] = '\0';
    return got && strcmp(comm, name) == 0;
}

static pid_t thread_find(pid_t pid, const char *name) {
    char path[64];
    pid_t found = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    assert_non_null(tasks);
    for (const struct dirent *entry; (entry = readdir(tasks));)
        if (is_named(pid, entry->d_name, name)) found = (pid_t)strtol(entry->d_name, NULL, 10);
    (void)closedir(tasks);
    return found;
}

void thread_freeze(struct frozen *frozen, const struct process *process, const char *name) {
    int status;
    frozen->tid = thread_find(process->pid, name);
    if (!frozen->tid) fail_msg("%s has no thread '%s'", process->name, name);
    if (ptrace(PTRACE_SEIZE, frozen->tid, NULL, NULL) != 0)
        fail_msg("ptrace of '%s': %s", name, strerror(errno));
    assert_int_equal(ptrace(PTRACE_INTERRUPT, frozen->tid, NULL, NULL), 0);
    assert_int_equal(waitpid(frozen->tid, &status, __WALL), frozen->tid);
    assert_true(WIFSTOPPED(status));
}

void thread_thaw(struct frozen *frozen) {
    if (frozen->tid) (void)ptrace(PTRACE_DETACH, frozen->tid, NULL, NULL);
    frozen->tid = 0;
}

void thread_bury(struct frozen *frozen) {
    int status = 0;
    pid_t got;
    do
        got = waitpid(frozen->tid, &status, __WALL);
    while (got == frozen->tid && WIFSTOPPED(status));
    frozen->tid = 0;
}
