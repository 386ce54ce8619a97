#pragma once
#include "common/base/error.h"
#include "common/base/logprob.h"
#include "common/model/store.h"
#include "engine/sampler.h"
#include <stddef.h>

/** The inference engine: model, paged KV and continuous batch. All memory is taken at open; a step
 *  allocates nothing. A sequence's logits and tokens depend on its ids and parameters alone, never
 *  on its companions (docs/ARCHITECTURE.md, the numerics contract).
 *  @thread the opener's, unless said otherwise */
typedef struct fx_engine fx_engine;

enum {
    FX_ENGINE_SLOTS_MAX = 1024,
    FX_ENGINE_STOPS_MAX = 32, /* stop ids of a sequence */
    FX_ENGINE_DETAIL_MAX = 128,
};

/** One row of a traced step. Borrowed during the callback. */
struct fx_engine_row {
    uint32_t sequence, position;
    const float *logits;    /* [vocab] */
    const int32_t *experts; /* [layers][experts_per_token] chosen ids, best first; NULL if dense */
};

struct fx_engine_opts {
    const fx_model *model;   /* borrowed; outlives the engine */
    const char *backend;     /* "ref" or "cpu"; the same bits */
    const char *kv_dtype;    /* "f32" or "f16" */
    uint32_t threads;        /* compute threads, the caller is one */
    uint64_t kv_bytes;       /* of the KV pool */
    uint32_t page_tokens;    /* 16 or 64 */
    uint32_t slots;          /* sequences at once, waiting ones included */
    uint32_t rows_max;       /* rows of a step, >= slots */
    uint32_t chunk_rows_max; /* prefill rows of one sequence in a step, <= rows_max */
    uint32_t context_max;    /* 0: the model's; the pool may allow less still */
    void (*on_row)(void *ctx, const struct fx_engine_row *row); /* not NULL: every row has its
                                  logits computed and told, for tests and tools; slower */
    void *ctx;
};

/** @own caller, fx_engine_free() @err INVALID_ARGUMENT names the option, RESOURCE_EXHAUSTED */
FX_MUST bool fx_engine_open(const struct fx_engine_opts *opts, fx_engine **out, fx_error *err);
/** NULL is fine. */
void fx_engine_free(fx_engine *engine);
FX_DEFINE_AUTO(fx_engine, fx_engine_free)

/** A generation: new, or resumed behind the tokens that are logged already. */
struct fx_sequence {
    const uint32_t *prompt;
    uint32_t prompt_count; /* >= 1 */
    const uint32_t *logged;
    uint32_t logged_count;
    const uint32_t *stops; /* ids that end it; the one met is its last token */
    uint32_t stop_count;
    uint32_t max_tokens; /* generated, logged ones included, >= 1; the context is a ceiling too */
    struct fx_sampling sampling;
    uint32_t logprobs; /* wanted of each token: 0 = none, else its own and those of the likeliest
                          logprobs - 1, by the raw logits; <= FX_LOGPROBS_MAX */
};

/** Copies `sequence` into a free slot. `out` is its number until it ends or is removed.
 *  @err INVALID_ARGUMENT (ids, parameters), OUT_OF_RANGE (prompt + 1 exceeds the context or the
 *  usable pool), RESOURCE_EXHAUSTED (no free slot) */
FX_MUST bool fx_engine_add(fx_engine *engine, const struct fx_sequence *sequence, uint32_t *out,
                           fx_error *err);
/** Ends a sequence between steps: its slot and pages are free at once. */
void fx_engine_remove(fx_engine *engine, uint32_t sequence);

enum fx_engine_end {
    FX_ENGINE_RUNS,   /* not the last */
    FX_ENGINE_STOP,   /* a stop id */
    FX_ENGINE_LENGTH, /* max_tokens or the context */
    FX_ENGINE_FAILED, /* `detail` says why */
};
/** What a step did for one sequence. With another `end` than RUNS its slot is free again. */
struct fx_engine_result {
    uint32_t sequence;
    uint32_t number; /* of the token, from 1; 0: no token */
    uint32_t token;
    enum fx_engine_end end;
    const char *detail;                /* "" unless FAILED; borrowed until the next step */
    const struct fx_logprob *logprobs; /* [logprobs wanted] of the token; NULL: none; borrowed */
};

/** One step of the continuous batch: a row for each sequence that decodes, then prefill chunks of
 *  the others, oldest first, as the row budget allows. A sequence that finds no KV page pre-empts
 *  the youngest, which waits and prefills its prompt and tokens again; its text stays the same.
 *  `results` is borrowed until the next call, at most one per sequence. Nothing to do: 0 results
 *  and no step counted. */
void fx_engine_step(fx_engine *engine, const struct fx_engine_result **results, size_t *count);
/** Is there a sequence? */
bool fx_engine_busy(const fx_engine *engine);

/** Largest prompt + generated tokens of a sequence. @thread any */
uint32_t fx_engine_context_max(const fx_engine *engine);
uint32_t fx_engine_vocab(const fx_engine *engine);
/** Grows with every op of a step. @thread any */
uint64_t fx_engine_progress(const fx_engine *engine);
/** "avx2", "plain", "ref": what computes here. Same bits. @thread any */
const char *fx_engine_level(const fx_engine *engine);

/** Counters since open, and gauges. */
struct fx_engine_stats {
    uint64_t steps, rows, tokens_prefilled, tokens_decoded, preemptions, rows_failed;
    uint64_t logged_prefilled, logged_sampled; /* of tokens that were logged when their sequence was
                                                  added: computed again; drawn again, always 0 */
    uint64_t dense_matmuls, dense_rows, expert_matmuls, expert_rows, weight_bytes;
    uint32_t slots, slots_free, running, waiting, pages, pages_free;
};
struct fx_engine_stats fx_engine_stats(const fx_engine *engine);
