#pragma once
#include "services/worker/gen.h"

/** The thread that owns model, KV and step. Orders go in and news come out by bounded rings. */
typedef struct engine_thread engine_thread;

struct engine_thread_opts {
    struct fx_engine_opts engine;
    /** After every step, with the engine's counters. @thread engine */
    void (*publish)(void *ctx, const struct fx_engine_stats *stats);
    void *ctx;
};

/** Starts the thread and waits until its engine is open. @own caller, engine_thread_free()
 *  @err as fx_engine_open */
FX_MUST bool engine_thread_open(const struct engine_thread_opts *opts, engine_thread **out,
                                fx_error *err);
/** Lets every sequence go, ends the thread and frees. NULL is fine. */
void engine_thread_free(engine_thread *thread);
FX_DEFINE_AUTO(engine_thread, engine_thread_free)

/** Never fails: the ring holds what the slots can have under way. @thread I/O */
void engine_thread_order(engine_thread *thread, struct order order);
/** False: none. @thread I/O */
bool engine_thread_news(engine_thread *thread, struct news *out);
/** An eventfd that is readable when there may be news; read it before taking them. */
int engine_thread_fd(const engine_thread *thread);
/** Grows with every op of a step. @thread any */
uint64_t engine_thread_progress(const engine_thread *thread);
uint32_t engine_thread_context_max(const engine_thread *thread);
/** What computes: "avx2", "plain", "ref". */
const char *engine_thread_level(const engine_thread *thread);
