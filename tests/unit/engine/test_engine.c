#include "tests/unit/engine/rig.h"
#include "tests/fx_test.h"
#include <math.h>

/* What the engine refuses, counts and lets go of. */
#define FOLDER "models/fractal-tiny-moe"

static const struct fx_engine_opts good = {
    .backend = "cpu",
    .kv_dtype = "f32",
    .threads = 1,
    .kv_bytes = 4 << 20,
    .page_tokens = 64,
    .slots = 4,
    .rows_max = 32,
    .chunk_rows_max = 16,
};

static void test_bad_options(void **state) {
    (void)state;
    fx_auto(fx_model) model = rig_model(FOLDER, FX_MODEL_INT4);
    struct fx_engine_opts bad[12];
    for (size_t i = 0; i < FX_TEST_COUNT(bad); i++) {
        bad[i] = good;
        bad[i].model = model;
    }
    bad[0].backend = "gpu";
    bad[1].kv_dtype = "f8";
    bad[2].threads = 0;
    bad[3].threads = 257;
    bad[4].kv_bytes = 1000;
    bad[5].page_tokens = 32;
    bad[6].slots = 0;
    bad[7].slots = FX_ENGINE_SLOTS_MAX + 1;
    bad[8].rows_max = 3;
    bad[9].chunk_rows_max = 0;
    bad[10].chunk_rows_max = 33;
    bad[11].context_max = 1;
    for (size_t i = 0; i < FX_TEST_COUNT(bad); i++) {
        fx_engine *engine = NULL;
        fx_error err = {0};
        if (fx_engine_open(&bad[i], &engine, &err)) fail_msg("row %zu was accepted", i);
        assert_int_equal(err.code, FX_INVALID_ARGUMENT);
        assert_true(err.text[0] != 0);
        assert_null(engine);
    }
    fx_engine_free(NULL);
}

static fx_engine *engine_open(const fx_model *model) {
    struct fx_engine_opts opts = good;
    fx_engine *engine = NULL;
    fx_error err = {0};
    opts.model = model;
    if (!fx_engine_open(&opts, &engine, &err)) fail_msg("%s", err.text);
    return engine;
}

static enum fx_code refused(fx_engine *engine, const struct fx_sequence *sequence) {
    fx_error err = {0};
    uint32_t number = 12345;
    assert_false(fx_engine_add(engine, sequence, &number, &err));
    assert_int_equal(number, 12345);
    return err.code;
}

static void test_bad_sequences(void **state) {
    (void)state;
    fx_auto(fx_model) model = rig_model(FOLDER, FX_MODEL_INT4);
    fx_auto(fx_engine) engine = engine_open(model);
    uint32_t prompt[1100] = {256, 'a', 'b'}, stops[FX_ENGINE_STOPS_MAX + 1] = {0}, wild = 260;
    assert_int_equal(fx_engine_context_max(engine), 1024);
    struct fx_sequence sequence = rig_sequence(prompt, 0, 5);
    assert_int_equal(refused(engine, &sequence), FX_INVALID_ARGUMENT);
    sequence = rig_sequence(prompt, 3, 0);
    assert_int_equal(refused(engine, &sequence), FX_INVALID_ARGUMENT);
    sequence = rig_sequence(prompt, 1024, 5);
    assert_int_equal(refused(engine, &sequence), FX_OUT_OF_RANGE);
    sequence = rig_sequence(&wild, 1, 5);
    assert_int_equal(refused(engine, &sequence), FX_INVALID_ARGUMENT);
    sequence = rig_sequence(prompt, 3, 5);
    sequence.logged = &wild;
    sequence.logged_count = 1;
    assert_int_equal(refused(engine, &sequence), FX_INVALID_ARGUMENT);
    sequence.logged = prompt;
    sequence.logged_count = 1022;
    assert_int_equal(refused(engine, &sequence), FX_OUT_OF_RANGE);
    sequence = rig_sequence(prompt, 3, 5);
    sequence.stops = stops;
    sequence.stop_count = FX_ENGINE_STOPS_MAX + 1;
    assert_int_equal(refused(engine, &sequence), FX_INVALID_ARGUMENT);
    sequence = rig_sequence(prompt, 3, 5);
    sequence.sampling.temperature = -1;
    assert_int_equal(refused(engine, &sequence), FX_INVALID_ARGUMENT);
    assert_false(fx_engine_busy(engine));
}

