#include "common/model/tokenizer_regex.h"
#include "common/base/auto.h"

/* The patterns of widely used models, by hand for ASCII; test_tokenizer_scan holds them to PCRE2.
 * Where a byte above 0x7f could belong to the match, they leave it to PCRE2. */

enum {
    UPPER = 1,
    LOWER = 2,
    DIGIT = 4,
    SPACE = 8,    /* white space but NEWLINE */
    NEWLINE = 16, /* \r \n */
    OTHER = 32,
    HIGH = 64, /* not ASCII */
    LETTER = UPPER | LOWER,
    BLANK = SPACE | NEWLINE,
};

#define BETWEEN(c, low, high) ((c) >= (low) && (c) <= (high))
#define CLASS(c)                                                                                   \
    ((c) >= 0x80                       ? HIGH                                                      \
     : BETWEEN(c, 'A', 'Z')            ? UPPER                                                     \
     : BETWEEN(c, 'a', 'z')            ? LOWER                                                     \
     : BETWEEN(c, '0', '9')            ? DIGIT                                                     \
     : (c) == 10 || (c) == 13          ? NEWLINE                                                   \
     : (c) == ' ' || BETWEEN(c, 9, 12) ? SPACE                                                     \
                                       : OTHER)
#define FOUR(c) CLASS(c), CLASS((c) + 1), CLASS((c) + 2), CLASS((c) + 3)
#define ROW(c) FOUR(c), FOUR((c) + 4), FOUR((c) + 8), FOUR((c) + 12)
static const uint8_t classes[256] = {
    ROW(0x00), ROW(0x10), ROW(0x20), ROW(0x30), ROW(0x40), ROW(0x50), ROW(0x60), ROW(0x70),
    ROW(0x80), ROW(0x90), ROW(0xa0), ROW(0xb0), ROW(0xc0), ROW(0xd0), ROW(0xe0), ROW(0xf0),
};

/* Class at `at`; 0 at the end. */
static inline unsigned class_at(fx_span text, size_t at) {
    return at < text.len ? classes[text.at[at]] : 0;
}

static inline size_t run(fx_span text, size_t at, unsigned wanted) {
    while (at < text.len && (classes[text.at[at]] & wanted))
        at++;
    return at;
}

static inline bool is_high(fx_span text, size_t at) {
    return class_at(text, at) == HIGH;
}

