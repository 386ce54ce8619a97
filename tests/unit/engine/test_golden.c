#include "tests/unit/engine/rig.h"
#include "tests/fx_test.h"
#include <jansson.h>

/* Against transformers, whose logits, greedy ids and routes lie in tests/goldens: weights widened
 * to f32, f32 arithmetic, f32 KV. Rules: relative L2 of all logits of a prompt <= 1e-5; the
 * largest logit is the golden's wherever the golden's two largest are further apart than 1e-3 of
 * the row's rms; expert sets are equal wherever the gap between the last chosen and the first not
 * chosen exceeds 1e-4; a greedy continuation equals the golden's up to the first token that was
 * chosen by a smaller margin than that. */
#define DISTANCE_MAX 1e-5
#define MARGIN_MIN 1e-3
#define GAP_MIN 1e-4

struct row {
    const char *name, *family, *backend;
};
#define FAMILY(family)                                                                             \
    {family " ref", family, "ref"}, {                                                              \
        family " cpu", family, "cpu"                                                               \
    }
static const struct row rows[] = {
    FAMILY("llama"),     FAMILY("llama-tied"),  FAMILY("llama-sharded"), FAMILY("mistral-window"),
    FAMILY("mixtral"),   FAMILY("llama3-rope"), FAMILY("olmo2"),         FAMILY("olmoe"),
    FAMILY("phi3"),      FAMILY("qwen2"),       FAMILY("qwen2_moe"),     FAMILY("qwen3"),
    FAMILY("qwen3_moe"),
};

static void check_logits(const struct rig *rig, const struct rig_prompt *prompt) {
    uint32_t vocab = rig->vocab;
    assert_int_equal(prompt->rows, prompt->count);
    double distance = rig_distance(rig->logits, prompt->logits, (size_t)prompt->rows * vocab);
    print_message("  %u tokens: relative L2 %.2e\n", prompt->count, distance);
    assert_true(distance <= DISTANCE_MAX);
    for (uint32_t i = 0; i < prompt->rows; i++) {
        const float *want = prompt->logits + (size_t)i * vocab;
        if (rig_margin(want, vocab) <= MARGIN_MIN) continue;
        assert_int_equal(rig_argmax(rig->logits + (size_t)i * vocab, vocab),
                         rig_argmax(want, vocab));
    }
}

static void check_greedy(const struct rig *rig, const struct rig_prompt *prompt) {
    const struct rig_answer *answer = &rig->answers[0];
    assert_int_equal(answer->count, prompt->greedy_count);
    for (uint32_t i = 0; i < prompt->greedy_count; i++) {
        const float *row = rig->logits + (size_t)(prompt->count - 1 + i) * rig->vocab;
        if (rig_margin(row, rig->vocab) <= MARGIN_MIN) return;
        assert_int_equal(answer->tokens[i], prompt->greedy[i]);
    }
}

static bool contains(const int32_t *set, uint32_t count, int32_t id) {
    for (uint32_t i = 0; i < count; i++)
        if (set[i] == id) return true;
    return false;
}

static uint32_t check_layer_routes(const struct rig *rig, uint32_t layer, const json_t *golden) {
    uint32_t k = rig->config->experts_per_token, compared = 0;
    const json_t *experts = json_object_get(golden, "experts");
    const json_t *gaps = json_object_get(golden, "gap");
    for (size_t position = 0; position < json_array_size(experts); position++) {
        if (json_number_value(json_array_get(gaps, position)) <= GAP_MIN) continue;
        const int32_t *chosen = rig->chosen + (position * rig->config->layers + layer) * k;
        const json_t *set = json_array_get(experts, position);
        assert_int_equal(json_array_size(set), k);
        for (uint32_t i = 0; i < k; i++)
            assert_true(contains(chosen, k, (int32_t)json_integer_value(json_array_get(set, i))));
        compared++;
    }
    return compared;
}

static void check_routes(const struct rig *rig, const char *folder, size_t prompt) {
    char path[512], key[16];
    json_error_t why;
    (void)snprintf(path, sizeof(path), "%s/%s/golden.json", FX_SOURCE_DIR, folder);
    json_t *root = json_load_file(path, 0, &why);
    const json_t *router = json_object_get(root, "router");
    bool this_one = (size_t)json_integer_value(json_object_get(router, "prompt")) == prompt;
    assert_non_null(router);
    for (uint32_t layer = 0; this_one && layer < rig->config->layers; layer++) {
        if (!fx_layer_set_has(&rig->config->expert_layers, layer)) continue;
        (void)snprintf(key, sizeof(key), "%u", layer);
        const json_t *golden = json_object_get(json_object_get(router, "layers"), key);
        assert_true(check_layer_routes(rig, layer, golden) > 0);
    }
    json_decref(root);
}

static void test_golden(void **state) {
    const struct row *row = *state;
    char folder[128];
    (void)snprintf(folder, sizeof(folder), "tests/goldens/%s", row->family);
    fx_auto(fx_model) model = rig_model(folder, FX_MODEL_F32);
    struct rig_opts opts = RIG_PLAIN;
    opts.backend = row->backend;
    opts.slots = 1;
    struct rig_prompts prompts = rig_prompts_load(folder, "golden.json", "logits", "greedy",
                                                  fx_model_get_config(model)->vocabulary);
    for (size_t i = 0; i < prompts.count; i++) {
        const struct rig_prompt *prompt = &prompts.at[i];
        rig_auto rig = rig_open(model, &opts, true);
        struct fx_sequence sequence =
            rig_sequence(prompt->ids, prompt->count, prompt->greedy_count);
        (void)rig_add(rig, &sequence);
        rig_run(rig);
        check_logits(rig, prompt);
        check_greedy(rig, prompt);
        if (rig->config->experts) check_routes(rig, folder, i);
    }
    rig_prompts_free(&prompts);
}

FX_TEST_MAIN(test_golden, rows)
