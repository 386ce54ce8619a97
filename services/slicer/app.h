#pragma once
#include <stdatomic.h>
#include "common/rpc/loop.h"
#include "common/rpc/server.h"
#include "common/rpc/service.h"
#include "fractal/v1/slicer.pb-c.h"

enum {
    SLICER_CALLS_MAX = 64,
    SLICER_ARENA_BYTES = 64 * 1024,
    SLICER_MESSAGE_BYTES_MAX = 96 * 1024 * 1024, /* a tokenizer */
    SLICER_VERIFIES_MAX = 4,                     /* that wait */
    SLICER_PROGRESS_MS = 50,                     /* at most one message in so long */
    SLICER_LAST_SEND_MS = 10000,                 /* for the client to take the last message */
};

/** What the handlers share. Files are touched on three threads of their own, so that a short look
 *  never waits for an import: `reads` (list, manifest, tokenizer), `imports`, `verifies`. */
struct slicer_app {
    const char *model_dir; /* borrowed from the environment */
    char token[FX_TOKEN_MAX];
    fx_loop *reads, *imports, *verifies;
    fx_server *server;
    _Atomic uint64_t stop_at_ms; /* of a drain: when imports and verifications end; 0: none */
    _Atomic bool importing;      /* one runs */
    _Atomic uint64_t models, imports_done, imports_failed, import_done_bytes, import_total_bytes;
    _Atomic uint64_t verified, verify_failed;
};

/** One call on its way through one of the threads; lives in the call's arena. */
struct slicer_job {
    struct slicer_app *app;
    fx_call *call;
    const void *request;
};
/** Hands the call to a thread as a struct slicer_job, or ends it: RESOURCE_EXHAUSTED.
 *  @return whether it was handed over */
bool slicer_post(fx_loop *loop, fx_call *call, const void *request, struct slicer_app *app,
                 void (*run)(void *job));

/** Handlers; `app` is the struct slicer_app. */
fx_handler slicer_import, slicer_list, slicer_manifest, slicer_tokenizer, slicer_verify;
extern const struct fx_method slicer_methods[];
extern const size_t slicer_method_count;

/** Counts the store's models. @err NOT_FOUND: no such folder */
FX_MUST bool slicer_count_models(struct slicer_app *app, fx_error *err);
/** What runs is to end: the drain's time is over. @thread any */
bool slicer_stops(const struct slicer_app *app);
/** For the admin endpoints. @thread any */
bool slicer_ready(void *app, char *reason);
void slicer_metrics(void *app, fx_buf *out);