static void test_slots_and_removal(void **state) {
    (void)state;
    fx_auto(fx_model) model = rig_model(FOLDER, FX_MODEL_INT4);
    fx_auto(fx_engine) engine = engine_open(model);
    const uint32_t prompt[] = {256, 'a', 'b'};
    const struct fx_sequence sequence = rig_sequence(prompt, 3, 50);
    uint32_t numbers[4];
    for (uint32_t i = 0; i < 4; i++)
        assert_true(fx_engine_add(engine, &sequence, &numbers[i], &(fx_error){0}));
    assert_int_equal(refused(engine, &sequence), FX_RESOURCE_EXHAUSTED);
    const struct fx_engine_result *results;
    size_t count;
    uint64_t progress = fx_engine_progress(engine);
    fx_engine_step(engine, &results, &count);
    assert_int_equal(count, 4);
    assert_true(fx_engine_progress(engine) > progress);
    struct fx_engine_stats stats = fx_engine_stats(engine);
    assert_int_equal(stats.running, 4);
    assert_int_equal(stats.pages - stats.pages_free, 4);
    assert_int_equal(stats.tokens_prefilled, 12);
    assert_int_equal(stats.tokens_decoded, 4);
    fx_engine_remove(engine, numbers[1]); /* mid-decode */
    assert_int_equal(fx_engine_stats(engine).slots_free, 1);
    assert_int_equal(fx_engine_stats(engine).pages_free, stats.pages - 3);
    fx_engine_step(engine, &results, &count);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++)
        assert_true(results[i].sequence != numbers[1]);
    assert_true(fx_engine_add(engine, &sequence, &numbers[1], &(fx_error){0}));
    for (uint32_t i = 0; i < 4; i++)
        fx_engine_remove(engine, numbers[i]); /* one of them never stepped */
    assert_false(fx_engine_busy(engine));
    fx_engine_step(engine, &results, &count);
    assert_int_equal(count, 0);
    assert_int_equal(fx_engine_stats(engine).pages_free, stats.pages);
    assert_int_equal(fx_engine_stats(engine).steps, 2);
}

/* The counters say what a step read: one pass over the dense weights for all its rows. */
static void test_counters(void **state) {
    (void)state;
    fx_auto(fx_model) model = rig_model(FOLDER, FX_MODEL_INT4);
    fx_auto(fx_engine) engine = engine_open(model);
    const uint32_t prompt[] = {256};
    const struct fx_sequence sequence = rig_sequence(prompt, 1, 50);
    const struct fx_engine_result *results;
    size_t count;
    uint32_t number;
    for (uint32_t i = 0; i < 4; i++)
        assert_true(fx_engine_add(engine, &sequence, &number, &(fx_error){0}));
    fx_engine_step(engine, &results, &count);
    struct fx_engine_stats one = fx_engine_stats(engine);
    assert_int_equal(one.dense_rows, 4 * one.dense_matmuls);
    assert_int_equal(one.rows, 4);
    assert_true(one.expert_matmuls > 0 && one.expert_rows >= one.expert_matmuls);
    fx_engine_step(engine, &results, &count);
    struct fx_engine_stats two = fx_engine_stats(engine);
    assert_int_equal(two.dense_matmuls, 2 * one.dense_matmuls);
    assert_int_equal(two.rows, 8);
    assert_int_equal(two.expert_rows, 2 * one.expert_rows);
    assert_true(two.weight_bytes > one.weight_bytes);
}

