#pragma once
#include "common/base/error.h"
#include "common/model/text.h"

/** BPE from Hugging Face's tokenizer.json, byte-level or of characters (SentencePiece's kind, with
 *  byte fallback), with the ids of the `tokenizers` library. Text that is no UTF-8 is read as
 *  U+FFFD by the maximal-subpart rule, as that library does. Immutable but for scratch memory.
 *  @thread any, also at once: eight at a time allocate nothing for words
 *  of up to 4096 characters in texts of up to some 20 kB, others do */
typedef struct fx_tokenizer fx_tokenizer;

enum {
    FX_TOKENIZER_FILE_BYTES_MAX = 64 * 1024 * 1024,
    FX_TOKENIZER_VOCABULARY_MAX = 1 << 20,
    FX_TOKENIZER_TEXT_BYTES_MAX = 4 * 1024 * 1024, /* of one fx_tokenizer_encode */
};

/** The two files' bytes, borrowed for the call; an empty config is fine. */
struct fx_tokenizer_files {
    fx_span tokenizer_json, tokenizer_config_json;
};

/** Whatever we can't reproduce exactly (a model but BPE, dropout, a step or a pattern we don't
 * know) is refused by name. @own caller, fx_tokenizer_free()
 *  @err INVALID_ARGUMENT (not such a file), UNIMPLEMENTED (refused), RESOURCE_EXHAUSTED */
FX_MUST bool fx_tokenizer_new(const struct fx_tokenizer_files *files, fx_tokenizer **out,
                              fx_error *err);
void fx_tokenizer_free(fx_tokenizer *tokenizer);
FX_DEFINE_AUTO(fx_tokenizer, fx_tokenizer_free)

/** The largest id + 1. */
uint32_t fx_tokenizer_vocabulary(const fx_tokenizer *tokenizer);
/** What the token decodes to (for a special token its name); empty for an id that is none. The
 *  bytes may be part of a character: see detok.h. */
fx_span fx_tokenizer_bytes(const fx_tokenizer *tokenizer, uint32_t id);
/** Length of the longest fx_tokenizer_bytes(). */
size_t fx_tokenizer_bytes_max(const fx_tokenizer *tokenizer);
/** Marked `special`: never shown, and found in template text only. */
bool fx_tokenizer_is_special(const fx_tokenizer *tokenizer, uint32_t id);
/** The id of an added token by its exact text, such as "<|eos|>". */
bool fx_tokenizer_added_id(const fx_tokenizer *tokenizer, fx_span text, uint32_t *id);

/** From tokenizer_config.json; "" where it names none. Borrowed from the tokenizer. */
const char *fx_tokenizer_bos_text(const fx_tokenizer *tokenizer);
const char *fx_tokenizer_eos_text(const fx_tokenizer *tokenizer);
/** False where there is none. */
bool fx_tokenizer_bos_id(const fx_tokenizer *tokenizer, uint32_t *id);
bool fx_tokenizer_eos_id(const fx_tokenizer *tokenizer, uint32_t *id);
/** The chat template's source (a list of named ones: the one named "default"); empty if none. */
fx_span fx_tokenizer_chat_template(const fx_tokenizer *tokenizer);

enum fx_encode {
    FX_ENCODE_PLAIN,  /* just the text: what a chat template rendered */
    FX_ENCODE_PROMPT, /* a raw prompt: with the post-processor's tokens around; BOS never twice */
};

/** Room for the ids of any text of so many bytes: normalising may make a byte three, and prefixes
 *  and a post-processor add some. */
size_t fx_tokenizer_ids_max(size_t bytes);

/** Appends the ids of `text` to `out`. Each segment is tokenised on its own, but what a tokenizer
 *  puts before a text it puts only where the whole begins, or after an added token. O(n log n) in
 *  the bytes. @err OUT_OF_RANGE (does not fit `out`, which then keeps its length, or text too
 * long), RESOURCE_EXHAUSTED (memory, or a pattern that takes too much work on this text) */
FX_MUST bool fx_tokenizer_encode(const fx_tokenizer *tokenizer, struct fx_segments text,
                                 enum fx_encode mode, struct fx_ids *out, fx_error *err);
