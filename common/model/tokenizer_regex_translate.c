#include <stdio.h>
#include "common/model/tokenizer_regex.h"
#include "common/model/tokenizer_unicode.h"

enum { DEPTH_MAX = 32, NAME_MAX = 16, SHOWN_MAX = 80 };

struct translator {
    fx_span in;
    size_t at;
    fx_buf *out;
    unsigned depth;
    bool caseless[DEPTH_MAX]; /* by depth of groups */
    fx_error *err;
};

/* White_Space; PCRE2's own \s has U+180E too. */
#define SPACES                                                                                     \
    "\\x09-\\x0d\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"            \
    "\\x{205f}\\x{3000}"

static void put(struct translator *t, const char *text) {
    fx_buf_put(t->out, fx_span_str(text));
}

static bool refuse(struct translator *t, const char *what) {
    return fx_fail(t->err, FX_UNIMPLEMENTED, "regex '%.*s': %s at byte %zu is not supported",
                   (int)(t->in.len < SHOWN_MAX ? t->in.len : SHOWN_MAX), (const char *)t->in.at,
                   what, t->at);
}

static int peek(const struct translator *t, size_t ahead) {
    return t->at + ahead < t->in.len ? t->in.at[t->at + ahead] : -1;
}

static bool begins(const struct translator *t, const char *text) {
    size_t len = strlen(text);
    return t->in.len - t->at >= len && memcmp(t->in.at + t->at, text, len) == 0;
}

static void copy(struct translator *t, size_t count) {
    fx_buf_put(t->out, (fx_span){t->in.at + t->at, count});
    t->at += count;
}

void fx_regex__put_newer(fx_buf *out, const char *category) {
    for (size_t i = 0; i < fx_unicode_newer_count; i++) {
        char range[40];
        if (strncmp(fx_unicode_newer[i].category, category, strlen(category)) != 0) continue;
        (void)snprintf(range, sizeof range, "\\x{%x}-\\x{%x}", fx_unicode_newer[i].first,
                       fx_unicode_newer[i].last);
        fx_buf_put(out, fx_span_str(range));
    }
}

/* Members for the inside of a class. */
static void put_category(struct translator *t, const char *name) {
    put(t, strcmp(name, "Han") == 0 ? "\\p{sc:" : "\\p{");
    put(t, name);
    put(t, "}");
    fx_regex__put_newer(t->out, name);
}

/* Mn lost a member since Unicode 14, C is what is not assigned: those would differ. */
static bool is_category(const char *name) {
    static const char *const known[] = {"L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mc",
                                        "Me", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd",
                                        "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc",
                                        "Sk", "So", "Z",  "Zs", "Zl", "Zp", "Cc", "Han"};
    for (size_t i = 0; i < FX_COUNT(known); i++)
        if (strcmp(name, known[i]) == 0) return true;
    return false;
}

static bool is_cased(const char *name) {
    return strcmp(name, "Lu") == 0 || strcmp(name, "Ll") == 0 || strcmp(name, "Lt") == 0;
}

/* \p{Name} or \pN; `at` ends behind it. */
static FX_MUST bool read_category(struct translator *t, char name[NAME_MAX]) {
    size_t len = 0;
    t->at += 2;
    if (peek(t, 0) != '{') return refuse(t, "\\p without {}");
    t->at++;
    for (; peek(t, len) != '}'; len++) {
        if (peek(t, len) < 0 || len + 1 == NAME_MAX) return refuse(t, "this \\p");
        name[len] = (char)peek(t, len);
    }
    name[len] = 0;
    if (!is_category(name)) return refuse(t, "this \\p");
    if (t->caseless[t->depth] && is_cased(name)) return refuse(t, "a cased \\p in (?i)");
    t->at += len + 1;
    return true;
}

