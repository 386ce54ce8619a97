#include "services/worker/engine_thread.h"
#include "common/base/heap.h"
#include "common/base/ring.h"
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    PAGE_TOKENS = 64,
    CHUNK_ROWS = 128,    /* of a prefill in one step */
    NEWS_PER_SLOT = 64,  /* steps the I/O thread may be behind */
    ORDERS_PER_SLOT = 4, /* a late drop, the next add, its drop */
    IDLE_MS = 1000,
    FULL_WAIT_US = 500,
};

struct engine_thread {
    struct engine_thread_opts opts;
    fx_engine *engine;
    fx_ring *orders, *news;
    int orders_fd, news_fd;
    struct gen **held; /* [slots] whose sequence it is */
    pthread_t thread;
    bool started;
    _Atomic bool quit;
    sem_t opened;
    bool open_ok; /* set before `opened` is posted */
    fx_error open_err;
};

static void wake(int fd) {
    uint64_t one = 1;
    ssize_t ignored = write(fd, &one, sizeof(one));
    (void)ignored; /* a full counter wakes as well */
}

/* ---- on the thread ---- */

/* A full ring means an I/O thread that does not run: the engine waits with it, and the leases,
 * renewed only while there is progress, pass to others. */
static void news_push(engine_thread *self, struct news news) {
    while (!fx_ring_push(self->news, &news)) {
        if (atomic_load(&self->quit)) return;
        wake(self->news_fd);
        (void)usleep(FULL_WAIT_US);
    }
}

static void gen_end(engine_thread *self, struct gen *gen, enum fx_engine_end end,
                    const char *detail) {
    gen->end = end;
    (void)snprintf(gen->detail, sizeof(gen->detail), "%s", detail);
    news_push(self, (struct news){NEWS_END, gen, 0, 0});
}

static bool is_stop_id(const struct gen *gen, uint32_t token) {
    for (uint32_t i = 0; i < gen->stop_count; i++)
        if (gen->stops[i] == token) return true;
    return false;
}

/* Does token `number` complete a stop string? What min_tokens asks for is not searched. */
static bool stop_met(struct gen *gen, uint32_t number, uint32_t token) {
    if (!gen->stop.stops || is_stop_id(gen, token)) return false;
    return gen_stop_token(&gen->stop, token, number > gen->sampling.min_tokens);
}

/* An earlier worker may have met it and not got to say so. */
static bool stop_was_met(struct gen *gen) {
    for (uint32_t i = 0; i < gen->logged; i++)
        if (stop_met(gen, i + 1, gen_tokens(gen)[i])) return true;
    return false;
}

static void order_add(engine_thread *self, struct gen *gen) {
    if (stop_was_met(gen)) {
        gen_end(self, gen, FX_ENGINE_STOP, "");
        return;
    }
    const struct fx_sequence sequence = {
        .prompt = gen->ids,
        .prompt_count = gen->prompt_count,
        .logged = gen_tokens(gen),
        .logged_count = gen->logged,
        .stops = gen->stops,
        .stop_count = gen->stop_count,
        .max_tokens = gen->max_tokens,
        .sampling = gen->sampling,
        .logprobs = gen->logprobs_each,
    };
    fx_error err = {0};
    uint32_t number;
    if (fx_engine_add(self->engine, &sequence, &number, &err))
        self->held[number] = gen;
    else
        gen_end(self, gen, FX_ENGINE_FAILED, err.text);
}

static void order_drop(engine_thread *self, struct gen *gen) {
    for (uint32_t i = 0; i < self->opts.engine.slots; i++)
        if (self->held[i] == gen) {
            fx_engine_remove(self->engine, i);
            self->held[i] = NULL;
            gen_end(self, gen, FX_ENGINE_RUNS, "");
        }
}

static void orders_take(engine_thread *self) {
    struct order order;
    while (fx_ring_pop(self->orders, &order)) {
        if (order.kind == ORDER_ADD)
            order_add(self, order.gen);
        else
            order_drop(self, order.gen);
    }
}

static void result_tell(engine_thread *self, const struct fx_engine_result *result) {
    struct gen *gen = self->held[result->sequence];
    enum fx_engine_end end = result->end;
    if (result->number) {
        if (result->logprobs)
            memcpy(gen_logprobs(gen, result->number), result->logprobs,
                   gen->logprobs_each * sizeof(*result->logprobs));
        news_push(self, (struct news){NEWS_TOKEN, gen, result->number, result->token});
        if (stop_met(gen, result->number, result->token)) end = FX_ENGINE_STOP;
    }
    if (end == FX_ENGINE_RUNS) return;
    if (result->end == FX_ENGINE_RUNS) fx_engine_remove(self->engine, result->sequence);
    self->held[result->sequence] = NULL;
    gen_end(self, gen, end, result->detail);
}

