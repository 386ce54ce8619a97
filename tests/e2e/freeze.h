#pragma once
/* One thread of a process of the test's own stands still while its others run on. */
#include "tests/e2e/process.h"

struct frozen {
    pid_t tid; /* 0: none */
};
/** Stops the last of its threads with that name. It thaws with thread_thaw(), or when the test
 * ends. */
void thread_freeze(struct frozen *frozen, const struct process *process, const char *name);
/** It runs on. One that has ended meanwhile is fine. */
void thread_thaw(struct frozen *frozen);
/** To the end of a process that ends with the thread as it stands. */
void thread_bury(struct frozen *frozen);
