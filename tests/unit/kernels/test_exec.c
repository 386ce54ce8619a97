#include "model.h"

/* Bounds of shapes, the workspace, counters, progress and expert slots. */

static const struct fx_shape good = {.hidden = 64,
                                     .heads = 4,
                                     .kv_heads = 2,
                                     .head_dim = 16,
                                     .ffn = 128,
                                     .experts = 6,
                                     .experts_per_token = 2,
                                     .expert_ffn = 128,
                                     .vocab = 50,
                                     .positions = 100,
                                     .norm_eps = 1e-5f,
                                     .rope.theta = 10000};

#define REFUSED(change, words)                                                                     \
    do {                                                                                           \
        struct fx_shape shape = good;                                                              \
        fx_error err = {0};                                                                        \
        change;                                                                                    \
        assert_false(fx_shape_check(&shape, &err));                                                \
        assert_int_equal(err.code, FX_INVALID_ARGUMENT);                                           \
        assert_non_null(strstr(err.text, words));                                                  \
    } while (0)

static void test_shapes(void **state) {
    (void)state;
    assert_true(fx_shape_check(&good, NULL));
    REFUSED(shape.hidden = 0, "hidden");
    REFUSED(shape.hidden = (1u << 20) + 1, "hidden");
    REFUSED(shape.heads = 0, "heads");
    REFUSED(shape.kv_heads = 5, "kv_heads");
    REFUSED(shape.kv_heads = 3, "heads 4 is not a multiple");
    REFUSED(shape.head_dim = 12, "head_dim 12");
    REFUSED(shape.head_dim = 264, "head_dim");
    REFUSED(shape.ffn = 0, "ffn");
    REFUSED(shape.vocab = 0, "vocab");
    REFUSED(shape.positions = 0, "positions");
    REFUSED(shape.experts = FX_EXPERTS_MAX + 1, "experts");
    REFUSED(shape.experts_per_token = 7, "experts_per_token");
    REFUSED(shape.experts = 0, "experts");
    REFUSED(shape.norm_eps = NAN, "norm_eps");
    REFUSED(shape.expert_ffn = 0, "expert_ffn");
    REFUSED(shape.rope.theta = 0, "rope theta");
    REFUSED(shape.rope.rule = FX_ROPE_DIVIDED, "rope factor");
    REFUSED((shape.rope.rule = FX_ROPE_BANDED, shape.rope.factor = 8), "rope low and high");
    struct fx_shape dense = good;
    dense.experts = dense.experts_per_token = 0;
    assert_true(fx_shape_check(&dense, NULL));
}

