#include "common/model/tokenizer_internal.h"
#include "common/model/tokenizer_unicode.h"

/* The stages of pre-tokenisation, depth first: a piece of one stage is the text of the next, a
 * piece of the last is a word. Nothing is collected. */

struct element {
    size_t from, to;
    bool is_match;
};

/* A stage at work on one text. */
struct cutter {
    const struct fx_stage *stage;
    fx_span text;
    size_t at;             /* everything before is dealt with */
    struct fx_match found; /* the next match, if found.to > at */
    struct element held;   /* looked at, not yet taken */
    bool has_held, is_whole_done;
};

static FX_MUST bool element_read(struct fx_encoding *encoding, struct cutter *cutter,
                                 struct element *out) {
    bool inverted = cutter->stage->inverted;
    if (cutter->found.to <= cutter->at &&
        !fx_regex_find(cutter->stage->regex, encoding->scratch->match, cutter->text, cutter->at,
                       &cutter->found, encoding->err))
        return false;
    bool is_match = cutter->found.from == cutter->at && cutter->found.to > cutter->at;
    *out = (struct element){cutter->at, is_match ? cutter->found.to : cutter->found.from,
                            is_match != inverted};
    cutter->at = out->to;
    return true;
}

/* An empty element is the end. */
static FX_MUST bool element_next(struct fx_encoding *encoding, struct cutter *cutter,
                                 struct element *out) {
    if (cutter->has_held) {
        *out = cutter->held;
        cutter->has_held = false;
        return true;
    }
    *out = (struct element){cutter->text.len, cutter->text.len, false};
    return cutter->at >= cutter->text.len || element_read(encoding, cutter, out);
}

static bool joins(enum fx_split split, struct element left, struct element right) {
    switch (split) {
    case FX_SPLIT_PREVIOUS: return !left.is_match && right.is_match;
    case FX_SPLIT_NEXT: return left.is_match && !right.is_match;
    case FX_SPLIT_CONTIGUOUS: return left.is_match == right.is_match;
    default: return false;
    }
}

/* Joins what follows while the stage wants it; two at most, but for CONTIGUOUS. */
static FX_MUST bool element_join(struct fx_encoding *encoding, struct cutter *cutter,
                                 struct element *element) {
    enum fx_split split = cutter->stage->split;
    do {
        if (!element_next(encoding, cutter, &cutter->held)) return false;
        cutter->has_held = true;
        if (cutter->held.from == cutter->held.to || !joins(split, *element, cutter->held))
            return true;
        element->to = cutter->held.to;
        cutter->has_held = false;
    } while (split == FX_SPLIT_CONTIGUOUS);
    return true;
}

/* The next piece, an empty one at the end. */
static FX_MUST bool piece_next(struct fx_encoding *encoding, struct cutter *cutter, fx_span *out) {
    enum fx_split split = cutter->stage->split;
    struct element element;
    do
        if (!element_next(encoding, cutter, &element)) return false;
    while (split == FX_SPLIT_REMOVED && element.is_match);
    if (split >= FX_SPLIT_PREVIOUS && element.from < element.to &&
        !element_join(encoding, cutter, &element))
        return false;
    *out = fx_span__cut(cutter->text, element.from, element.to);
    return true;
}

static FX_MUST bool piece_or_whole(struct fx_encoding *encoding, struct cutter *cutter,
                                   fx_span *out) {
    if (cutter->stage->regex) return piece_next(encoding, cutter, out);
    *out = cutter->is_whole_done ? (fx_span){cutter->text.at, 0} : cutter->text;
    cutter->is_whole_done = true;
    return true;
}

static bool begins_with_mark(const struct fx_stage *stage, fx_span text) {
    if (stage->marks_spaces && text.len && text.at[0] == ' ') return true;
    return text.len >= stage->mark_len && memcmp(text.at, stage->mark, stage->mark_len) == 0;
}

static FX_MUST bool put_marked(const struct fx_stage *stage, fx_span text, struct fx_made *out,
                               fx_error *err) {
    fx_span mark = {stage->mark, stage->mark_len};
    size_t from = 0;
    for (size_t at = 0; stage->marks_spaces && at < text.len; at++) {
        if (text.at[at] != ' ') continue;
        if (!fx_made__put(out, fx_span__cut(text, from, at), err) || !fx_made__put(out, mark, err))
            return false;
        from = at + 1;
    }
    return fx_made__put(out, fx_span__cut(text, from, text.len), err);
}

/* The stage's own text: marked, prefixed. The prefix is for what begins, in the whole prompt or
 * after an added token, and for every further piece that an earlier stage has cut. */
static FX_MUST bool cutter_begin(struct fx_encoding *encoding, size_t depth, fx_span text,
                                 struct cutter *out) {
    const struct fx_stage *stage = &encoding->tokenizer->stages[depth];
    struct fx_made *made = &encoding->scratch->marked[depth];
    bool begins = stage->prefix == FX_PREFIX_ALWAYS
                      ? encoding->at_fresh
                      : stage->prefix == FX_PREFIX_FIRST && encoding->at_first;
    bool prefixed = begins && !begins_with_mark(stage, text);
    *out = (struct cutter){.stage = stage, .text = text};
    if (!prefixed && !stage->marks_spaces) return true;
    made->len = 0;
    if (prefixed && !fx_made__put(made, (fx_span){stage->mark, stage->mark_len}, encoding->err))
        return false;
    if (!put_marked(stage, text, made, encoding->err)) return false;
    out->text = fx_made__span(made);
    return true;
}

static FX_MUST bool cut_one(struct fx_encoding *encoding, struct cutter *cutters, size_t *depth) {
    fx_span piece;
    if (!piece_or_whole(encoding, &cutters[*depth], &piece)) return false;
    if (!piece.len) {
        (*depth)--;
        return true;
    }
    if (*depth == encoding->tokenizer->stage_count) {
        if (!fx_encoding__piece(encoding, piece)) return false;
        encoding->at_first = false;
        encoding->at_fresh = true; /* an earlier stage has cut here */
        return true;
    }
    if (!cutter_begin(encoding, *depth, piece, &cutters[*depth + 1])) return false;
    (*depth)++;
    return true;
}

static FX_MUST bool cut_all(struct fx_encoding *encoding, fx_span text) {
    struct cutter cutters[FX_TOKENIZER_STEPS_MAX + 1];
    size_t depth = 1;
    if (!cutter_begin(encoding, 0, text, &cutters[1])) return false;
    while (depth)
        if (!cut_one(encoding, cutters, &depth)) return false;
    return true;
}

bool fx_encoding__words(struct fx_encoding *encoding, fx_span text) {
    bool ok = encoding->tokenizer->stage_count ? cut_all(encoding, text)
                                               : fx_encoding__piece(encoding, text);
    encoding->at_first = encoding->at_fresh = false;
    return ok;
}
