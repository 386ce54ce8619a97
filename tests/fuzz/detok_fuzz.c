/* Bytes in pieces and whole give the same text, which is valid UTF-8; valid UTF-8 is unchanged. */
#include <string.h>
#include "tests/fuzz/fuzz.h"
#include "common/model/detok.h"

enum { BYTES_MAX = 4096, OUT_MAX = 3 * (BYTES_MAX + 3) };

/* By the table of well-formed sequences, apart from the code under test. */
static size_t sequence(const uint8_t *at, size_t left) {
    uint32_t low[5] = {0, 0, 0x80, 0x800, 0x10000}, point;
    size_t len = at[0] < 0x80       ? 1
                 : at[0] >> 5 == 6  ? 2
                 : at[0] >> 4 == 14 ? 3
                 : at[0] >> 3 == 30 ? 4
                                    : 0;
    if (!len || len > left) return 0;
    point = len == 1 ? at[0] : at[0] & (0xffU >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if (at[i] >> 6 != 2) return 0;
        point = point << 6 | (at[i] & 0x3fU);
    }
    bool surrogate = point >= 0xd800 && point <= 0xdfff;
    return point < low[len] || point > 0x10ffff || surrogate ? 0 : len;
}

static bool is_utf8(const uint8_t *at, size_t len) {
    for (size_t i = 0, step; i < len; i += step)
        if (!(step = sequence(at + i, len - i))) return false;
    return true;
}

static fx_buf decode(const uint8_t *data, size_t size, size_t piece, uint8_t *out) {
    fx_buf text = {out, 0, OUT_MAX};
    struct fx_detok detok;
    fx_detok_init(&detok, NULL);
    for (size_t i = 0; i < size; i += piece) {
        size_t len = piece < size - i ? piece : size - i;
        fx_detok_push_bytes(&detok, (fx_span){data + i, len}, &text);
        FX_ASSERT(is_utf8(text.at, text.len));
    }
    fx_detok_flush(&detok, &text);
    FX_ASSERT(fx_buf_fits(&text) && is_utf8(text.at, text.len));
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t whole_out[OUT_MAX], part_out[OUT_MAX];
    if (!size || size > 256) return 0; /* checked after each piece: quadratic */
    fx_buf whole = decode(data, size, size, whole_out);
    for (size_t piece = 1; piece < 4; piece++) {
        fx_buf part = decode(data, size, piece, part_out);
        FX_ASSERT(part.len == whole.len && !memcmp(part.at, whole.at, whole.len));
    }
    if (is_utf8(data, size)) FX_ASSERT(whole.len == size && !memcmp(whole.at, data, size));
    return 0;
}
