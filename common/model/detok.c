#include "common/model/detok.h"

static const uint8_t replacement[3] = {0xef, 0xbf, 0xbd}; /* U+FFFD */

void fx_detok_init(struct fx_detok *detok, const fx_tokenizer *tokenizer) {
    *detok = (struct fx_detok){.tokenizer = tokenizer};
}

size_t fx_detok_room(const fx_tokenizer *tokenizer) {
    return sizeof replacement * (fx_tokenizer_bytes_max(tokenizer) + 3);
}

/* Bytes of the character that `first` begins, 0 if none begins so. */
static unsigned sequence_len(uint8_t first) {
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) return 2;
    if (first >= 0xe0 && first <= 0xef) return 3;
    if (first >= 0xf0 && first <= 0xf4) return 4;
    return 0;
}

/* The second byte excludes overlong forms, surrogates and what lies past U+10FFFF. */
static bool continues(const struct fx_detok *detok, uint8_t byte) {
    uint8_t low = 0x80, high = 0xbf;
    if (detok->held_len == 1) {
        switch (detok->held[0]) {
        case 0xe0: low = 0xa0; break;
        case 0xed: high = 0x9f; break;
        case 0xf0: low = 0x90; break;
        case 0xf4: high = 0x8f; break;
        default: break;
        }
    }
    return byte >= low && byte <= high;
}

void fx_detok_flush(struct fx_detok *detok, fx_buf *out) {
    if (detok->held_len) fx_buf_put(out, (fx_span){replacement, sizeof replacement});
    detok->held_len = 0;
}

static void push_byte(struct fx_detok *detok, uint8_t byte, fx_buf *out) {
    if (detok->held_len && !continues(detok, byte)) fx_detok_flush(detok, out);
    if (!detok->held_len && !sequence_len(byte)) {
        fx_buf_put(out, (fx_span){replacement, sizeof replacement});
        return;
    }
    detok->held[detok->held_len++] = byte;
    if (detok->held_len < sequence_len(detok->held[0])) return;
    fx_buf_put(out, (fx_span){detok->held, detok->held_len});
    detok->held_len = 0;
}

void fx_detok_push_bytes(struct fx_detok *detok, fx_span bytes, fx_buf *out) {
    for (size_t i = 0; i < bytes.len; i++)
        push_byte(detok, bytes.at[i], out);
}

void fx_detok_push(struct fx_detok *detok, uint32_t id, fx_buf *out) {
    if (fx_tokenizer_is_special(detok->tokenizer, id)) return;
    fx_detok_push_bytes(detok, fx_tokenizer_bytes(detok->tokenizer, id), out);
}
