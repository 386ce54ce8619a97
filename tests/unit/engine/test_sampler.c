#include "engine/sampler.h"
#include "engine/philox.h"
#include "tests/fx_test.h"
#include <math.h>

enum { VOCAB = 8, DRAWS = 16 };
static const float logits[VOCAB] = {1.0F, 3.5F, -2.0F, 3.5F, 0.25F, 2.75F, -7.0F, 3.0F};

static bool draw(const struct fx_sampling *sampling, uint32_t position, const float *row,
                 uint32_t vocab, uint32_t *token, fx_error *err) {
    static float weights[4096], adjusted[4096];
    static uint32_t ids[4096];
    const struct fx_sample_scratch scratch = {weights, adjusted, ids};
    const struct fx_sample_row from = {.logits = row, .vocab = vocab, .number = position};
    return fx_sample(sampling, &from, &scratch, token, err);
}

static uint32_t drawn(const struct fx_sampling *sampling, uint32_t position, const float *row,
                      uint32_t vocab) {
    uint32_t token = UINT32_MAX;
    fx_error err = {0};
    assert_true(draw(sampling, position, row, vocab, &token, &err));
    assert_true(token < vocab);
    return token;
}

/* Tokens 1..16, computed by a few lines of Python from the definition in sampler.h. */
struct row {
    const char *name;
    struct fx_sampling sampling;
    uint32_t want[DRAWS];
};
static const struct row rows[] = {
    {.name = "temperature 1",
     .sampling = {.temperature = 1.0F, .seed = 1},
     .want = {7, 3, 1, 5, 1, 1, 3, 7, 4, 3, 5, 7, 0, 7, 1, 7}},
    {.name = "temperature 0.8, wide seed",
     .sampling = {.temperature = 0.8F, .seed = 1099511627781U},
     .want = {5, 3, 7, 5, 3, 5, 5, 5, 7, 3, 3, 7, 7, 7, 7, 1}},
    {.name = "another choice",
     .sampling = {.temperature = 0.8F, .seed = 1099511627781U, .choice = 1},
     .want = {7, 5, 5, 1, 1, 3, 1, 3, 7, 7, 3, 1, 3, 1, 5, 7}},
    {.name = "top_k 3",
     .sampling = {.temperature = 1.5F, .top_k = 3, .seed = 9},
     .want = {3, 3, 7, 1, 1, 3, 1, 1, 1, 1, 3, 3, 7, 7, 1, 3}},
    {.name = "top_p 0.7",
     .sampling = {.temperature = 1.0F, .top_p = 0.7F, .seed = 9},
     .want = {3, 3, 7, 1, 1, 3, 1, 1, 1, 1, 3, 3, 7, 7, 1, 3}},
    {.name = "min_p 0.5",
     .sampling = {.temperature = 2.0F, .min_p = 0.5F, .seed = 9},
     .want = {3, 3, 5, 1, 1, 3, 1, 3, 1, 1, 3, 3, 7, 7, 1, 3}},
    {.name = "top_k 5, top_p 0.8, min_p 0.3",
     .sampling = {.temperature = 2.0F, .top_k = 5, .top_p = 0.8F, .min_p = 0.3F, .seed = 9},
     .want = {3, 3, 7, 1, 1, 3, 1, 3, 1, 1, 3, 3, 7, 5, 1, 3}},
};

static void test_known(void **state) {
    const struct row *row = *state;
    for (uint32_t i = 0; i < DRAWS; i++)
        assert_int_equal(drawn(&row->sampling, i + 1, logits, VOCAB), row->want[i]);
}

static void test_greedy(void **state) {
    (void)state;
    const struct fx_sampling greedy = {
        .temperature = 0, .top_k = 2, .top_p = 0.5F, .min_p = 0.5F, .seed = 1};
    assert_int_equal(drawn(&greedy, 1, logits, VOCAB), 1); /* 3 is as large */
    const float flat[3] = {-1, -1, -1};
    assert_int_equal(drawn(&greedy, 7, flat, 3), 0);
    const float some[3] = {-INFINITY, -5, -INFINITY};
    assert_int_equal(drawn(&greedy, 7, some, 3), 1);
}

