#include "common/model/config_json.h"

/* Depth and number of values as a parser would find them; wrong JSON is the parser's to refuse. */
static void measure(fx_span text, size_t *depth_max, size_t *values) {
    size_t depth = 0;
    bool quoted = false;
    *depth_max = 0;
    *values = 1;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.at[i];
        if (quoted && c == '\\') i++;
        if (c == '"') quoted = !quoted;
        if (quoted) continue;
        if (c == ',') ++*values;
        if (c == '{' || c == '[') ++*values, depth++;
        if ((c == '}' || c == ']') && depth) depth--;
        if (depth > *depth_max) *depth_max = depth;
    }
}

bool fx_config__json(fx_span text, struct fx_json_limits limits, json_t **out, fx_error *err) {
    size_t depth, values;
    measure(text, &depth, &values);
    if (depth > limits.depth_max)
        return fx_fail(err, FX_INVALID_ARGUMENT, "JSON nested %zu deep, at most %zu", depth,
                       limits.depth_max);
    if (values > limits.values_max)
        return fx_fail(err, FX_INVALID_ARGUMENT, "JSON of %zu values, at most %zu", values,
                       limits.values_max);
    json_error_t at;
    fx_auto(json_t) root = json_loadb((const char *)text.at, text.len, JSON_REJECT_DUPLICATES, &at);
    if (!root)
        return fx_fail(err, FX_INVALID_ARGUMENT, "JSON line %d column %d: %.100s", at.line,
                       at.column, at.text);
    if (!json_is_object(root)) return fx_fail(err, FX_INVALID_ARGUMENT, "not a JSON object");
    *out = fx_take(root);
    return true;
}
