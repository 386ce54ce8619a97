#include "common/model/tokenizer_load.h"

static bool is_empty(const json_t *value) {
    return fx_json__is_absent(value) || (json_is_string(value) && json_string_length(value) == 0);
}

/* Whatever of a model's effect on ids we don't reproduce is refused here, by name. */
static FX_MUST bool check_bpe(const json_t *model, fx_error *err) {
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    if (json_object_get(model, "type") && !fx_json__is_type(model, "BPE"))
        return fx_fail(err, FX_UNIMPLEMENTED, "model %.64s: only BPE is supported",
                       fx_json__type(model));
    if (!fx_json__is_absent(json_object_get(model, "dropout")))
        return fx_fail(err, FX_UNIMPLEMENTED, "model: dropout is not supported");
    for (size_t i = 0; i < FX_COUNT(affixes); i++)
        if (!is_empty(json_object_get(model, affixes[i])))
            return fx_fail(err, FX_UNIMPLEMENTED, "model: %s is not supported", affixes[i]);
    return true;
}

bool fx_loader__check(struct fx_loader *loader, fx_error *err) {
    json_t *model = loader->model = json_object_get(loader->root, "model");
    if (!check_bpe(model, err)) return false;
    loader->vocab = json_object_get(model, "vocab");
    loader->merges = json_object_get(model, "merges");
    loader->added = json_object_get(loader->root, "added_tokens");
    if (!json_is_object(loader->vocab) || !json_is_array(loader->merges))
        return fx_fail(err, FX_INVALID_ARGUMENT, "model: want an object vocab and an array merges");
    if (loader->added && !json_is_array(loader->added))
        return fx_fail(err, FX_INVALID_ARGUMENT, "added_tokens: not an array");
    loader->tokenizer->ignore_merges = json_is_true(json_object_get(model, "ignore_merges"));
    loader->tokenizer->fuses_unknown = json_is_true(json_object_get(model, "fuse_unk"));
    return true;
}
