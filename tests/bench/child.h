#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/base/error.h"
#include "common/base/span.h"

/* Processes that a measurement forks: servers beside the client, each on a core of its own choice.
 * They end with their parent. Fork before gRPC is begun: it does not survive a fork. */

enum { BENCH_ANY_CORE = -1 };

struct bench_child {
    pid_t pid; /* 0: none */
};

/** Runs `serve` in a child until it is killed; `serve` tells its port by bench_child_tell, which
 *  `port` gets here. @err UNAVAILABLE: it ended before */
FX_MUST bool bench_fork(int core, void (*serve)(int tell, void *ctx), void *ctx,
                        struct bench_child *out, uint16_t *port, fx_error *err);
void bench_child_tell(int tell, uint16_t port);
/** A program with this environment (NAME=value, NULL at the end); its output goes to `log`. */
FX_MUST bool bench_exec(int core, const char *path, char *const *env, const char *log,
                        struct bench_child *out, fx_error *err);
/** SIGTERM, and SIGKILL when that does not help; waits. None is fine. */
void bench_child_end(struct bench_child *child);
static inline void bench_child_close(struct bench_child *child) {
    bench_child_end(child);
}
#define auto_child __attribute__((cleanup(bench_child_close))) struct bench_child

/** Puts the calling thread, and what it starts, on a core. */
void bench_pin(int core);
/** Puts this process, and what it forks from now on, before all others on the machine (SCHED_RR),
 * or among them again. False: not allowed. */
bool bench_first(bool on);
/** Processor time of a process so far. */
double bench_cpu_s(pid_t pid);
/** Kibibytes of a process that are its own: Private_Dirty and Private_Clean of smaps_rollup;
 *  `rss`: its Rss. */
FX_MUST bool bench_memory(pid_t pid, uint64_t *private_kib, uint64_t *rss_kib, fx_error *err);
