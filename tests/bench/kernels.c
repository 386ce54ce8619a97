/* Steps of made-up models by backend, layout, batch and thread count, op by op; the fastest step
 * counts, so that a busy machine shows least. */
#include "tests/bench/bench.h"
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "kernels/ops.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 128, PAGE_TOKENS = 64, CONTEXT = 256, PAGES = CONTEXT / PAGE_TOKENS };

struct kind {
    const char *name;
    struct fx_shape shape;
    uint32_t layers;
};
/* tiny: the bundled model. wide: eight experts whose weights no cache of one core holds. */
static const struct kind kinds[] = {
    {"tiny",
     {.hidden = 192,
      .heads = 6,
      .kv_heads = 2,
      .head_dim = 32,
      .ffn = 384,
      .expert_ffn = 384,
      .experts = 8,
      .experts_per_token = 2,
      .vocab = 260,
      .positions = 1024,
      .norm_eps = 1e-5f,
      .rope.theta = 10000},
     4},
    {"wide",
     {.hidden = 1024,
      .heads = 16,
      .kv_heads = 4,
      .head_dim = 64,
      .ffn = 2048,
      .expert_ffn = 2048,
      .experts = 8,
      .experts_per_token = 2,
      .vocab = 8192,
      .positions = 1024,
      .norm_eps = 1e-5f,
      .rope.theta = 10000},
     4},
};

struct layer {
    struct fx_weight gain, out, router;
    struct fx_qkv qkv;
    struct fx_mlp mlp[8];
};
struct model {
    const struct kind *kind;
    bool codes;
    struct fx_weight embedding, gain;
    struct layer layers[4];
    struct fx_kv kv[4];
};

/* Bytes that are harmless as any layout: small floats, halves and scales, mixed nibbles. */
static struct fx_weight weight_of(enum fx_layout layout, uint32_t rows, uint32_t cols) {
    uint64_t bytes = fx_weight_bytes(layout, rows, cols);
    uint8_t *data = fx_alloc(bytes, 1);
    FX_ASSERT(data);
    for (uint64_t i = 0; i < bytes; i++) {
        uint32_t draw = (uint32_t)i * 2654435761u >> 24;
        bool scale = layout == FX_LAYOUT_I4_T8 && i % FX_I4_TILE_BYTES < 32;
        bool top = layout == FX_LAYOUT_F16_T8 ? i % 2 : i % 4 == 3;
        if (layout == FX_LAYOUT_I4_T8 && !scale)
            data[i] = (uint8_t)draw;
        else
            data[i] = top ? (layout == FX_LAYOUT_F16_T8 ? 0x24 : 0x3c) | (draw & 0x80) : 0x31;
    }
    return (struct fx_weight){data, rows, cols, layout};
}

static void model_open(struct model *model, const struct kind *kind, enum fx_layout layout) {
    const struct fx_shape *s = &kind->shape;
    *model = (struct model){.kind = kind, .codes = layout == FX_LAYOUT_I4_T8};
    model->embedding = weight_of(layout, s->vocab, s->hidden);
    model->gain = weight_of(FX_LAYOUT_F32_ROW, 1, s->hidden);
    for (uint32_t l = 0; l < kind->layers; l++) {
        struct layer *layer = &model->layers[l];
        layer->qkv.q = weight_of(layout, s->heads * s->head_dim, s->hidden);
        layer->qkv.k = weight_of(layout, s->kv_heads * s->head_dim, s->hidden);
        layer->qkv.v = weight_of(layout, s->kv_heads * s->head_dim, s->hidden);
        layer->out = weight_of(layout, s->hidden, s->heads * s->head_dim);
        layer->router = weight_of(FX_LAYOUT_F32_T8, s->experts, s->hidden);
        for (uint32_t e = 0; e < s->experts; e++) {
            layer->mlp[e].gate = weight_of(layout, s->ffn, s->hidden);
            layer->mlp[e].up = weight_of(layout, s->ffn, s->hidden);
            layer->mlp[e].down = weight_of(layout, s->hidden, s->ffn);
        }
        uint64_t bytes = fx_kv_page_bytes(s, PAGE_TOKENS, FX_KV_F16);
        model->kv[l] = (struct fx_kv){fx_alloc(ROWS_MAX * PAGES, bytes),
                                      fx_alloc(ROWS_MAX * PAGES, bytes), bytes, FX_KV_F16};
        FX_ASSERT(model->kv[l].k && model->kv[l].v);
        memset(model->kv[l].k, 0x11, ROWS_MAX * PAGES * bytes); /* pages of its own, not zero's */
        memset(model->kv[l].v, 0x11, ROWS_MAX * PAGES * bytes);
    }
}

