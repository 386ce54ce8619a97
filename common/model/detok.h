#pragma once
#include "common/model/tokenizer.h"

/** Tokens in, valid UTF-8 out, at once but never a part of a character. The text is that of the
 *  decoder in tokenizer.json, also where that treats the begin of a text apart ("▁Hello" begins an
 *  answer without a space). Bytes that can be no character become U+FFFD by the maximal-subpart
 *  rule (Unicode 3.9, WHATWG), as decoding the whole would; those of a byte-fallback vocabulary
 *  one U+FFFD each. Plain data: may be copied, needs no end. @thread one owner */
struct fx_detok {
    const fx_tokenizer *tokenizer; /* borrowed */
    uint8_t held[4];               /* the beginning of a character */
    uint8_t held_len;
    uint8_t strip_left; /* characters that may still be taken off the begin */
    bool has_begun;     /* a token was shown */
};

/** For a text of its own. */
void fx_detok_init(struct fx_detok *detok, const fx_tokenizer *tokenizer);
/** For what continues another text: its begin is not treated apart. */
void fx_detok_init_middle(struct fx_detok *detok, const fx_tokenizer *tokenizer);
/** A buffer with this much room takes any one push. */
size_t fx_detok_room(const fx_tokenizer *tokenizer);
/** Appends the text that token `id` completes, often none. Special tokens add nothing. */
void fx_detok_push(struct fx_detok *detok, uint32_t id, fx_buf *out);
/** The same, special tokens by their names. */
void fx_detok_push_all(struct fx_detok *detok, uint32_t id, fx_buf *out);
/** The same for raw bytes; appends at most 3 * (bytes.len + 3) bytes. */
void fx_detok_push_bytes(struct fx_detok *detok, fx_span bytes, fx_buf *out);
/** The end: a character that never got whole becomes U+FFFD (at most 9 bytes). */
void fx_detok_flush(struct fx_detok *detok, fx_buf *out);
