#pragma once
#include "values.h"

/* A made-up model driven through struct fx_ops, as an engine would, and the schedules under which
 * its results must not change. */

enum { LAYERS = 2, SEQUENCES_MAX = 64, LENGTH = 75, TABLE_STRIDE = 16, ROWS_MAX = 160 };

struct layer {
    struct fx_weight norm_attention, norm_mlp, out, router;
    struct fx_qkv qkv;
    struct fx_mlp *mlp; /* one, or one per expert */
};
struct model {
    struct fx_shape shape;
    uint32_t window;
    bool codes;
    struct fx_weight embedding, norm, head;
    struct layer layers[LAYERS];
};

static inline struct fx_mlp model_mlp(const struct fx_shape *shape, enum fx_layout layout,
                                      uint64_t seed) {
    return (struct fx_mlp){
        values_weight(layout, VALUES_PLAIN, seed, shape->ffn, shape->hidden),
        values_weight(layout, VALUES_PLAIN, seed + 1000, shape->ffn, shape->hidden),
        values_weight(layout, VALUES_PLAIN, seed + 2000, shape->hidden, shape->ffn),
    };
}

static inline void model_open(struct model *model, const struct fx_shape *shape,
                              enum fx_layout layout, uint32_t window) {
    *model = (struct model){.shape = *shape, .window = window};
    model->codes = layout == FX_LAYOUT_I4_T8;
    uint32_t hidden = shape->hidden, q = shape->heads * shape->head_dim,
             kv = shape->kv_heads * shape->head_dim, row = FX_LAYOUT_F32_ROW;
    model->embedding = values_weight(layout, VALUES_PLAIN, 1, shape->vocab, hidden);
    model->norm = values_weight(row, VALUES_PLAIN, 2, 1, hidden);
    model->head = values_weight(layout, VALUES_PLAIN, 3, shape->vocab, hidden);
    for (uint32_t l = 0; l < LAYERS; l++) {
        struct layer *layer = &model->layers[l];
        layer->norm_attention = values_weight(row, VALUES_PLAIN, 10 + l, 1, hidden);
        layer->norm_mlp = values_weight(row, VALUES_PLAIN, 20 + l, 1, hidden);
        layer->qkv.q = values_weight(layout, VALUES_PLAIN, 30 + l, q, hidden);
        layer->qkv.k = values_weight(layout, VALUES_PLAIN, 40 + l, kv, hidden);
        layer->qkv.v = values_weight(layout, VALUES_PLAIN, 50 + l, kv, hidden);
        layer->out = values_weight(layout, VALUES_PLAIN, 60 + l, hidden, q);
        uint32_t mlps = shape->experts ? shape->experts : 1;
        layer->mlp = values_alloc(mlps, sizeof *layer->mlp);
        for (uint32_t e = 0; e < mlps; e++)
            layer->mlp[e] = model_mlp(shape, layout, 5000 * (l + 1) + 10 * e);
        if (shape->experts)
            layer->router =
                values_weight(FX_LAYOUT_F32_T8, VALUES_PLAIN, 70 + l, shape->experts, hidden);
    }
}

static inline void weight_free(struct fx_weight *weight) {
    free((void *)(uintptr_t)weight->data);
}
static inline void model_close(struct model *model) {
    weight_free(&model->embedding);
    weight_free(&model->norm);
    weight_free(&model->head);
    for (uint32_t l = 0; l < LAYERS; l++) {
        struct layer *layer = &model->layers[l];
        struct fx_weight *all[] = {&layer->norm_attention, &layer->norm_mlp, &layer->out,
                                   &layer->router,         &layer->qkv.q,    &layer->qkv.k,
                                   &layer->qkv.v};
        for (size_t i = 0; i < FX_TEST_COUNT(all); i++)
            weight_free(all[i]);
        for (uint32_t e = 0; e < (model->shape.experts ? model->shape.experts : 1); e++) {
            weight_free(&layer->mlp[e].gate);
            weight_free(&layer->mlp[e].up);
            weight_free(&layer->mlp[e].down);
        }
        free(layer->mlp);
    }
}

/* How sequences are run. Sequence s has tokens of its own; all have LENGTH of them. */
struct schedule {
    const char *name;
    const char *backend;
    uint32_t threads, page_tokens, sequences, chunk;
    enum fx_kv_type kv;
};

struct run {
    const struct model *model;
    const struct fx_ops *ops;
    struct fx_exec exec;
    struct fx_kv kv[LAYERS];
    uint32_t tables[SEQUENCES_MAX * TABLE_STRIDE];
    void *workspace;
    fx_team *team;
};

