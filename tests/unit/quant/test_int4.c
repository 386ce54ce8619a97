#include "int4_vectors.h"
#include <math.h>

static void test_vectors(void **state) {
    (void)state;
    char first[96] = "";
    size_t failing = vectors_failing(fx_int4_encode, fx_int4_decode, first);
    if (failing) fail_msg("%zu vectors fail, first '%s'", failing, first);
}

static void test_refused(void **state) {
    (void)state;
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < FX_TEST_COUNT(bad); i++)
        for (size_t at = 0; at < 70; at += 23) {
            float in[70] = {1.0f}, scales[2] = {5.0f, 5.0f};
            uint8_t codes[64] = {9};
            fx_error err = {0};
            in[at] = bad[i];
            assert_false(fx_int4_encode(in, 70, codes, scales, &err));
            assert_int_equal(err.code, FX_INVALID_ARGUMENT);
            char want[40];
            (void)snprintf(want, sizeof want, "value %zu is not finite", at);
            assert_string_equal(err.text, want);
            assert_true(codes[0] == 9 && scales[0] == 5.0f && scales[1] == 5.0f);
        }
}

/* |decoded - in| <= scale/2 wherever no clamp and no subnormal plays a part. */
static void test_error_bound(void **state) {
    (void)state;
    float in[640], out[640], scales[10];
    uint8_t codes[320];
    uint32_t seed = 1;
    for (size_t i = 0; i < 640; i++) {
        seed = seed * 1664525u + 1013904223u;
        in[i] = ((float)(seed >> 8) * 0x1p-24f - 0.5f) * (float)(1 + i / 64);
    }
    assert_true(fx_int4_encode(in, 640, codes, scales, NULL));
    fx_int4_decode(codes, scales, 640, out);
    for (size_t i = 0; i < 640; i++)
        assert_true(fabsf(out[i] - in[i]) <= scales[i / 64] * 0.500001f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_error_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
