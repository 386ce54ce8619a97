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

/** tokenizer.json while it is being read. */
struct fx_loader {
    struct fx_tokenizer *tokenizer;
    json_t *root, *vocab;
    const json_t *added, *merges; /* arrays */
    struct fx_alphabet alphabet;
    uint8_t *pool_next;
};

void fx_alphabet__init(struct fx_alphabet *alphabet);
/** Writes the bytes that `text`, valid UTF-8, stands for (never more than text.len) and returns
 *  their number, -1 if it has a character outside the alphabet. */
int64_t fx_alphabet__decode(const struct fx_alphabet *alphabet, fx_span text, uint8_t *out);

static inline fx_span fx_json__span(const json_t *string) {
    return (fx_span){(const uint8_t *)json_string_value(string), json_string_length(string)};
}

/** The parts of loading, in their order. */
FX_MUST bool fx_loader__check(struct fx_loader *loader, fx_error *err);
FX_MUST bool fx_loader__tokens(struct fx_loader *loader, fx_error *err);
FX_MUST bool fx_loader__added(struct fx_loader *loader, fx_error *err);
FX_MUST bool fx_loader__merges(struct fx_loader *loader, fx_error *err);
FX_MUST bool fx_loader__affixes(struct fx_loader *loader, fx_error *err);
/** tokenizer_config.json, after the rest. */
FX_MUST bool fx_loader__config(struct fx_tokenizer *tokenizer, json_t *config, fx_error *err);
