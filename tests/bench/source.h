#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "common/base/error.h"

/* The scripted token source: one process that is all a gateway speaks to. Over common/rpc it
 * answers as tenant service, slicer and scheduler; on a unix socket it answers as the gateway's
 * Redis, with the log, hints and replies that fractal.lua would write. It runs no model: workers of
 * SOURCE_SLOTS slots each take a step for all of their generations, every so many ms or as soon as
 * the step before was taken, and a step's tokens leave in one write, as a worker's do. */

#define SOURCE_KEY "fx-bench"
#define SOURCE_MODEL "bench"
enum {
    SOURCE_SLOTS = 32,
    SOURCE_FIRST_MS = 2, /* from a submit to its first token: a prefill */
    SOURCE_STREAMS_MAX = 16384,
    SOURCE_TIMES_STREAMS = 64,
    SOURCE_TIMES_TOKENS = 1024,
};

/** Shared with the client: when token n of a stream was published, CLOCK_MONOTONIC in ns. */
struct source_times {
    atomic_bool odd; /* the source was asked what it does not know: the figures are none */
    _Atomic uint64_t ns[SOURCE_TIMES_STREAMS][SOURCE_TIMES_TOKENS];
};

struct source_opts {
    char socket[108];           /* of its Redis */
    struct source_times *times; /* shared memory */
};

/** Serves in a child until it is killed; tells the gRPC port. `opts` is a struct source_opts. */
void source_serve(int tell, void *opts);

/** Token n of every answer is this letter, in one token of the bundled tokenizer. */
static inline char source_letter(uint32_t n) {
    return (char)('a' + (n - 1) % 26);
}
/** What a prompt ends with: which stream it is and its pace. */
#define SOURCE_PROMPT "Say the letters %u/%u"
