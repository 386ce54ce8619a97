#pragma once
#include "engine/engine.h"

/* An engine with what its tests ask of it: answers by sequence, logits and routes of one of them.
 * Any failure inside fails the test. */

enum { RIG_TOKENS_MAX = 1024, RIG_ANSWERS_MAX = 128 };

struct rig_opts {
    const char *backend;
    uint32_t threads, page_tokens, chunk_rows;
    uint64_t kv_bytes; /* 0: plenty */
    const char *kv_dtype;
    uint32_t slots;
};
#define RIG_PLAIN ((struct rig_opts){"ref", 1, 64, 512, 0, "f32", 64})

struct rig_answer {
    uint32_t sequence, tokens[RIG_TOKENS_MAX], count;
    enum fx_engine_end end; /* RUNS: not yet */
    char detail[FX_ENGINE_DETAIL_MAX];
};

struct rig {
    fx_engine *engine;
    const struct fx_model_config *config;
    uint32_t vocab;
    struct rig_answer answers[RIG_ANSWERS_MAX];
    uint32_t count;
    bool watching;   /* logits and experts are those of answers[0] */
    float *logits;   /* [positions][vocab] */
    int32_t *chosen; /* [positions][layers][experts_per_token] */
    uint32_t positions;
};

/* A folder of this source tree, imported. */
fx_model *rig_model(const char *folder, enum fx_model_dtype dtype);
struct rig *rig_open(const fx_model *model, const struct rig_opts *opts, bool watching);
void rig_free(struct rig *rig);
#define rig_auto __attribute__((cleanup(rig_free_at))) struct rig *
void rig_free_at(struct rig **rig);

/* Every parameter of the sampler on. */
struct fx_sampling rig_everything(uint64_t seed);
/* A sequence without stops, greedy. */
struct fx_sequence rig_sequence(const uint32_t *prompt, uint32_t count, uint32_t max_tokens);
struct rig_answer *rig_add(struct rig *rig, const struct fx_sequence *sequence);
void rig_step(struct rig *rig);
/* Until nothing is left. */
void rig_run(struct rig *rig);
/* `count` sequences of random prompts, lengths and parameters. */
void rig_companions(struct rig *rig, uint32_t count, uint32_t seed);
uint32_t rig_random(uint32_t *state, uint32_t bound);

/* golden.json and oracle.json beside their raw files. */
struct rig_prompt {
    uint32_t ids[RIG_TOKENS_MAX], count, greedy[RIG_TOKENS_MAX], greedy_count;
    float *logits; /* rows x vocab, the rows the file has */
    uint32_t rows;
};
struct rig_prompts {
    struct rig_prompt *at;
    size_t count;
};
/* `logits_key`, `greedy_key`: what the file calls them. */
struct rig_prompts rig_prompts_load(const char *folder, const char *json, const char *logits_key,
                                    const char *greedy_key, uint32_t vocab);
void rig_prompts_free(struct rig_prompts *prompts);

/* ||got - want|| / ||want|| */
double rig_distance(const float *got, const float *want, size_t count);
uint32_t rig_argmax(const float *row, uint32_t vocab);
/* Distance of the two largest over the root mean square of the row. */
double rig_margin(const float *row, uint32_t vocab);
