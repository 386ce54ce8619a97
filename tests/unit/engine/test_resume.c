#include "tests/unit/engine/rig.h"
#include "tests/fx_test.h"

/* A generation resumed behind its logged tokens, or set back for want of KV pages, has the text it
 * would have had. */
#define FOLDER "models/fractal-tiny-moe"
enum { PROMPT = 40, TOKENS = 60 };
#define EVERYTHING (-1.0F) /* as a row's temperature: every parameter on */

struct row {
    const char *name;
    enum fx_model_dtype dtype;
    float temperature;
};
static const struct row rows[] = {
    {"int4 greedy", FX_MODEL_INT4, 0         },
    {"int4 seeded", FX_MODEL_INT4, 0.8F      },
    {"f16 seeded",  FX_MODEL_F16,  0.8F      },
    {"everything",  FX_MODEL_INT4, EVERYTHING},
};

static void prompt_fill(uint32_t ids[PROMPT], uint32_t seed) {
    for (uint32_t i = 0; i < PROMPT; i++)
        ids[i] = 'a' + rig_random(&seed, 26);
}

static struct fx_sequence sequence_of(const uint32_t *prompt, float temperature, uint64_t seed) {
    struct fx_sequence sequence = rig_sequence(prompt, PROMPT, TOKENS);
    sequence.sampling.temperature = temperature;
    sequence.sampling.seed = seed;
    if (temperature < 0) sequence.sampling = rig_everything(seed);
    return sequence;
}

static void test_resume(void **state) {
    const struct row *row = *state;
    static const uint32_t behind[] = {1, 2, 17, 24, 59};
    static const uint32_t chunks[] = {512, 64, 7, 1, 33};
    fx_auto(fx_model) model = rig_model(FOLDER, row->dtype);
    uint32_t prompt[PROMPT];
    prompt_fill(prompt, 3);
    struct rig_opts opts = RIG_PLAIN;
    opts.backend = "cpu";
    rig_auto whole = rig_open(model, &opts, false);
    struct fx_sequence sequence = sequence_of(prompt, row->temperature, 4711);
    struct rig_answer *want = rig_add(whole, &sequence);
    rig_run(whole);
    assert_int_equal(want->count, TOKENS);
    for (size_t i = 0; i < FX_TEST_COUNT(behind); i++) {
        opts.chunk_rows = chunks[i];
        rig_auto rig = rig_open(model, &opts, false);
        struct fx_sequence rest = sequence;
        rest.logged = want->tokens;
        rest.logged_count = behind[i];
        struct rig_answer *got = rig_add(rig, &rest);
        rig_run(rig);
        assert_int_equal(got->count, TOKENS);
        assert_int_equal(got->end, FX_ENGINE_LENGTH);
        assert_memory_equal(got->tokens, want->tokens, sizeof(uint32_t) * TOKENS);
        struct fx_engine_stats stats = fx_engine_stats(rig->engine);
        assert_int_equal(stats.logged_prefilled, behind[i]);
        assert_int_equal(stats.logged_sampled, 0);
        assert_int_equal(stats.tokens_decoded, TOKENS - behind[i]);
    }
}

/* Resumed behind its very last token there is nothing to do but say how it ended. */
static void test_resume_at_the_end(void **state) {
    (void)state;
    fx_auto(fx_model) model = rig_model(FOLDER, FX_MODEL_INT4);
    struct rig_opts opts = RIG_PLAIN;
    const uint32_t prompt[] = {256, 'a'}, logged[] = {'b', 257}, stop = 257;
    rig_auto rig = rig_open(model, &opts, false);
    struct fx_sequence stopped = rig_sequence(prompt, 2, 10), full = rig_sequence(prompt, 2, 2);
    stopped.logged = full.logged = logged;
    stopped.logged_count = full.logged_count = 2;
    stopped.stops = &stop;
    stopped.stop_count = 1;
    struct rig_answer *by_stop = rig_add(rig, &stopped), *by_length = rig_add(rig, &full);
    rig_run(rig);
    assert_int_equal(by_stop->end, FX_ENGINE_STOP);
    assert_int_equal(by_length->end, FX_ENGINE_LENGTH);
    assert_int_equal(by_stop->count, 2);
    assert_int_equal(fx_engine_stats(rig->engine).steps, 0);
}

