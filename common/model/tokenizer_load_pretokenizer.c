#include "common/model/tokenizer_load.h"

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* A flag that is true where it is not written. */
static bool is_on(const json_t *part, const char *key) {
    return !json_is_false(json_object_get(part, key));
}

static void set_mark(struct fx_stage *stage, fx_span mark) {
    memcpy(stage->mark, mark.at, mark.len);
    stage->mark_len = (uint8_t)mark.len;
}

static FX_MUST bool load_byte_level(struct fx_stage *stage, const json_t *part, fx_error *err) {
    if (is_on(part, "add_prefix_space")) {
        stage->prefix = FX_PREFIX_ALWAYS;
        set_mark(stage, fx_span_str(" "));
    }
    if (!is_on(part, "use_regex")) return true;
    return fx_regex_new(fx_span_str(GPT2), &stage->regex, err);
}

static FX_MUST bool load_split(struct fx_stage *stage, const json_t *part, fx_error *err) {
    static const char *const names[] = {[FX_SPLIT_ISOLATED] = "Isolated",
                                        [FX_SPLIT_REMOVED] = "Removed",
                                        [FX_SPLIT_PREVIOUS] = "MergedWithPrevious",
                                        [FX_SPLIT_NEXT] = "MergedWithNext",
                                        [FX_SPLIT_CONTIGUOUS] = "Contiguous"};
    const char *name = json_string_value(json_object_get(part, "behavior"));
    size_t split = 0;
    while (name && split < FX_COUNT(names) && strcmp(name, names[split]) != 0)
        split++;
    if (!name || split == FX_COUNT(names))
        return fx_fail(err, FX_INVALID_ARGUMENT, "behavior %.40s", name ? name : "is missing");
    stage->split = (enum fx_split)split;
    stage->inverted = json_is_true(json_object_get(part, "invert"));
    return fx_json__pattern(json_object_get(part, "pattern"), &stage->regex, err);
}

static FX_MUST bool load_digits(struct fx_stage *stage, const json_t *part, fx_error *err) {
    bool alone = json_is_true(json_object_get(part, "individual_digits"));
    stage->split = alone ? FX_SPLIT_ISOLATED : FX_SPLIT_CONTIGUOUS;
    return fx_regex_new(fx_span_str("\\p{N}"), &stage->regex, err);
}

/* Files of before prepend_scheme say add_prefix_space. */
static FX_MUST bool load_scheme(struct fx_stage *stage, const json_t *part, fx_error *err) {
    const char *scheme = json_string_value(json_object_get(part, "prepend_scheme"));
    bool never = !scheme && json_is_false(json_object_get(part, "add_prefix_space"));
    if (!scheme) scheme = never ? "never" : "always";
    if (strcmp(scheme, "always") == 0)
        stage->prefix = FX_PREFIX_ALWAYS;
    else if (strcmp(scheme, "first") == 0)
        stage->prefix = FX_PREFIX_FIRST;
    else if (strcmp(scheme, "never") != 0)
        return fx_fail(err, FX_INVALID_ARGUMENT, "prepend_scheme '%.40s'", scheme);
    return true;
}

static FX_MUST bool load_metaspace(struct fx_stage *stage, const json_t *part, fx_error *err) {
    fx_span mark = fx_json__span(json_object_get(part, "replacement"));
    if (!mark.len || mark.len > sizeof stage->mark)
        return fx_fail(err, FX_INVALID_ARGUMENT, "replacement: want one character");
    set_mark(stage, mark);
    stage->marks_spaces = true;
    stage->split = FX_SPLIT_NEXT;
    if (!load_scheme(stage, part, err)) return false;
    return !is_on(part, "split") || fx_regex_new_literal(mark, &stage->regex, err);
}

static FX_MUST bool load_one(struct fx_stage *stage, const json_t *part, fx_error *err) {
    static const struct {
        const char *type;
        bool (*load)(struct fx_stage *stage, const json_t *part, fx_error *err);
    } known[] = {
        {"ByteLevel", load_byte_level},
        {"Split",     load_split     },
        {"Digits",    load_digits    },
        {"Metaspace", load_metaspace },
    };
    for (size_t i = 0; i < FX_COUNT(known); i++)
        if (fx_json__is_type(part, known[i].type)) return known[i].load(stage, part, err);
    return fx_fail(err, FX_UNIMPLEMENTED, "not supported");
}

bool fx_loader__pre_tokenizer(struct fx_loader *loader, fx_error *err) {
    struct fx_tokenizer *tokenizer = loader->tokenizer;
    struct fx_parts parts;
    if (!fx_json__parts(json_object_get(loader->root, "pre_tokenizer"), "pretokenizers", &parts,
                        err))
        return fx_wrap(err, "pre_tokenizer");
    for (size_t i = 0; i < parts.count; i++) {
        if (tokenizer->is_byte_level)
            return fx_fail(err, FX_UNIMPLEMENTED, "pre_tokenizer %.64s after ByteLevel",
                           fx_json__type(parts.at[i]));
        tokenizer->stage_count++;
        if (!load_one(&tokenizer->stages[i], parts.at[i], err))
            return fx_wrap(err, "pre_tokenizer %.64s", fx_json__type(parts.at[i]));
        tokenizer->is_byte_level = fx_json__is_type(parts.at[i], "ByteLevel");
    }
    return true;
}
