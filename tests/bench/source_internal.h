#pragma once
/* Private to tests/bench/source*.c. All of it belongs to the loop's thread. */
#include <event2/event.h>
#include "common/base/span.h"
#include "common/rpc/loop.h"
#include "common/rpc/server.h"
#include "tests/bench/source.h"

enum {
    SOURCE_ID_BYTES = 16,
    SOURCE_GENS = 1 << 17, /* remembered, a power of two; the oldest is forgotten */
    SOURCE_WORKERS = SOURCE_STREAMS_MAX / SOURCE_SLOTS,
};
#define SOURCE_NONE UINT32_MAX

/** A generation: its log is n letters, then perhaps a finish. */
struct source_gen {
    uint8_t id[SOURCE_ID_BYTES];
    bool used, runs;
    uint32_t n, max, stream;
    uint64_t ready_ms;             /* its first step may be taken */
    struct source_link *watcher;   /* subscribed to its hints; NULL: nobody */
    uint32_t next_hash, next_work; /* index, SOURCE_NONE: the last */
};

/** The generations that take their steps together. */
struct source_worker {
    uint32_t first; /* index, SOURCE_NONE: none */
    uint32_t pace_ms;
    uint64_t due_ms;
};

/** A connection to our Redis. */
struct source_link {
    struct source_link *next;
    struct source *source;
    int fd;
    struct event *readable, *writable;
    uint8_t *in, *out;
    size_t in_len, in_cap, out_at, out_len, out_cap;
    uint32_t channels;
};

struct source {
    const struct source_opts *opts;
    fx_loop *loop;
    fx_server *server;
    struct event *tick, *pump, *listening;
    struct source_link *links;
    struct source_gen *gens; /* [SOURCE_GENS] */
    uint32_t gen_next, *hash;
    struct source_worker *workers; /* [SOURCE_WORKERS] */
    char *tokenizer;
    size_t tokenizer_len;
};

/* source.c */
struct source_gen *source__find(struct source *source, const uint8_t *id);
/** A new generation. `prompt`: the letters of its prompt. */
void source__begin(struct source *source, const uint8_t *id, fx_span prompt, uint32_t max);
/** Ends it, with a finish record: cancelled. */
void source__cancel(struct source *source, const uint8_t *id);

/* source_redis.c */
FX_MUST bool source__listen(struct source *source, fx_error *err);
/** Publishes to whom watches it: a token, the finish. */
void source__tell_token(struct source_gen *gen);
void source__tell_finish(struct source_gen *gen, uint32_t reason);
/** Sends what is there. False: some is left. */
bool source__flush(struct source *source);

/* source_rpc.c */
FX_MUST bool source__serve(struct source *source, fx_error *err);
