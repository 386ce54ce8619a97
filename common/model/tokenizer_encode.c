#include "common/model/tokenizer_internal.h"
#include "common/model/tokenizer_unicode.h"

static const uint8_t replacement[3] = {0xef, 0xbf, 0xbd}; /* U+FFFD */

/* Bytes that are no UTF-8 are read as U+FFFD, one for each maximal subpart. */
static FX_MUST bool repair(struct fx_scratch *scratch, fx_span text, fx_span *out, fx_error *err) {
    size_t at = fx_utf8__valid(text);
    *out = text;
    if (at == text.len) return true;
    scratch->repaired.len = 0;
    if (!fx_made__put(&scratch->repaired, fx_span__cut(text, 0, at), err)) return false;
    while (at < text.len) {
        at += fx_utf8__subpart(fx_span__cut(text, at, text.len));
        size_t to = at + fx_utf8__valid(fx_span__cut(text, at, text.len));
        if (!fx_made__put(&scratch->repaired, (fx_span){replacement, sizeof replacement}, err) ||
            !fx_made__put(&scratch->repaired, fx_span__cut(text, at, to), err))
            return false;
        at = to;
    }
    *out = fx_made__span(&scratch->repaired);
    return true;
}

static bool encode_normalized(struct fx_encoding *encoding, fx_span text) {
    const struct fx_tokenizer *tokenizer = encoding->tokenizer;
    if (!fx_normalize(tokenizer, encoding->scratch, text, encoding->at_fresh, &text, encoding->err))
        return false;
    return fx_encoding__around(encoding, &tokenizer->added[FX_ADDED_NORMALIZED], text,
                               fx_encoding__words);
}

static FX_MUST bool encode_segments(struct fx_encoding *encoding, struct fx_segments text) {
    for (size_t i = 0; i < text.count; i++) {
        fx_span segment;
        encoding->is_template = text.at[i].is_template;
        if (!repair(encoding->scratch, text.at[i].text, &segment, encoding->err) ||
            !fx_encoding__around(encoding, &encoding->tokenizer->added[FX_ADDED_RAW], segment,
                                 encode_normalized))
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
    return first.len >= bos.len && fx_span_eq(fx_span__cut(first, 0, bos.len), bos);
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

static FX_MUST bool encode_all(struct fx_encoding *encoding, struct fx_segments text,
                               enum fx_encode mode) {
    const struct fx_tokenizer *tokenizer = encoding->tokenizer;
    if (mode == FX_ENCODE_PROMPT) put_prefix(tokenizer, text, encoding->out);
    if (!encode_segments(encoding, text)) return false;
    if (mode == FX_ENCODE_PROMPT) put_affix(&tokenizer->suffix, encoding->out);
    return true;
}

size_t fx_tokenizer_ids_max(size_t bytes) {
    return 4 * bytes + (size_t)2 * FX_TOKENIZER_AFFIX_MAX + 16;
}

bool fx_tokenizer_encode(const fx_tokenizer *tokenizer, struct fx_segments text,
                         enum fx_encode mode, struct fx_ids *out, fx_error *err) {
    struct fx_ids ids = *out;
    struct fx_encoding encoding = {
        .tokenizer = tokenizer, .out = &ids, .at_first = true, .at_fresh = true, .err = err};
    if (!check_length(text, err) || !fx_scratch__take(tokenizer, &encoding.scratch, err))
        return false;
    bool ok = encode_all(&encoding, text, mode);
    fx_scratch__give(tokenizer, encoding.scratch);
    if (!ok) return false;
    if (ids.len > ids.cap)
        return fx_fail(err, FX_OUT_OF_RANGE, "text has %zu tokens, there is room for %zu",
                       ids.len - out->len, out->cap - out->len);
    out->len = ids.len;
    return true;
}