/* Which ids can be drawn at all. */
static uint32_t reach(struct fx_sampling sampling, const float *row, uint32_t vocab) {
    uint32_t seen = 0;
    for (uint32_t seed = 0; seed < 4000; seed++) {
        sampling.seed = seed;
        seen |= 1U << drawn(&sampling, 1, row, vocab);
    }
    return seen;
}

static void test_filters(void **state) {
    (void)state;
    const float ties[4] = {1, 1, 1, 1};
    assert_int_equal(reach((struct fx_sampling){.temperature = 1}, ties, 4), 0xF);
    assert_int_equal(reach((struct fx_sampling){.temperature = 1, .top_k = 1}, logits, VOCAB), 2);
    assert_int_equal(reach((struct fx_sampling){.temperature = 1, .top_k = 2}, ties, 4), 3);
    assert_int_equal(reach((struct fx_sampling){.temperature = 1, .top_k = 9}, ties, 4), 0xF);
    assert_int_equal(reach((struct fx_sampling){.temperature = 1, .top_p = 0.5F}, ties, 4), 3);
    assert_int_equal(reach((struct fx_sampling){.temperature = 1, .top_p = 0.51F}, ties, 4), 7);
    assert_int_equal(reach((struct fx_sampling){.temperature = 1, .top_p = 1}, ties, 4), 0xF);
    assert_int_equal(reach((struct fx_sampling){.temperature = 1, .top_p = 1e-6F}, ties, 4), 1);
    /* exp(3.0 - 3.5) = 0.607, exp(2.75 - 3.5) = 0.472 */
    assert_int_equal(reach((struct fx_sampling){.temperature = 1, .min_p = 0.6F}, logits, VOCAB),
                     1 << 1 | 1 << 3 | 1 << 7);
    assert_int_equal(reach((struct fx_sampling){.temperature = 1, .min_p = 1}, logits, VOCAB),
                     1 << 1 | 1 << 3);
    /* top_k before top_p: half of what three weigh, not of all. */
    const float steps[4] = {0, 0, 0, 3};
    const struct fx_sampling both = {.temperature = 1, .top_k = 2, .top_p = 0.96F};
    assert_int_equal(reach(both, steps, 4), 1 << 3 | 1 << 0);
    const float dead[4] = {-INFINITY, 0, -INFINITY, 0};
    assert_int_equal(reach((struct fx_sampling){.temperature = 2}, dead, 4), 1 << 1 | 1 << 3);
}

static void test_distribution(void **state) {
    (void)state;
    enum { COUNT = 40000 };
    uint32_t counts[VOCAB] = {0};
    double sum = 0;
    for (uint32_t i = 0; i < VOCAB; i++)
        sum += exp((double)logits[i] / 0.8);
    for (uint32_t i = 0; i < COUNT; i++)
        counts[drawn(&(struct fx_sampling){.temperature = 0.8F, .seed = 77}, i, logits, VOCAB)]++;
    for (uint32_t i = 0; i < VOCAB; i++) {
        double p = exp((double)logits[i] / 0.8) / sum;
        double allowed = 4 * sqrt(p * (1 - p) * COUNT) + 1;
        assert_true(fabs((double)counts[i] - p * COUNT) <= allowed);
    }
}

static void test_not_numbers(void **state) {
    (void)state;
    const float rows_of[][3] = {
        {1,         NAN,       2        },
        {NAN,       1,         2        },
        {-INFINITY, -INFINITY, -INFINITY},
        {0,         INFINITY,  0        }
    };
    for (size_t i = 0; i < FX_TEST_COUNT(rows_of); i++)
        for (int greedy = 0; greedy < 2; greedy++) {
            const struct fx_sampling sampling = {.temperature = greedy ? 0 : 1};
            uint32_t token = 99;
            fx_error err = {0};
            assert_false(draw(&sampling, 1, rows_of[i], 3, &token, &err));
            assert_int_equal(err.code, FX_DATA_LOSS);
            assert_int_equal(token, 99);
        }
}

