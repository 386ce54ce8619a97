#include "common/model/tokenizer_internal.h"

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

bool fx_tokenizer__find_added(const struct fx_added_set *set, fx_span text, size_t from,
                              struct fx_found *out) {
    if (!set->count) return false;
    for (size_t at = from; at < text.len; at++) {
        const struct fx_added *added = longest_at(set, (fx_span){text.at + at, text.len - at});
        if (!added) continue;
        *out = (struct fx_found){added, at};
        return true;
    }
    return false;
}

struct encoding {
    const struct fx_tokenizer *tokenizer;
    struct fx_ids *out;
    bool is_template;
};

static fx_span part(fx_span text, size_t from, size_t to) {
    return (fx_span){text.at + from, to - from};
}

typedef bool encode_function(struct encoding *encoding, fx_span text, fx_error *err);

static bool encode_words(struct encoding *encoding, fx_span text, fx_error *err) {
    return fx_tokenizer__bpe(encoding->tokenizer, text, encoding->out, err);
}

/* Takes the added tokens of `set` out of `text`; `rest` gets what lies between. */
static FX_MUST bool encode_around(struct encoding *encoding, const struct fx_added_set *set,
                                  fx_span text, encode_function *rest, fx_error *err) {
    struct fx_found found;
    size_t done = 0, from = 0;
    while (fx_tokenizer__find_added(set, text, from, &found)) {
        from = found.at + found.added->text.len;
        if (found.added->special && !encoding->is_template) continue;
        if (!rest(encoding, part(text, done, found.at), err)) return false;
        fx_ids__put(encoding->out, found.added->id);
        done = from;
    }
    return rest(encoding, part(text, done, text.len), err);
}

static bool encode_normalized(struct encoding *encoding, fx_span text, fx_error *err) {
    return encode_around(encoding, &encoding->tokenizer->added[FX_ADDED_NORMALIZED], text,
                         encode_words, err);
}

static FX_MUST bool encode_segments(const struct fx_tokenizer *tokenizer, struct fx_segments text,
                                    struct fx_ids *out, fx_error *err) {
    for (size_t i = 0; i < text.count; i++) {
        struct encoding encoding = {tokenizer, out, text.at[i].is_template};
        if (!encode_around(&encoding, &tokenizer->added[FX_ADDED_RAW], text.at[i].text,
                           encode_normalized, err))
            return false;
    }
    return true;
}

static void put_affix(const struct fx_affix *affix, struct fx_ids *out) {
    for (size_t i = 0; i < affix->count; i++)
        fx_ids__put(out, affix->ids[i]);
}

/* A raw prompt that spells BOS itself, as template text, gets no second one. */
static bool spells_bos(const struct fx_tokenizer *tokenizer, struct fx_segments text) {
    if (tokenizer->bos_id == FX_ID_NONE || !text.count || !text.at[0].is_template) return false;
    fx_span bos = fx_span_str(tokenizer->bos_text), first = text.at[0].text;
    return first.len >= bos.len && fx_span_eq(part(first, 0, bos.len), bos);
}

static void put_prefix(const struct fx_tokenizer *tokenizer, struct fx_segments text,
                       struct fx_ids *out) {
    struct fx_affix prefix = tokenizer->prefix;
    if (prefix.count && prefix.ids[prefix.count - 1] == tokenizer->bos_id &&
        spells_bos(tokenizer, text))
        prefix.count--;
    put_affix(&prefix, out);
}

static FX_MUST bool check_length(struct fx_segments text, fx_error *err) {
    size_t left = FX_TOKENIZER_TEXT_BYTES_MAX;
    for (size_t i = 0; i < text.count; i++) {
        if (text.at[i].text.len > left)
            return fx_fail(err, FX_OUT_OF_RANGE, "text is longer than %d bytes",
                           FX_TOKENIZER_TEXT_BYTES_MAX);
        left -= text.at[i].text.len;
    }
    return true;
}

bool fx_tokenizer_encode(const fx_tokenizer *tokenizer, struct fx_segments text,
                         enum fx_encode mode, struct fx_ids *out, fx_error *err) {
    struct fx_ids ids = *out;
    if (!check_length(text, err)) return false;
    if (mode == FX_ENCODE_PROMPT) put_prefix(tokenizer, text, &ids);
    if (!encode_segments(tokenizer, text, &ids, err)) return false;
    if (mode == FX_ENCODE_PROMPT) put_affix(&tokenizer->suffix, &ids);
    if (ids.len > ids.cap)
        return fx_fail(err, FX_OUT_OF_RANGE, "text has %zu tokens, there is room for %zu",
                       ids.len - out->len, out->cap - out->len);
    out->len = ids.len;
    return true;
}
