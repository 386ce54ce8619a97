#pragma once
/* The real fractal-scheduler on a Redis of the test's own, called over gRPC; the worker's side is
 * played by the rig of tests/integ/queue. */
#include "common/rpc/client.h"
#include "fractal/v1/scheduler.pb-c.h"
#include "tests/integ/queue/rig.h"

enum { STAGE_ENV_MAX = 12, STAGE_LOG_MAX = 32768, STAGE_PROCESSES_MAX = 3 };

struct stage_process {
    pid_t pid;
    int log_fd; /* its stderr and stdout */
    char log[STAGE_LOG_MAX];
    unsigned port, admin_port;
    fx_client *client;
};

struct stage {
    struct rig rig;
    struct stage_process process[STAGE_PROCESSES_MAX];
};

struct stage_row {
    const char *name;
    void (*run)(struct stage *stage);
    const char *env[4]; /* NAME=value beyond addresses, Redis and FX_LEASE_MS=300 */
    bool two;           /* schedulers */
};
int stage_main(const char *group, const struct stage_row *rows, size_t count);
#define STAGE_MAIN(rows)                                                                           \
    int main(void) {                                                                               \
        return stage_main(__FILE__, (rows), FX_TEST_COUNT(rows));                                  \
    }

/** Starts process `at` and waits until it has said redis_ready. */
void stage_start(struct stage *stage, size_t at, const char *const *env);
/** Runs the program with exactly this environment and one argument (NULL: none). */
void stage_exec(struct stage_process *process, const char *const *env, const char *argument);
/** Reads its log until `text` (NULL: its end) is there; false after 10 s or at its end. */
bool stage_log_until(struct stage_process *process, const char *text);
/** Waits for its end; the status of waitpid. */
int stage_wait(struct stage_process *process);
void stage_kill(struct stage_process *process);
/** GET on the admin port: the status, the body in `body`. */
int stage_get(const struct stage_process *process, const char *path, char *body, size_t size);

/** One call; `out` is a message that lives until the next call. */
enum fx_code stage_call(struct stage_process *process, const char *method, const void *message,
                        const ProtobufCMessageDescriptor *type, void *out, fx_error *err);
#define STAGE_CALL(process, method, message, type, out, err)                                       \
    stage_call((process), "/fractal.v1.SchedulerService/" method, (message),                       \
               &fractal__v1__##type##__descriptor, (out), (err))

/** A submission of generation n of tenant 1 that its caller may change. */
struct stage_submission {
    Fractal__V1__SubmitGenerationRequest request;
    Fractal__V1__GenerationTask task;
    Fractal__V1__SamplingParams sampling;
    uint32_t prompt[8];
    fx_gen_id id;
};
void stage_submission(struct stage_submission *out, uint32_t n);
enum fx_code stage_submit(struct stage_process *process, uint32_t n, uint64_t *seed);
enum fx_gen_state stage_state(struct stage_process *process, uint32_t n);
/** Turns the rig's loop until the scheduler has dispatched: pulls up to `count` tasks. */
struct rig_tasks stage_pull(struct stage *stage, uint32_t count);
