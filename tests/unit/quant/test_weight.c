#include "common/quant/weight.h"
#include "common/base/heap.h"
#include "common/quant/int4.h"
#include "tests/fx_test.h"

struct row {
    const char *name;
    uint32_t rows, cols;
};
static const struct row rows[] = {
    {"one value",         1,  1  },
    {"two rows of three", 2,  3  },
    {"under a tile",      7,  63 },
    {"a tile",            8,  64 },
    {"past a tile",       9,  65 },
    {"odd",               13, 130},
    {"many",              40, 192},
};

static float value_at(size_t i) {
    uint32_t mixed = (uint32_t)i * 2654435761u;
    return (float)(int32_t)mixed * 0x1p-31f;
}

/* Packs `source` tile by tile and reads every row back; the values must be the same bits. */
static void check_f32(const struct row *row, const float *source, float *pack, float *out) {
    for (uint32_t at = 0; at < row->rows; at += 8) {
        uint32_t n = row->rows - at < 8 ? row->rows - at : 8;
        fx_pack_tile_f32(source + (size_t)at * row->cols, n, row->cols,
                         pack + (size_t)at * row->cols);
    }
    const struct fx_weight weight = {pack, row->rows, row->cols, FX_LAYOUT_F32_T8};
    for (uint32_t r = 0; r < row->rows; r++) {
        fx_weight_row(&weight, r, out);
        assert_memory_equal(out, source + (size_t)r * row->cols, row->cols * sizeof(float));
    }
}

static void check_f16(const struct row *row, const float *source, uint16_t *pack, float *out) {
    uint16_t *halves = fx_alloc((size_t)row->rows * row->cols, sizeof *halves);
    for (size_t i = 0; i < (size_t)row->rows * row->cols; i++)
        halves[i] = fx_f32_to_f16(source[i]);
    for (uint32_t at = 0; at < row->rows; at += 8) {
        uint32_t n = row->rows - at < 8 ? row->rows - at : 8;
        fx_pack_tile_f16(halves + (size_t)at * row->cols, n, row->cols,
                         pack + (size_t)at * row->cols);
    }
    const struct fx_weight weight = {pack, row->rows, row->cols, FX_LAYOUT_F16_T8};
    for (uint32_t r = 0; r < row->rows; r++) {
        fx_weight_row(&weight, r, out);
        for (size_t k = 0; k < row->cols; k++)
            assert_true(out[k] == fx_f16_to_f32(halves[(size_t)r * row->cols + k]));
    }
    free(halves);
}

static void check_i4(const struct row *row, const float *source, uint8_t *pack, float *out) {
    uint32_t blocks = (row->cols + 63) / 64;
    uint8_t *codes = fx_alloc((size_t)row->rows * blocks, 32);
    float *scales = fx_alloc((size_t)row->rows * blocks, sizeof *scales);
    float *want = fx_alloc(row->cols, sizeof *want);
    for (size_t r = 0; r < row->rows; r++)
        assert_true(fx_int4_encode(source + r * row->cols, row->cols, codes + r * blocks * 32,
                                   scales + r * blocks, NULL));
    for (uint32_t at = 0; at < row->rows; at += 8) {
        uint32_t n = row->rows - at < 8 ? row->rows - at : 8;
        fx_pack_tile_i4(codes + (size_t)at * blocks * 32, scales + (size_t)at * blocks, n, blocks,
                        pack + (size_t)at / 8 * blocks * FX_I4_TILE_BYTES);
    }
    const struct fx_weight weight = {pack, row->rows, row->cols, FX_LAYOUT_I4_T8};
    for (uint32_t r = 0; r < row->rows; r++) {
        fx_weight_row(&weight, r, out);
        fx_int4_decode(codes + (size_t)r * blocks * 32, scales + (size_t)r * blocks, row->cols,
                       want);
        assert_memory_equal(out, want, row->cols * sizeof(float));
    }
    free(codes);
    free(scales);
    free(want);
}

