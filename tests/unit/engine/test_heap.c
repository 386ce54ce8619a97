#include "tests/unit/engine/rig.h"
#include "tests/fx_test.h"
#include <stdatomic.h>

/* After warm-up a step allocates nothing and frees nothing, on any thread: the test is linked with
 * --wrap for the four functions, so every call in our code is counted. */
static _Atomic uint64_t calls;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *at);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *at);

void *__wrap_malloc(size_t size) {
    calls++;
    return __real_malloc(size);
}
void *__wrap_calloc(size_t count, size_t size) {
    calls++;
    return __real_calloc(count, size);
}
void *__wrap_realloc(void *old, size_t size) {
    calls++;
    return __real_realloc(old, size);
}
void __wrap_free(void *at) {
    calls++;
    __real_free(at);
}

enum { PROMPT = 20, TOKENS = 20, SEQUENCES = 4 };

struct row {
    const char *name, *backend;
    enum fx_model_dtype dtype;
    float temperature;
};
static const struct row rows[] = {
    {"cpu int4 greedy", "cpu", FX_MODEL_INT4, 0   },
    {"cpu int4 seeded", "cpu", FX_MODEL_INT4, 0.8F},
    {"cpu f16 seeded",  "cpu", FX_MODEL_F16,  0.8F},
    {"ref int4 seeded", "ref", FX_MODEL_INT4, 0.8F},
};

static void add(struct rig *rig, const struct row *row, uint32_t seed) {
    uint32_t prompt[PROMPT];
    for (uint32_t i = 0; i < PROMPT; i++)
        prompt[i] = rig_random(&seed, 256);
    struct fx_sequence sequence = rig_sequence(prompt, PROMPT, TOKENS);
    const struct fx_bias bias[] = {
        {seed % 256, 4 },
        {3,          -1}
    };
    sequence.logprobs = FX_LOGPROBS_MAX;
    const uint32_t stop = 5;
    sequence.stops = &stop;
    sequence.stop_count = 1;
    sequence.sampling = (struct fx_sampling){.temperature = row->temperature,
                                             .top_k = 50,
                                             .top_p = 0.95F,
                                             .min_p = 0.01F,
                                             .seed = seed,
                                             .typical_p = 0.9F,
                                             .presence = 0.5F,
                                             .frequency = 0.5F,
                                             .repetition = 1.1F,
                                             .min_tokens = TOKENS,
                                             .bias = bias,
                                             .bias_count = FX_TEST_COUNT(bias)};
    (void)rig_add(rig, &sequence);
}

static void test_no_allocation(void **state) {
    const struct row *row = *state;
    struct rig_opts opts = {row->backend, 2, 16, 8, 0, "f32", 8};
    fx_auto(fx_model) model = rig_model("models/fractal-tiny-moe", row->dtype);
    rig_auto rig = rig_open(model, &opts, false);
    add(rig, row, 1);
    rig_run(rig); /* warm-up */
    uint64_t before = calls;
    for (uint32_t i = 0; i < SEQUENCES; i++)
        add(rig, row, 10 + i);
    rig_run(rig);
    assert_int_equal(calls, before);
    assert_true(before > 0); /* the counter counts */
    assert_int_equal(fx_engine_stats(rig->engine).tokens_decoded, (SEQUENCES + 1) * TOKENS);
}

FX_TEST_MAIN(test_no_allocation, rows)
