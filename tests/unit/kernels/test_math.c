#include "kernels/math.h"
#include "tests/fx_test.h"
#include <float.h>

/* The distance of `got` from `want` in units of the last place of f32 at `want`. */
static double ulps_f32(float got, double want) {
    if (isnan(want)) return isnan(got) ? 0 : INFINITY;
    float rounded = (float)want;
    if (isinf(rounded) || isinf(got)) return rounded == got ? 0 : INFINITY;
    int exponent = 0;
    (void)frexp(want, &exponent);
    double ulp = ldexp(1, exponent - 24 > -149 ? exponent - 24 : -149);
    return fabs((double)got - want) / ulp;
}
/* The same in f64 against long double. */
static double ulps_f64(double got, long double want) {
    int exponent = 0;
    (void)frexpl(want, &exponent);
    return (double)(fabsl((long double)got - want) / ldexpl(1, exponent - 53));
}
static double uniform(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) * 0x1p-53;
}

static void test_expf_accuracy(void **state) {
    (void)state;
    double worst = 0;
    for (uint32_t bits = 0; bits < 0x7f800000u; bits += 293) /* every sign and size */
        for (uint32_t sign = 0; sign < 2; sign++) {
            float x = fx_math_float(bits | sign << 31);
            double off = ulps_f32(fx_expf(x), exp(x));
            if (off > worst) worst = off;
        }
    print_message("expf: %.3f ulp\n", worst);
    assert_true(worst <= 1);
}

static void test_expf_edges(void **state) {
    (void)state;
    assert_true(fx_expf(0.0f) == 1.0f && fx_expf(-0.0f) == 1.0f);
    assert_true(fx_expf(INFINITY) == INFINITY && fx_expf(-INFINITY) == 0.0f);
    assert_true(isnan(fx_expf(NAN)) && isnan(fx_expf(-NAN)));
    assert_true(fx_expf(88.72283f) <= FLT_MAX && fx_expf(88.7229f) == INFINITY);
    assert_true(fx_expf(-103.9f) == 0x1p-149f && fx_expf(-104.0f) == 0.0f);
    assert_true(fx_expf(-90.0f) > 0 && fx_expf(-90.0f) < FLT_MIN); /* subnormals are kept */
}

static void test_exp_accuracy(void **state) {
    (void)state;
    uint64_t seed = 1;
    double worst = 0;
    for (int i = 0; i < 1000000; i++) {
        double x = (uniform(&seed) - 0.5) * (i % 2 ? 1400 : 4);
        if (x < -708) continue;
        double off = ulps_f64(fx_exp(x), expl(x));
        if (off > worst) worst = off;
    }
    print_message("exp: %.3f ulp\n", worst);
    assert_true(worst <= 2);
    assert_true(fx_exp(0) == 1 && fx_exp(-800) == 0 && isinf(fx_exp(800)) && isnan(fx_exp(NAN)));
}

static void test_log_accuracy(void **state) {
    (void)state;
    uint64_t seed = 2;
    double worst = 0;
    for (int i = 0; i < 1000000; i++) {
        double x = i % 3 ? ldexp(1 + uniform(&seed), (int)(uniform(&seed) * 2000) - 1060)
                         : 1 + (uniform(&seed) - 0.5) * 0.6;
        double off = ulps_f64(fx_log(x), logl(x));
        if (off > worst) worst = off;
    }
    print_message("log: %.3f ulp\n", worst);
    assert_true(worst <= 2);
    assert_true(fx_log(1) == 0);
}

static void test_sin_cos_accuracy(void **state) {
    (void)state;
    uint64_t seed = 3;
    double worst = 0;
    for (int i = 0; i < 1000000; i++) {
        double x = (double)(float)((uniform(&seed) - 0.5) * (i % 2 ? 0x1p21 : 10));
        double off_sin = ulps_f64(fx_sin(x), sinl(x)), off_cos = ulps_f64(fx_cos(x), cosl(x));
        if (off_sin > worst) worst = off_sin;
        if (off_cos > worst) worst = off_cos;
    }
    print_message("sin, cos: %.3f ulp\n", worst);
    assert_true(worst <= 2);
    assert_true(fx_sin(0) == 0 && fx_cos(0) == 1);
}

static void test_powf_accuracy(void **state) {
    (void)state;
    static const float bases[] = {10000.0f, 500000.0f, 1e6f, 2.0f, 0.1f, 1.0f};
    double worst = 0;
    for (size_t b = 0; b < FX_TEST_COUNT(bases); b++)
        for (int i = -256; i <= 256; i++) {
            float y = (float)i / 128;
            double off = ulps_f32(fx_powf(bases[b], y), pow(bases[b], y));
            if (off > worst) worst = off;
        }
    print_message("powf: %.3f ulp\n", worst);
    assert_true(worst <= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expf_accuracy),    cmocka_unit_test(test_expf_edges),
        cmocka_unit_test(test_exp_accuracy),     cmocka_unit_test(test_log_accuracy),
        cmocka_unit_test(test_sin_cos_accuracy), cmocka_unit_test(test_powf_accuracy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