static void model_close(struct model *model) {
    free((void *)(uintptr_t)model->embedding.data);
    free((void *)(uintptr_t)model->gain.data);
    for (uint32_t l = 0; l < model->kind->layers; l++) {
        struct layer *layer = &model->layers[l];
        const void *parts[] = {layer->out.data,   layer->router.data, layer->qkv.q.data,
                               layer->qkv.k.data, layer->qkv.v.data,  model->kv[l].k,
                               model->kv[l].v};
        for (size_t i = 0; i < FX_COUNT(parts); i++)
            free((void *)(uintptr_t)parts[i]);
        for (uint32_t e = 0; e < model->kind->shape.experts; e++) {
            free((void *)(uintptr_t)layer->mlp[e].gate.data);
            free((void *)(uintptr_t)layer->mlp[e].up.data);
            free((void *)(uintptr_t)layer->mlp[e].down.data);
        }
    }
}

enum part { NORM, QKV, ATTENTION, OUT, ROUTE, EXPERTS, HEAD, PARTS };
static const char *const part_names[PARTS] = {"norm",  "qkv",     "attention", "out",
                                              "route", "experts", "head"};

#define TIMED(part, call)                                                                          \
    do {                                                                                           \
        uint64_t began_ = fx_clock_us();                                                           \
        call;                                                                                      \
        spent_us[part] += fx_clock_us() - began_;                                                  \
    } while (0)

static void step_run(const struct model *model, const struct fx_ops *ops, struct fx_exec *exec,
                     const struct fx_step *step, uint64_t spent_us[PARTS]) {
    TIMED(HEAD, ops->embed(exec, step, &model->embedding));
    for (uint32_t l = 0; l < model->kind->layers; l++) {
        const struct layer *layer = &model->layers[l];
        TIMED(NORM, ops->norm(exec, step, &model->gain, model->codes));
        TIMED(QKV, ops->qkv(exec, step, &layer->qkv, &model->kv[l]));
        TIMED(ATTENTION, ops->attention(exec, step, &model->kv[l], 0, model->codes));
        TIMED(OUT, ops->out(exec, step, &layer->out, NULL));
        TIMED(NORM, ops->norm(exec, step, &model->gain, model->codes));
        TIMED(ROUTE, ops->route(exec, step, &layer->router));
        TIMED(EXPERTS, ops->experts(exec, step, l, layer->mlp));
    }
    TIMED(HEAD, ops->head(exec, step, &model->gain, &model->embedding));
}

struct result {
    uint64_t us, part_us[PARTS]; /* of the fastest step */
    double bytes_per_row;
};

/* Every row is a sequence of its own at the last position, with a cache of its own. */
static void step_fill(struct fx_step *step, uint32_t rows, uint32_t vocab) {
    static uint32_t tokens[ROWS_MAX], positions[ROWS_MAX], sequences[ROWS_MAX], logit_of[ROWS_MAX];
    static uint32_t tables[ROWS_MAX * PAGES];
    for (uint32_t row = 0; row < rows; row++) {
        tokens[row] = row * 37 % vocab;
        positions[row] = CONTEXT - 1;
        sequences[row] = logit_of[row] = row;
    }
    for (uint32_t page = 0; page < rows * PAGES; page++)
        tables[page] = page;
    *step = (struct fx_step){.rows = rows,
                             .tokens = tokens,
                             .positions = positions,
                             .sequences = sequences,
                             .tables = tables,
                             .table_stride = PAGES,
                             .page_tokens = PAGE_TOKENS,
                             .logit_rows = rows,
                             .logit_of = logit_of};
}

