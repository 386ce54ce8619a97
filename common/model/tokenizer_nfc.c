#include <utf8proc.h>
#include "common/base/heap.h"
#include "common/model/tokenizer_internal.h"
#include "common/model/tokenizer_unicode.h"

/* Normalisation form C by utf8proc, in stretches. An inert character is NFC, begins no stretch's
 * tail (it never joins what stands before it) and so ends a stretch; the last one before a stretch
 * belongs to it, as what follows may join it. */

enum { POINTS_MAX = 512 }; /* of a stretch; a longer one takes memory of its own */
static const utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPOSE;

static bool is_between(uint32_t point, uint32_t first, uint32_t last) {
    return point >= first && point <= last;
}

static bool is_inert(uint32_t point) {
    return point < 0x300 || is_between(point, 0x400, 0x482) || is_between(point, 0x48a, 0x52f) ||
           is_between(point, 0x2010, 0x2027) || is_between(point, 0x3041, 0x3096) ||
           is_between(point, 0x30a1, 0x30fa) || is_between(point, 0x3400, 0x9fff) ||
           is_between(point, 0xac00, 0xd7a3) || is_between(point, 0x1f300, 0x1faff);
}

bool fx_nfc__is_plain(fx_span text) {
    size_t len;
    for (size_t at = 0; at < text.len; at += len)
        if (text.at[at] < 0x80)
            len = 1;
        else if (!is_inert(fx_utf8__point(text.at + at, &len)))
            return false;
    return true;
}

static FX_MUST bool put_points(const int32_t *points, size_t count, struct fx_made *out,
                               fx_error *err) {
    if (!fx_made__room(out, 4 * count, err)) return false;
    for (size_t i = 0; i < count; i++)
        out->len += (size_t)utf8proc_encode_char(points[i], out->at + out->len);
    return true;
}

static FX_MUST bool put_composed(fx_span text, int32_t *points, size_t cap, struct fx_made *out,
                                 fx_error *err) {
    utf8proc_ssize_t count = utf8proc_decompose(text.at, (utf8proc_ssize_t)text.len, points,
                                                (utf8proc_ssize_t)cap, options);
    FX_ASSERT(count >= 0 && (size_t)count <= cap);
    count = utf8proc_normalize_utf32(points, count, options);
    FX_ASSERT(count >= 0);
    return put_points(points, (size_t)count, out, err);
}

/* A character of two bytes becomes at most 3 points, one of three or four at most 4. */
static FX_MUST bool put_stretch(fx_span text, struct fx_made *out, fx_error *err) {
    int32_t few[POINTS_MAX];
    size_t cap = 2 * text.len + 4;
    if (cap <= POINTS_MAX) return put_composed(text, few, POINTS_MAX, out, err);
    fx_auto(void) many = fx_alloc(cap, sizeof(int32_t));
    if (!many) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory to normalise a text");
    return put_composed(text, many, cap, out, err);
}

/* A mark unknown to `tokenizers` neither moves nor joins: it stands alone. */
static FX_MUST bool put_around_held(fx_span text, struct fx_made *out, fx_error *err) {
    size_t from = 0, len;
    for (size_t at = 0; at < text.len; at += len) {
        if (!fx_unicode__is_held(fx_utf8__point(text.at + at, &len))) continue;
        if (!put_stretch(fx_span__cut(text, from, at), out, err) ||
            !fx_made__put(out, fx_span__cut(text, at, at + len), err))
            return false;
        from = at + len;
    }
    return put_stretch(fx_span__cut(text, from, text.len), out, err);
}

/* From `at` on, how far everything is inert; `last` is where the last inert character begins. */
static size_t inert_end(fx_span text, size_t at, size_t *last) {
    size_t len;
    *last = at;
    for (; at < text.len; at += len) {
        if (!is_inert(fx_utf8__point(text.at + at, &len))) return at;
        *last = at;
    }
    *last = at;
    return at;
}

static size_t stretch_end(fx_span text, size_t at) {
    size_t len;
    for (; at < text.len; at += len)
        if (is_inert(fx_utf8__point(text.at + at, &len))) return at;
    return at;
}

bool fx_nfc__append(fx_span text, struct fx_made *out, fx_error *err) {
    for (size_t at = 0; at < text.len;) {
        size_t from, to = inert_end(text, at, &from);
        if (!fx_made__put(out, fx_span__cut(text, at, from), err)) return false;
        at = stretch_end(text, to);
        if (at > from && !put_around_held(fx_span__cut(text, from, at), out, err)) return false;
    }
    return true;
}
