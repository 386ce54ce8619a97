#pragma once
/* A proxy between one process and Redis. It stops the process at a chosen command, before Redis
 * got it or after Redis carried it out, can swallow what was published, and knows which
 * generations the process holds by what went through it. */
#include "tests/fx_test.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include "tests/chaos/resp.h"

enum { PROXY_IDS_MAX = 128 };

struct proxy;
/** Listens on a unix socket and passes on to another, on a thread of its own.
 *  @own caller, proxy_stop() */
struct proxy *proxy_start(const char *listen, const char *redis);
void proxy_stop(struct proxy *proxy);

enum proxy_when {
    PROXY_BEFORE, /* the command does not reach Redis */
    PROXY_AFTER,  /* Redis carried it out, its answer does not come back */
    PROXY_PASSED, /* the answer came back, `delay_ms` ago */
};
struct proxy_trap {
    const char *call; /* "append": the function of that name, whatever its schema */
    enum proxy_when when;
    uint32_t nth; /* 1: the next one */
    uint32_t delay_ms;
    uint32_t token_min; /* of an append: its first token's number; 0: any */
    pid_t pid;          /* who gets `signal` when it springs */
    int signal;
    _Atomic bool *once; /* shared by traps of which the first to spring is the only one; or NULL */
};
/** The generations a process had pulled, not finished, and heard of again within a lease. */
struct proxy_ids {
    uint32_t count, fresh; /* fresh: of them, without an append yet */
    char at[PROXY_IDS_MAX][RESP_ID_LEN + 1];
};
bool proxy_ids_have(const struct proxy_ids *ids, const char *id);

void proxy_arm(struct proxy *proxy, const struct proxy_trap *trap);
/** When it sprang, by fx_clock_us(), and what the process held then; 0: it has not. */
uint64_t proxy_sprung(struct proxy *proxy, struct proxy_ids *held);
void proxy_disarm(struct proxy *proxy);
/** Passes on what a sprung trap held back: for a stopped process that is continued. */
void proxy_release(struct proxy *proxy);
void proxy_held(struct proxy *proxy, struct proxy_ids *out);
/** Another process has taken the place: it holds nothing. */
void proxy_forget(struct proxy *proxy);
/** From now on no published message comes through. */
void proxy_swallow(struct proxy *proxy, bool swallow);
/** Messages swallowed so far. */
uint64_t proxy_swallowed(struct proxy *proxy);
