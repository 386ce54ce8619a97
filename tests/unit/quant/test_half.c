#include "common/quant/int4.h"
#include "tests/fx_test.h"
#include <math.h>

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The definition: (-1)^s 2^(e-15) (1 + m/1024), by ldexp. */
static double half_value(uint16_t half) {
    int exponent = half >> 10 & 31, mantissa = half & 1023;
    double magnitude = exponent == 31 ? (mantissa ? NAN : INFINITY)
                       : exponent     ? ldexp(1024 + mantissa, exponent - 25)
                                      : ldexp(mantissa, -24);
    return half & 0x8000 ? -magnitude : magnitude;
}

static void test_widen_all(void **state) {
    (void)state;
    for (uint32_t half = 0; half < 65536; half++) {
        double want = half_value((uint16_t)half);
        float got = fx_f16_to_f32((uint16_t)half);
        if (isnan(want))
            assert_true(isnan(got));
        else
            assert_int_equal(bits_of(got), bits_of((float)want));
    }
}

static void test_narrow_inverts_widen(void **state) {
    (void)state;
    for (uint32_t half = 0; half < 65536; half++) {
        float wide = fx_f16_to_f32((uint16_t)half);
        if (!isnan(wide))
            assert_int_equal(fx_f32_to_f16(wide), half);
        else
            assert_true(isnan(fx_f16_to_f32(fx_f32_to_f16(wide))));
    }
}

/* Between any two neighbours: below the middle goes down, above up, the middle to the even one. */
static void test_narrow_rounds_half_to_even(void **state) {
    (void)state;
    for (uint32_t half = 0; half < 0x7bff; half++) {
        float low = fx_f16_to_f32((uint16_t)half), high = fx_f16_to_f32((uint16_t)(half + 1));
        float middle = (float)(((double)low + (double)high) / 2);
        assert_int_equal(fx_f32_to_f16(middle), half + (half & 1));
        assert_int_equal(fx_f32_to_f16(nextafterf(middle, 0)), half);
        assert_int_equal(fx_f32_to_f16(nextafterf(middle, INFINITY)), half + 1);
        assert_int_equal(fx_f32_to_f16(-middle), 0x8000 | (half + (half & 1)));
    }
}

struct edge {
    const char *name;
    uint32_t f32;
    uint16_t half;
};

static void test_edges(void **state) {
    (void)state;
    static const struct edge edges[] = {
        {"65504 stays",           0x477fe000, 0x7bff},
        {"65519.99 is 65504",     0x477fefff, 0x7bff},
        {"65520 is infinite",     0x477ff000, 0x7c00},
        {"-1e38 is infinite",     0xfe967699, 0xfc00},
        {"infinity",              0x7f800000, 0x7c00},
        {"2^-25 ties to zero",    0x33000000, 0x0000},
        {"above 2^-25 is 2^-24",  0x33000001, 0x0001},
        {"smallest f32 is zero",  0x00000001, 0x0000},
        {"minus zero keeps sign", 0x80000000, 0x8000},
    };
    for (size_t i = 0; i < FX_TEST_COUNT(edges); i++) {
        float value;
        memcpy(&value, &edges[i].f32, 4);
        if (fx_f32_to_f16(value) != edges[i].half) fail_msg("%s", edges[i].name);
    }
}

static void test_bf16(void **state) {
    (void)state;
    for (uint32_t value = 0; value < 65536; value++) {
        float got = fx_bf16_to_f32((uint16_t)value);
        if (!isnan(got)) assert_int_equal(bits_of(got), value << 16);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widen_all),
        cmocka_unit_test(test_narrow_inverts_widen),
        cmocka_unit_test(test_narrow_rounds_half_to_even),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_bf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
