#include "common/model/tokenizer_load.h"

const char *fx_json__type(const json_t *part) {
    const char *type = json_string_value(json_object_get(part, "type"));
    if (fx_json__is_absent(part)) return "null";
    return type ? type : "(no type)";
}

bool fx_json__is_type(const json_t *part, const char *type) {
    return strcmp(fx_json__type(part), type) == 0;
}

bool fx_json__parts(const json_t *part, const char *key, struct fx_parts *out, fx_error *err) {
    const json_t *all = json_object_get(part, key);
    *out = (struct fx_parts){{part}, fx_json__is_absent(part) ? 0 : 1};
    if (!fx_json__is_type(part, "Sequence")) return true;
    if (!json_is_array(all))
        return fx_fail(err, FX_INVALID_ARGUMENT, "a Sequence without an array %s", key);
    out->count = json_array_size(all);
    if (out->count > FX_TOKENIZER_STEPS_MAX)
        return fx_fail(err, FX_UNIMPLEMENTED, "a Sequence of more than %d parts",
                       FX_TOKENIZER_STEPS_MAX);
    for (size_t i = 0; i < out->count; i++)
        out->at[i] = json_array_get(all, i);
    return true;
}

bool fx_json__pattern(const json_t *pattern, fx_regex **out, fx_error *err) {
    const json_t *text = json_object_get(pattern, "String");
    const json_t *regex = json_object_get(pattern, "Regex");
    if (json_is_string(regex)) return fx_regex_new(fx_json__span(regex), out, err);
    if (json_is_string(text)) return fx_regex_new_literal(fx_json__span(text), out, err);
    return fx_fail(err, FX_INVALID_ARGUMENT, "pattern: want a String or a Regex");
}
