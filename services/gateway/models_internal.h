#pragma once
#include "services/gateway/models.h"

/* Private to models*.c. */

enum {
    GW_MODELS_REPLY_BYTES = 1 << 20,
    GW_MODELS_FRESH_MS = 100, /* a list this young settles a miss */
    GW_MODELS_LIST_DEADLINE_MS = 2000,
    GW_VOCAB_BYTES_MAX = 96 * 1024 * 1024, /* both files of a tokenizer */
    GW_VOCAB_DEADLINE_MS = 30000,
    GW_VOCAB_AGAIN_MS = 5000, /* after a failure */
};

TAILQ_HEAD(gw_models_waiters, gw_models_waiter);

/** One tokenizer by digest: fetched, or why not yet. */
struct gw_vocab_slot {
    char digest[GW_DIGEST_MAX];
    struct gw_vocab *vocab;
    uint64_t failed_ms; /* 0: has not failed */
};

struct gw_models {
    struct gw_models_opts opts;
    struct event *poll;
    bool listed, list_failed, listing, list_again;
    uint64_t listed_ms; /* when the last good answer came */
    struct gw_model list[GW_MODELS_MAX];
    size_t count;
    struct gw_vocab_slot vocabs[GW_MODELS_MAX];
    size_t vocab_count;
    bool fetching;
    char fetch_digest[GW_DIGEST_MAX];
    uint8_t *reply_memory, *fetch_memory;
    fx_arena reply, fetch;
    struct gw_models_waiters waiters;
    size_t waiter_count;
};

/** Asks for the list, unless that is under way: then once more after it. */
void gw_models__list(struct gw_models *models);
/** Fetches the next tokenizer that is missing. */
void gw_models__vocabs(struct gw_models *models);
/** Hands the list's models their tokenizers and drops those that no model uses. */
void gw_models__bind(struct gw_models *models);
bool gw_models__vocab_failed(const struct gw_models *models, const char *digest);
void gw_models__settle(struct gw_models *models);
