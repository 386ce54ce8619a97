#include "model.h"

/* The contract over whole steps: a sequence's logits are the same bytes whatever else is in the
 * batch, however it is cut into chunks, on any page size, thread count and backend. */

static const struct schedule schedules[] = {
    {"whole prompt",          "ref", 1, 64, 1,  LENGTH, FX_KV_F32},
    {"whole prompt",          "cpu", 1, 64, 1,  LENGTH, FX_KV_F32},
    {"token by token",        "ref", 1, 64, 1,  1,      FX_KV_F32},
    {"token by token",        "cpu", 1, 64, 1,  1,      FX_KV_F32},
    {"chunks of 13, page 16", "cpu", 1, 16, 1,  13,     FX_KV_F32},
    {"chunks of 64, page 8",  "cpu", 1, 8,  1,  64,     FX_KV_F32},
    {"two threads",           "ref", 2, 64, 1,  LENGTH, FX_KV_F32},
    {"two threads",           "cpu", 2, 64, 1,  LENGTH, FX_KV_F32},
    {"one companion",         "cpu", 1, 16, 2,  20,     FX_KV_F32},
    {"one companion",         "ref", 1, 16, 2,  20,     FX_KV_F32},
    {"10 companions",         "cpu", 2, 64, 11, 7,      FX_KV_F32},
    {"63 companions",         "cpu", 2, 16, 64, 1,      FX_KV_F32},
};

struct row {
    const char *name;
    enum fx_layout layout;
    enum fx_kv_type kv;
    struct fx_shape shape;
    uint32_t window;
};
/* Wide enough that steps of 75 rows are shared out among threads. */
#define DENSE                                                                                      \
    {                                                                                              \
        .hidden = 136, .heads = 6, .kv_heads = 2, .head_dim = 8, .ffn = 136, .vocab = 37,          \
        .positions = 128, .norm_eps = 1e-5f, .rope.theta = 10000                                   \
    }
#define MOE                                                                                        \
    {                                                                                              \
        .hidden = 72, .heads = 8, .kv_heads = 4, .head_dim = 16, .ffn = 104, .experts = 5,         \
        .experts_per_token = 2, .expert_ffn = 104, .vocab = 81, .positions = 100,                  \
        .norm_eps = 1e-6f, .rope.theta = 1000000                                                   \
    }
static const struct row rows[] = {
    {"dense f32",            FX_LAYOUT_F32_T8, FX_KV_F32, DENSE, 0 },
    {"dense f16, window 16", FX_LAYOUT_F16_T8, FX_KV_F32, DENSE, 16},
    {"dense int4",           FX_LAYOUT_I4_T8,  FX_KV_F16, DENSE, 0 },
    {"moe f32, f16 cache",   FX_LAYOUT_F32_T8, FX_KV_F16, MOE,   0 },
    {"moe f16",              FX_LAYOUT_F16_T8, FX_KV_F32, MOE,   0 },
    {"moe int4, window 33",  FX_LAYOUT_I4_T8,  FX_KV_F32, MOE,   33},
};

static void test_bits(void **state) {
    const struct row *row = *state;
    struct model model;
    assert_true(fx_shape_check(&row->shape, NULL));
    model_open(&model, &row->shape, row->layout, row->window);
    size_t size = (size_t)LENGTH * row->shape.vocab;
    float *want = values_alloc(size, 4), *got = values_alloc(size, 4);
    for (size_t i = 0; i < FX_TEST_COUNT(schedules); i++) {
        struct schedule schedule = schedules[i];
        struct run *run = values_alloc(1, sizeof *run);
        schedule.kv = row->kv;
        run_open(run, &model, &schedule);
        run_sequences(run, &schedule, i ? got : want);
        run_close(run);
        free(run);
        if (i == 0)
            for (size_t v = 0; v < size; v++)
                assert_true(isfinite(want[v]));
        else if (memcmp(got, want, size * sizeof *got) != 0)
            fail_msg("%s: %s differs on %s", row->name, schedule.name, schedule.backend);
    }
    free(want);
    free(got);
    model_close(&model);
}
FX_TEST_MAIN(test_bits, rows)
