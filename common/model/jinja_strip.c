#include "common/model/jinja_strip.h"

static bool has_char(fx_span set, fx_span text, size_t at, size_t len) {
    return len <= set.len && memmem(set.at, set.len, text.at + at, len) != NULL;
}

/* Any of the characters of `set`. */
static struct fx_jinja_text strip_set(struct fx_jinja_text text, fx_span set, unsigned sides) {
    fx_span span = fx_jinja__span(text);
    size_t from = 0, to = text.len;
    while (sides & FX_JS_LEFT && from < to) {
        size_t len = fx_jinja__char_len(span, from);
        if (!has_char(set, span, from, len)) break;
        from += len;
    }
    while (sides & FX_JS_RIGHT && to > from) {
        size_t start = to - 1;
        while (start > from && (span.at[start] & 0xc0) == 0x80)
            start--;
        if (!has_char(set, span, start, to - start)) break;
        to = start;
    }
    return fx_jinja__sub(text, from, to);
}

static struct fx_jinja_text strip_space(struct fx_jinja_text text, unsigned sides) {
    fx_span span = fx_jinja__span(text);
    size_t from = sides & FX_JS_LEFT ? fx_jinja__skip_space(span, 0) : 0;
    size_t to = sides & FX_JS_RIGHT ? fx_jinja__trim_end(span, from) : text.len;
    return fx_jinja__sub(text, from, to);
}

bool fx_jinja__strip(struct fx_jinja_run *run, struct fx_jinja_text text,
                     const struct fx_jinja_value *chars, unsigned sides,
                     struct fx_jinja_value *out) {
    bool space = chars->kind == FX_JV_ABSENT || chars->kind == FX_JV_NONE;
    if (!space && !fx_jinja__want_text(run, "strip", chars)) return false;
    *out = fx_jinja__text_value(space ? strip_space(text, sides)
                                      : strip_set(text, fx_jinja__span(chars->text), sides));
    return true;
}

/* The next place to replace at or after `at`; an empty `old` stands before each character. */
static size_t next_match(fx_span text, size_t at, fx_span old, bool first) {
    if (old.len) return fx_jinja__seek(text, at, old);
    if (first) return at;
    return at < text.len ? at + fx_jinja__char_len(text, at) : text.len + 1;
}

static size_t count_matches(fx_span text, fx_span old, int64_t limit) {
    size_t count = 0;
    for (size_t at = next_match(text, 0, old, true);
         at <= text.len && (limit < 0 || count < (uint64_t)limit); count++)
        at = next_match(text, at + old.len, old, false);
    return count;
}

static void put(struct fx_jinja_text part, uint8_t *bytes, uint8_t *origin, size_t *at) {
    for (size_t i = 0; i < part.len; i++, ++*at) {
        bytes[*at] = part.at[i];
        origin[*at] = part.origin ? part.origin[i] : part.user;
    }
}

bool fx_jinja__replace(struct fx_jinja_run *run, struct fx_jinja_text text,
                       struct fx_jinja_text old, struct fx_jinja_text fresh, int64_t limit,
                       struct fx_jinja_value *out) {
    fx_span span = fx_jinja__span(text), wanted = fx_jinja__span(old);
    size_t count = count_matches(span, wanted, limit), from = 0, used = 0;
    if (fresh.len && count > FX_TEMPLATE_OUTPUT_BYTES_MAX / fresh.len)
        return fx_fail(run->err, FX_RESOURCE_EXHAUSTED, "replace: the string is too long");
    size_t len = text.len - count * old.len + count * fresh.len;
    uint8_t *bytes = fx_arena_alloc(run->arena, len), *origin = fx_arena_alloc(run->arena, len);
    if (!bytes || !origin) return fx_jinja__full(run);
    for (size_t i = 0, at = 0; i < count; i++) {
        at = next_match(span, at, wanted, i == 0);
        put(fx_jinja__sub(text, from, at), bytes, origin, &used);
        put(fresh, bytes, origin, &used);
        from = at += wanted.len;
    }
    put(fx_jinja__sub(text, from, text.len), bytes, origin, &used);
    FX_ASSERT(used == len);
    run->steps += (text.len + len) / FX_JINJA_BYTES_STEP;
    *out = fx_jinja__text_value((struct fx_jinja_text){bytes, len, origin, false, false});
    return true;
}

/* Where the parts are kept while they are counted: at most one more than separators. */
struct parts {
    struct fx_jinja_value *at;
    size_t count, cap;
};

static FX_MUST bool add_part(struct fx_jinja_run *run, struct parts *parts,
                             struct fx_jinja_text text) {
    if (parts->count == parts->cap) {
        size_t cap = 2 * parts->cap + 8;
        struct fx_jinja_value *grown = fx_jinja__values(run, cap);
        if (!grown) return false;
        for (size_t i = 0; i < parts->count; i++)
            grown[i] = parts->at[i];
        parts->at = grown;
        parts->cap = cap;
    }
    parts->at[parts->count++] = fx_jinja__text_value(text);
    return true;
}

