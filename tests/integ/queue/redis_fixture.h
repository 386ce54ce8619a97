#pragma once
/* A real redis-server of the test's own: a unix socket in a temporary folder, AOF always. */
#include <stdbool.h>
#include <sys/types.h>

struct redis_fixture {
    char folder[64]; /* fx-redis-XXXXXX in /dev/shm or /tmp */
    char url[128];   /* unix:///.../s */
    char socket[96];
    pid_t pid;
};

/** Starts it and waits until the socket is there; `extra` = more arguments, NULL at the end, or
 *  NULL. Aborts the test on failure. */
void redis_fixture_start(struct redis_fixture *redis, const char *const *extra);
/** kill -9; the data folder stays. */
void redis_fixture_kill(struct redis_fixture *redis);
/** SIGTERM and its end; its exit status, or 128 + the signal. The data folder stays. */
int redis_fixture_end(struct redis_fixture *redis);
/** Starts it again on the same folder. */
void redis_fixture_restart(struct redis_fixture *redis, const char *const *extra);
/** Removes all data of a killed one. */
void redis_fixture_wipe(const struct redis_fixture *redis);
/** Ends it and removes the folder. */
void redis_fixture_stop(struct redis_fixture *redis);
