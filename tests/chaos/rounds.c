#include "tests/chaos/rounds.h"
#include <signal.h>

#define WORKER FAULT_WORKER
#define SCHEDULER FAULT_SCHEDULER
#define GATEWAY FAULT_GATEWAY
#define REDIS FAULT_REDIS
#define KILL SIGKILL
#define STOP SIGSTOP
#define BEFORE PROXY_BEFORE
#define AFTER PROXY_AFTER
#define PASSED PROXY_PASSED

/* A short run takes the first ones. */
const struct round rounds[] = {
    {{{WORKER, KILL, "append", BEFORE, 7, 0}}},
    {{{GATEWAY, KILL, NULL, 0, 0, 0}}},
    {{{WORKER, KILL, "append", AFTER, 1, 0}, {SCHEDULER, KILL, "reclaim", BEFORE, 1, 0}}},
    {{{REDIS, KILL, NULL, 0, 0, 0}}},
    {{{WORKER, STOP, "append", BEFORE, 5, 0}}},
    {{{WORKER, KILL, "pull", PASSED, 1, 0}}}, /* in prefill */
    {{{WORKER, KILL, "finish", BEFORE, 1, 0}}},
    {{{WORKER, KILL, NULL, 0, 0, 0}, {GATEWAY, KILL, NULL, 0, 0, 0}}},
    {{{REDIS, STOP, NULL, 0, 0, 0}}},
    {{{GATEWAY, STOP, NULL, 0, 0, 0}}},
    {{{SCHEDULER, KILL, "dispatch", AFTER, 1, 0}}},
    {{{WORKER, KILL, NULL, 0, 0, 0}, {SCHEDULER, KILL, NULL, 0, 0, 0}}},
    {{{GATEWAY, KILL, "submit", PASSED, 3, 0}}},
    {{{WORKER, KILL, "append", AFTER, 9, 0}}},
    {{{WORKER, KILL, NULL, 0, 0, 0}, {SCHEDULER, KILL, "reclaim", AFTER, 1, 0}}},
    {{{WORKER, KILL, "finish", AFTER, 1, 0}}},
    {{{WORKER, KILL, "pull", AFTER, 1, 0}}},
    {{{SCHEDULER, KILL, "submit", BEFORE, 2, 0}}},
    {{{SCHEDULER, KILL, "submit", AFTER, 2, 0}}},
    {{{WORKER, STOP, NULL, 0, 0, 0}}},
    {{{SCHEDULER, STOP, NULL, 0, 0, 0}}},
    {{{GATEWAY, KILL, NULL, 0, 0, 0}, {REDIS, KILL, NULL, 0, 0, 0}}},
    {{{WORKER, KILL, NULL, 0, 0, 0}, {REDIS, KILL, NULL, 0, 0, 0}}},
    {{{WORKER, KILL, NULL, 0, 0, 0}, {REDIS, STOP, NULL, 0, 0, 0}}},
    {{{WORKER, STOP, "finish", AFTER, 1, 0}, {GATEWAY, KILL, NULL, 0, 0, 0}}},
    {{{WORKER, STOP, NULL, 0, 0, 0}, {SCHEDULER, KILL, "reclaim", BEFORE, 1, 0}}},
    {{{WORKER, KILL, "append", AFTER, 2, 0}, {SCHEDULER, STOP, "reclaim", AFTER, 1, 0}}},
    {{{SCHEDULER, STOP, "submit", AFTER, 2, 0}}},
    {{{REDIS, KILL, NULL, 0, 0, 0}, {WORKER, KILL, NULL, 0, 0, 0}}},
};
const size_t round_count = FX_TEST_COUNT(rounds);

bool fault_is_early(const struct fault *fault) {
    static const char *const early[] = {"submit", "dispatch", "pull"};
    for (size_t i = 0; fault->call && i < FX_TEST_COUNT(early); i++)
        if (strcmp(fault->call, early[i]) == 0) return true;
    return false;
}

static const char *when_name(const struct fault *fault) {
    if (!fault->call) return "";
    return fault->when == PROXY_BEFORE ? " before " : " after ";
}

void round_name(const struct round *round, char out[ROUND_NAME_MAX]) {
    static const char *const targets[] = {"", "worker", "scheduler", "gateway", "Redis"};
    size_t len = 0;
    for (int i = 0; i < ROUND_FAULTS_MAX && round->faults[i].target; i++) {
        const struct fault *fault = &round->faults[i];
        len += (size_t)snprintf(out + len, ROUND_NAME_MAX - len, "%s%s %s%s%s", i ? ", " : "",
                                targets[fault->target],
                                fault->signal == SIGKILL ? "killed" : "stopped", when_name(fault),
                                fault->call ? fault->call : "");
    }
}
