/* Log probabilities against double precision and a sort. */
#include "engine/logprobs.h"
#include "tests/fx_test.h"
#include <math.h>
#include <stdlib.h>

enum { VOCAB = 300, ROUNDS = 400 };
static float row[VOCAB];

static int by_logit(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (row[x] > row[y]) return -1;
    if (row[x] < row[y]) return 1;
    return x < y ? -1 : 1;
}

static void test_against_sort(void **state) {
    (void)state;
    uint32_t random = 5;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t order[VOCAB];
        struct fx_logprob got[FX_LOGPROBS_MAX];
        double sum = 0;
        for (uint32_t i = 0; i < VOCAB; i++) {
            random = random * 1664525U + 1013904223U;
            row[i] = (float)(random >> 24) / (round % 2 ? 16.0F : 3.0F); /* with ties */
            order[i] = i;
        }
        for (uint32_t i = 0; i < VOCAB; i++)
            sum += exp((double)row[i] - 100);
        uint32_t token = random % VOCAB, top = round % (FX_TOP_LOGPROBS_MAX + 1);
        qsort(order, VOCAB, sizeof *order, by_logit);
        fx_logprobs(row, VOCAB, token, top, got);
        assert_int_equal(got[0].id, token);
        for (uint32_t i = 0; i <= top; i++) {
            uint32_t id = i ? order[i - 1] : token;
            assert_int_equal(got[i].id, id);
            assert_true(fabs((double)got[i].value - ((double)row[id] - 100 - log(sum))) < 1e-4);
        }
    }
}

static void test_infinite(void **state) {
    (void)state;
    const float logits[] = {-INFINITY, 5, -3.0e38F, -INFINITY};
    struct fx_logprob got[1 + 6];
    fx_logprobs(logits, 4, 3, 6, got);
    const struct fx_logprob want[] = {
        {3,               FX_LOGPROB_MIN},
        {1,               0             },
        {2,               FX_LOGPROB_MIN},
        {0,               FX_LOGPROB_MIN},
        {3,               FX_LOGPROB_MIN},
        {FX_LOGPROB_NONE, FX_LOGPROB_MIN},
        {FX_LOGPROB_NONE, FX_LOGPROB_MIN},
    };
    assert_memory_equal(got, want, sizeof want);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_sort),
                                       cmocka_unit_test(test_infinite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
