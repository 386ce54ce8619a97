#include "common/model/jinja.h"

static bool is_tail(fx_span text, size_t i) {
    return i < text.len && (text.at[i] & 0xc0) == 0x80;
}

size_t fx_jinja__char_len(fx_span text, size_t i) {
    uint8_t first = text.at[i];
    size_t want = first < 0xc2 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 1;
    for (size_t tail = 1; tail < want; tail++)
        if (!is_tail(text, i + tail)) return 1;
    return want;
}

size_t fx_jinja__char_count(fx_span text) {
    size_t count = 0;
    for (size_t i = 0; i < text.len; i += fx_jinja__char_len(text, i))
        count++;
    return count;
}

size_t fx_jinja__char_at(fx_span text, size_t index) {
    size_t at = 0;
    while (index-- && at < text.len)
        at += fx_jinja__char_len(text, at);
    return at;
}

uint32_t fx_jinja__point(fx_span text, size_t i, size_t len) {
    static const uint8_t first_bits[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    if (len == 1) return text.at[i]; /* also a bad byte */
    uint32_t point = text.at[i] & first_bits[len];
    for (size_t tail = 1; tail < len; tail++)
        point = point << 6 | (text.at[i + tail] & 0x3fU);
    return point;
}

static bool is_space(uint32_t point) {
    if (point < 0x80) return (point >= 9 && point <= 13) || (point >= 28 && point <= 32);
    if (point >= 0x2000 && point <= 0x200a) return true;
    switch (point) {
    case 0x85:
    case 0xa0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202f:
    case 0x205f:
    case 0x3000: return true;
    default: return false;
    }
}

size_t fx_jinja__space_len(fx_span text, size_t i) {
    size_t len = fx_jinja__char_len(text, i);
    if (len == 1 && text.at[i] >= 0x80) return 0; /* a bad byte */
    return is_space(fx_jinja__point(text, i, len)) ? len : 0;
}

size_t fx_jinja__skip_space(fx_span text, size_t from) {
    size_t len;
    while (from < text.len && (len = fx_jinja__space_len(text, from)) > 0)
        from += len;
    return from;
}

size_t fx_jinja__trim_end(fx_span text, size_t from) {
    size_t end = text.len;
    while (end > from) {
        size_t start = end - 1;
        while (start > from && is_tail(text, start) && end - start < 4)
            start--;
        size_t len = fx_jinja__space_len((fx_span){text.at, end}, start);
        if (!len || start + len != end) break;
        end = start;
    }
    return end;
}

size_t fx_jinja__seek(fx_span text, size_t from, fx_span needle) {
    if (from > text.len || needle.len > text.len - from) return text.len + 1;
    if (!needle.len) return from;
    const uint8_t *found = memmem(text.at + from, text.len - from, needle.at, needle.len);
    return found ? (size_t)(found - text.at) : text.len + 1;
}

size_t fx_jinja__put_char(uint32_t point, uint8_t out[4]) {
    if (point < 0x80) {
        out[0] = (uint8_t)point;
        return 1;
    }
    if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return 0;
    size_t len = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const uint8_t lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len - 1; i > 0; i--, point >>= 6)
        out[i] = (uint8_t)(0x80 | (point & 0x3f));
    out[0] = (uint8_t)(lead[len] | point);
    return len;
}
