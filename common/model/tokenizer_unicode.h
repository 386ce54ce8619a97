#pragma once
#include "common/base/auto.h"
#include "common/base/span.h"

/** Where the libraries we use and the `tokenizers` library follow other versions of Unicode. */
struct fx_unicode_range {
    uint32_t first, last;
    char category[4];
};
/** What `tokenizers` (Unicode 16) puts into a general category, or the script Han, and PCRE2 10.42
 *  (Unicode 14) does not. Sorted. */
extern const struct fx_unicode_range fx_unicode_newer[];
extern const size_t fx_unicode_newer_count;
/** Marks that reorder or compose in utf8proc 2.8 (Unicode 15) and are unknown to the normalisers of
 *  `tokenizers` (Unicode 9). Sorted. */
extern const struct fx_unicode_range fx_unicode_held[];
extern const size_t fx_unicode_held_count;

/** The code point at `at` of valid UTF-8; sets its length. */
static inline uint32_t fx_utf8__point(const uint8_t *at, size_t *len) {
    if (at[0] < 0x80) {
        *len = 1;
        return at[0];
    }
    if (at[0] < 0xe0) {
        *len = 2;
        return (at[0] & 0x1fU) << 6 | (at[1] & 0x3fU);
    }
    if (at[0] < 0xf0) {
        *len = 3;
        return (at[0] & 0x0fU) << 12 | (at[1] & 0x3fU) << 6 | (at[2] & 0x3fU);
    }
    *len = 4;
    return (at[0] & 0x07U) << 18 | (at[1] & 0x3fU) << 12 | (at[2] & 0x3fU) << 6 | (at[3] & 0x3fU);
}

/** Length of the well-formed sequence that begins `text`, 0 if none does. */
size_t fx_utf8__sequence(fx_span text);
/** How many bytes of `text`, from its begin, are valid UTF-8. */
size_t fx_utf8__valid(fx_span text);
/** Bytes of the maximal subpart of an ill-formed sequence at the begin of `text` (Unicode 3.9). */
size_t fx_utf8__subpart(fx_span text);
/** A longer sequence, or a whole one, may begin with it. */
bool fx_utf8__begins(uint8_t byte);
/** In fx_unicode_held. */
bool fx_unicode__is_held(uint32_t point);
