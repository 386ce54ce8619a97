#include "common/model/detok.h"
#include "common/model/tokenizer_internal.h"
#include "common/model/tokenizer_unicode.h"

static const uint8_t replacement[3] = {0xef, 0xbf, 0xbd}; /* U+FFFD */

void fx_detok_init(struct fx_detok *detok, const fx_tokenizer *tokenizer) {
    *detok = (struct fx_detok){.tokenizer = tokenizer};
    if (tokenizer) detok->strip_left = tokenizer->decoding.strip_count;
}

void fx_detok_init_middle(struct fx_detok *detok, const fx_tokenizer *tokenizer) {
    *detok = (struct fx_detok){.tokenizer = tokenizer, .has_begun = true};
}

size_t fx_detok_room(const fx_tokenizer *tokenizer) {
    return sizeof replacement * (fx_tokenizer_bytes_max(tokenizer) + 3);
}

/* One U+FFFD for what is held, or one for each byte of it. */
void fx_detok_flush(struct fx_detok *detok, fx_buf *out) {
    bool alone = detok->tokenizer && detok->tokenizer->decoding.bytes_alone;
    size_t count = alone ? detok->held_len : detok->held_len != 0;
    for (size_t i = 0; i < count; i++)
        fx_buf_put(out, (fx_span){replacement, sizeof replacement});
    detok->held_len = 0;
}

static void push_byte(struct fx_detok *detok, uint8_t byte, fx_buf *out) {
    fx_span held = {detok->held, detok->held_len + 1U};
    detok->held[detok->held_len] = byte;
    if (detok->held_len && fx_utf8__subpart(held) < held.len) {
        fx_detok_flush(detok, out);
        detok->held[0] = byte;
    }
    detok->held_len++;
    held.len = detok->held_len;
    if (fx_utf8__sequence(held) == held.len) {
        fx_buf_put(out, held);
        detok->held_len = 0;
    } else if (held.len == 1 && !fx_utf8__begins(byte)) {
        fx_detok_flush(detok, out);
    }
}

void fx_detok_push_bytes(struct fx_detok *detok, fx_span bytes, fx_buf *out) {
    for (size_t i = 0; i < bytes.len; i++)
        push_byte(detok, bytes.at[i], out);
}

static fx_span strip(struct fx_detok *detok, fx_span bytes) {
    while (detok->strip_left && bytes.len) {
        if (bytes.at[0] != detok->tokenizer->decoding.strip) {
            detok->strip_left = 0;
            break;
        }
        detok->strip_left--;
        bytes = fx_span__cut(bytes, 1, bytes.len);
    }
    return bytes;
}

void fx_detok_push(struct fx_detok *detok, uint32_t id, fx_buf *out) {
    if (!fx_tokenizer_is_special(detok->tokenizer, id)) fx_detok_push_all(detok, id, out);
}

void fx_detok_push_all(struct fx_detok *detok, uint32_t id, fx_buf *out) {
    const fx_tokenizer *tokenizer = detok->tokenizer;
    fx_span bytes = fx_tokenizer_bytes(tokenizer, id);
    if (!bytes.at) return;
    if (!detok->has_begun && tokenizer->decoding.first) bytes = tokenizer->decoding.first[id];
    detok->has_begun = true;
    fx_detok_push_bytes(detok, strip(detok, bytes), out);
}
