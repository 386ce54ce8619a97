#include "common/model/tokenizer_load.h"

/* The post-processor: the tokens that go before and after a raw prompt. */

static bool is_type(const json_t *processor, const char *type) {
    const char *name = json_string_value(json_object_get(processor, "type"));
    return name && strcmp(name, type) == 0;
}

static FX_MUST bool put_special(struct fx_affix *affix, const json_t *processor, const char *name,
                                uint32_t vocabulary, fx_error *err) {
    const json_t *token = json_object_get(json_object_get(processor, "special_tokens"), name);
    const json_t *ids = json_object_get(token, "ids");
    if (!json_array_size(ids))
        return fx_fail(err, FX_INVALID_ARGUMENT, "special token '%.64s' has no ids", name);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        json_int_t id = json_integer_value(json_array_get(ids, i));
        if (!json_is_integer(json_array_get(ids, i)) || id < 0 || id >= vocabulary)
            return fx_fail(err, FX_INVALID_ARGUMENT, "special token '%.64s': bad id", name);
        if (affix->count == FX_TOKENIZER_AFFIX_MAX)
            return fx_fail(err, FX_UNIMPLEMENTED, "more than %d special tokens",
                           FX_TOKENIZER_AFFIX_MAX);
        affix->ids[affix->count++] = (uint32_t)id;
    }
    return true;
}

static FX_MUST bool load_template(struct fx_tokenizer *tokenizer, const json_t *processor,
                                  fx_error *err) {
    const json_t *single = json_object_get(processor, "single");
    struct fx_affix *affix = &tokenizer->prefix;
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *piece = json_array_get(single, i);
        const json_t *special = json_object_get(piece, "SpecialToken");
        const char *name = json_string_value(json_object_get(special, "id"));
        if (name) {
            if (!put_special(affix, processor, name, tokenizer->vocabulary, err)) return false;
        } else if (json_object_get(piece, "Sequence") && affix == &tokenizer->prefix) {
            affix = &tokenizer->suffix;
        } else {
            return fx_fail(err, FX_UNIMPLEMENTED, "piece %zu of single", i);
        }
    }
    if (affix == &tokenizer->suffix) return true;
    return fx_fail(err, FX_INVALID_ARGUMENT, "single has no Sequence");
}

static FX_MUST bool load_one(struct fx_tokenizer *tokenizer, const json_t *processor,
                             fx_error *err) {
    const char *type = json_string_value(json_object_get(processor, "type"));
    if (is_type(processor, "ByteLevel")) return true; /* moves offsets only */
    if (!is_type(processor, "TemplateProcessing"))
        return fx_fail(err, FX_UNIMPLEMENTED, "%.64s is not supported", type ? type : "(no type)");
    if (tokenizer->prefix.count || tokenizer->suffix.count)
        return fx_fail(err, FX_UNIMPLEMENTED, "more than one TemplateProcessing");
    if (load_template(tokenizer, processor, err)) return true;
    return fx_wrap(err, "TemplateProcessing");
}

bool fx_loader__affixes(struct fx_loader *loader, fx_error *err) {
    const json_t *processor = json_object_get(loader->root, "post_processor");
    if (!processor || json_is_null(processor)) return true;
    if (!is_type(processor, "Sequence"))
        return load_one(loader->tokenizer, processor, err) || fx_wrap(err, "post_processor");
    const json_t *all = json_object_get(processor, "processors");
    for (size_t i = 0; i < json_array_size(all); i++)
        if (!load_one(loader->tokenizer, json_array_get(all, i), err))
            return fx_wrap(err, "post_processor %zu", i);
    return true;
}
