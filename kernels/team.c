#include "kernels/team.h"
#include "common/base/heap.h"
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SPINS_MAX = 2000, CACHE_LINE = 64 };

/* A word to wait on: it changes once per event; sleepers tell the waker to make a system call. */
struct gate {
    char before[CACHE_LINE]; /* keeps neighbours off its cache line */
    _Atomic uint32_t word;
    _Atomic uint32_t sleepers;
    char after[CACHE_LINE];
};

struct fx_team {
    uint32_t threads;
    bool stopping; /* written before the start gate moves */
    fx_team_work *work;
    void *arg;
    uint32_t chunks;
    struct gate start;   /* counts runs */
    struct gate running; /* workers that have not finished the run; 0 wakes the caller */
    _Atomic uint32_t next;
    char after_next[CACHE_LINE];
    uint32_t joinable;
    pthread_t ids[FX_TEAM_THREADS_MAX];
};

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void gate_sleep(struct gate *gate, uint32_t seen) {
    atomic_fetch_add(&gate->sleepers, 1);
    (void)syscall(SYS_futex, &gate->word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_fetch_sub(&gate->sleepers, 1);
}

/* The word is changed (sequentially consistent) before sleepers is read, and a sleeper adds itself
 * before the kernel compares the word: one of the two sees the other. */
static void gate_wake(struct gate *gate) {
    if (atomic_load(&gate->sleepers))
        (void)syscall(SYS_futex, &gate->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Waits until the word is not `seen` (or, with `zero`, until it is 0); returns it. */
static uint32_t gate_wait(struct gate *gate, uint32_t seen, bool zero) {
    for (uint32_t spins = 0;; spins++) {
        uint32_t word = atomic_load_explicit(&gate->word, memory_order_acquire);
        if (zero ? word == 0 : word != seen) return word;
        if (spins < SPINS_MAX)
            pause_briefly();
        else
            gate_sleep(gate, word);
    }
}

static void take_chunks(fx_team *team) {
    for (;;) {
        uint32_t chunk = atomic_fetch_add_explicit(&team->next, 1, memory_order_relaxed);
        if (chunk >= team->chunks) return;
        team->work(team->arg, chunk);
    }
}

static void *worker_main(void *arg) {
    fx_team *team = arg;
    for (uint32_t seen = 0;;) {
        seen = gate_wait(&team->start, seen, false);
        if (team->stopping) return NULL;
        take_chunks(team);
        if (atomic_fetch_sub(&team->running.word, 1) == 1) gate_wake(&team->running);
    }
}

static void release_workers(fx_team *team) {
    atomic_store_explicit(&team->running.word, team->joinable, memory_order_relaxed);
    atomic_fetch_add(&team->start.word, 1);
    gate_wake(&team->start);
}

bool fx_team_open(uint32_t threads, fx_team **out, fx_error *err) {
    FX_ASSERT(threads >= 1 && threads <= FX_TEAM_THREADS_MAX);
    fx_auto(fx_team) team = fx_alloc(1, sizeof *team);
    if (!team) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a thread team");
    team->threads = threads;
    for (uint32_t i = 0; i + 1 < threads; i++) {
        int code = pthread_create(&team->ids[i], NULL, worker_main, team);
        if (code)
            return fx_fail(err, FX_RESOURCE_EXHAUSTED, "compute thread %u: error %d", i, code);
        team->joinable++;
    }
    *out = fx_take(team);
    return true;
}

void fx_team_run(fx_team *team, uint32_t chunks, fx_team_work *work, void *arg) {
    if (team->threads == 1 || chunks <= 1) {
        for (uint32_t chunk = 0; chunk < chunks; chunk++)
            work(arg, chunk);
        return;
    }
    team->work = work;
    team->arg = arg;
    team->chunks = chunks;
    atomic_store_explicit(&team->next, 0, memory_order_relaxed);
    release_workers(team);
    take_chunks(team);
    (void)gate_wait(&team->running, 0, true);
}

uint32_t fx_team_threads(const fx_team *team) {
    return team->threads;
}

void fx_team_free(fx_team *team) {
    if (!team) return;
    team->stopping = true;
    release_workers(team);
    for (uint32_t i = 0; i < team->joinable; i++)
        (void)pthread_join(team->ids[i], NULL);
    free(team);
}
