#include "common/base/heap.h"
#include "common/model/tokenizer_load.h"

static FX_MUST bool keep_content(struct fx_normal *normal, const json_t *content, fx_error *err) {
    if (!json_is_string(content)) return fx_fail(err, FX_INVALID_ARGUMENT, "no text to put");
    normal->content_len = json_string_length(content);
    normal->content = (uint8_t *)fx_strdup(json_string_value(content));
    return normal->content || fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a text");
}

static FX_MUST bool load_replace(struct fx_normal *normal, const json_t *part, fx_error *err) {
    const json_t *pattern = json_object_get(part, "pattern");
    const json_t *text = json_object_get(pattern, "String");
    normal->kind = FX_NORMAL_REPLACE;
    if (json_string_length(text) == 1)
        normal->single = fx_json__span(text).at[0];
    else if (!fx_json__pattern(pattern, &normal->regex, err))
        return false;
    return keep_content(normal, json_object_get(part, "content"), err);
}

static FX_MUST bool load_one(struct fx_normal *normal, const json_t *part, fx_error *err) {
    normal->single = -1;
    normal->kind = FX_NORMAL_NFC;
    if (fx_json__is_type(part, "NFC")) return true;
    if (fx_json__is_type(part, "Replace")) return load_replace(normal, part, err);
    normal->kind = FX_NORMAL_PREPEND;
    if (fx_json__is_type(part, "Prepend"))
        return keep_content(normal, json_object_get(part, "prepend"), err);
    return fx_fail(err, FX_UNIMPLEMENTED, "not supported");
}

bool fx_loader__normalizer(struct fx_loader *loader, fx_error *err) {
    struct fx_tokenizer *tokenizer = loader->tokenizer;
    struct fx_parts parts;
    if (!fx_json__parts(json_object_get(loader->root, "normalizer"), "normalizers", &parts, err))
        return fx_wrap(err, "normalizer");
    for (size_t i = 0; i < parts.count; i++) {
        tokenizer->normal_count++;
        if (!load_one(&tokenizer->normals[i], parts.at[i], err))
            return fx_wrap(err, "normalizer %.64s", fx_json__type(parts.at[i]));
    }
    return true;
}
