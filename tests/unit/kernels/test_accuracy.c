#include "values.h"

/* The reference against the same maths in f64: bits alone would not show a wrong formula. */

enum { N = 192, OUT = 40 };

static double relative(const float *got, const double *want, size_t n) {
    double error = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        size += want[i] * want[i];
    }
    return sqrt(error / size);
}

static void check_matmul(enum fx_layout layout, double bound) {
    struct fx_weight weight = values_weight(layout, VALUES_PLAIN, 1, OUT, N);
    struct fx_act act = values_act(VALUES_PLAIN, 2, 3, N);
    float out[3 * OUT] = {0}, row[N];
    double want[3 * OUT];
    struct fx_mul mul = {.weight = &weight, .act = &act, .rows = 3, .out = out, .out_stride = OUT};
    fx_ref_kernels.matmul(&mul, 0, OUT / 8);
    for (uint32_t o = 0; o < OUT; o++) {
        fx_weight_row(&weight, o, row);
        for (uint32_t r = 0; r < 3; r++) {
            double sum = 0;
            for (uint32_t k = 0; k < N; k++) {
                size_t at = r * act.stride + k;
                double code = act.q[at] * (double)act.scale[r * act.blocks + k / 64];
                sum += row[k] * (layout == FX_LAYOUT_I4_T8 ? code : (double)act.x[at]);
            }
            want[r * OUT + o] = sum;
        }
    }
    double error = relative(out, want, 3 * OUT);
    print_message("%s: %.2g\n", fx_layout_name(layout), error);
    assert_true(error <= bound);
    values_act_free(&act);
    free((void *)(uintptr_t)weight.data);
}

static void test_matmul(void **state) {
    (void)state;
    check_matmul(FX_LAYOUT_F32_T8, 6e-7);
    check_matmul(FX_LAYOUT_F16_T8, 6e-7);
    check_matmul(FX_LAYOUT_I4_T8, 3e-7); /* against the same codes: the integers are exact */
}

static void test_codes(void **state) {
    (void)state;
    struct fx_act act = values_act(VALUES_PLAIN, 3, 1, N);
    for (uint32_t block = 0; block < N / 64; block++) {
        float max = 0;
        int32_t sum = 0;
        for (uint32_t k = block * 64; k < block * 64 + 64; k++) {
            max = fmaxf(max, fabsf(act.x[k]));
            sum += act.q[k];
            double decoded = act.q[k] * (double)act.scale[block];
            assert_true(fabs(decoded - (double)act.x[k]) <= act.scale[block] * 0.500001);
        }
        assert_true(act.scale[block] == max / 127.0f);
        assert_int_equal(act.offset[block], 8 * sum);
    }
    values_act_free(&act);
}

static void test_norm(void **state) {
    (void)state;
    float x[N], gain[N], out[N];
    double want[N], squares = 0;
    values_fill(VALUES_PLAIN, 4, x, N);
    values_fill(VALUES_PLAIN, 5, gain, N);
    fx_ref_kernels.norm(x, gain, N, 1e-5f, out);
    for (size_t i = 0; i < N; i++)
        squares += (double)x[i] * x[i];
    for (size_t i = 0; i < N; i++)
        want[i] = x[i] / sqrt(squares / N + 1e-5) * gain[i];
    assert_true(relative(out, want, N) <= 3e-7);
}

static void test_rope(void **state) {
    (void)state;
    float head[8], cosines[4], sines[4];
    double want[8];
    values_fill(VALUES_PLAIN, 6, head, 8);
    for (size_t i = 0; i < 4; i++) {
        double angle = 0.7 * (double)(i + 1);
        cosines[i] = (float)cos(angle);
        sines[i] = (float)sin(angle);
        want[i] = head[i] * cos(angle) - head[i + 4] * sin(angle);
        want[i + 4] = head[i + 4] * cos(angle) + head[i] * sin(angle);
    }
    fx_ref_kernels.rope(head, cosines, sines, 4);
    assert_true(relative(head, want, 8) <= 3e-7);
}

static void test_swiglu(void **state) {
    (void)state;
    float gate[N], up[N], out[N];
    double want[N];
    values_fill(VALUES_PLAIN, 7, gate, N);
    values_fill(VALUES_PLAIN, 8, up, N);
    for (size_t i = 0; i < N; i++) {
        gate[i] *= 5;
        want[i] = gate[i] / (1 + exp(-(double)gate[i])) * up[i];
    }
    fx_ref_kernels.swiglu(gate, up, N, out);
    assert_true(relative(out, want, N) <= 3e-7);
}