/* Steps for budget_us, at least three. */
static struct result fastest(const struct model *model, const struct fx_ops *ops,
                             struct fx_exec *exec, const struct fx_step *step, uint64_t budget_us) {
    struct result best = {.us = UINT64_MAX};
    uint64_t began_us = fx_clock_us(), steps = 0;
    for (; steps < 3 || fx_clock_us() - began_us < budget_us; steps++) {
        uint64_t part_us[PARTS] = {0}, step_us = fx_clock_us();
        step_run(model, ops, exec, step, part_us);
        step_us = fx_clock_us() - step_us;
        if (step_us >= best.us) continue;
        best.us = step_us;
        memcpy(best.part_us, part_us, sizeof part_us);
    }
    best.bytes_per_row = (double)exec->counts.weight_bytes / (double)(steps * step->rows);
    return best;
}

static FX_MUST bool measure(const struct model *model, const char *backend, uint32_t rows,
                            uint32_t threads, uint64_t budget_us, struct result *out,
                            fx_error *err) {
    const struct fx_shape *shape = &model->kind->shape;
    struct fx_exec exec;
    struct fx_step step;
    fx_auto(fx_team) team = NULL;
    fx_auto(void) workspace = fx_alloc(fx_ops_workspace(shape, rows, rows), 1);
    if (!workspace) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for %u rows", rows);
    if (!fx_team_open(threads, &team, err)) return false;
    fx_exec_init(&exec, shape, rows, rows, workspace, team);
    step_fill(&step, rows, shape->vocab);
    *out = fastest(model, fx_ops_pick(backend, NULL), &exec, &step, budget_us);
    return true;
}

static void show(const struct model *model, const char *layout, const char *backend, uint32_t rows,
                 uint32_t threads, const struct result *r) {
    printf("%-5s %-6s %s %u thread%c batch %3u %9.1f us a token %9.0f bytes a token |",
           model->kind->name, layout, backend, threads, threads > 1 ? 's' : ' ', rows,
           (double)r->us / rows, r->bytes_per_row);
    for (uint32_t part = 0; part < PARTS; part++)
        printf(" %s %llu", part_names[part], (unsigned long long)r->part_us[part]);
    printf("\n");
}

static FX_MUST bool bench_model(const struct model *model, const char *layout, uint64_t budget_us,
                                fx_error *err) {
    static const uint32_t batches[] = {1, 4, 32, 128};
    struct result ref, cpu;
    double ratio = 0;
    if (!measure(model, "ref", 1, 1, budget_us, &ref, err)) return false;
    show(model, layout, "ref", 1, 1, &ref);
    for (uint32_t threads = 1; threads <= 2; threads++)
        for (size_t b = 0; b < FX_COUNT(batches); b++) {
            if (!measure(model, "cpu", batches[b], threads, budget_us, &cpu, err)) return false;
            show(model, layout, "cpu", batches[b], threads, &cpu);
            if (threads == 1 && b == 0) ratio = (double)ref.us / (double)cpu.us;
        }
    printf("%-5s %-6s cpu (%s) is %.1f times ref\n", model->kind->name, layout, fx_ops_cpu_level(),
           ratio);
    return true;
}

/* kernels [MILLISECONDS a case] */
static FX_MUST bool run(int argc, char **argv, fx_error *err) {
    static const enum fx_layout layouts[] = {FX_LAYOUT_I4_T8, FX_LAYOUT_F16_T8, FX_LAYOUT_F32_T8};
    uint64_t budget_us = argc > 0 ? strtoull(argv[0], NULL, 10) * 1000 : 50000;
    for (size_t k = 0; k < FX_COUNT(kinds); k++)
        for (size_t l = 0; l < FX_COUNT(layouts); l++) {
            struct model model;
            model_open(&model, &kinds[k], layouts[l]);
            bool ok = bench_model(&model, fx_layout_name(layouts[l]), budget_us, err);
            model_close(&model);
            if (!ok) return false;
        }
    return true;
}

const struct bench bench_kernels = {"kernels", "ops of made-up models, by backend and batch", run};
