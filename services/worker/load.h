#pragma once
#include "services/worker/engine_thread.h"
#include "services/worker/status.h"

/** What takes long at the start, on a thread of its own: the model, its engine, its tokenizer. */
typedef struct worker_load worker_load;
struct worker_parts {
    fx_model *model;
    engine_thread *engine;
    fx_tokenizer *tokenizer; /* NULL: stop strings can't be served */
};

/** Starts the thread. Both are borrowed. @own caller, worker_load_free()
 *  @err RESOURCE_EXHAUSTED @thread main, as all below */
FX_MUST bool worker_load_start(const struct worker_config *config, struct worker_status *status,
                               worker_load **out, fx_error *err);
bool worker_load_ended(const worker_load *load);
/** How it ended. @err as fx_store_open, engine_thread_open */
FX_MUST bool worker_load_result(const worker_load *load, fx_error *err);
/** Once it ended well. */
const struct worker_parts *worker_load_parts(const worker_load *load);
/** Waits for the thread and frees the parts. NULL is fine. */
void worker_load_free(worker_load *load);
FX_DEFINE_AUTO(worker_load, worker_load_free)
