#include "tests/bench/source_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "tests/bench/child.h"

enum { TICK_US = 1000, INBOX = 16384, LENGTH = 2, CANCELLED = 3, DIGITS_MAX = 6 };

/* -- generations -- */

static uint32_t *chain_of(struct source *source, const uint8_t *id) {
    uint32_t head;
    memcpy(&head, id, sizeof head); /* ids are random */
    return &source->hash[head & (SOURCE_GENS - 1)];
}

struct source_gen *source__find(struct source *source, const uint8_t *id) {
    for (uint32_t at = *chain_of(source, id); at != SOURCE_NONE; at = source->gens[at].next_hash)
        if (memcmp(source->gens[at].id, id, SOURCE_ID_BYTES) == 0) return &source->gens[at];
    return NULL;
}

static void forget(struct source *source, uint32_t index) {
    struct source_gen *gen = &source->gens[index];
    uint32_t *at = chain_of(source, gen->id);
    FX_ASSERT(!gen->runs);
    while (*at != index)
        at = &source->gens[*at].next_hash;
    *at = gen->next_hash;
}

/* The numbers that the prompt ends with: "... STREAM/PACE". */
static uint32_t number_before(fx_span *text) {
    uint32_t value = 0, unit = 1;
    for (int i = 0; i < DIGITS_MAX && text->len; i++) {
        uint8_t c = text->at[text->len - 1];
        if (c < '0' || c > '9') break;
        value += unit * (uint32_t)(c - '0');
        unit *= 10;
        text->len--;
    }
    if (text->len) text->len--; /* the slash */
    return value;
}

void source__begin(struct source *source, const uint8_t *id, fx_span prompt, uint32_t max) {
    uint32_t pace_ms = number_before(&prompt);
    uint32_t stream = number_before(&prompt) % SOURCE_STREAMS_MAX;
    struct source_worker *worker = &source->workers[stream / SOURCE_SLOTS];
    uint32_t index = source->gen_next;
    struct source_gen *gen = &source->gens[index];
    uint32_t *chain;
    if (source__find(source, id)) return; /* submitted again */
    if (gen->used) forget(source, index);
    source->gen_next = (index + 1) & (SOURCE_GENS - 1);
    chain = chain_of(source, id);
    *gen = (struct source_gen){.used = true,
                               .runs = true,
                               .max = max,
                               .stream = stream,
                               .ready_ms = fx_clock_ms() + SOURCE_FIRST_MS,
                               .next_hash = *chain,
                               .next_work = worker->first};
    memcpy(gen->id, id, SOURCE_ID_BYTES);
    *chain = index;
    if (worker->first == SOURCE_NONE) { /* workers do not step in time with each other */
        uint32_t phase = pace_ms ? stream / SOURCE_SLOTS * 7919 % pace_ms : 0;
        worker->due_ms = gen->ready_ms + phase;
    }
    worker->pace_ms = pace_ms;
    worker->first = index;
}

static void end(struct source_gen *gen, uint32_t reason) {
    gen->runs = false;
    source__tell_finish(gen, reason);
}

void source__cancel(struct source *source, const uint8_t *id) {
    struct source_gen *gen = source__find(source, id);
    if (gen && gen->runs) end(gen, CANCELLED);
}

/* -- steps -- */

static void time_note(struct source *source, const struct source_gen *gen) {
    struct timespec now;
    if (gen->stream >= SOURCE_TIMES_STREAMS || gen->n > SOURCE_TIMES_TOKENS) return;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    source->opts->times->ns[gen->stream][gen->n - 1] =
        (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* True when it made a token. */
static bool gen_step(struct source *source, struct source_gen *gen, uint64_t now_ms) {
    if (!gen->runs || now_ms < gen->ready_ms) return false;
    gen->n++;
    time_note(source, gen);
    source__tell_token(gen);
    if (gen->n == gen->max) end(gen, LENGTH);
    return true;
}

static bool worker_step(struct source *source, struct source_worker *worker, uint64_t now_ms) {
    bool made = false;
    for (uint32_t *at = &worker->first; *at != SOURCE_NONE;) {
        struct source_gen *gen = &source->gens[*at];
        made |= gen_step(source, gen, now_ms);
        if (gen->runs)
            at = &gen->next_work;
        else
            *at = gen->next_work;
    }
    worker->due_ms += worker->pace_ms;
    return made;
}

/* A step of every worker that is due. One without a pace is due when the last step has left. */
static void on_step(evutil_socket_t fd, short what, void *arg) {
    struct source *source = arg;
    bool taken = source__flush(source), again = false;
    uint64_t now_ms = fx_clock_ms();
    (void)fd, (void)what;
    for (uint32_t i = 0; i < SOURCE_WORKERS; i++) {
        struct source_worker *worker = &source->workers[i];
        if (worker->first == SOURCE_NONE) continue;
        if (worker->pace_ms ? now_ms >= worker->due_ms : taken)
            again |= worker_step(source, worker, now_ms) && !worker->pace_ms;
    }
    (void)source__flush(source);
    if (again) event_active(source->pump, EV_TIMEOUT, 1);
}

/* -- life -- */

static FX_MUST bool parts_open(struct source *source, fx_error *err) {
    struct timeval tick = {0, TICK_US};
    if (!fx_loop_open(INBOX, &source->loop, err) || !source__listen(source, err)) return false;
    source->pump = event_new(fx_loop_base(source->loop), -1, 0, on_step, source);
    source->tick = event_new(fx_loop_base(source->loop), -1, EV_PERSIST, on_step, source);
    if (!source->pump || !source->tick || event_add(source->tick, &tick) != 0)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a timer");
    return source__serve(source, err) && fx_loop_start(source->loop, err);
}

static FX_MUST bool memory_open(struct source *source, fx_error *err) {
    source->gens = fx_alloc(SOURCE_GENS, sizeof *source->gens);
    source->hash = fx_alloc(SOURCE_GENS, sizeof *source->hash);
    source->workers = fx_alloc(SOURCE_WORKERS, sizeof *source->workers);
    if (!source->gens || !source->hash || !source->workers)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for generations");
    for (uint32_t i = 0; i < SOURCE_GENS; i++)
        source->hash[i] = SOURCE_NONE;
    for (uint32_t i = 0; i < SOURCE_WORKERS; i++)
        source->workers[i].first = SOURCE_NONE;
    return true;
}

void source_serve(int tell, void *opts) {
    static struct source source;
    fx_error err = {0};
    source.opts = opts;
    if (!memory_open(&source, &err) || !parts_open(&source, &err)) {
        (void)fprintf(stderr, "token source: %s\n", err.text);
        return;
    }
    bench_child_tell(tell, fx_server_port(source.server));
    for (;;)
        (void)pause();
}