static void test_pack_round_trip(void **state) {
    const struct row *row = *state;
    size_t count = (size_t)row->rows * row->cols;
    float *source = fx_alloc(count, sizeof *source), *out = fx_alloc(row->cols, sizeof *out);
    for (size_t i = 0; i < count; i++)
        source[i] = value_at(i);
    /* exactly fx_weight_bytes each, so that ASan sees a byte too many */
    void *pack = fx_alloc(fx_weight_bytes(FX_LAYOUT_F32_T8, row->rows, row->cols), 1);
    check_f32(row, source, pack, out);
    free(pack);
    pack = fx_alloc(fx_weight_bytes(FX_LAYOUT_F16_T8, row->rows, row->cols), 1);
    check_f16(row, source, pack, out);
    free(pack);
    pack = fx_alloc(fx_weight_bytes(FX_LAYOUT_I4_T8, row->rows, row->cols), 1);
    check_i4(row, source, pack, out);
    free(pack);
    const struct fx_weight flat = {source, row->rows, row->cols, FX_LAYOUT_F32_ROW};
    fx_weight_row(&flat, row->rows - 1, out);
    assert_memory_equal(out, source + count - row->cols, row->cols * sizeof(float));
    free(source);
    free(out);
}

/* Rows past the last must be zero: weights +0, int4 codes 0 with scale 0. */
static void test_padding_rows(void **state) {
    (void)state;
    uint8_t codes[32], tile[FX_I4_TILE_BYTES];
    memset(codes, 0x77, sizeof codes);
    const float scale = 2.0f;
    fx_pack_tile_i4(codes, &scale, 1, 1, tile);
    const struct fx_weight weight = {tile, 8, 64, FX_LAYOUT_I4_T8};
    float out[64];
    fx_weight_row(&weight, 0, out);
    assert_true(out[0] == 14.0f && out[63] == 14.0f);
    for (uint32_t r = 1; r < 8; r++) {
        fx_weight_row(&weight, r, out);
        for (size_t k = 0; k < 64; k++)
            assert_true(out[k] == 0.0f);
    }
    float rows_in[3] = {1, 2, 3}, pack[24];
    memset(pack, 0xff, sizeof pack);
    fx_pack_tile_f32(rows_in, 1, 3, pack);
    for (size_t i = 0; i < 24; i++)
        assert_true(pack[i] == (i % 8 ? 0.0f : rows_in[i / 8]));
}

static void test_layouts(void **state) {
    (void)state;
    static const enum fx_layout all[] = {FX_LAYOUT_F32_ROW, FX_LAYOUT_F32_T8, FX_LAYOUT_F16_T8,
                                         FX_LAYOUT_I4_T8};
    for (size_t i = 0; i < FX_TEST_COUNT(all); i++)
        assert_int_equal(fx_layout_of(fx_layout_name(all[i])), all[i]);
    assert_int_equal(fx_layout_of("q4_0"), 0);
    assert_null(fx_layout_name((enum fx_layout)99));
    assert_int_equal(fx_weight_bytes(FX_LAYOUT_F32_ROW, 1, 192), 768);
    assert_int_equal(fx_weight_bytes(FX_LAYOUT_F32_T8, 9, 5), 320);
    assert_int_equal(fx_weight_bytes(FX_LAYOUT_F16_T8, 8, 5), 80);
    assert_int_equal(fx_weight_bytes(FX_LAYOUT_I4_T8, 9, 65), 4 * 288);
    assert_int_equal(fx_weight_bytes(FX_LAYOUT_F32_T8, UINT32_MAX, 1u << 26),
                     (uint64_t)1 << 60); /* no 32-bit product inside */
}

int main(void) {
    static struct CMUnitTest tests[FX_TEST_COUNT(rows) + 2] = {cmocka_unit_test(test_padding_rows),
                                                               cmocka_unit_test(test_layouts)};
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i + 2] = (struct CMUnitTest){rows[i].name, test_pack_round_trip, NULL, NULL,
                                           (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
