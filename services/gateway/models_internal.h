#pragma once
#include "services/gateway/models.h"

/* Private to models*.c. */

enum {
    GW_MODELS_REPLY_BYTES = 1 << 20,
    GW_MODELS_FRESH_MS = 100, /* a list this young settles a miss */
    GW_MODELS_LIST_DEADLINE_MS = 2000,
};

TAILQ_HEAD(gw_models_waiters, gw_models_waiter);

/** One tokenizer by digest. A READY one is a reference of ours. */
struct gw_vocab_slot {
    char digest[GW_DIGEST_MAX];
    enum gw_vocab_state state;
    struct gw_vocab *vocab;
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
    uint8_t *reply_memory;
    fx_arena reply;
    struct gw_models_waiters waiters;
    size_t waiter_count;
};

/** Asks for the list, unless that is under way: then once more after it. */
void gw_models__list(struct gw_models *models);
/** Asks for the tokenizers that are missing. */
void gw_models__vocabs(struct gw_models *models);
/** Hands the list's models their tokenizers and drops those that no model uses. */
void gw_models__bind(struct gw_models *models);
bool gw_models__vocab_failed(const struct gw_models *models, const char *digest);
void gw_models__settle(struct gw_models *models);
