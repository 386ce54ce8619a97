#include "engine/philox.h"
#include "tests/fx_test.h"

/* Known answers of the authors' Random123, philox 4x32 10 in kat_vectors. */
struct known {
    const char *name;
    struct fx_philox counter;
    uint32_t key[2];
    struct fx_philox want;
};
static const struct known rows[] = {
    {"zero", {{0, 0, 0, 0}},                             {0, 0}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
    {"ones",
     {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
     {0xffffffff, 0xffffffff},
     {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}                                                            },
    {"pi",
     {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
     {0xa4093822, 0x299f31d0},
     {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}                                                            },
};

static void test_known_answer(void **state) {
    const struct known *row = *state;
    struct fx_philox got = fx_philox4x32_10(&row->counter, row->key);
    assert_memory_equal(&got, &row->want, sizeof(got));
}

static void test_uniform(void **state) {
    (void)state;
    double sum = 0;
    for (uint32_t position = 1; position <= 4096; position++) {
        double u = fx_philox_uniform(42, 0, position);
        assert_true(u >= 0 && u < 1);
        assert_true(u == fx_philox_uniform(42, 0, position));
        assert_true(u != fx_philox_uniform(43, 0, position));
        assert_true(u != fx_philox_uniform(42, 1, position));
        assert_true(u != fx_philox_uniform(42ULL | 1ULL << 32, 0, position));
        sum += u;
    }
    assert_true(sum / 4096 > 0.48 && sum / 4096 < 0.52);
}

int main(void) {
    struct CMUnitTest tests[FX_TEST_COUNT(rows) + 1];
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){rows[i].name, test_known_answer, NULL, NULL,
                                       (void *)(uintptr_t)&rows[i]};
    tests[FX_TEST_COUNT(rows)] = (struct CMUnitTest)cmocka_unit_test(test_uniform);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
