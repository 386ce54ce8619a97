#pragma once
/* Two workers, two schedulers, two gateways, each with a proxy between it and Redis, and the blows
 * they get. What takes no fx_error asserts, and belongs to the test's own thread. */
#include "tests/chaos/proxy.h"
#include "tests/e2e/suite.h"

enum { CLUSTER_LEASE_MS = 1500 };

/** A short lease; and room for all, or 8 slots and 8 KV pages a worker: less than what the slots
 *  want, so that generations wait and are pre-empted all the time. */
extern const struct suite_opts cluster_opts, cluster_small_opts;
extern struct suite cluster;
/** Opens `cluster`. */
void cluster_open(const struct suite_opts *opts);
/** False: a process that was not killed did not end well. */
bool cluster_close(void);
/** A program's main: its tests over one cluster; logs when one fails. */
int cluster_main(const char *name, const struct CMUnitTest *tests, size_t count,
                 const struct suite_opts *opts);
struct proxy *cluster_proxy(const struct service *service);

enum fault_target { FAULT_NONE, FAULT_WORKER, FAULT_SCHEDULER, FAULT_GATEWAY, FAULT_REDIS };
/** One blow. */
struct fault {
    enum fault_target target;
    int signal;       /* SIGKILL or SIGSTOP */
    const char *call; /* at this function, else while tokens flow; a gateway's is a scheduler's */
    enum proxy_when when;
    uint32_t nth, delay_ms; /* of such calls, from 1; after a PASSED one */
};
/** A blow on its way, and what it met. */
struct strike {
    const struct fault *fault;
    struct service *callers[2], *victims[2]; /* whose calls are waited for; who may get it */
    struct service *victim;                  /* who got it; NULL: nobody yet */
    _Atomic bool once;                       /* one of them did */
    uint64_t at_us;                          /* when, by fx_clock_us() */
    struct proxy_ids held;                   /* what a worker had then */
};
/** Sets the trap, or strikes at once where the fault has no call. `turn` alternates victims. The
 *  strike stays where it is until it is healed. */
void strike_begin(struct strike *strike, const struct fault *fault, uint32_t turn);
/** Has it struck? Of several armed the first does. */
bool strike_done(struct strike *strike);
void strike_give_up(struct strike *strike);
/** Starts the victim again, or continues it: then it may append nothing, and lets go of all. */
void strike_heal(struct strike *strike);

/** Entries in the logs of these generations. */
long long cluster_log_entries(const struct proxy_ids *ids);
/** Waits until every slot, KV block, lease and queue entry is free; fails the test naming what is
 *  left. */
void cluster_await_clean(void);
/** Leases the schedulers that live have taken back, by their counters. */
double cluster_reclaimed(void);
/** How many there were since the last call, by the workers that live. */
uint64_t cluster_preemptions(void);