static void test_pick(void **state) {
    (void)state;
    fx_error err = {0};
    assert_string_equal(fx_ops_pick("ref", NULL)->name, "ref");
    assert_string_equal(fx_ops_pick("cpu", NULL)->name, "cpu");
    assert_null(fx_ops_pick("gpu", &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    assert_true(strcmp(fx_ops_cpu_level(), "avx2") == 0 ||
                strcmp(fx_ops_cpu_level(), "plain") == 0);
}

/* cos and sin against libm, of the f32 angle that a model was trained with. */
static void test_rope_table(void **state) {
    (void)state;
    enum { POSITIONS = 5000, DIM = 64 };
    struct fx_shape shape = good;
    shape.head_dim = DIM;
    shape.positions = POSITIONS;
    fx_team *team = NULL;
    assert_true(fx_team_open(1, &team, NULL));
    void *workspace = values_alloc(fx_ops_workspace(&shape, 1, 1), 1);
    struct fx_exec exec;
    fx_exec_init(&exec, &shape, 1, 1, workspace, team);
    for (uint32_t p = 0; p < POSITIONS; p++)
        for (uint32_t i = 0; i < DIM / 2; i++) {
            float frequency = 1.0f / (float)pow(10000.0, (double)(2.0f * (float)i / DIM));
            double angle = (float)p * frequency;
            assert_true(fabs((double)exec.rope_cos[p * DIM / 2 + i] - cos(angle)) < 6e-8);
            assert_true(fabs((double)exec.rope_sin[p * DIM / 2 + i] - sin(angle)) < 6e-8);
        }
    free(workspace);
    fx_team_free(team);
}

/* Every array of the workspace, in order: none may reach into the next or past the end. */
static void test_workspace_is_enough(void **state) {
    (void)state;
    for (uint32_t rows = 1; rows <= 65; rows += 16)
        for (size_t shift = 0; shift < 64; shift += 20) {
            size_t size = fx_ops_workspace(&good, rows, rows);
            uint8_t *base = values_alloc(size + shift, 1);
            fx_team *team = NULL;
            struct fx_exec exec;
            assert_true(fx_team_open(1, &team, NULL));
            fx_exec_init(&exec, &good, rows, rows, base + shift, team);
            assert_int_equal((uintptr_t)exec.x % 64, 0);
            uint8_t *end = (uint8_t *)(exec.logits + (size_t)rows * good.vocab);
            assert_true((uint8_t *)exec.x >= base + shift && end <= base + shift + size);
            fx_team_free(team);
            free(base);
        }
}

static void test_counters(void **state) {
    (void)state;
    struct model model;
    model_open(&model, &good, FX_LAYOUT_I4_T8, 0);
    const struct schedule schedule = {"", "cpu", 1, 16, 32, 1, FX_KV_F32};
    struct run *run = values_alloc(1, sizeof *run);
    run_open(run, &model, &schedule);
    float *out = values_alloc((size_t)LENGTH * good.vocab, 4);
    run_sequences(run, &schedule, out);
    const struct fx_counts *counts = &run->exec.counts;
    /* a step: per layer q, k, v, out, router over 32 rows; the head over 1 wanted row */
    assert_int_equal(counts->dense_matmuls, LENGTH * (LAYERS * 5 + 1));
    assert_int_equal(counts->dense_rows, LENGTH * (LAYERS * 5 * 32 + 1));
    assert_int_equal(counts->expert_rows, LENGTH * LAYERS * 3 * 32 * 2);
    assert_true(counts->expert_matmuls <= LENGTH * LAYERS * 3 * 6);
    assert_true(counts->expert_matmuls % 3 == 0 && counts->expert_matmuls > 0);
    uint64_t gate = fx_weight_bytes(FX_LAYOUT_I4_T8, 128, 64), down = 8 * 2 * 288,
             dense =
                 LAYERS * (8 * 288 * 2 + 4 * 288 * 2 + fx_weight_bytes(FX_LAYOUT_F32_T8, 6, 64)) +
                 7 * 288;
    assert_int_equal(counts->weight_bytes,
                     LENGTH * dense + counts->expert_matmuls / 3 * (2 * gate + down));
    assert_int_equal(atomic_load(&run->exec.progress), LENGTH * (1 + LAYERS * 7 + 2));
    run_close(run);
    free(run);
    free(out);
    model_close(&model);
}

static void test_slots(void **state) {
    (void)state;
    static const int32_t chosen[] = {2, 0, 0, 2, FX_EXPERT_NONE, 2, 1, 0};
    static const uint32_t want_offset[] = {0, 3, 4, 7, 7}, want_slot[] = {4, 0, 1, 5, 99, 6, 3, 2},
                          want_row[] = {0, 1, 3, 3, 0, 1, 2};
    uint32_t offset[5], slot[8], row[8];
    slot[4] = 99; /* a padding assignment gets none */
    fx_slots(chosen, 8, 2, 4, offset, slot, row);
    assert_memory_equal(offset, want_offset, sizeof want_offset);
    assert_memory_equal(slot, want_slot, sizeof want_slot);
    assert_memory_equal(row, want_row, sizeof want_row);
}

/* Slot of n by its definition: how many earlier assignments chose the same or a lower expert. */
static void test_slots_by_definition(void **state) {
    (void)state;
    enum { COUNT = 600 };
    int32_t chosen[COUNT];
    uint32_t offset[FX_EXPERTS_MAX + 1], slot[COUNT], row[COUNT];
    uint64_t seed = 1;
    for (uint32_t experts = 1; experts <= FX_EXPERTS_MAX; experts = experts * 3 + 1) {
        for (uint32_t n = 0; n < COUNT; n++)
            chosen[n] = (int32_t)(values_draw(&seed) % experts);
        fx_slots(chosen, COUNT, 4, experts, offset, slot, row);
        for (uint32_t n = 0; n < COUNT; n++) {
            uint32_t want = 0;
            for (uint32_t m = 0; m < COUNT; m++)
                want += chosen[m] < chosen[n] || (m < n && chosen[m] == chosen[n]);
            assert_int_equal(slot[n], want);
            assert_int_equal(row[slot[n]], n / 4);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_pick),
        cmocka_unit_test(test_rope_table),
        cmocka_unit_test(test_workspace_is_enough),
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_slots_by_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
