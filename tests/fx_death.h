#pragma once
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/** Whether `body` ends its process by a signal or a sanitizer's exit: run in a child, quietly. */
static inline bool fx_dies(void (*body)(void)) {
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit no_core = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        if (!freopen("/dev/null", "w", stderr)) _exit(0);
        body();
        _exit(0);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child &&
           (WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}
