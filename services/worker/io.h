#pragma once
#include "services/worker/config.h"
#include "services/worker/engine_thread.h"
#include "services/worker/status.h"

/** The worker's I/O thread: Redis (pull, append, renew, finish, cancel hints) and the scheduler's
 *  heartbeat, on one loop. */
typedef struct worker_io worker_io;

struct worker_io_opts {
    const struct worker_config *config;
    const struct fx_model_info *model; /* all borrowed, outlive it */
    const fx_tokenizer *tokenizer;     /* NULL: stop strings can't be served */
    engine_thread *engine;
    struct worker_status *status;
    const char *worker;
};

/** Starts the thread. Redis and the scheduler may be away: it waits for them, unready.
 *  @own caller, worker_io_free(), before the engine's thread @err INVALID_ARGUMENT (URL, address),
 *  RESOURCE_EXHAUSTED */
FX_MUST bool worker_io_open(const struct worker_io_opts *opts, worker_io **out, fx_error *err);
/** Takes no more generations, tells the scheduler, and waits at most `grace_ms` for those that run;
 *  what is left then is given back, for another worker to go on with at once. @thread main */
void worker_io_drain(worker_io *io, uint32_t grace_ms);
/** NULL is fine. @thread main */
void worker_io_free(worker_io *io);
FX_DEFINE_AUTO(worker_io, worker_io_free)
