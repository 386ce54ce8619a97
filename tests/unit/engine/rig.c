#include "tests/unit/engine/rig.h"
#include "tests/fx_test.h"
#include "common/base/heap.h"
#include <math.h>

fx_model *rig_model(const char *folder, enum fx_model_dtype dtype) {
    char path[512];
    fx_error err = {0};
    fx_model *model = NULL;
    (void)snprintf(path, sizeof(path), "%s/%s", FX_SOURCE_DIR, folder);
    if (!fx_store_open_folder(path, dtype, NULL, &model, &err)) fail_msg("%s", err.text);
    return model;
}

static void on_row(void *ctx, const struct fx_engine_row *row) {
    struct rig *rig = ctx;
    if (rig->answers[0].end != FX_ENGINE_RUNS || row->sequence != rig->answers[0].sequence) return;
    assert_true(row->position < RIG_TOKENS_MAX);
    memcpy(rig->logits + (size_t)row->position * rig->vocab, row->logits,
           rig->vocab * sizeof(float));
    size_t chosen = (size_t)rig->config->layers * rig->config->experts_per_token;
    if (chosen)
        memcpy(rig->chosen + row->position * chosen, row->experts, chosen * sizeof(int32_t));
    if (row->position >= rig->positions) rig->positions = row->position + 1;
}

struct rig *rig_open(const fx_model *model, const struct rig_opts *opts, bool watching) {
    struct rig *rig = fx_alloc(1, sizeof(*rig));
    assert_non_null(rig);
    rig->config = fx_model_get_config(model);
    rig->vocab = rig->config->vocabulary;
    rig->watching = watching;
    rig->logits = fx_alloc((size_t)RIG_TOKENS_MAX * rig->vocab, sizeof(float));
    rig->chosen = fx_alloc((size_t)RIG_TOKENS_MAX *
                               (rig->config->layers * rig->config->experts_per_token + 1),
                           sizeof(int32_t));
    const struct fx_engine_opts engine = {
        .model = model,
        .backend = opts->backend,
        .kv_dtype = opts->kv_dtype,
        .threads = opts->threads,
        .kv_bytes = opts->kv_bytes ? opts->kv_bytes : 64U << 20,
        .page_tokens = opts->page_tokens,
        .slots = opts->slots,
        .rows_max = opts->slots + opts->chunk_rows,
        .chunk_rows_max = opts->chunk_rows,
        .on_row = watching ? on_row : NULL,
        .ctx = rig,
    };
    fx_error err = {0};
    if (!fx_engine_open(&engine, &rig->engine, &err)) fail_msg("%s", err.text);
    return rig;
}

void rig_free(struct rig *rig) {
    if (!rig) return;
    fx_engine_free(rig->engine);
    free(rig->logits);
    free(rig->chosen);
    free(rig);
}

void rig_free_at(struct rig **rig) {
    rig_free(*rig);
}

struct fx_sequence rig_sequence(const uint32_t *prompt, uint32_t count, uint32_t max_tokens) {
    return (struct fx_sequence){.prompt = prompt, .prompt_count = count, .max_tokens = max_tokens};
}

struct rig_answer *rig_add(struct rig *rig, const struct fx_sequence *sequence) {
    assert_true(rig->count < RIG_ANSWERS_MAX);
    struct rig_answer *answer = &rig->answers[rig->count++];
    fx_error err = {0};
    if (!fx_engine_add(rig->engine, sequence, &answer->sequence, &err)) fail_msg("%s", err.text);
    answer->count = sequence->logged_count;
    if (answer->count)
        memcpy(answer->tokens, sequence->logged, answer->count * sizeof(*answer->tokens));
    return answer;
}

static struct rig_answer *answer_of(struct rig *rig, uint32_t sequence) {
    for (uint32_t i = 0; i < rig->count; i++)
        if (rig->answers[i].end == FX_ENGINE_RUNS && rig->answers[i].sequence == sequence)
            return &rig->answers[i];
    fail_msg("a result of no sequence");
    return NULL;
}

void rig_step(struct rig *rig) {
    const struct fx_engine_result *results;
    size_t count;
    fx_engine_step(rig->engine, &results, &count);
    for (size_t i = 0; i < count; i++) {
        struct rig_answer *answer = answer_of(rig, results[i].sequence);
        if (results[i].number) {
            assert_int_equal(results[i].number, answer->count + 1);
            answer->tokens[answer->count++] = results[i].token;
        }
        answer->end = results[i].end;
        (void)snprintf(answer->detail, sizeof(answer->detail), "%s", results[i].detail);
    }
}

void rig_run(struct rig *rig) {
    while (fx_engine_busy(rig->engine))
        rig_step(rig);
}

uint32_t rig_random(uint32_t *state, uint32_t bound) {
    *state = *state * 1664525U + 1013904223U;
    return (uint32_t)(((uint64_t)(*state >> 4) * bound) >> 28);
}

struct fx_sampling rig_everything(uint64_t seed) {
    static const struct fx_bias biases[] = {
        {'e', -2  },
        {'q', 1.5F}
    };
    return (struct fx_sampling){.temperature = 0.9F,
                                .top_k = 40,
                                .top_p = 0.95F,
                                .min_p = 0.01F,
                                .seed = seed,
                                .choice = 2,
                                .typical_p = 0.9F,
                                .presence = 0.4F,
                                .frequency = 0.2F,
                                .repetition = 1.1F,
                                .min_tokens = 10,
                                .bias = biases,
                                .bias_count = FX_COUNT(biases)};
}

void rig_companions(struct rig *rig, uint32_t count, uint32_t seed) {
    uint32_t ids[128];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t length = 1 + rig_random(&seed, 100);
        for (uint32_t k = 0; k < length; k++)
            ids[k] = rig_random(&seed, rig->vocab);
        struct fx_sequence sequence = rig_sequence(ids, length, 1 + rig_random(&seed, 24));
        sequence.sampling.temperature = i % 2 ? 0.8F : 0;
        sequence.sampling.seed = seed;
        if (i % 5 == 4) sequence.sampling = rig_everything(seed);
        (void)rig_add(rig, &sequence);
    }
}

double rig_distance(const float *got, const float *want, size_t count) {
    double difference = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        double d = (double)got[i] - (double)want[i];
        difference += d * d;
        size += (double)want[i] * (double)want[i];
    }
    return sqrt(difference / size);
}

uint32_t rig_argmax(const float *row, uint32_t vocab) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < vocab; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

double rig_margin(const float *row, uint32_t vocab) {
    uint32_t best = rig_argmax(row, vocab);
    double second = -INFINITY, squares = 0;
    for (uint32_t i = 0; i < vocab; i++) {
        squares += (double)row[i] * (double)row[i];
        if (i != best && (double)row[i] > second) second = (double)row[i];
    }
    return ((double)row[best] - second) / sqrt(squares / vocab);
}
