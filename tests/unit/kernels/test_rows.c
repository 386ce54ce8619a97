#include "values.h"

/* Kernels of one row: cpu gives ref's bits for every length and kind of value. */

static const uint32_t lengths[] = {1,  2,  3,  5,  7,  8,   9,   15,  16,  17,  31,
                                   32, 33, 63, 64, 65, 127, 128, 129, 192, 384, 500};
enum { LENGTH_MAX = 512 };

/* Calls body(kind, n) over all of them. */
static void each(void (*body)(enum values kind, uint32_t n)) {
    for (uint32_t kind = 0; kind < VALUES_KINDS; kind++)
        for (size_t i = 0; i < FX_TEST_COUNT(lengths); i++)
            body((enum values)kind, lengths[i]);
}

static void norm_bits(enum values kind, uint32_t n) {
    float *x = values_alloc(n, 4), *gain = values_alloc(n, 4), *out[2];
    values_fill(kind, n, x, n);
    values_fill(VALUES_PLAIN, 3, gain, n);
    const struct fx_kernels *backends[2] = {&fx_ref_kernels, values_cpu()};
    for (uint32_t b = 0; b < 2; b++) {
        out[b] = values_alloc(n, 4);
        backends[b]->norm(x, gain, n, 1e-5f, out[b]);
    }
    assert_same_floats(out[1], out[0], n, "norm of %u %s", n, values_names[kind]);
    free(x);
    free(gain);
    free(out[0]);
    free(out[1]);
}

static void encode_bits(enum values kind, uint32_t n) {
    struct fx_act want = values_act(kind, n, 2, n), got = values_act(kind, n, 2, n);
    memset(got.q, 99, got.stride * 2);
    memset(got.scale, 1, got.blocks * 8);
    memset(got.offset, 1, got.blocks * 8);
    for (uint32_t r = 0; r < 2; r++)
        values_cpu()->encode(&got, r);
    assert_same_floats(got.scale, want.scale, want.blocks * 2, "scales of %u %s", n,
                       values_names[kind]);
    assert_memory_equal(got.q, want.q, want.stride * 2);
    assert_memory_equal(got.offset, want.offset, want.blocks * 8);
    values_act_free(&want);
    values_act_free(&got);
}

static void rope_bits(enum values kind, uint32_t n) {
    float *head[2], *cos = values_alloc(n, 4), *sin = values_alloc(n, 4);
    values_fill(VALUES_PLAIN, 1, cos, n);
    values_fill(VALUES_PLAIN, 2, sin, n);
    const struct fx_kernels *backends[2] = {&fx_ref_kernels, values_cpu()};
    for (uint32_t b = 0; b < 2; b++) {
        head[b] = values_alloc(2 * (size_t)n, 4);
        values_fill(kind, n, head[b], 2 * (size_t)n);
        backends[b]->rope(head[b], cos, sin, n);
    }
    assert_same_floats(head[1], head[0], 2 * (size_t)n, "rope of %u %s", n, values_names[kind]);
    free(head[0]);
    free(head[1]);
    free(cos);
    free(sin);
}

static void swiglu_bits(enum values kind, uint32_t n) {
    float *gate = values_alloc(n, 4), *up = values_alloc(n, 4), *out[2];
    values_fill(kind, n, gate, n);
    values_fill(kind, n + 1, up, n);
    for (uint32_t i = 0; i < n; i++) /* exp at all its ranges */
        if (i % 2) gate[i] *= 60;
    const struct fx_kernels *backends[2] = {&fx_ref_kernels, values_cpu()};
    for (uint32_t b = 0; b < 2; b++) {
        out[b] = values_alloc(n, 4);
        backends[b]->swiglu(gate, up, n, out[b]);
    }
    assert_same_floats(out[1], out[0], n, "swiglu of %u %s", n, values_names[kind]);
    free(gate);
    free(up);
    free(out[0]);
    free(out[1]);
}

