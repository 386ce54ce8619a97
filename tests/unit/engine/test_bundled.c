#include "tests/unit/engine/rig.h"
#include "tests/fx_test.h"

/* The bundled model with f16 weights, f32 arithmetic and f32 KV, against oracle.json, which
 * transformers computed from the same f16 weights: logits of the last position of every prompt to
 * a relative L2 of 1e-5, 128 greedy ids exactly; with f16 KV to 2e-3. */
#define FOLDER "models/fractal-tiny-moe"
#define DISTANCE_MAX 1e-5
#define DISTANCE_MAX_KV_F16 2e-3

struct row {
    const char *name, *backend, *kv_dtype;
    uint32_t threads, chunk_rows;
};
static const struct row rows[] = {
    {"ref",                    "ref", "f32", 1, 512},
    {"cpu",                    "cpu", "f32", 1, 512},
    {"cpu, 2 threads, chunks", "cpu", "f32", 2, 7  },
    {"cpu, f16 KV",            "cpu", "f16", 1, 512},
};

/* With f16 KV the logits come close; what is generated may then differ. */
static void check_prompt(const struct rig *rig, const struct rig_prompt *prompt, bool exact) {
    const float *last = rig->logits + (size_t)(prompt->count - 1) * rig->vocab;
    double distance = rig_distance(last, prompt->logits, rig->vocab);
    print_message("  %u tokens: relative L2 %.2e\n", prompt->count, distance);
    assert_true(distance <= (exact ? DISTANCE_MAX : DISTANCE_MAX_KV_F16));
    if (!exact) return;
    assert_int_equal(rig->answers[0].count, prompt->greedy_count);
    assert_memory_equal(rig->answers[0].tokens, prompt->greedy,
                        prompt->greedy_count * sizeof(uint32_t));
}

static void test_oracle(void **state) {
    const struct row *row = *state;
    fx_auto(fx_model) model = rig_model(FOLDER, FX_MODEL_F16);
    struct rig_opts opts = RIG_PLAIN;
    opts.backend = row->backend;
    opts.kv_dtype = row->kv_dtype;
    opts.threads = row->threads;
    opts.chunk_rows = row->chunk_rows;
    opts.slots = 1;
    struct rig_prompts prompts = rig_prompts_load(
        FOLDER, "oracle.json", "last_logits", "greedy_ids", fx_model_get_config(model)->vocabulary);
    assert_int_equal(prompts.count, 5);
    for (size_t i = 0; i < prompts.count; i++) {
        const struct rig_prompt *prompt = &prompts.at[i];
        assert_int_equal(prompt->greedy_count, 128);
        rig_auto rig = rig_open(model, &opts, true);
        struct fx_sequence sequence =
            rig_sequence(prompt->ids, prompt->count, prompt->greedy_count);
        (void)rig_add(rig, &sequence);
        rig_run(rig);
        check_prompt(rig, prompt, strcmp(row->kv_dtype, "f32") == 0);
    }
    rig_prompts_free(&prompts);
}

FX_TEST_MAIN(test_oracle, rows)
