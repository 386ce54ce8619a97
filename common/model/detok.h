#pragma once
#include "common/model/tokenizer.h"

/** Tokens in, valid UTF-8 out, at once but never a part of a character. Bytes that can be none
 *  become U+FFFD by the maximal-subpart rule (Unicode 3.9, WHATWG), as decoding the whole would.
 *  Plain data: may be copied, needs no end. @thread one owner */
struct fx_detok {
    const fx_tokenizer *tokenizer; /* borrowed */
    uint8_t held[4];               /* the beginning of a character */
    uint8_t held_len;
};

void fx_detok_init(struct fx_detok *detok, const fx_tokenizer *tokenizer);
/** A buffer with this much room takes any one push. */
size_t fx_detok_room(const fx_tokenizer *tokenizer);
/** Appends the text that token `id` completes, often none. Special tokens add nothing. */
void fx_detok_push(struct fx_detok *detok, uint32_t id, fx_buf *out);
/** The same for raw bytes; appends at most 3 * (bytes.len + 3) bytes. */
void fx_detok_push_bytes(struct fx_detok *detok, fx_span bytes, fx_buf *out);
/** The end: a character that never got whole becomes U+FFFD (3 bytes). */
void fx_detok_flush(struct fx_detok *detok, fx_buf *out);
