#include "common/model/tokenizer_internal.h"
#include "common/model/tokenizer_unicode.h"

/* First index in [from, to) whose byte `depth` is >= `byte`. Entries there are longer than depth
 * and agree before it. */
static size_t lower_bound(const struct fx_added_set *set, size_t from, size_t to, size_t depth,
                          unsigned byte) {
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (set->at[middle].text.at[depth] < byte)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The longest entry that text begins with, by narrowing the sorted range a byte at a time. */
static const struct fx_added *longest_at(const struct fx_added_set *set, fx_span text) {
    const struct fx_added *best = NULL;
    size_t from = 0, to = set->count;
    for (size_t depth = 0; depth < text.len && from < to; depth++) {
        from = lower_bound(set, from, to, depth, text.at[depth]);
        to = lower_bound(set, from, to, depth, text.at[depth] + 1U);
        if (from == to || set->at[from].text.len != depth + 1) continue;
        best = &set->at[from++]; /* the shortest of a range sorts first */
    }
    return best;
}

bool fx_tokenizer__find_added(const struct fx_added_set *set, fx_span text, size_t at,
                              struct fx_found *out) {
    if (!set->count) return false;
    for (; at < text.len; at++) {
        if (!set->begins[text.at[at]]) continue;
        const struct fx_added *added = longest_at(set, fx_span__cut(text, at, text.len));
        if (!added) continue;
        *out = (struct fx_found){added, at, at + added->text.len};
        return true;
    }
    return false;
}

/* White_Space, as in the pattern of a translated \s. */
static bool is_space(uint32_t point) {
    return (point >= 9 && point <= 13) || point == ' ' || point == 0x85 || point == 0xa0 ||
           point == 0x1680 || (point >= 0x2000 && point <= 0x200a) || point == 0x2028 ||
           point == 0x2029 || point == 0x202f || point == 0x205f || point == 0x3000;
}

static size_t before(fx_span text, size_t at) {
    do
        at--;
    while (at && text.at[at] >> 6 == 2);
    return at;
}

static size_t spaces_before(fx_span text, size_t at) {
    size_t len;
    while (at && is_space(fx_utf8__point(text.at + before(text, at), &len)))
        at = before(text, at);
    return at;
}

static size_t spaces_after(fx_span text, size_t at) {
    size_t len;
    while (at < text.len && is_space(fx_utf8__point(text.at + at, &len)))
        at += len;
    return at;
}

static FX_MUST bool is_word_char(struct fx_encoding *encoding, fx_span text, size_t at, bool *out) {
    struct fx_match match;
    size_t len;
    (void)fx_utf8__point(text.at + at, &len);
    if (!fx_regex_find(encoding->tokenizer->word_char, encoding->scratch->match,
                       fx_span__cut(text, at, at + len), 0, &match, encoding->err))
        return false;
    *out = match.from < match.to;
    return true;
}

/* single_word: no character of a word on either side. */
static FX_MUST bool stands_alone(struct fx_encoding *encoding, fx_span text,
                                 const struct fx_found *found, bool *out) {
    bool left = false, right = false;
    if (found->from && !is_word_char(encoding, text, before(text, found->from), &left))
        return false;
    if (found->to < text.len && !is_word_char(encoding, text, found->to, &right)) return false;
    *out = !left && !right;
    return true;
}

static FX_MUST bool counts(struct fx_encoding *encoding, fx_span text, const struct fx_found *found,
                           bool *out) {
    *out = !found->added->special || encoding->is_template;
    if (!*out || !found->added->single_word) return true;
    return stands_alone(encoding, text, found, out);
}

/* The next search begins behind the token's own text: spaces that rstrip took may begin another. */
bool fx_encoding__around(struct fx_encoding *encoding, const struct fx_added_set *set, fx_span text,
                         fx_encode_part *rest) {
    struct fx_found found;
    size_t done = 0, at = 0;
    while (fx_tokenizer__find_added(set, text, at, &found)) {
        bool ok;
        at = found.to;
        if (!counts(encoding, text, &found, &ok)) return false;
        if (!ok) continue;
        if (found.added->strips_left) found.from = spaces_before(text, found.from);
        if (found.added->strips_right) found.to = spaces_after(text, found.to);
        if (found.from > done && !rest(encoding, fx_span__cut(text, done, found.from)))
            return false;
        fx_ids__put(encoding->out, found.added->id);
        encoding->at_first = false;
        encoding->at_fresh = true;
        done = found.to;
    }
    return done >= text.len || rest(encoding, fx_span__cut(text, done, text.len));
}
