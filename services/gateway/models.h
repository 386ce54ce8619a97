#pragma once
#include <sys/queue.h>
#include "common/rpc/client.h"
#include "services/gateway/errors.h"
#include "services/gateway/metrics.h"
#include "services/gateway/vocabs.h"

enum {
    GW_MODELS_MAX = 256,
    GW_MODEL_EOS_MAX = 16,
    GW_MODEL_TEXT_MAX = 129,
    GW_MODELS_POLL_MS = 2000,
    GW_MODELS_WAITERS_MAX = 4096,
    GW_MODELS_WAIT_MS = 30000, /* for a tokenizer */
};

/** One model of the store, as the slicer lists it. Plain data; `vocab` NULL until fetched. */
struct gw_model {
    char name[GW_MODEL_TEXT_MAX];
    char digest[GW_DIGEST_MAX];
    uint32_t number, context_max, vocabulary;
    uint64_t created_s;
    uint32_t eos_ids[GW_MODEL_EOS_MAX];
    uint32_t eos_count;
    struct gw_vocab *vocab; /* borrowed from the list: take a reference to keep it */
};

/** The slicer's models and their tokenizers, polled. @thread the loop's */
struct gw_models;

/** Somebody who waits for a model and its tokenizer. `found` or `refused` is called once, perhaps
 *  from inside gw_models_want. */
struct gw_models_waiter {
    TAILQ_ENTRY(gw_models_waiter) entry;
    const char *name;    /* borrowed while it waits */
    bool waiting, asked; /* asked: a list that was begun after its arrival is on the way */
    uint64_t since_ms;
    void *ctx;
    void (*found)(void *ctx, const struct gw_model *model);
    void (*refused)(void *ctx, const struct gw_problem *problem);
};

struct gw_models_opts {
    struct event_base *base;
    fx_client *slicer;
    struct gw_vocabs *vocabs; /* of all loops; borrowed */
    struct gw_metrics *metrics;
    /** A fetch failed, for the log. */
    void (*on_error)(const char *what, const fx_error *err);
};

/** Starts polling. @own caller, gw_models_free @err RESOURCE_EXHAUSTED */
FX_MUST bool gw_models_open(const struct gw_models_opts *opts, struct gw_models **out,
                            fx_error *err);
/** After its client has been freed. NULL is fine. */
void gw_models_free(struct gw_models *models);
/** gw_vocabs has news. */
void gw_models_vocabs_changed(struct gw_models *models);
/** False until the slicer has answered once. */
bool gw_models_listed(const struct gw_models *models);
size_t gw_models_count(const struct gw_models *models);
const struct gw_model *gw_models_at(const struct gw_models *models, size_t index);
const struct gw_model *gw_models_find(const struct gw_models *models, const char *name);
/** Finds a model; one that is not there is looked for at the slicer first. */
void gw_models_want(struct gw_models *models, struct gw_models_waiter *waiter);
/** Waits no more; fine when it does not. */
void gw_models_leave(struct gw_models *models, struct gw_models_waiter *waiter);