static FX_MUST bool split_space(struct fx_jinja_run *run, struct fx_jinja_text text, int64_t limit,
                                struct parts *parts) {
    fx_span span = fx_jinja__span(text);
    size_t at = fx_jinja__skip_space(span, 0);
    while (at < span.len) {
        size_t end = at;
        if (limit >= 0 && parts->count == (uint64_t)limit)
            return add_part(run, parts, fx_jinja__sub(text, at, text.len));
        while (end < span.len && !fx_jinja__space_len(span, end))
            end += fx_jinja__char_len(span, end);
        if (!add_part(run, parts, fx_jinja__sub(text, at, end))) return false;
        at = fx_jinja__skip_space(span, end);
    }
    return true;
}

static FX_MUST bool split_text(struct fx_jinja_run *run, struct fx_jinja_text text,
                               fx_span separator, int64_t limit, struct parts *parts) {
    fx_span span = fx_jinja__span(text);
    size_t from = 0;
    while (limit < 0 || parts->count < (uint64_t)limit) {
        size_t at = fx_jinja__seek(span, from, separator);
        if (at > span.len) break;
        if (!add_part(run, parts, fx_jinja__sub(text, from, at))) return false;
        from = at + separator.len;
    }
    return add_part(run, parts, fx_jinja__sub(text, from, text.len));
}

/* The last place of `separator` in text[0..end), or end + 1. */
static size_t seek_last(fx_span text, size_t end, fx_span separator) {
    for (size_t at = end; at + 1 > separator.len; at--)
        if (memcmp(text.at + at - separator.len, separator.at, separator.len) == 0)
            return at - separator.len;
    return end + 1;
}

/* From the right; the parts come last first. */
static FX_MUST bool split_right(struct fx_jinja_run *run, struct fx_jinja_text text,
                                fx_span separator, int64_t limit, struct parts *parts) {
    fx_span span = fx_jinja__span(text);
    size_t end = text.len;
    while (limit < 0 || parts->count < (uint64_t)limit) {
        size_t at = seek_last(span, end, separator);
        if (at > end) break;
        if (!add_part(run, parts, fx_jinja__sub(text, at + separator.len, end))) return false;
        end = at;
    }
    if (!add_part(run, parts, fx_jinja__sub(text, 0, end))) return false;
    for (size_t i = 0; i < parts->count / 2; i++) {
        struct fx_jinja_value swap = parts->at[i];
        parts->at[i] = parts->at[parts->count - 1 - i];
        parts->at[parts->count - 1 - i] = swap;
    }
    return true;
}

bool fx_jinja__split(struct fx_jinja_run *run, struct fx_jinja_text text, const fx_span *separator,
                     int64_t limit, bool from_right, struct fx_jinja_value *out) {
    struct parts parts = {0};
    bool ok;
    if (separator && !separator->len) return fx_jinja__bad(run, "split: an empty separator");
    if (!separator && from_right && limit >= 0)
        return fx_jinja__bad(run, "rsplit of whitespace with a limit is not supported");
    if (!separator)
        ok = split_space(run, text, limit, &parts);
    else if (from_right && limit >= 0)
        ok = split_right(run, text, *separator, limit, &parts);
    else
        ok = split_text(run, text, *separator, limit, &parts);
    run->steps += parts.count + text.len / FX_JINJA_BYTES_STEP;
    *out = fx_jinja__list(parts.at, parts.count);
    return ok;
}

/* Bytes of the line end at text.at[i], 0 if there is none. */
static size_t line_end(fx_span text, size_t i) {
    size_t len = fx_jinja__char_len(text, i);
    uint32_t point = fx_jinja__point(text, i, len);
    if (point == '\r') return i + 1 < text.len && text.at[i + 1] == '\n' ? 2 : 1;
    bool ends = (point >= '\n' && point <= '\f') || (point >= 0x1c && point <= 0x1e) ||
                (point == 0x85 && len == 2) || point == 0x2028 || point == 0x2029;
    return ends ? len : 0;
}

bool fx_jinja__lines(struct fx_jinja_run *run, struct fx_jinja_text text,
                     struct fx_jinja_value *out) {
    fx_span span = fx_jinja__span(text);
    struct parts parts = {0};
    size_t from = 0, at = 0;
    while (at < span.len) {
        size_t end = line_end(span, at);
        if (end && !add_part(run, &parts, fx_jinja__sub(text, from, at))) return false;
        at += end ? end : fx_jinja__char_len(span, at);
        if (end) from = at;
    }
    if (from < at && !add_part(run, &parts, fx_jinja__sub(text, from, at))) return false;
    *out = fx_jinja__list(parts.at, parts.count);
    return true;
}
