#pragma once
#include "common/rpc/tls.h"
#include "services/gateway/vocab.h"

enum {
    GW_VOCABS_MAX = 512,
    GW_VOCAB_BYTES_MAX = 96 * 1024 * 1024, /* both files of a tokenizer */
    GW_VOCAB_DEADLINE_MS = 30000,
    GW_VOCAB_AGAIN_MS = 5000, /* after a failure */
    GW_VOCAB_KEEP_MS = 10000, /* one that no loop uses */
};

/** The tokenizers of the process by digest, one copy for all loops. They are fetched from the
 *  slicer and parsed on a thread of its own, one after the other: a large one takes a second, which
 *  no loop may stand still for. @thread any */
struct gw_vocabs;

struct gw_vocabs_opts {
    const char *slicer; /* borrowed */
    struct fx_tls tls;
    /** A digest was loaded, or can't be. On the loader's thread. */
    void (*on_change)(void *ctx);
    void *ctx;
    /** A load failed, for the log. */
    void (*on_error)(const char *what, const fx_error *err);
};

/** Starts the loader's thread. @own caller, gw_vocabs_free @err as fx_client_open */
FX_MUST bool gw_vocabs_open(const struct gw_vocabs_opts *opts, struct gw_vocabs **out,
                            fx_error *err);
/** Waits for a tokenizer that is being parsed; from then on nothing is loaded and nobody is told.
 *  NULL is fine. @thread the opener's */
void gw_vocabs_stop(struct gw_vocabs *vocabs);
/** Stops and frees, once nobody asks any more. NULL is fine. @thread the opener's */
void gw_vocabs_free(struct gw_vocabs *vocabs);

enum gw_vocab_state { GW_VOCAB_LOADING, GW_VOCAB_READY, GW_VOCAB_FAILED };
/** READY: `out` is a reference of the caller's. Otherwise it is being loaded; or that failed a
 *  moment ago and will be tried again when asked for later. */
enum gw_vocab_state gw_vocabs_want(struct gw_vocabs *vocabs, const char *digest,
                                   struct gw_vocab **out);
