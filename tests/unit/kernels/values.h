#pragma once
#include "common/base/heap.h"
#include "common/quant/int4.h"
#include "common/quant/weight.h"
#include "kernels/launch/launch.h"
#include "tests/fx_test.h"
#include <math.h>

/* Inputs and comparisons of kernel tests. */

enum values {
    VALUES_PLAIN,     /* within +-2 */
    VALUES_SUBNORMAL, /* the smallest floats, with zeros of both signs */
    VALUES_LARGE,     /* up to 1e30 and down to 1e-30: sums overflow */
    VALUES_MIXED,     /* all of them */
    VALUES_ODD,       /* with infinities and NaN */
    VALUES_KINDS,
};
static const char *const values_names[VALUES_KINDS] = {"plain", "subnormal", "large", "mixed",
                                                       "odd"};

static inline uint32_t values_draw(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 32);
}

static inline float values_one(enum values kind, uint64_t *seed) {
    uint32_t draw = values_draw(seed);
    float unit = (float)(int32_t)values_draw(seed) * 0x1p-31f;
    if (kind == VALUES_MIXED || kind == VALUES_ODD) {
        if (kind == VALUES_ODD && draw % 61 == 0)
            return draw % 3 ? NAN : draw % 2 ? INFINITY : -INFINITY;
        kind = (enum values)(draw % 3);
    }
    if (kind == VALUES_PLAIN) return unit * 2;
    if (kind == VALUES_LARGE) return unit * (draw % 2 ? 1e30f : draw % 4 ? 1.0f : 1e-30f);
    return draw % 5 == 0 ? copysignf(0.0f, unit) : unit * 0x1p-126f;
}

static inline void values_fill(enum values kind, uint64_t seed, float *out, size_t n) {
    for (size_t i = 0; i < n; i++)
        out[i] = values_one(kind, &seed);
}

/* Bit for bit; NaN equals NaN whatever its bits. */
static inline size_t values_differ(const float *a, const float *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof a[i]) != 0 && !(isnan(a[i]) && isnan(b[i]))) return i;
    return n;
}
#define assert_same_floats(a, b, n, ...)                                                           \
    do {                                                                                           \
        size_t at_ = values_differ((a), (b), (n));                                                 \
        if (at_ < (size_t)(n)) {                                                                   \
            print_error(__VA_ARGS__);                                                              \
            fail_msg(": at %zu of %zu: %a is not %a", at_, (size_t)(n), (double)(a)[at_],          \
                     (double)(b)[at_]);                                                            \
        }                                                                                          \
    } while (0)

/* Memory that ends where ASan begins; never NULL. */
static inline void *values_alloc(size_t count, size_t size) {
    void *at = fx_alloc(count ? count : 1, size);
    assert_non_null(at);
    return at;
}

/* A packed matrix of made-up values. Free with free((void *)weight.data). */
static inline struct fx_weight values_weight(enum fx_layout layout, enum values kind, uint64_t seed,
                                             uint32_t rows, uint32_t cols) {
    uint32_t blocks = (cols + 63) / 64;
    uint8_t *data = values_alloc(fx_weight_bytes(layout, rows, cols), 1);
    for (uint32_t at = 0; at < rows; at += 8) {
        uint32_t n = rows - at < 8 ? rows - at : 8;
        size_t count = (size_t)n * cols;
        float *part = values_alloc(count, sizeof *part);
        values_fill(kind, seed + at, part, count);
        if (layout == FX_LAYOUT_F32_ROW) {
            memcpy(data + (size_t)at * cols * 4, part, count * 4);
        } else if (layout == FX_LAYOUT_F32_T8) {
            fx_pack_tile_f32(part, n, cols, (float *)(void *)data + (size_t)at * cols);
        } else if (layout == FX_LAYOUT_F16_T8) {
            uint16_t *halves = values_alloc(count, sizeof *halves);
            for (size_t i = 0; i < count; i++)
                halves[i] = fx_f32_to_f16(part[i]);
            fx_pack_tile_f16(halves, n, cols, (uint16_t *)(void *)data + (size_t)at * cols);
            free(halves);
        } else {
            uint8_t *codes = values_alloc((size_t)n * blocks, 32);
            float *scales = values_alloc((size_t)n * blocks, sizeof *scales);
            for (size_t i = 0; i < count; i++)
                if (!isfinite(part[i])) part[i] = 3.0f; /* the codec refuses those */
            for (size_t r = 0; r < n; r++)
                assert_true(fx_int4_encode(part + r * cols, cols, codes + r * blocks * 32,
                                           scales + r * blocks, NULL));
            fx_pack_tile_i4(codes, scales, n, blocks,
                            data + (size_t)at / 8 * blocks * FX_I4_TILE_BYTES);
            free(codes);
            free(scales);
        }
        free(part);
    }
    return (struct fx_weight){data, rows, cols, layout};
}

/* Activation rows with their codes, by the reference. */
static inline struct fx_act values_act(enum values kind, uint64_t seed, uint32_t rows,
                                       uint32_t cols) {
    struct fx_act act = {.cols = cols, .blocks = (cols + 63) / 64};
    act.stride = act.blocks * 64;
    act.x = values_alloc((size_t)rows * act.stride, sizeof *act.x);
    act.q = values_alloc((size_t)rows * act.stride, 1);
    act.scale = values_alloc((size_t)rows * act.blocks, sizeof *act.scale);
    act.offset = values_alloc((size_t)rows * act.blocks, sizeof *act.offset);
    for (uint32_t r = 0; r < rows; r++) {
        values_fill(kind, seed + r * 977u, act.x + (size_t)r * act.stride, cols);
        fx_ref_kernels.encode(&act, r);
    }
    return act;
}
static inline void values_act_free(struct fx_act *act) {
    free(act->x);
    free(act->q);
    free(act->scale);
    free(act->offset);
}

/* The kernels under test; leaves the test as skipped on a processor without them. */
static inline const struct fx_kernels *values_cpu(void) {
    const struct fx_kernels *kernels = fx_cpu_kernels();
    if (!kernels) skip();
    return kernels;
}