/* What both read alike in and out of classes: characters. */
static FX_MUST bool put_character(struct translator *t) {
    int c = peek(t, 1);
    if (c < 0) return refuse(t, "a last \\");
    if (c == 'x' && peek(t, 2) == '{') {
        while (peek(t, 0) >= 0 && peek(t, 0) != '}')
            copy(t, 1);
        if (peek(t, 0) < 0) return refuse(t, "\\x{ without }");
        copy(t, 1);
        return true;
    }
    if (c == 'v') {
        put(t, "\\x0b");
        t->at += 2;
        return true;
    }
    if (c == 'u' && t->in.len - t->at >= 6) {
        put(t, "\\x{");
        t->at += 2;
        copy(t, 4);
        put(t, "}");
        return true;
    }
    bool is_punctuation = c < 0x80 && c > ' ' && !(c >= '0' && c <= '9') &&
                          !((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && c != 0x7f;
    if (!is_punctuation && !strchr("rntfae ", c)) return refuse(t, "this escape");
    copy(t, 2);
    return true;
}

static FX_MUST bool class_escape(struct translator *t) {
    char name[NAME_MAX];
    switch (peek(t, 1)) {
    case 's': put(t, SPACES); break;
    case 'd': put_category(t, "Nd"); break;
    case 'p':
        if (!read_category(t, name)) return false;
        put_category(t, name);
        return true;
    default: return put_character(t);
    }
    t->at += 2;
    return true;
}

static FX_MUST bool class_translate(struct translator *t) {
    copy(t, peek(t, 1) == '^' ? 2 : 1);
    if (peek(t, 0) == ']') return refuse(t, "an empty class");
    while (peek(t, 0) != ']') {
        if (peek(t, 0) < 0) return refuse(t, "a class without end");
        if (peek(t, 0) == '[') return refuse(t, "a class in a class");
        if (begins(t, "&&")) return refuse(t, "&&");
        if (peek(t, 0) != '\\')
            copy(t, 1);
        else if (!class_escape(t))
            return false;
    }
    copy(t, 1);
    return true;
}

static FX_MUST bool plain_escape(struct translator *t) {
    char name[NAME_MAX];
    int c = peek(t, 1);
    if (c == 's' || c == 'S') {
        put(t, c == 's' ? "[" SPACES "]" : "[^" SPACES "]");
        t->at += 2;
        return true;
    }
    if (c == 'd') {
        put(t, "[");
        put_category(t, "Nd");
        put(t, "]");
        t->at += 2;
        return true;
    }
    if (c != 'p' && c != 'P') return put_character(t);
    if (!read_category(t, name)) return false;
    put(t, c == 'p' ? "[" : "[^");
    put_category(t, name);
    put(t, "]");
    return true;
}

static FX_MUST bool group_open(struct translator *t) {
    static const char *const known[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
    size_t len = peek(t, 1) == '?' ? 0 : 1;
    bool caseless = t->caseless[t->depth];
    for (size_t i = 0; !len && i < FX_COUNT(known); i++)
        if (begins(t, known[i])) len = strlen(known[i]);
    if (!len && begins(t, "(?i)")) { /* holds to the end of the group it stands in */
        t->caseless[t->depth] = true;
        copy(t, 4);
        return true;
    }
    if (!len && begins(t, "(?i:")) {
        len = 4;
        caseless = true;
    }
    if (!len) return refuse(t, "this group");
    if (t->depth + 1 == DEPTH_MAX) return refuse(t, "deeper nesting");
    t->caseless[++t->depth] = caseless;
    copy(t, len);
    return true;
}

static bool is_digit(int c) {
    return c >= '0' && c <= '9';
}

/* {n}, {n,} and {n,m}; Oniguruma reads a + or ? after it in its own way. */
static FX_MUST bool interval(struct translator *t) {
    size_t len = 1;
    while (is_digit(peek(t, len)))
        len++;
    if (len == 1) return refuse(t, "this {");
    if (peek(t, len) == ',') len++;
    while (is_digit(peek(t, len)))
        len++;
    if (peek(t, len) != '}') return refuse(t, "this {");
    if (peek(t, len + 1) == '+' || peek(t, len + 1) == '?') return refuse(t, "} with + or ?");
    copy(t, len + 1);
    return true;
}

static FX_MUST bool translate_one(struct translator *t) {
    switch (peek(t, 0)) {
    case '\\': return plain_escape(t);
    case '[': return class_translate(t);
    case '(': return group_open(t);
    case '{': return interval(t);
    case '^':
    case '$': return refuse(t, "^ or $");
    case ')':
        if (!t->depth) return refuse(t, "this )");
        t->depth--;
        break;
    default: break;
    }
    copy(t, 1);
    return true;
}

bool fx_regex__translate(fx_span pattern, fx_buf *out, fx_error *err) {
    struct translator t = {.in = pattern, .out = out, .err = err};
    while (t.at < pattern.len)
        if (!translate_one(&t)) return false;
    if (fx_buf_fits(out)) return true;
    return fx_fail(err, FX_UNIMPLEMENTED, "regex of %zu bytes: too long", pattern.len);
}
