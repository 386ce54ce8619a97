#include "tests/unit/engine/rig.h"
#include "tests/fx_test.h"
#include "common/base/heap.h"
#include <jansson.h>

static uint32_t ids_load(const json_t *array, uint32_t ids[RIG_TOKENS_MAX]) {
    size_t count = json_array_size(array);
    assert_true(count >= 1 && count <= RIG_TOKENS_MAX);
    for (size_t i = 0; i < count; i++)
        ids[i] = (uint32_t)json_integer_value(json_array_get(array, i));
    return (uint32_t)count;
}

static void logits_load(const char *folder, const char *name, uint32_t vocab,
                        struct rig_prompt *prompt) {
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s/%s", FX_SOURCE_DIR, folder, name);
    fx_auto(FILE) file = fopen(path, "rbe");
    assert_non_null(file);
    prompt->logits = fx_alloc((size_t)RIG_TOKENS_MAX * vocab, sizeof(float));
    assert_non_null(prompt->logits);
    size_t read = fread(prompt->logits, sizeof(float), (size_t)RIG_TOKENS_MAX * vocab, file);
    assert_true(read >= vocab && read % vocab == 0);
    prompt->rows = (uint32_t)(read / vocab);
}

struct rig_prompts rig_prompts_load(const char *folder, const char *json, const char *logits_key,
                                    const char *greedy_key, uint32_t vocab) {
    char path[512];
    json_error_t why;
    (void)snprintf(path, sizeof(path), "%s/%s/%s", FX_SOURCE_DIR, folder, json);
    json_t *root = json_load_file(path, 0, &why);
    assert_non_null(root);
    const json_t *list = json_object_get(root, "prompts");
    struct rig_prompts prompts = {NULL, json_array_size(list)};
    assert_true(prompts.count > 0);
    prompts.at = fx_alloc(prompts.count, sizeof(*prompts.at));
    assert_non_null(prompts.at);
    for (size_t i = 0; i < prompts.count; i++) {
        const json_t *entry = json_array_get(list, i);
        struct rig_prompt *prompt = &prompts.at[i];
        prompt->count = ids_load(json_object_get(entry, "ids"), prompt->ids);
        prompt->greedy_count = ids_load(json_object_get(entry, greedy_key), prompt->greedy);
        logits_load(folder, json_string_value(json_object_get(entry, logits_key)), vocab, prompt);
    }
    json_decref(root);
    return prompts;
}

void rig_prompts_free(struct rig_prompts *prompts) {
    for (size_t i = 0; i < prompts->count; i++)
        free(prompts->at[i].logits);
    free(prompts->at);
}