static void combine_bits(enum values kind, uint32_t n) {
    enum { SLOTS = 6, CHOICES = 3 };
    static const uint32_t slot[CHOICES] = {4, 0, 5};
    static const float weight[CHOICES] = {0.5f, 0.3f, 0.2f};
    float *all = values_alloc((size_t)n * SLOTS, 4), *x[2];
    values_fill(kind, n, all, (size_t)n * SLOTS);
    const struct fx_kernels *backends[2] = {&fx_ref_kernels, values_cpu()};
    for (int32_t padded = 0; padded < 2; padded++) {
        const int32_t chosen[CHOICES] = {1, padded ? FX_EXPERT_NONE : 7, 2};
        for (uint32_t b = 0; b < 2; b++) {
            x[b] = values_alloc(n, 4);
            values_fill(kind, 8, x[b], n);
            backends[b]->combine(all, slot, chosen, weight, CHOICES, n, x[b]);
        }
        assert_same_floats(x[1], x[0], n, "combine of %u %s", n, values_names[kind]);
        free(x[0]);
        free(x[1]);
    }
    free(all);
}

static void route_bits(enum values kind, uint32_t n) {
    float *logits = values_alloc(n, 4), weight[2][FX_EXPERTS_PER_TOKEN_MAX];
    int32_t chosen[2][FX_EXPERTS_PER_TOKEN_MAX];
    values_fill(kind, n, logits, n);
    for (uint32_t i = 0; i < n; i++) /* ties */
        if (i % 3 == 2) logits[i] = logits[i / 2];
    const struct fx_kernels *backends[2] = {&fx_ref_kernels, values_cpu()};
    for (uint32_t count = 1; count <= n && count <= FX_EXPERTS_PER_TOKEN_MAX; count += 3) {
        bool raw = count % 2;
        for (uint32_t b = 0; b < 2; b++)
            backends[b]->route(logits, n, count, raw, chosen[b], weight[b]);
        assert_memory_equal(chosen[0], chosen[1], count * sizeof(int32_t));
        assert_same_floats(weight[1], weight[0], count, "route of %u %s", n, values_names[kind]);
        for (uint32_t k = 0; k < count; k++) /* in range and distinct, whatever the logits */
            for (uint32_t j = 0; j <= k; j++)
                assert_true(chosen[0][k] >= 0 && chosen[0][k] < (int32_t)n &&
                            (j == k || chosen[0][j] != chosen[0][k]));
    }
    free(logits);
}

static void kv_bits(enum values kind, uint32_t n) {
    if (n % 8 || n > FX_HEAD_DIM_MAX) return;
    float *k = values_alloc(n, 4), *v = values_alloc(n, 4);
    values_fill(kind, n, k, n);
    values_fill(kind, n + 1, v, n);
    for (uint32_t i = 0; i < n; i++) /* NaN bits may differ; the rest of a NaN test is above */
        if (isnan(k[i]) || isnan(v[i])) k[i] = v[i] = INFINITY;
    const struct fx_kernels *backends[2] = {&fx_ref_kernels, values_cpu()};
    for (uint32_t type = FX_KV_F32; type <= FX_KV_F16; type++)
        for (uint32_t page_tokens = 8; page_tokens <= 64; page_tokens *= 2) {
            uint8_t *page[2][2];
            const struct fx_kv kv = {.type = (enum fx_kv_type)type};
            size_t bytes = (size_t)n * page_tokens * (type == FX_KV_F16 ? 2 : 4);
            for (uint32_t b = 0; b < 2; b++) {
                page[b][0] = values_alloc(bytes, 1);
                page[b][1] = values_alloc(bytes, 1);
                for (uint32_t token = 1; token < page_tokens; token += 3)
                    backends[b]->kv_write(&kv, k, v, n, page_tokens, token, page[b][0], page[b][1]);
            }
            assert_memory_equal(page[0][0], page[1][0], bytes);
            assert_memory_equal(page[0][1], page[1][1], bytes);
            for (uint32_t b = 0; b < 4; b++)
                free(page[b / 2][b % 2]);
        }
    free(k);
    free(v);
}

struct row {
    const char *name;
    void (*body)(enum values kind, uint32_t n);
};
static const struct row rows[] = {
    {"norm",    norm_bits   },
    {"encode",  encode_bits },
    {"rope",    rope_bits   },
    {"swiglu",  swiglu_bits },
    {"combine", combine_bits},
    {"route",   route_bits  },
    {"kv",      kv_bits     },
};
static void test_bits(void **state) {
    const struct row *row = *state;
    each(row->body);
}
FX_TEST_MAIN(test_bits, rows)
