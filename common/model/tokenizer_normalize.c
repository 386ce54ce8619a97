#include "common/model/tokenizer_internal.h"

static fx_span content_of(const struct fx_normal *normal) {
    return (fx_span){normal->content, normal->content_len};
}

static FX_MUST bool replace_byte(const struct fx_normal *normal, fx_span text, struct fx_made *out,
                                 fx_error *err) {
    for (size_t at = 0; at < text.len;) {
        const uint8_t *found = memchr(text.at + at, normal->single, text.len - at);
        size_t to = found ? (size_t)(found - text.at) : text.len;
        if (!fx_made__put(out, fx_span__cut(text, at, to), err)) return false;
        if (found && !fx_made__put(out, content_of(normal), err)) return false;
        at = to + 1;
    }
    return true;
}

static FX_MUST bool replace(const struct fx_normal *normal, struct fx_scratch *scratch,
                            fx_span text, struct fx_made *out, fx_error *err) {
    struct fx_match match;
    if (normal->single >= 0) return replace_byte(normal, text, out, err);
    for (size_t at = 0; at < text.len; at = match.to) {
        if (!fx_regex_find(normal->regex, scratch->match, text, at, &match, err) ||
            !fx_made__put(out, fx_span__cut(text, at, match.from), err) ||
            (match.from < match.to && !fx_made__put(out, content_of(normal), err)))
            return false;
    }
    return true;
}

static bool changes(const struct fx_normal *normal, fx_span text, bool is_begin) {
    if (normal->kind == FX_NORMAL_PREPEND) return is_begin && text.len;
    return normal->kind != FX_NORMAL_NFC || !fx_nfc__is_plain(text);
}

static FX_MUST bool apply(const struct fx_normal *normal, struct fx_scratch *scratch, fx_span text,
                          struct fx_made *out, fx_error *err) {
    switch (normal->kind) {
    case FX_NORMAL_NFC: return fx_nfc__append(text, out, err);
    case FX_NORMAL_PREPEND:
        return fx_made__put(out, content_of(normal), err) && fx_made__put(out, text, err);
    default: return replace(normal, scratch, text, out, err);
    }
}

bool fx_normalize(const struct fx_tokenizer *tokenizer, struct fx_scratch *scratch, fx_span text,
                  bool is_begin, fx_span *out, fx_error *err) {
    size_t turn = 0;
    for (size_t i = 0; i < tokenizer->normal_count; i++) {
        const struct fx_normal *normal = &tokenizer->normals[i];
        struct fx_made *made = &scratch->normal[turn];
        if (!changes(normal, text, is_begin)) continue;
        made->len = 0;
        if (!apply(normal, scratch, text, made, err)) return false;
        text = fx_made__span(made);
        turn = !turn;
    }
    *out = text;
    return true;
}
