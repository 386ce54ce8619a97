#include "common/model/tokenizer_unicode.h"

static unsigned sequence_len(uint8_t first) {
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) return 2;
    if (first >= 0xe0 && first <= 0xef) return 3;
    if (first >= 0xf0 && first <= 0xf4) return 4;
    return 0;
}

/* The second byte excludes overlong forms, surrogates and what lies past U+10FFFF. */
static bool is_second(uint8_t first, uint8_t byte) {
    uint8_t low = 0x80, high = 0xbf;
    switch (first) {
    case 0xe0: low = 0xa0; break;
    case 0xed: high = 0x9f; break;
    case 0xf0: low = 0x90; break;
    case 0xf4: high = 0x8f; break;
    default: break;
    }
    return byte >= low && byte <= high;
}

/* Bytes that begin a well-formed sequence, up to a whole one. */
static size_t begun(fx_span text, size_t want) {
    size_t len = 1;
    if (want > 1 && text.len > 1 && is_second(text.at[0], text.at[1])) len++;
    while (len > 1 && len < want && len < text.len && text.at[len] >> 6 == 2)
        len++;
    return len;
}

bool fx_utf8__begins(uint8_t byte) {
    return sequence_len(byte) != 0;
}

size_t fx_utf8__sequence(fx_span text) {
    size_t want = text.len ? sequence_len(text.at[0]) : 0;
    return want && begun(text, want) == want ? want : 0;
}

size_t fx_utf8__subpart(fx_span text) {
    size_t want = sequence_len(text.at[0]);
    return want ? begun(text, want) : 1;
}

size_t fx_utf8__valid(fx_span text) {
    size_t at = 0, step = 0;
    do {
        uint64_t word;
        at += step;
        while (text.len - at >= sizeof word) {
            memcpy(&word, text.at + at, sizeof word);
            if (word & 0x8080808080808080U) break;
            at += sizeof word;
        }
        step = fx_utf8__sequence((fx_span){text.at + at, text.len - at});
    } while (step);
    return at;
}

bool fx_unicode__is_held(uint32_t point) {
    size_t from = 0, to = fx_unicode_held_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (fx_unicode_held[middle].last < point)
            from = middle + 1;
        else
            to = middle;
    }
    return from < fx_unicode_held_count && fx_unicode_held[from].first <= point;
}
