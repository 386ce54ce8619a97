#include "kernels/team.h"
#include "common/base/heap.h"
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SPINS_MAX = 2000, CACHE_LINE = 64 };

/* A word to wait on; sleepers tell the waker to make a system call. */
struct gate {
    char before[CACHE_LINE]; /* keeps neighbours off its cache line */
    _Atomic uint32_t word;
    _Atomic uint32_t sleepers;
    char after[CACHE_LINE];
};

/* A run ends when its chunks are done, not when every thread has looked: a thread that a busy
 * machine holds back costs its own help and no more. So a late thread may look at any moment, and
 * takes a chunk only by changing a ticket that names the run it has read. */
struct fx_team {
    uint32_t threads;
    _Atomic bool stopping;
    _Atomic(fx_team_work *) work;
    _Atomic(void *) arg;
    _Atomic uint32_t chunks;
    struct gate start;       /* counts runs */
    struct gate done;        /* chunks of this run that are done */
    _Atomic uint64_t ticket; /* run << 32 | next chunk, or CLOSED while a run is set up */
    char after_ticket[CACHE_LINE];
    uint32_t run, joinable;
    pthread_t ids[FX_TEAM_THREADS_MAX];
};
#define CLOSED UINT32_MAX

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

/* Returns the word once it is `value`, or with `change` once it isn't. */
static uint32_t gate_wait(struct gate *gate, uint32_t value, bool change) {
    for (uint32_t spins = 0;; spins++) {
        uint32_t word = atomic_load_explicit(&gate->word, memory_order_acquire);
        if ((word == value) != change) return word;
        if (spins < SPINS_MAX)
            pause_briefly();
        else
            gate_sleep(gate, word);
    }
}

/* One chunk of the current run; false when there is none left. If the exchange succeeds, the ticket
 * was open for one run from its load on, and so were the job's members read in between. */
static bool take_chunk(fx_team *team) {
    uint64_t ticket = atomic_load(&team->ticket);
    for (;;) {
        uint32_t chunk = (uint32_t)ticket;
        fx_team_work *work = atomic_load(&team->work);
        void *arg = atomic_load(&team->arg);
        uint32_t chunks = atomic_load(&team->chunks);
        if (chunk >= chunks) return false; /* CLOSED is, too */
        if (!atomic_compare_exchange_weak(&team->ticket, &ticket, ticket + 1)) continue;
        work(arg, chunk);
        if (atomic_fetch_add(&team->done.word, 1) + 1 == chunks) gate_wake(&team->done);
        return true;
    }
}

static void *worker_main(void *arg) {
    fx_team *team = arg;
    for (uint32_t seen = 0;;) {
        seen = gate_wait(&team->start, seen, true);
        if (atomic_load(&team->stopping)) return NULL;
        while (take_chunk(team)) {
        }
    }
}

static void release_workers(fx_team *team) {
    atomic_fetch_add(&team->start.word, 1);
    gate_wake(&team->start);
}

bool fx_team_open(uint32_t threads, fx_team **out, fx_error *err) {
    FX_ASSERT(threads >= 1 && threads <= FX_TEAM_THREADS_MAX);
    fx_auto(fx_team) team = fx_alloc(1, sizeof *team);
    if (!team) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a thread team");
    team->threads = threads;
    atomic_store(&team->ticket, CLOSED);
    for (uint32_t i = 0; i + 1 < threads; i++) {
        int code = pthread_create(&team->ids[i], NULL, worker_main, team);
        if (code)
            return fx_fail(err, FX_RESOURCE_EXHAUSTED, "compute thread %u: error %d", i, code);
        team->joinable++;
    }
    *out = fx_take(team);
    return true;
}

/* The ticket is closed before the job changes: whoever has read a new member can't take an old
 * ticket any more. */
static void publish(fx_team *team, uint32_t chunks, fx_team_work *work, void *arg) {
    uint64_t run = (uint64_t)++team->run << 32;
    atomic_store(&team->ticket, run | CLOSED);
    atomic_store(&team->work, work);
    atomic_store(&team->arg, arg);
    atomic_store(&team->chunks, chunks);
    atomic_store(&team->done.word, 0);
    atomic_store(&team->ticket, run);
    release_workers(team);
}

void fx_team_run(fx_team *team, uint32_t chunks, fx_team_work *work, void *arg) {
    FX_ASSERT(chunks < CLOSED);
    if (team->threads == 1 || chunks <= 1) {
        for (uint32_t chunk = 0; chunk < chunks; chunk++)
            work(arg, chunk);
        return;
    }
    publish(team, chunks, work, arg);
    while (take_chunk(team)) {
    }
    (void)gate_wait(&team->done, chunks, false);
}

uint32_t fx_team_threads(const fx_team *team) {
    return team->threads;
}

void fx_team_free(fx_team *team) {
    if (!team) return;
    atomic_store(&team->stopping, true);
    release_workers(team);
    for (uint32_t i = 0; i < team->joinable; i++)
        (void)pthread_join(team->ids[i], NULL);
    free(team);
}
