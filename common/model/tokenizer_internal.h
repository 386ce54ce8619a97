#pragma once
#include "common/model/tokenizer.h"

enum {
    FX_TOKENIZER_AFFIX_MAX = 8,
};
#define FX_ID_NONE UINT32_MAX

struct fx_token {
    const uint8_t *at; /* in the tokenizer's pool; NULL: no such token */
    uint32_t len;
    bool special;
    bool is_word; /* in the model's vocabulary and spelt in the byte alphabet */
};

/** An added token as it stands in text. */
struct fx_added {
    fx_span text; /* in the pool */
    uint32_t id;
    bool special;
};
/** Sorted by bytes, for fx_tokenizer__find_added. */
struct fx_added_set {
    struct fx_added *at;
    size_t count;
};

/** Open addressing, a power of two of slots, at most half full. */
struct fx_merge {
    uint64_t pair; /* left id << 32 | right id */
    uint32_t rank, id;
};
struct fx_merges {
    struct fx_merge *slots; /* id FX_ID_NONE: free */
    size_t mask, count;
};
struct fx_words {
    uint32_t *ids; /* FX_ID_NONE: free */
    size_t mask;
};

/** Tokens put around a raw prompt. */
struct fx_affix {
    uint32_t ids[FX_TOKENIZER_AFFIX_MAX];
    size_t count;
};

enum { FX_ADDED_RAW, FX_ADDED_NORMALIZED, FX_ADDED_SETS };

struct fx_tokenizer {
    struct fx_token *tokens;
    uint32_t vocabulary;
    size_t bytes_max;
    uint8_t *pool;
    uint32_t byte_ids[256];
    struct fx_merges merges;
    struct fx_words words; /* by their bytes; only with ignore_merges */
    bool ignore_merges;
    /* Matched in this order, as `tokenizers` does: those that skip normalisation first. */
    struct fx_added_set added[FX_ADDED_SETS];
    struct fx_affix prefix, suffix;
    char *bos_text, *eos_text; /* never NULL */
    uint32_t bos_id, eos_id;   /* FX_ID_NONE: none */
    char *chat_template;       /* NULL: none */
};

/** A match of an added token in a text. */
struct fx_found {
    const struct fx_added *added;
    size_t at;
};

/** The first added token in text[from..): leftmost, then longest. */
bool fx_tokenizer__find_added(const struct fx_added_set *set, fx_span text, size_t from,
                              struct fx_found *out);

FX_MUST bool fx_merges__init(struct fx_merges *merges, size_t count_max, fx_error *err);
/** The last of equal pairs wins. */
void fx_merges__put(struct fx_merges *merges, struct fx_merge merge);
/** NULL when the two do not merge. */
const struct fx_merge *fx_merges__get(const struct fx_merges *merges, uint32_t left,
                                      uint32_t right);
/** Indexes the tokens that are words. */
FX_MUST bool fx_words__init(struct fx_tokenizer *tokenizer, fx_error *err);
bool fx_words__get(const struct fx_tokenizer *tokenizer, fx_span bytes, uint32_t *id);

/** One stretch without added tokens; counts ids past out->cap but does not write them. */
FX_MUST bool fx_tokenizer__bpe(const struct fx_tokenizer *tokenizer, fx_span text,
                               struct fx_ids *out, fx_error *err);

static inline void fx_ids__put(struct fx_ids *ids, uint32_t id) {
    if (ids->len < ids->cap) ids->at[ids->len] = id;
    ids->len++;
}
