#include "common/model/tokenizer_load.h"

/* Everything whose effect on ids we don't reproduce is refused here, by name. */

static const char *type_of(const json_t *part) {
    const char *type = json_string_value(json_object_get(part, "type"));
    return type ? type : "(no type)";
}

static bool is_absent(const json_t *value) {
    return !value || json_is_null(value);
}

static bool is_empty(const json_t *value) {
    return is_absent(value) || (json_is_string(value) && json_string_length(value) == 0);
}

static FX_MUST bool check_pre_tokenizer(const json_t *part, fx_error *err) {
    if (is_absent(part) || strcmp(type_of(part), "ByteLevel") != 0)
        return fx_fail(err, FX_UNIMPLEMENTED, "pre_tokenizer %.64s: only ByteLevel is supported",
                       is_absent(part) ? "null" : type_of(part));
    if (!json_is_false(json_object_get(part, "add_prefix_space")))
        return fx_fail(err, FX_UNIMPLEMENTED,
                       "pre_tokenizer ByteLevel: add_prefix_space is not supported");
    if (!json_is_false(json_object_get(part, "use_regex")))
        return fx_fail(err, FX_UNIMPLEMENTED,
                       "pre_tokenizer ByteLevel: use_regex is not supported");
    return true;
}

static FX_MUST bool check_bpe(const json_t *model, fx_error *err) {
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const json_t *type = json_object_get(model, "type");
    if (type && strcmp(type_of(model), "BPE") != 0)
        return fx_fail(err, FX_UNIMPLEMENTED, "model %.64s: only BPE is supported", type_of(model));
    if (!is_absent(json_object_get(model, "dropout")))
        return fx_fail(err, FX_UNIMPLEMENTED, "model: dropout is not supported");
    for (size_t i = 0; i < FX_COUNT(affixes); i++)
        if (!is_empty(json_object_get(model, affixes[i])))
            return fx_fail(err, FX_UNIMPLEMENTED, "model: %s is not supported", affixes[i]);
    return true;
}

bool fx_loader__check(struct fx_loader *loader, fx_error *err) {
    const json_t *model = json_object_get(loader->root, "model");
    const json_t *normalizer = json_object_get(loader->root, "normalizer");
    const json_t *decoder = json_object_get(loader->root, "decoder");
    if (!is_absent(normalizer))
        return fx_fail(err, FX_UNIMPLEMENTED, "normalizer %.64s is not supported",
                       type_of(normalizer));
    if (is_absent(decoder) || strcmp(type_of(decoder), "ByteLevel") != 0)
        return fx_fail(err, FX_UNIMPLEMENTED, "decoder %.64s: only ByteLevel is supported",
                       is_absent(decoder) ? "null" : type_of(decoder));
    if (!check_pre_tokenizer(json_object_get(loader->root, "pre_tokenizer"), err)) return false;
    if (!check_bpe(model, err)) return false;
    loader->vocab = json_object_get(model, "vocab");
    loader->merges = json_object_get(model, "merges");
    loader->added = json_object_get(loader->root, "added_tokens");
    if (!json_is_object(loader->vocab) || !json_is_array(loader->merges))
        return fx_fail(err, FX_INVALID_ARGUMENT, "model: want an object vocab and an array merges");
    if (loader->added && !json_is_array(loader->added))
        return fx_fail(err, FX_INVALID_ARGUMENT, "added_tokens: not an array");
    loader->tokenizer->ignore_merges = json_is_true(json_object_get(model, "ignore_merges"));
    return true;
}
