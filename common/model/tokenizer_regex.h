#pragma once
#include "common/base/error.h"
#include "common/base/span.h"

/** The regular expressions of tokenizer.json, which are Oniguruma's, by PCRE2. What the two might
 *  read differently is refused by name. Immutable once made. @thread any, also at once */
typedef struct fx_regex fx_regex;
/** What a match needs besides; for one match at a time. */
typedef struct fx_regex_work fx_regex_work;

enum {
    FX_REGEX_BYTES_MAX = 16384,     /* of a pattern, as PCRE2 gets it */
    FX_REGEX_STEPS_MAX = 20000000,  /* backtracking of one match */
    FX_REGEX_STACK_BYTES = 1 << 20, /* of compiled code */
};

/** @own caller, fx_regex_free() @err INVALID_ARGUMENT, UNIMPLEMENTED, RESOURCE_EXHAUSTED */
FX_MUST bool fx_regex_new(fx_span pattern, fx_regex **out, fx_error *err);
/** Matches the text itself. */
FX_MUST bool fx_regex_new_literal(fx_span text, fx_regex **out, fx_error *err);
/** One character of a word, as Rust's \w has it. */
FX_MUST bool fx_regex_new_word_char(fx_regex **out, fx_error *err);
void fx_regex_free(fx_regex *regex);
FX_DEFINE_AUTO(fx_regex, fx_regex_free)
/** Known patterns have a hand-written scanner for ASCII; off, PCRE2 alone decides. For tests. */
void fx_regex_use_scanner(fx_regex *regex, bool on);
bool fx_regex_has_scanner(const fx_regex *regex);

FX_MUST bool fx_regex_work_new(fx_regex_work **out, fx_error *err);
void fx_regex_work_free(fx_regex_work *work);
FX_DEFINE_AUTO(fx_regex_work, fx_regex_work_free)

struct fx_match {
    size_t from, to; /* from == to: no match */
};
/** The first match at or after `at` in valid UTF-8. Never an empty one.
 *  @err RESOURCE_EXHAUSTED a limit of the above */
FX_MUST bool fx_regex_find(const fx_regex *regex, fx_regex_work *work, fx_span text, size_t at,
                           struct fx_match *out, fx_error *err);

/** Oniguruma's spelling -> PCRE2's, into `out`. */
FX_MUST bool fx_regex__translate(fx_span pattern, fx_buf *out, fx_error *err);

/** The ranges of what PCRE2 does not know of a category, for the inside of a class. */
void fx_regex__put_newer(fx_buf *out, const char *category);

/** Length of the match at `at`, 0 where a byte above 0x7f could take part: then PCRE2 decides. */
typedef size_t fx_scanner(fx_span text, size_t at);
/** NULL for a pattern we don't know. */
fx_scanner *fx_regex__scanner(fx_span pattern);