static void test_route(void **state) {
    (void)state;
    static const float logits[] = {1.0f, 3.0f, -2.0f, 3.0f, 2.5f, 2.5f, 0.0f};
    static const int32_t want[] = {1, 3, 4, 5}; /* the lower index wins a tie */
    int32_t chosen[4];
    float weight[4];
    fx_ref_kernels.route(logits, 7, 4, false, chosen, weight);
    assert_memory_equal(chosen, want, sizeof want);
    double total = 0;
    for (size_t k = 0; k < 4; k++)
        total += exp(logits[want[k]]);
    for (size_t k = 0; k < 4; k++)
        assert_true(fabs(weight[k] - exp(logits[want[k]]) / total) < 2e-7);
    static const float unordered[] = {NAN, NAN, NAN};
    fx_ref_kernels.route(unordered, 3, 2, false, chosen, weight);
    assert_true(chosen[0] == 0 && chosen[1] == 1);
}

/* Two query heads over one KV head; keys first..position in f64. */
static void attend_f64(const float *q, const float *k, const float *v, uint32_t dim, uint32_t first,
                       uint32_t position, double *out) {
    double score[256], sum = 0, max = -INFINITY;
    for (uint32_t t = first; t <= position; t++) {
        score[t] = 0;
        for (uint32_t d = 0; d < dim; d++)
            score[t] += (double)q[d] * k[t * dim + d];
        score[t] /= sqrt(dim);
        max = fmax(max, score[t]);
    }
    memset(out, 0, dim * sizeof *out);
    for (uint32_t t = first; t <= position; t++) {
        double p = exp(score[t] - max);
        sum += p;
        for (uint32_t d = 0; d < dim; d++)
            out[d] += p * v[t * dim + d];
    }
    for (uint32_t d = 0; d < dim; d++)
        out[d] /= sum;
}

static void test_attend(void **state) {
    (void)state;
    enum { DIM = 16, TOKENS = 200, HEADS = 2 };
    static float k[TOKENS * DIM], v[TOKENS * DIM], k_pages[4 * DIM * 64], v_pages[4 * DIM * 64];
    float q[HEADS * DIM], got[HEADS * DIM];
    double want[HEADS * DIM];
    static const uint32_t table[] = {2, 0, 3, 1};
    struct fx_shape shape = {.heads = HEADS, .kv_heads = 1, .head_dim = DIM};
    struct fx_kv kv = {(uint8_t *)k_pages, (uint8_t *)v_pages, DIM * 64 * 4, FX_KV_F32};
    values_fill(VALUES_PLAIN, 1, q, HEADS * DIM);
    values_fill(VALUES_PLAIN, 2, k, TOKENS * DIM);
    values_fill(VALUES_PLAIN, 3, v, TOKENS * DIM);
    for (uint32_t t = 0; t < TOKENS; t++) {
        uint64_t at = table[t / 64] * kv.page_stride_bytes;
        fx_ref_kernels.kv_write(&kv, k + t * DIM, v + t * DIM, DIM, 64, t % 64, kv.k + at,
                                kv.v + at);
    }
    static const uint32_t ranges[][2] = {
        {0,   0  },
        {0,   63 },
        {0,   64 },
        {0,   199},
        {50,  199},
        {130, 140}
    };
    for (size_t r = 0; r < FX_TEST_COUNT(ranges); r++) {
        struct fx_attend attend = {&shape, &kv, table, 64, ranges[r][0], ranges[r][1], q, got};
        fx_ref_kernels.attend(&attend, 0);
        for (uint32_t h = 0; h < HEADS; h++)
            attend_f64(q + h * DIM, k, v, DIM, ranges[r][0], ranges[r][1], want + h * DIM);
        assert_true(relative(got, want, HEADS * DIM) <= 1e-6);
    }
}

static void test_combine(void **state) {
    (void)state;
    static const float all[] = {1, 2, 30, 40, 500, 600}, weight[] = {0.25f, 0.75f};
    static const uint32_t slot[] = {2, 0};
    static const int32_t chosen[] = {5, 1};
    float x[] = {1000, 2000};
    fx_ref_kernels.combine(all, slot, chosen, weight, 2, 2, x);
    assert_true(x[0] == 1000 + 125 + 0.75f && x[1] == 2000 + 150 + 1.5f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul), cmocka_unit_test(test_codes),   cmocka_unit_test(test_norm),
        cmocka_unit_test(test_rope),   cmocka_unit_test(test_swiglu),  cmocka_unit_test(test_route),
        cmocka_unit_test(test_attend), cmocka_unit_test(test_combine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
