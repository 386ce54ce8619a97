#pragma once
/* The engine's parts: private to engine/. */
#include "engine/engine.h"
#include "engine/kv.h"
#include "kernels/ops.h"

enum slot_state { SLOT_FREE, SLOT_WAITING, SLOT_RUNNING };

/* One sequence. ids = prompt, logged and generated tokens; the first `cached` are in the cache. */
struct fx_engine__slot {
    enum slot_state state;
    uint32_t *ids; /* [context_max] */
    uint32_t prompt_count, logged_count, count, cached;
    uint32_t count_max; /* ends when count reaches it */
    uint32_t stops[FX_ENGINE_STOPS_MAX], stop_count;
    struct fx_sampling sampling;
    struct fx_logprob *logprobs; /* [FX_LOGPROBS_MAX] of the last token */
    uint32_t logprob_count;
    struct fx_bias *biases;  /* [FX_BIASES_MAX]; sampling.bias points here */
    uint32_t rows;           /* of this step */
    enum fx_engine_end over; /* ended before its first step: nothing to compute */
};

struct fx_engine__layer {
    const struct fx_layer_weights *weights;
    struct fx_qkv qkv;
    struct fx_mlp mlp, shared;
    struct fx_mlp *experts; /* [experts] */
    struct fx_kv kv;
    uint32_t window; /* 0: it sees every position */
};

struct fx_engine {
    struct fx_engine_opts opts;
    const struct fx_model_config *config;
    const struct fx_model_weights *weights;
    const struct fx_ops *ops;
    fx_team *team;
    struct fx_exec exec;
    bool codes; /* some matrix is int4 */

    uint8_t *pool, *workspace; /* mapped */
    size_t pool_bytes, workspace_bytes;
    fx_kv_pool *kv;
    struct fx_engine__layer *layers;
    struct fx_mlp *experts; /* [layers][experts] */

    struct fx_engine__slot *slots;
    uint32_t *ids;                /* of all slots */
    struct fx_bias *biases;       /* of all slots */
    struct fx_logprob *logprobs;  /* of all slots */
    uint32_t *order, order_count; /* slots in use, oldest first */
    uint32_t *tokens, *positions, *sequences, *logit_of;
    struct fx_step step;
    int32_t *traced; /* [rows_max][layers][experts_per_token] when on_row */
    struct fx_sample_scratch scratch;
    struct fx_engine_result *results;
    char (*details)[FX_ENGINE_DETAIL_MAX]; /* [slots] */
    size_t result_count;
    struct fx_engine_stats stats;
};

/* schedule.c: chooses slot->rows of this step; false: there is nothing to compute. */
bool fx_engine__plan(fx_engine *engine);
/* forward.c: fills engine->step from the plan and runs the model; logits are in engine->exec. */
void fx_engine__forward(fx_engine *engine);
/* sequence.c */
void fx_engine__release(fx_engine *engine, uint32_t slot);
/* The end that the last of the ids means. */
enum fx_engine_end fx_engine__end_of(const struct fx_engine__slot *slot);