static inline uint32_t run_token(uint32_t sequence, uint32_t position, uint32_t vocab) {
    return (position * 7919u + sequence * 104729u + position * position * 31u) % vocab;
}

static inline void run_open(struct run *run, const struct model *model,
                            const struct schedule *schedule) {
    run->model = model;
    run->ops = fx_ops_pick(schedule->backend, NULL);
    assert_non_null(run->ops);
    assert_true(fx_team_open(schedule->threads, &run->team, NULL));
    run->workspace = values_alloc(fx_ops_workspace(&model->shape, ROWS_MAX, ROWS_MAX), 1);
    fx_exec_init(&run->exec, &model->shape, ROWS_MAX, ROWS_MAX, run->workspace, run->team);
    uint32_t per_sequence = (LENGTH + schedule->page_tokens - 1) / schedule->page_tokens;
    uint64_t bytes = fx_kv_page_bytes(&model->shape, schedule->page_tokens, schedule->kv);
    uint32_t pages = per_sequence * schedule->sequences;
    for (uint32_t l = 0; l < LAYERS; l++) {
        run->kv[l] = (struct fx_kv){values_alloc(pages, bytes), values_alloc(pages, bytes), bytes,
                                    schedule->kv};
        memset(run->kv[l].k, 0xff, pages * bytes); /* NaN, so that reading too far shows */
        memset(run->kv[l].v, 0xff, pages * bytes);
    }
    for (uint32_t s = 0; s < schedule->sequences; s++)
        for (uint32_t p = 0; p < per_sequence; p++)
            run->tables[s * TABLE_STRIDE + p] = p * schedule->sequences + s;
}

static inline void run_close(struct run *run) {
    for (uint32_t l = 0; l < LAYERS; l++) {
        free(run->kv[l].k);
        free(run->kv[l].v);
    }
    fx_team_free(run->team);
    free(run->workspace);
}

static inline void run_step(struct run *run, const struct fx_step *step) {
    const struct model *model = run->model;
    const struct fx_ops *ops = run->ops;
    struct fx_exec *exec = &run->exec;
    ops->embed(exec, step, &model->embedding);
    for (uint32_t l = 0; l < LAYERS; l++) {
        const struct layer *layer = &model->layers[l];
        ops->norm(exec, step, &layer->norm_attention, model->codes);
        ops->qkv(exec, step, &layer->qkv, &run->kv[l]);
        ops->attention(exec, step, &run->kv[l], model->window, model->codes);
        ops->out(exec, step, &layer->out, NULL);
        ops->norm(exec, step, &layer->norm_mlp, model->codes);
        if (model->shape.experts) {
            ops->route(exec, step, &layer->router);
            ops->experts(exec, step, l, layer->mlp);
        } else {
            ops->mlp(exec, step, layer->mlp, NULL);
        }
    }
    ops->head(exec, step, &model->norm, &model->head);
    ops->finish(exec, step);
}

/* Runs all sequences, up to `chunk` tokens of each in a step, last sequence first; the logits of
 * every position of sequence 0 go to `out`. @shape out [LENGTH][vocab] */
static inline void run_sequences(struct run *run, const struct schedule *schedule, float *out) {
    uint32_t tokens[ROWS_MAX], positions[ROWS_MAX], sequences[ROWS_MAX], logit_of[ROWS_MAX];
    uint32_t vocab = run->model->shape.vocab;
    struct fx_step step = {.tokens = tokens, .positions = positions, .sequences = sequences};
    step.tables = run->tables;
    step.table_stride = TABLE_STRIDE;
    step.page_tokens = schedule->page_tokens;
    step.logit_of = logit_of;
    for (uint32_t begin = 0; begin < LENGTH; begin += schedule->chunk) {
        uint32_t end = begin + schedule->chunk < LENGTH ? begin + schedule->chunk : LENGTH;
        step.rows = step.logit_rows = 0;
        for (uint32_t s = schedule->sequences; s-- > 0;)
            for (uint32_t p = begin; p < end; p++) {
                if (s == 0) logit_of[step.logit_rows++] = step.rows;
                tokens[step.rows] = run_token(s, p, vocab);
                positions[step.rows] = p;
                sequences[step.rows++] = s;
            }
        run_step(run, &step);
        memcpy(out + (size_t)begin * vocab, run->exec.logits,
               (size_t)(end - begin) * vocab * sizeof *out);
    }
}