/* 6 sequences that need 7 pages of 16 each at their end, in a pool of 20. */
static void test_preemption(void **state) {
    (void)state;
    enum { SEQUENCES = 6, PAGE_BYTES = 16 * 2048 };
    fx_auto(fx_model) model = rig_model(FOLDER, FX_MODEL_INT4);
    struct rig_opts plenty = RIG_PLAIN, scarce = RIG_PLAIN;
    plenty.backend = scarce.backend = "cpu";
    scarce.page_tokens = 16;
    scarce.kv_bytes = 20 * PAGE_BYTES;
    scarce.chunk_rows = 24;
    rig_auto want = rig_open(model, &plenty, false);
    rig_auto got = rig_open(model, &scarce, false);
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        uint32_t prompt[PROMPT];
        prompt_fill(prompt, i);
        struct fx_sequence sequence = sequence_of(prompt, i % 2 ? 0.8F : 0, i);
        (void)rig_add(want, &sequence);
        (void)rig_add(got, &sequence);
    }
    rig_run(want);
    rig_run(got);
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        assert_int_equal(got->answers[i].count, TOKENS);
        assert_memory_equal(got->answers[i].tokens, want->answers[i].tokens,
                            sizeof(uint32_t) * TOKENS);
    }
    struct fx_engine_stats stats = fx_engine_stats(got->engine);
    assert_int_equal(stats.pages, 20);
    assert_int_equal(stats.pages_free, stats.pages);
    assert_int_equal(stats.slots_free, stats.slots);
    assert_true(stats.preemptions > 0);
    assert_int_equal(fx_engine_stats(want->engine).preemptions, 0);
}

/* A windowed model writes more tokens than the pool holds at once. */
static void test_window_outlasts_the_pool(void **state) {
    (void)state;
    fx_auto(fx_model) model = rig_model("tests/goldens/mistral-window", FX_MODEL_F32);
    const struct fx_model_config *config = fx_model_get_config(model);
    uint64_t page = (uint64_t)config->layers * config->kv_heads * config->head_dim * 2 * 4 * 16;
    struct rig_opts plenty = RIG_PLAIN, scarce = RIG_PLAIN;
    scarce.page_tokens = 16;
    scarce.chunk_rows = 16;
    scarce.kv_bytes = 5 * page;
    const uint32_t prompt[] = {1, 5, 9};
    struct fx_sequence sequence = rig_sequence(prompt, 3, 200);
    rig_auto want = rig_open(model, &plenty, false);
    rig_auto got = rig_open(model, &scarce, false);
    (void)rig_add(want, &sequence);
    (void)rig_add(got, &sequence);
    rig_run(want);
    rig_run(got);
    assert_int_equal(got->answers[0].count, 200);
    assert_memory_equal(got->answers[0].tokens, want->answers[0].tokens, 200 * sizeof(uint32_t));
    assert_int_equal(fx_engine_stats(got->engine).preemptions, 0);
    assert_int_equal(fx_engine_stats(got->engine).pages_free, 5);
}

int main(void) {
    struct CMUnitTest tests[16];
    const struct CMUnitTest others[] = {cmocka_unit_test(test_resume_at_the_end),
                                        cmocka_unit_test(test_preemption),
                                        cmocka_unit_test(test_window_outlasts_the_pool)};
    size_t count = 0;
    for (; count < FX_TEST_COUNT(rows); count++)
        tests[count] = (struct CMUnitTest){rows[count].name, test_resume, NULL, NULL,
                                           (void *)(uintptr_t)&rows[count]};
    for (size_t i = 0; i < FX_TEST_COUNT(others); i++)
        tests[count++] = others[i];
    return _cmocka_run_group_tests("resume", tests, count, NULL, NULL);
}
