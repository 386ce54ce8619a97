#include "values.h"

/* Every layout, shape and kind of value: cpu gives ref's bits, and a tile range touches its own
 * outputs only. */

static const uint32_t row_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 13};
static const uint32_t widths[] = {1, 2, 3, 5, 7, 63, 64, 65, 130, 192};
static const uint32_t outs[] = {1, 3, 7, 8, 9, 24, 71};

struct row {
    const char *name;
    enum fx_layout layout;
    bool add;
};
static const struct row rows[] = {
    {"f32",          FX_LAYOUT_F32_T8, false},
    {"f16",          FX_LAYOUT_F16_T8, false},
    {"int4",         FX_LAYOUT_I4_T8,  false},
    {"f32, adding",  FX_LAYOUT_F32_T8, true },
    {"f16, adding",  FX_LAYOUT_F16_T8, true },
    {"int4, adding", FX_LAYOUT_I4_T8,  true },
};

static void compare(const struct row *row, const struct fx_weight *weight, const struct fx_act *act,
                    uint32_t count, enum values kind) {
    const struct fx_kernels *backends[2] = {&fx_ref_kernels, values_cpu()};
    uint32_t gather[16], tiles = (weight->rows + 7) / 8;
    for (uint32_t i = 0; i < count; i++)
        gather[i] = (i * 5 + 1) % count;
    size_t stride = weight->rows + 3, size = count * stride;
    float *out[2];
    for (uint32_t b = 0; b < 2; b++) {
        out[b] = values_alloc(size, sizeof(float));
        values_fill(VALUES_PLAIN, 5, out[b], size);
        struct fx_mul mul = {.weight = weight, .act = act, .rows = count, .out = out[b]};
        mul.out_stride = stride;
        mul.add = row->add;
        mul.row_of = count % 2 ? gather : NULL;
        /* ref in one go, cpu cut unevenly: the cut must not show */
        uint32_t cut = b ? tiles / 3 : 0;
        backends[b]->matmul(&mul, 0, cut);
        backends[b]->matmul(&mul, cut, tiles);
    }
    assert_same_floats(out[1], out[0], size, "%s: %u rows of %u to %u, %s", row->name, count,
                       weight->cols, weight->rows, values_names[kind]);
    free(out[0]);
    free(out[1]);
}

static void test_bits(void **state) {
    const struct row *row = *state;
    for (uint32_t kind = 0; kind < VALUES_KINDS; kind++)
        for (size_t w = 0; w < FX_TEST_COUNT(widths); w++)
            for (size_t o = 0; o < FX_TEST_COUNT(outs); o++) {
                struct fx_weight weight =
                    values_weight(row->layout, kind, 7 + w, outs[o], widths[w]);
                struct fx_act act = values_act(kind, 9 + o, 13, widths[w]);
                for (size_t r = 0; r < FX_TEST_COUNT(row_counts); r++)
                    compare(row, &weight, &act, row_counts[r], (enum values)kind);
                values_act_free(&act);
                free((void *)(uintptr_t)weight.data);
            }
}
FX_TEST_MAIN(test_bits, rows)