/* A long prompt beside a decoding sequence: the latter has a token every step. */
static void test_prefill_does_not_stop_decode(void **state) {
    (void)state;
    fx_auto(fx_model) model = rig_model(FOLDER, FX_MODEL_INT4);
    fx_auto(fx_engine) engine = engine_open(model);
    uint32_t prompt[300], first, second;
    for (uint32_t i = 0; i < 300; i++)
        prompt[i] = 'a' + i % 26;
    const struct fx_sequence decoding = rig_sequence(prompt, 2, 100);
    const struct fx_sequence prefilling = rig_sequence(prompt, 300, 5);
    const struct fx_engine_result *results;
    size_t count;
    assert_true(fx_engine_add(engine, &decoding, &first, &(fx_error){0}));
    fx_engine_step(engine, &results, &count);
    assert_true(fx_engine_add(engine, &prefilling, &second, &(fx_error){0}));
    for (uint32_t step = 0; step < 18; step++) { /* 18 chunks of 16 are 288 */
        fx_engine_step(engine, &results, &count);
        assert_int_equal(count, 1);
        assert_int_equal(results[0].sequence, first);
    }
    fx_engine_step(engine, &results, &count);
    assert_int_equal(count, 2);
}

/* Spoils a logit of one sequence before it is sampled. */
struct spoiler {
    uint32_t sequence, position;
};
static void spoil(void *ctx, const struct fx_engine_row *row) {
    const struct spoiler *spoiler = ctx;
    if (row->sequence == spoiler->sequence && row->position == spoiler->position)
        ((float *)(uintptr_t)row->logits)[7] = NAN;
}

static void test_not_a_number_fails_its_row(void **state) {
    (void)state;
    fx_auto(fx_model) model = rig_model(FOLDER, FX_MODEL_INT4);
    fx_auto(fx_engine) engine = NULL;
    struct spoiler spoiler = {1, 6};
    struct fx_engine_opts opts = good;
    opts.model = model;
    opts.on_row = spoil;
    opts.ctx = &spoiler;
    assert_true(fx_engine_open(&opts, &engine, &(fx_error){0}));
    const uint32_t prompt[] = {256, 'a', 'b'};
    const struct fx_sequence sequence = rig_sequence(prompt, 3, 20);
    uint32_t number, tokens = 0, failed = 0, ended = 0;
    for (uint32_t i = 0; i < 3; i++)
        assert_true(fx_engine_add(engine, &sequence, &number, &(fx_error){0}));
    while (fx_engine_busy(engine)) {
        const struct fx_engine_result *results;
        size_t count;
        fx_engine_step(engine, &results, &count);
        for (size_t i = 0; i < count; i++) {
            tokens += results[i].number != 0;
            ended += results[i].end == FX_ENGINE_LENGTH;
            if (results[i].end != FX_ENGINE_FAILED) continue;
            failed++;
            assert_int_equal(results[i].sequence, 1);
            assert_non_null(strstr(results[i].detail, "token 5: logit 7"));
        }
    }
    assert_int_equal(failed, 1);
    assert_int_equal(ended, 2);
    assert_int_equal(tokens, 20 + 20 + 4);
    assert_int_equal(fx_engine_stats(engine).rows_failed, 1);
    assert_int_equal(fx_engine_stats(engine).pages_free, fx_engine_stats(engine).pages);
}

static void test_stop_ids(void **state) {
    (void)state;
    fx_auto(fx_model) model = rig_model(FOLDER, FX_MODEL_INT4);
    struct rig_opts opts = RIG_PLAIN;
    opts.backend = "cpu";
    rig_auto free_running = rig_open(model, &opts, false);
    rig_auto stopping = rig_open(model, &opts, false);
    const uint32_t prompt[] = {256, 'I', 't', ' '};
    struct fx_sequence sequence = rig_sequence(prompt, 4, 40);
    struct rig_answer *all = rig_add(free_running, &sequence);
    rig_run(free_running);
    const uint32_t stops[] = {259, all->tokens[20]};
    sequence.stops = stops;
    sequence.stop_count = 2;
    struct rig_answer *cut = rig_add(stopping, &sequence);
    rig_run(stopping);
    uint32_t first = 0;
    while (all->tokens[first] != stops[1])
        first++;
    assert_int_equal(cut->end, FX_ENGINE_STOP);
    assert_int_equal(cut->count, first + 1);
    assert_int_equal(cut->tokens[first], stops[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_bad_sequences),
        cmocka_unit_test(test_slots_and_removal),
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_stop_ids),
        cmocka_unit_test(test_not_a_number_fails_its_row),
        cmocka_unit_test(test_prefill_does_not_stop_decode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