static void step(engine_thread *self) {
    const struct fx_engine_result *results;
    size_t count;
    fx_engine_step(self->engine, &results, &count);
    for (size_t i = 0; i < count; i++)
        result_tell(self, &results[i]);
}

static void publish(engine_thread *self) {
    struct fx_engine_stats stats = fx_engine_stats(self->engine);
    self->opts.publish(self->opts.ctx, &stats);
    wake(self->news_fd);
}

static void idle(engine_thread *self) {
    struct pollfd wait = {self->orders_fd, POLLIN, 0};
    uint64_t count;
    if (poll(&wait, 1, IDLE_MS) <= 0) return;
    ssize_t ignored = read(self->orders_fd, &count, sizeof(count));
    (void)ignored;
}

static void serve(engine_thread *self) {
    publish(self);
    while (!atomic_load(&self->quit)) {
        bool busy = fx_engine_busy(self->engine);
        if (!busy && fx_ring_count(self->orders) == 0) {
            idle(self);
            continue;
        }
        orders_take(self);
        step(self);
        publish(self);
    }
}

/* Reads one byte of every page, so that the first answer does not wait for the disk. */
static void weights_touch(const fx_model *model) {
    fx_span pack = fx_model_get_pack(model);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile uint8_t seen = 0;
    for (size_t at = 0; at < pack.len; at += page)
        seen = (uint8_t)(seen + pack.at[at]);
}

static void *run(void *user) {
    engine_thread *self = user;
    (void)pthread_setname_np(pthread_self(), "engine");
    weights_touch(self->opts.engine.model);
    bool opened = fx_engine_open(&self->opts.engine, &self->engine, &self->open_err);
    self->open_ok = opened;
    (void)sem_post(&self->opened);
    if (!opened) return NULL;
    fx_heap_seal(); /* a step that allocates is a bug from here on */
    serve(self);
    fx_engine_free(self->engine);
    return NULL;
}

/* ---- elsewhere ---- */

static FX_MUST bool rings_open(engine_thread *self, fx_error *err) {
    uint32_t slots = self->opts.engine.slots;
    self->held = fx_alloc(slots, sizeof(struct gen *));
    self->orders_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!self->held || self->orders_fd < 0 || self->news_fd < 0)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "the engine's rings");
    return fx_ring_open(slots * ORDERS_PER_SLOT, sizeof(struct order), &self->orders, err) &&
           fx_ring_open(slots * NEWS_PER_SLOT, sizeof(struct news), &self->news, err);
}

static FX_MUST bool thread_start(engine_thread *self, fx_error *err) {
    if (pthread_create(&self->thread, NULL, run, self) != 0)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no thread for the engine");
    self->started = true;
    while (sem_wait(&self->opened) != 0)
        continue;
    if (!self->open_ok) *err = self->open_err;
    return self->open_ok;
}

bool engine_thread_open(const struct engine_thread_opts *opts, engine_thread **out, fx_error *err) {
    fx_auto(engine_thread) self = fx_alloc(1, sizeof(*self));
    if (!self) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "the engine's thread");
    self->opts = *opts;
    self->orders_fd = self->news_fd = -1;
    if (sem_init(&self->opened, 0, 0) != 0) return fx_fail_errno(err, "semaphore");
    if (!rings_open(self, err) || !thread_start(self, err)) return false;
    *out = fx_take(self);
    return true;
}

void engine_thread_free(engine_thread *self) {
    if (!self) return;
    atomic_store(&self->quit, true);
    if (self->orders_fd >= 0) wake(self->orders_fd);
    if (self->started) (void)pthread_join(self->thread, NULL);
    if (self->orders_fd >= 0) (void)close(self->orders_fd);
    if (self->news_fd >= 0) (void)close(self->news_fd);
    (void)sem_destroy(&self->opened);
    fx_ring_free(self->orders);
    fx_ring_free(self->news);
    free(self->held);
    free(self);
}

void engine_thread_order(engine_thread *self, struct order order) {
    FX_ASSERT(fx_ring_push(self->orders, &order));
    wake(self->orders_fd);
}

bool engine_thread_news(engine_thread *self, struct news *out) {
    return fx_ring_pop(self->news, out);
}

int engine_thread_fd(const engine_thread *self) {
    return self->news_fd;
}

uint64_t engine_thread_progress(const engine_thread *self) {
    return fx_engine_progress(self->engine);
}

uint32_t engine_thread_context_max(const engine_thread *self) {
    return fx_engine_context_max(self->engine);
}

const char *engine_thread_level(const engine_thread *self) {
    return fx_engine_level(self->engine);
}
