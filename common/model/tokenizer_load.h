#pragma once
#include <jansson.h>
#include "common/model/tokenizer_internal.h"

/* GPT-2's byte alphabet: printable bytes stand for themselves, the other 68, in order, for U+0100
 * onwards. */
enum { FX_ALPHABET_END = 0x100 + 68 };
struct fx_alphabet {
    int16_t byte_of[FX_ALPHABET_END]; /* -1: not in the alphabet */
    uint16_t point_of[256];
};

/** What the decoder does to a token's text, in this order. */
struct fx_decoder {
    struct fx_decoder_replace {
        fx_span from, to;    /* borrowed from the JSON; `to` is not longer */
        bool drops_at_first; /* in the first token of a text `from` becomes nothing */
    } replaces[FX_TOKENIZER_STEPS_MAX];
    size_t replace_count;
    bool falls_back; /* then "<0x0A>" is a byte */
};

/** tokenizer.json while it is being read. */
struct fx_loader {
    struct fx_tokenizer *tokenizer;
    json_t *root, *model, *vocab;
    const json_t *added, *merges; /* arrays */
    struct fx_alphabet alphabet;
    struct fx_decoder decoder;
    uint8_t *pool_next;
};

void fx_alphabet__init(struct fx_alphabet *alphabet);
/** Writes the bytes that `text`, valid UTF-8, stands for (never more than text.len) and returns
 *  their number, -1 if it has a character outside the alphabet. */
int64_t fx_alphabet__decode(const struct fx_alphabet *alphabet, fx_span text, uint8_t *out);

/** Writes what the token `text` decodes to (never more than text.len bytes) and returns its length.
 */
size_t fx_decoder__decode(const struct fx_decoder *decoder, fx_span text, bool at_first,
                          uint8_t *out);

static inline fx_span fx_json__span(const json_t *string) {
    return (fx_span){(const uint8_t *)json_string_value(string), json_string_length(string)};
}
static inline bool fx_json__is_absent(const json_t *value) {
    return !value || json_is_null(value);
}
/** "NFC", or "null", or "(no type)". */
const char *fx_json__type(const json_t *part);
bool fx_json__is_type(const json_t *part, const char *type);
/** The parts of a Sequence by `key`, or the part itself; none if it is absent. */
struct fx_parts {
    const json_t *at[FX_TOKENIZER_STEPS_MAX];
    size_t count;
};
FX_MUST bool fx_json__parts(const json_t *part, const char *key, struct fx_parts *out,
                            fx_error *err);
/** {"String": "..."} or {"Regex": "..."}. */
FX_MUST bool fx_json__pattern(const json_t *pattern, fx_regex **out, fx_error *err);

/** The parts of loading, in their order. */
FX_MUST bool fx_loader__check(struct fx_loader *loader, fx_error *err);
FX_MUST bool fx_loader__normalizer(struct fx_loader *loader, fx_error *err);
FX_MUST bool fx_loader__pre_tokenizer(struct fx_loader *loader, fx_error *err);
FX_MUST bool fx_loader__decoder(struct fx_loader *loader, fx_error *err);
FX_MUST bool fx_loader__tokens(struct fx_loader *loader, fx_error *err);
FX_MUST bool fx_loader__symbols(struct fx_loader *loader, fx_error *err);
FX_MUST bool fx_loader__merges(struct fx_loader *loader, fx_error *err);
/** Needs the scratches, as it normalises. */
FX_MUST bool fx_loader__added(struct fx_loader *loader, fx_error *err);
FX_MUST bool fx_loader__affixes(struct fx_loader *loader, fx_error *err);
/** Copies into the pool. */
fx_span fx_loader__keep(struct fx_loader *loader, fx_span text);
/** Decodes and enters a token. */
FX_MUST bool fx_loader__put_token(struct fx_loader *loader, fx_span text, uint32_t id,
                                  fx_error *err);
/** tokenizer_config.json, after the rest. */
FX_MUST bool fx_loader__config(struct fx_tokenizer *tokenizer, json_t *config, fx_error *err);