/* Length of 's 't 're 've 'm 'll 'd at `at`, which is a '. */
static size_t contraction(fx_span text, size_t at, bool caseless) {
    size_t left = text.len - at;
    unsigned fold = caseless ? 0x20 : 0;
    unsigned one = left > 1 ? text.at[at + 1] | fold : 0,
             two = left > 2 ? text.at[at + 2] | fold : 0;
    if (one == 's' || one == 't' || one == 'm' || one == 'd') return 2;
    if ((one == 'r' || one == 'v') && two == 'e') return 3;
    return one == 'l' && two == 'l' ? 3 : 0;
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ ; at a blank */
static size_t blanks(fx_span text, size_t at, bool newlines) {
    size_t to = run(text, at, BLANK), last = to;
    if (is_high(text, to)) return 0;
    while (newlines && last > at && class_at(text, last - 1) != NEWLINE)
        last--;
    if (newlines && last > at) return last - at;
    if (to == text.len || to - at == 1) return to - at;
    return to - at - 1;
}

/* ` ?[^\s\p{L}\p{N}]+` and then `tail`; 0: no such match or not ours to say. `undecided` tells. */
static size_t others(fx_span text, size_t at, unsigned tail, bool slashes, bool *undecided) {
    size_t from = at + (text.at[at] == ' '), to = run(text, from, OTHER);
    *undecided = is_high(text, to);
    if (*undecided || to == from) return 0;
    while (class_at(text, to) & tail || (slashes && to < text.len && text.at[to] == '/'))
        to++;
    return to - at;
}

struct rules {
    unsigned digits; /* most in one match; 0: any number, and with a space before */
    bool caseless;   /* contractions */
    bool prefix;     /* [^\r\n\p{L}\p{N}]? before letters, else ` ?` */
    unsigned tail;   /* after others */
    bool newlines;   /* \s*[\r\n]+ */
};

static inline size_t digits(fx_span text, size_t at, unsigned most) {
    size_t to = at;
    while (to - at < most && class_at(text, to) == DIGIT)
        to++;
    return to - at < most && is_high(text, to) ? 0 : to - at;
}

/* Letters that follow `from`, which is `at` or one behind it. */
static inline size_t letters(fx_span text, size_t at, size_t from, unsigned wanted) {
    size_t to = run(text, from, wanted);
    return is_high(text, to) ? 0 : to - at;
}

/* The GPT-2 family: contraction | letters | digits | others | blanks. */
static inline size_t scan(fx_span text, size_t at, struct rules rules) {
    unsigned class = class_at(text, at), next = class_at(text, at + 1);
    bool undecided;
    if (class == HIGH) return 0;
    if (class & LETTER) return letters(text, at, at, LETTER);
    if (text.at[at] == '\'') {
        if (next == HIGH) return 0;
        size_t len = contraction(text, at, rules.caseless);
        if (len) return len;
    }
    if (rules.prefix ? class & (SPACE | OTHER) : text.at[at] == ' ') {
        if (next == HIGH) return 0;
        if (next & LETTER) return letters(text, at, at + 1, LETTER);
    }
    if (rules.digits && class == DIGIT) return digits(text, at, rules.digits);
    if (!rules.digits && (class == DIGIT || (text.at[at] == ' ' && next == DIGIT)))
        return letters(text, at, at + (class != DIGIT), DIGIT);
    size_t len = others(text, at, rules.tail, false, &undecided);
    if (len || undecided) return len;
    return class & BLANK ? blanks(text, at, rules.newlines) : 0;
}

static size_t scan_gpt2(fx_span text, size_t at) {
    return scan(text, at, (struct rules){0, false, false, 0, false});
}

static size_t scan_cl100k(fx_span text, size_t at) {
    return scan(text, at, (struct rules){3, true, true, NEWLINE, true});
}

static size_t scan_qwen2(fx_span text, size_t at) {
    return scan(text, at, (struct rules){1, true, true, NEWLINE, true});
}

/* Upper-case letters and then lower-case ones, of either at least one, then a contraction. */
static size_t cased_word(fx_span text, size_t at, size_t from) {
    size_t to = run(text, run(text, from, UPPER), LOWER);
    if (is_high(text, to)) return 0;
    if (to < text.len && text.at[to] == '\'') {
        if (is_high(text, to + 1)) return 0;
        to += contraction(text, to, true);
    }
    return to - at;
}

static size_t scan_o200k(fx_span text, size_t at) {
    unsigned class = class_at(text, at), next = class_at(text, at + 1);
    bool undecided;
    if (class & LETTER) return cased_word(text, at, at);
    if (class == HIGH || (class & (SPACE | OTHER) && next == HIGH)) return 0;
    if (class & (SPACE | OTHER) && next & LETTER) return cased_word(text, at, at + 1);
    if (class == DIGIT) return digits(text, at, 3);
    size_t len = others(text, at, NEWLINE, true, &undecided);
    if (len || undecided) return len;
    return class & BLANK ? blanks(text, at, true) : 0;
}

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BLANKS "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct {
    const char *pattern;
    fx_scanner *scanner;
} known[] = {
    {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     scan_gpt2  },
    {CONTRACTIONS
     "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" BLANKS,
     scan_cl100k},
    {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" BLANKS,
     scan_qwen2 },
    {"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
     "+" CONTRACTIONS "?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+"
     "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*" CONTRACTIONS "?|\\p{N}{1,3}"
     "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" BLANKS,
     scan_o200k },
};

fx_scanner *fx_regex__scanner(fx_span pattern) {
    for (size_t i = 0; i < FX_COUNT(known); i++)
        if (fx_span_eq_str(pattern, known[i].pattern)) return known[i].scanner;
    return NULL;
}
