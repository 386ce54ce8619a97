#pragma once
#include <stdatomic.h>
#include "common/model/tokenizer.h"
#include "common/model/tokenizer_regex.h"

enum {
    FX_TOKENIZER_AFFIX_MAX = 8,
    FX_TOKENIZER_STEPS_MAX = 8, /* parts of a Sequence */
    FX_TOKENIZER_SCRATCHES = 8, /* encodings at once that allocate nothing; touched when used */
    FX_WORD_SYMBOLS_MAX = 4096, /* a longer word takes memory of its own */
    FX_WORD_SHORT_MAX = 24,     /* symbols; a longer word is merged by a heap */
    FX_CACHE_SLOTS = 16384,     /* a power of two; 64 bytes each */
    FX_CACHE_KEY_BYTES = 32,
    FX_CACHE_IDS_MAX = 6,
    FX_TEXT_BYTES_FIRST = 65536, /* a scratch's texts: from here to there they stay */
    FX_TEXT_BYTES_KEPT = 1 << 20,
};
#define FX_ID_NONE UINT32_MAX

struct fx_token {
    const uint8_t *at; /* in the tokenizer's pool; NULL: no such token */
    uint32_t len;
    bool special;
};

/** An added token as it stands in text. */
struct fx_added {
    fx_span text; /* in the pool; normalised where the set is */
    uint32_t id;
    bool special, single_word, strips_left, strips_right;
};
/** Sorted by bytes, for fx_tokenizer__find_added. */
struct fx_added_set {
    struct fx_added *at;
    size_t count;
    bool begins[256]; /* first bytes */
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
/** Ids by text. */
struct fx_word {
    const uint8_t *at;
    uint32_t len, id; /* id FX_ID_NONE: free */
};
struct fx_words {
    struct fx_word *slots;
    size_t mask;
};
/** A map or set of numbers; 0 is a free slot. */
struct fx_numbers {
    struct fx_number {
        uint64_t key;
        uint32_t value;
    } * slots;
    size_t mask;
};

/** Tokens put around a raw prompt. */
struct fx_affix {
    uint32_t ids[FX_TOKENIZER_AFFIX_MAX];
    size_t count;
};

/** One step of normalisation. */
struct fx_normal {
    enum { FX_NORMAL_NFC, FX_NORMAL_PREPEND, FX_NORMAL_REPLACE } kind;
    fx_regex *regex;  /* of FX_NORMAL_REPLACE, but for a single byte */
    int single;       /* that byte, -1: none */
    uint8_t *content; /* what is put */
    size_t content_len;
};

enum fx_split {
    FX_SPLIT_ISOLATED,
    FX_SPLIT_REMOVED,
    FX_SPLIT_PREVIOUS,
    FX_SPLIT_NEXT,
    FX_SPLIT_CONTIGUOUS
};

/** One step of pre-tokenisation: spaces are marked, the mark prefixed, the text cut. */
struct fx_stage {
    fx_regex *regex; /* NULL: not cut */
    enum fx_split split;
    bool inverted; /* cuts at what does not match */
    enum { FX_PREFIX_NONE, FX_PREFIX_FIRST, FX_PREFIX_ALWAYS } prefix;
    bool marks_spaces;
    uint8_t mark[4];
    uint8_t mark_len;
};

/** How a token decodes beyond its bytes; see detok.h. */
struct fx_decoding {
    bool bytes_alone;    /* a byte that is no character is a U+FFFD of its own */
    uint8_t strip;       /* this character is taken off the begin ... */
    uint8_t strip_count; /* ... so many times at most */
    fx_span *first;      /* per token, its bytes at the begin; NULL: no difference */
};

enum { FX_ADDED_RAW, FX_ADDED_NORMALIZED, FX_ADDED_SETS };

/** Text that a step has made. */
struct fx_made {
    uint8_t *at;
    size_t len, cap;
};

struct fx_cached {
    uint8_t key[FX_CACHE_KEY_BYTES];
    uint32_t len; /* 0: free */
    uint32_t count;
    uint32_t ids[FX_CACHE_IDS_MAX];
};
_Static_assert(sizeof(struct fx_cached) == 64, "a cache line");

struct fx_symbol {
    uint32_t id; /* FX_ID_NONE: merged into its left neighbour */
    uint32_t prev, next;
};

/** What one encoding writes to. The cache makes no difference but in time. */
struct fx_scratch {
    atomic_flag busy;
    fx_regex_work *match;
    struct fx_cached *cache;
    struct fx_symbol *symbols; /* FX_WORD_SYMBOLS_MAX, and twice as many candidates */
    uint64_t *heap;
    struct fx_made repaired, normal[2], marked[FX_TOKENIZER_STEPS_MAX];
};

struct fx_tokenizer {
    struct fx_token *tokens;
    uint32_t vocabulary;
    size_t bytes_max;
    uint8_t *pool;
    bool is_byte_level; /* symbols are bytes, else characters */
    uint32_t
        byte_ids[256]; /* of bytes as symbols, or of byte fallback; FX_ID_NONE: no such token */
    struct fx_numbers chars; /* character + 1 -> id, where those are the symbols */
    uint32_t ascii_ids[128]; /* the same, or FX_ID_NONE */
    uint32_t unknown_id;     /* FX_ID_NONE: what is unknown is left out */
    bool fuses_unknown;
    struct fx_merges merges;
    struct fx_words words; /* the vocabulary by what a word has to be; only with ignore_merges */
    bool ignore_merges;
    bool has_seams;           /* text may be cut between two characters that are in no token */
    struct fx_numbers joined; /* pairs of characters that are; else FX_ID_NONE */
    uint8_t joined_ascii[128][16];
    /* Matched in this order, as `tokenizers` does: those that skip normalisation first. */
    struct fx_added_set added[FX_ADDED_SETS];
    struct fx_words added_names;
    fx_regex *word_char; /* \w; NULL: no added token asks for it */
    struct fx_normal normals[FX_TOKENIZER_STEPS_MAX];
    size_t normal_count;
    struct fx_stage stages[FX_TOKENIZER_STEPS_MAX];
    size_t stage_count;
    struct fx_decoding decoding;
    struct fx_affix prefix, suffix;
    char *bos_text, *eos_text;    /* never NULL */
    uint32_t bos_id, eos_id;      /* FX_ID_NONE: none */
    char *chat_template;          /* NULL: none */
    struct fx_scratch *scratches; /* FX_TOKENIZER_SCRATCHES */
};

/** A text on its way to ids. */
struct fx_encoding {
    const struct fx_tokenizer *tokenizer;
    struct fx_scratch *scratch;
    struct fx_ids *out;
    bool is_template;
    bool at_first; /* nothing came before */
    bool at_fresh; /* nothing came since the last added token */
    fx_error *err;
};

/* tokenizer_added.c */
struct fx_found {
    const struct fx_added *added;
    size_t from, to;
};
/** The first added token that begins in text[at..): leftmost, then longest. */
bool fx_tokenizer__find_added(const struct fx_added_set *set, fx_span text, size_t at,
                              struct fx_found *out);
typedef bool fx_encode_part(struct fx_encoding *encoding, fx_span text);
/** Takes the added tokens of `set` out of `text`; `rest` gets what lies between. */
FX_MUST bool fx_encoding__around(struct fx_encoding *encoding, const struct fx_added_set *set,
                                 fx_span text, fx_encode_part *rest);

/* tokenizer_normalize.c, tokenizer_nfc.c */
/** `out` is `text` itself or lies in the scratch. `is_begin`: what is prepended is. */
FX_MUST bool fx_normalize(const struct fx_tokenizer *tokenizer, struct fx_scratch *scratch,
                          fx_span text, bool is_begin, fx_span *out, fx_error *err);
FX_MUST bool fx_nfc__append(fx_span text, struct fx_made *out, fx_error *err);
/** NFC says nothing about it. */
bool fx_nfc__is_plain(fx_span text);

/* tokenizer_pretokenize.c */
/** Cuts `text` into words and appends their ids. */
FX_MUST bool fx_encoding__words(struct fx_encoding *encoding, fx_span text);

/* tokenizer_word.c */
FX_MUST bool fx_encoding__piece(struct fx_encoding *encoding, fx_span piece);

/* tokenizer_bpe.c */
/** One word; counts ids past out->cap but does not write them. */
FX_MUST bool fx_encoding__bpe(struct fx_encoding *encoding, fx_span word);

/* tokenizer_scratch.c */
FX_MUST bool fx_scratches__init(struct fx_tokenizer *tokenizer, fx_error *err);
void fx_scratches__done(struct fx_tokenizer *tokenizer);
/** A free one of the tokenizer, else a new one for this call. */
FX_MUST bool fx_scratch__take(const struct fx_tokenizer *tokenizer, struct fx_scratch **out,
                              fx_error *err);
void fx_scratch__give(const struct fx_tokenizer *tokenizer, struct fx_scratch *scratch);
FX_MUST bool fx_made__room(struct fx_made *made, size_t more, fx_error *err);
FX_MUST bool fx_made__put(struct fx_made *made, fx_span bytes, fx_error *err);

/* tokenizer_map.c */
FX_MUST bool fx_merges__init(struct fx_merges *merges, size_t count_max, fx_error *err);
/** The last of equal pairs wins. */
void fx_merges__put(struct fx_merges *merges, struct fx_merge merge);
FX_MUST bool fx_words__init(struct fx_words *words, size_t count_max, fx_error *err);
void fx_words__put(struct fx_words *words, fx_span bytes, uint32_t id);
bool fx_words__get(const struct fx_words *words, fx_span bytes, uint32_t *id);
FX_MUST bool fx_numbers__init(struct fx_numbers *numbers, size_t count_max, fx_error *err);
void fx_numbers__put(struct fx_numbers *numbers, uint64_t key, uint32_t value);
bool fx_numbers__get(const struct fx_numbers *numbers, uint64_t key, uint32_t *value);

/* splitmix64's finaliser */
static inline uint64_t fx_mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/** NULL when the two do not merge. */
static inline const struct fx_merge *fx_merges__get(const struct fx_merges *merges, uint32_t left,
                                                    uint32_t right) {
    uint64_t pair = (uint64_t)left << 32 | right;
    size_t i = fx_mix(pair) & merges->mask;
    while (merges->slots[i].id != FX_ID_NONE) {
        if (merges->slots[i].pair == pair) return &merges->slots[i];
        i = (i + 1) & merges->mask;
    }
    return NULL;
}

static inline void fx_ids__put(struct fx_ids *ids, uint32_t id) {
    if (ids->len < ids->cap) ids->at[ids->len] = id;
    ids->len++;
}

static inline fx_span fx_span__cut(fx_span text, size_t from, size_t to) {
    return (fx_span){text.at + from, to - from};
}

static inline fx_span fx_made__span(const struct fx_made *made) {
    return (fx_span){made->at, made->len};
}
