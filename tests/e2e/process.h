#pragma once
/* Programs as processes of the test's own: each gets the environment it is given and nothing else,
 * what it prints is kept, and it dies with the test. Helpers assert, they don't fail. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROCESS_ENV_MAX = 40, PROCESS_VALUE_MAX = 512 };
/** A list of words with its NULL. */
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

struct process_env {
    char text[PROCESS_ENV_MAX][PROCESS_VALUE_MAX]; /* NAME=value */
    uint32_t count;
};
/** Takes NAME=value; a name that is there gets the new value. */
void process_env_put(struct process_env *env, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** A list of NAME=value with a NULL at its end, or NULL. */
void process_env_put_all(struct process_env *env, const char *const *pairs);
const char *process_env_get(const struct process_env *env, const char *name);

struct process {
    char name[32];
    pid_t pid;    /* 0: it has ended, or was never started */
    int out, err; /* files in memory */
    int code;     /* its exit status, or 128 + the signal that ended it */
};

struct process_opts {
    const char *const *args; /* the program first, looked for in PATH */
    const struct process_env *env;
    const char *folder; /* to run in; NULL: the test's */
    bool apart;         /* stderr apart from stdout */
};
void process_start(struct process *process, const char *name, const struct process_opts *opts);
/** Still runs? */
bool process_runs(struct process *process);
/** False: it has not ended within `ms`. */
bool process_wait(struct process *process, uint32_t ms);
/** After SIGSTOP all its threads stand still when this returns. */
void process_signal(const struct process *process, int number);
/** SIGTERM, to a stopped one too; SIGKILL when it does not end within 20 s. */
void process_stop(struct process *process);
/** What it printed so far. @own caller, free() */
char *process_text(int fd);
/** Ends it at once if it runs, and forgets its output. */
void process_close(struct process *process);

struct output {
    int code;
    char *out, *err;
};
/** Runs it to its end, stderr apart, and fails the test after `ms`. @own caller, output_free() */
struct output process_run(const struct process_opts *opts, uint32_t ms);
void output_free(struct output *output);
#define auto_output __attribute__((cleanup(output_free))) struct output

/** Ports of 127.0.0.1 nobody listens on now, all different. */
void free_ports(uint16_t *ports, uint32_t count);
/** Removes a folder and all in it. */
void folder_remove(const char *path);
/** Polls until the condition holds; fails the test after `ms`. */
#define WAIT_FOR(condition, ms, ...)                                                               \
    do {                                                                                           \
        uint64_t wait_end_ms = fx_clock_ms() + (ms);                                               \
        while (!(condition)) {                                                                     \
            if (fx_clock_ms() > wait_end_ms) fail_msg(__VA_ARGS__);                                \
            (void)usleep(2000);                                                                    \
        }                                                                                          \
    } while (0)
