#include "tests/unit/engine/rig.h"
#include "tests/fx_test.h"

/* The numerics contract, bits and not tolerances: the logits of every position of one sequence,
 * 150 prompt tokens and 10 generated ones, are the same bytes alone or with companions, prefilled
 * whole, in chunks or token by token, on any number of threads, with any page size, on any
 * backend. What they are compared with is the plain run: ref, alone, whole, 1 thread, page 64. */
enum { PROMPT = 150, GENERATED = 10, SEED = 20261130 };

struct how {
    const char *name, *backend;
    uint32_t threads, page_tokens, chunk_rows, companions;
};
static const struct how hows[] = {
    {"ref, chunks of 37",             "ref", 1, 64, 37,  0 },
    {"ref, token by token",           "ref", 1, 64, 1,   0 },
    {"ref, page 16",                  "ref", 1, 16, 512, 0 },
    {"ref, 2 companions",             "ref", 1, 64, 512, 2 },
    {"ref, all at once",              "ref", 2, 16, 23,  3 },
    {"cpu, whole",                    "cpu", 1, 64, 512, 0 },
    {"cpu, chunks of 64",             "cpu", 1, 64, 64,  0 },
    {"cpu, chunks of 37",             "cpu", 1, 64, 37,  0 },
    {"cpu, token by token",           "cpu", 1, 64, 1,   0 },
    {"cpu, page 16",                  "cpu", 1, 16, 512, 0 },
    {"cpu, page 16 token by token",   "cpu", 1, 16, 1,   0 },
    {"cpu, 2 threads",                "cpu", 2, 64, 512, 0 },
    {"cpu, 2 threads, page 16",       "cpu", 2, 16, 19,  0 },
    {"cpu, 2 companions",             "cpu", 1, 64, 512, 2 },
    {"cpu, 7 companions, chunks",     "cpu", 2, 16, 5,   7 },
    {"cpu, 31 companions",            "cpu", 1, 64, 128, 31},
    {"cpu, 63 companions",            "cpu", 1, 64, 512, 63},
    {"cpu, 63 companions, 2 threads", "cpu", 2, 16, 33,  63},
};

struct model {
    const char *name, *folder;
    enum fx_model_dtype dtype;
    const char *kv_dtype;
};
static const struct model models[] = {
    {"f32",                                     "models/fractal-tiny-moe",      FX_MODEL_F32,  "f32"},
    {"f16",                                     "models/fractal-tiny-moe",      FX_MODEL_F16,  "f32"},
    {"int4",                                    "models/fractal-tiny-moe",      FX_MODEL_INT4, "f32"},
    {"int4 KV f16",                             "models/fractal-tiny-moe",      FX_MODEL_INT4, "f16"},
    {"window f32",                              "tests/goldens/mistral-window", FX_MODEL_F32,  "f32"},
    {"window int4",                             "tests/goldens/mistral-window", FX_MODEL_INT4, "f16"},
    {"dense int4",                              "tests/goldens/llama",          FX_MODEL_INT4, "f32"},
    {"biases, shared expert, int4",             "tests/goldens/qwen2_moe",      FX_MODEL_INT4, "f32"},
    {"norms of rows and behind, f16",           "tests/goldens/olmo2",          FX_MODEL_F16,  "f32"},
    {"norms of heads, dense and experts, int4", "tests/goldens/qwen3_moe",      FX_MODEL_INT4, "f16"},
};

static struct rig *run_as(const fx_model *model, const struct model *what, const struct how *how) {
    struct rig_opts opts = {
        how->backend, how->threads, how->page_tokens, how->chunk_rows, 0, what->kv_dtype, 64};
    struct rig *rig = rig_open(model, &opts, true);
    uint32_t ids[PROMPT], random = SEED;
    for (uint32_t i = 0; i < PROMPT; i++)
        ids[i] = rig_random(&random, rig->vocab);
    struct fx_sequence sequence = rig_sequence(ids, PROMPT, GENERATED);
    sequence.sampling = rig_everything(SEED);
    /* Some companions come before, some after, so that its place in the batch differs too. */
    rig->count = 1;
    rig_companions(rig, how->companions / 2, how->companions);
    uint32_t after = rig->count;
    rig->count = 0;
    struct rig_answer *watched = rig_add(rig, &sequence);
    assert_ptr_equal(watched, &rig->answers[0]);
    rig->count = after;
    rig_companions(rig, how->companions - how->companions / 2, how->companions + 1);
    rig_run(rig);
    assert_int_equal(rig->answers[0].count, GENERATED);
    assert_int_equal(rig->positions, PROMPT + GENERATED - 1);
    return rig;
}

static void compare(const struct rig *got, const struct rig *want) {
    uint32_t chosen = want->config->layers * want->config->experts_per_token;
    assert_memory_equal(got->answers[0].tokens, want->answers[0].tokens,
                        GENERATED * sizeof(uint32_t));
    for (uint32_t position = 0; position < want->positions; position++) {
        size_t at = (size_t)position * want->vocab;
        if (memcmp(got->logits + at, want->logits + at, want->vocab * sizeof(float)) != 0)
            fail_msg("logits of position %u differ", position);
    }
    assert_memory_equal(got->chosen, want->chosen,
                        (size_t)want->positions * chosen * sizeof(int32_t));
}

static void test_bits(void **state) {
    const struct model *what = *state;
    const struct how plain = {"plain", "ref", 1, 64, 512, 0};
    fx_auto(fx_model) model = rig_model(what->folder, what->dtype);
    rig_auto want = run_as(model, what, &plain);
    for (size_t i = 0; i < FX_TEST_COUNT(hows); i++) {
        print_message("  %s\n", hows[i].name);
        rig_auto got = run_as(model, what, &hows[i]);
        compare(got, want);
    }
}

FX_TEST_MAIN(test_bits, models)