static void check(bool good, struct fx_sampling sampling) {
    fx_error err = {0};
    assert_int_equal(fx_sampling_check(&sampling, 10, &err), good);
    if (!good) assert_int_equal(err.code, FX_INVALID_ARGUMENT);
}
#define CHECK(good, ...) check(good, (struct fx_sampling){__VA_ARGS__})

static void test_check(void **state) {
    (void)state;
    const struct fx_bias last = {9, -100}, past = {10, 1}, heavy = {1, 100.5F}, odd = {1, NAN};
    CHECK(true, .temperature = 0);
    CHECK(true, .temperature = 2, .top_k = UINT32_MAX, .top_p = 1, .min_p = 1, .seed = UINT64_MAX);
    CHECK(true, .typical_p = 1, .presence = -2, .frequency = 2, .repetition = 0.1F);
    CHECK(true, .presence = 2, .frequency = -2, .repetition = 10, .min_tokens = UINT32_MAX);
    CHECK(true, .bias = &last, .bias_count = 1);
    CHECK(false, .temperature = -0.1F);
    CHECK(false, .temperature = 2.01F);
    CHECK(false, .temperature = NAN);
    CHECK(false, .top_p = 1.1F);
    CHECK(false, .top_p = -0.1F);
    CHECK(false, .top_p = NAN);
    CHECK(false, .min_p = 1.5F);
    CHECK(false, .min_p = -INFINITY);
    CHECK(false, .typical_p = 1.01F);
    CHECK(false, .typical_p = NAN);
    CHECK(false, .presence = 2.01F);
    CHECK(false, .presence = -INFINITY);
    CHECK(false, .frequency = -2.01F);
    CHECK(false, .frequency = NAN);
    CHECK(false, .repetition = 0.05F);
    CHECK(false, .repetition = 11);
    CHECK(false, .repetition = -1);
    CHECK(false, .repetition = NAN);
    CHECK(false, .bias = &past, .bias_count = 1);
    CHECK(false, .bias = &heavy, .bias_count = 1);
    CHECK(false, .bias = &odd, .bias_count = 1);
    CHECK(false, .bias = &last, .bias_count = FX_BIASES_MAX + 1);
}

/* The heap against a plain sort, on rows with many ties. */
static void test_top_k_is_the_sorted_prefix(void **state) {
    (void)state;
    enum { MANY = 4096, KEPT = 100 };
    static float row[MANY];
    uint32_t random = 1, larger = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        random = random * 1664525U + 1013904223U;
        row[i] = (float)(random >> 24);
    }
    for (uint32_t seed = 0; seed < 300; seed++) {
        const struct fx_sampling sampling = {.temperature = 2, .top_k = KEPT, .seed = seed};
        uint32_t token = drawn(&sampling, 1, row, MANY);
        larger = 0;
        for (uint32_t i = 0; i < MANY; i++)
            larger += row[i] > row[token] || (row[i] == row[token] && i < token);
        assert_true(larger < KEPT);
    }
}

int main(void) {
    struct CMUnitTest tests[32];
    const struct CMUnitTest others[] = {
        cmocka_unit_test(test_greedy),       cmocka_unit_test(test_filters),
        cmocka_unit_test(test_distribution), cmocka_unit_test(test_not_numbers),
        cmocka_unit_test(test_check),        cmocka_unit_test(test_top_k_is_the_sorted_prefix)};
    size_t count = 0;
    for (; count < FX_TEST_COUNT(rows); count++)
        tests[count] = (struct CMUnitTest){rows[count].name, test_known, NULL, NULL,
                                           (void *)(uintptr_t)&rows[count]};
    for (size_t i = 0; i < FX_TEST_COUNT(others); i++)
        tests[count++] = others[i];
    return _cmocka_run_group_tests("sampler", tests, count, NULL, NULL);
}
