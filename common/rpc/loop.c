#include "common/rpc/loop.h"
#include <event2/event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/heap.h"

struct job {
    void (*fn)(void *user);
    void *user;
};

struct fx_loop {
    struct event_base *base;
    struct event *wake, *turn;
    _Atomic uint64_t turned_ms;
    int fd;
    pthread_t thread;
    pthread_mutex_t lock;
    struct job *ring; /* guarded by lock, as all below */
    uint32_t cap, head, count;
    bool running, stopping;
};

static bool take(fx_loop *loop, struct job *out) {
    pthread_mutex_lock(&loop->lock);
    bool any = loop->count > 0;
    if (any) {
        *out = loop->ring[loop->head];
        loop->head = (loop->head + 1) % loop->cap;
        loop->count--;
    }
    pthread_mutex_unlock(&loop->lock);
    return any;
}

static void wake_up(fx_loop *loop) {
    uint64_t one = 1;
    (void)!write(loop->fd, &one, sizeof one);
}

/* At most one inbox full of jobs a turn, so that sockets get theirs. */
static void on_wake(evutil_socket_t fd, short what, void *user) {
    (void)what;
    fx_loop *loop = user;
    struct job job;
    uint64_t count;
    (void)!read(fd, &count, sizeof count);
    for (uint32_t i = 0; i < loop->cap && take(loop, &job); i++)
        job.fn(job.user);
    pthread_mutex_lock(&loop->lock);
    bool more = loop->count > 0, stop = loop->stopping && !more;
    pthread_mutex_unlock(&loop->lock);
    if (more) wake_up(loop);
    if (stop) (void)event_base_loopbreak(loop->base);
}

static void on_turn(evutil_socket_t fd, short what, void *user) {
    fx_loop *loop = user;
    (void)fd, (void)what;
    loop->turned_ms = fx_clock_ms();
}

bool fx_loop_open(uint32_t inbox_max, fx_loop **out, fx_error *err) {
    FX_ASSERT(inbox_max > 0);
    fx_auto(fx_loop) loop = fx_alloc(1, sizeof *loop);
    if (!loop) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "open a loop");
    pthread_mutex_init(&loop->lock, NULL);
    loop->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (loop->fd < 0) return fx_fail_errno(err, "eventfd");
    loop->cap = inbox_max;
    loop->ring = fx_alloc(inbox_max, sizeof *loop->ring);
    loop->base = event_base_new();
    if (loop->base) {
        loop->wake = event_new(loop->base, loop->fd, EV_READ | EV_PERSIST, on_wake, loop);
        loop->turn = event_new(loop->base, -1, EV_PERSIST, on_turn, loop);
    }
    if (!loop->ring || !loop->wake || !loop->turn || event_add(loop->wake, NULL) != 0 ||
        event_add(loop->turn, &(struct timeval){0, FX_LOOP_TURN_MS * 1000L}) != 0)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "open a loop");
    *out = fx_take(loop);
    return true;
}

struct event_base *fx_loop_base(fx_loop *loop) {
    return loop->base;
}

static void *run(void *argument) {
    fx_loop *loop = argument;
    (void)pthread_setname_np(pthread_self(), "loop");
    (void)event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY);
    return NULL;
}

bool fx_loop_start(fx_loop *loop, fx_error *err) {
    FX_ASSERT(!loop->running);
    loop->running = true;
    loop->turned_ms = fx_clock_ms();
    int rc = pthread_create(&loop->thread, NULL, run, loop);
    if (rc == 0) return true;
    loop->running = false;
    return fx_fail(err, FX_RESOURCE_EXHAUSTED, "start a thread: %s", strerror(rc));
}

bool fx_loop_post(fx_loop *loop, void (*fn)(void *user), void *user) {
    pthread_mutex_lock(&loop->lock);
    bool fits = loop->count < loop->cap && !loop->stopping;
    if (fits) {
        loop->ring[(loop->head + loop->count) % loop->cap] = (struct job){fn, user};
        loop->count++;
    }
    pthread_mutex_unlock(&loop->lock);
    if (fits) wake_up(loop);
    return fits;
}

struct awaited {
    void (*fn)(void *user);
    void *user;
    pthread_mutex_t lock;
    pthread_cond_t done_change;
    bool done;
};

static void run_awaited(void *argument) {
    struct awaited *awaited = argument;
    awaited->fn(awaited->user);
    pthread_mutex_lock(&awaited->lock);
    awaited->done = true;
    pthread_cond_signal(&awaited->done_change);
    pthread_mutex_unlock(&awaited->lock);
}

bool fx_loop_call(fx_loop *loop, void (*fn)(void *user), void *user) {
    if (!loop->running) {
        fn(user);
        return true;
    }
    struct awaited awaited = {.fn = fn, .user = user};
    pthread_mutex_init(&awaited.lock, NULL);
    pthread_cond_init(&awaited.done_change, NULL);
    bool posted = fx_loop_post(loop, run_awaited, &awaited);
    pthread_mutex_lock(&awaited.lock);
    while (posted && !awaited.done)
        pthread_cond_wait(&awaited.done_change, &awaited.lock);
    pthread_mutex_unlock(&awaited.lock);
    pthread_cond_destroy(&awaited.done_change);
    pthread_mutex_destroy(&awaited.lock);
    return posted;
}

uint64_t fx_loop_silence_ms(const fx_loop *loop) {
    uint64_t turned_ms = loop->turned_ms, now_ms = fx_clock_ms();
    return now_ms > turned_ms ? now_ms - turned_ms : 0;
}

bool fx_loop_turned_within(const fx_loop *loop, uint64_t ms, const char *name, char *reason,
                           size_t reason_size) {
    uint64_t ago_ms = fx_loop_silence_ms(loop);
    if (ago_ms < ms) return true;
    (void)snprintf(reason, reason_size, "%s has not turned for %llu ms", name,
                   (unsigned long long)ago_ms);
    return false;
}

void fx_loop_stop(fx_loop *loop) {
    if (!loop->running) return;
    pthread_mutex_lock(&loop->lock);
    loop->stopping = true;
    pthread_mutex_unlock(&loop->lock);
    wake_up(loop);
    pthread_join(loop->thread, NULL);
    loop->running = false;
}

void fx_loop_free(fx_loop *loop) {
    if (!loop) return;
    fx_loop_stop(loop);
    if (loop->wake) event_free(loop->wake);
    if (loop->turn) event_free(loop->turn);
    if (loop->base) event_base_free(loop->base);
    if (loop->fd >= 0) (void)close(loop->fd);
    free(loop->ring);
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}
