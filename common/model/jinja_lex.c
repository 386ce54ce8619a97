#include "common/model/jinja.h"
#include "common/base/heap.h"

/* Jinja's lexer with trim_blocks and lstrip_blocks. */

struct lexer {
    fx_span source; /* LF only, one LF at the very end dropped */
    size_t at;
    uint32_t line;
    bool line_starting; /* what was lexed last ended a line */
    uint8_t *pool;
    struct fx_jinja_tokens *tokens;
    fx_error *err;
    size_t open; /* brackets of the current tag; inside of them it can't end */
    char closers[FX_TEMPLATE_DEPTH_MAX * 2];
};

#define lex_fail(lexer, line, ...)                                                                 \
    (fx_error_set((lexer)->err, FX_INVALID_ARGUMENT, __VA_ARGS__),                                 \
     fx_wrap((lexer)->err, "line %u", (line)))

static FX_MUST bool push(struct lexer *lexer, struct fx_jinja_token token) {
    struct fx_jinja_tokens *tokens = lexer->tokens;
    if (tokens->count == tokens->cap) {
        size_t cap = tokens->cap ? 2 * tokens->cap : 128;
        void *grown = fx_realloc(tokens->at, cap, sizeof *tokens->at);
        if (!grown) return fx_fail(lexer->err, FX_RESOURCE_EXHAUSTED, "memory for a template");
        tokens->at = grown;
        tokens->cap = cap;
    }
    token.line = lexer->line;
    tokens->at[tokens->count++] = token;
    return true;
}

static FX_MUST bool push_type(struct lexer *lexer, enum fx_jinja_token_type type) {
    return push(lexer, (struct fx_jinja_token){.type = type});
}

static void advance(struct lexer *lexer, size_t to) {
    for (; lexer->at < to; lexer->at++)
        lexer->line += lexer->source.at[lexer->at] == '\n';
}

static int peek(const struct lexer *lexer, size_t ahead) {
    size_t at = lexer->at + ahead;
    return at < lexer->source.len ? lexer->source.at[at] : -1;
}

static bool starts(const struct lexer *lexer, size_t at, const char *with) {
    size_t len = strlen(with);
    return lexer->source.len - at >= len && memcmp(lexer->source.at + at, with, len) == 0;
}

static fx_span pool_copy(struct lexer *lexer, fx_span text) {
    fx_span copy = {lexer->pool, text.len};
    if (text.len) memcpy(lexer->pool, text.at, text.len);
    lexer->pool += text.len;
    return copy;
}

/* Where the next "{{", "{%" or "{#" stands, or the end. */
static size_t find_tag(const struct lexer *lexer) {
    for (size_t at = lexer->at; at + 1 < lexer->source.len; at++) {
        uint8_t second = lexer->source.at[at + 1];
        if (lexer->source.at[at] == '{' && (second == '{' || second == '%' || second == '#'))
            return at;
    }
    return lexer->source.len;
}

/* The text before a tag, less what "-" or lstrip_blocks takes from its end. */
static size_t data_end(const struct lexer *lexer, size_t tag, int kind, int sign) {
    fx_span before = {lexer->source.at, tag};
    size_t end = fx_jinja__trim_end(before, lexer->at);
    if (sign == '-') return end;
    if (sign == '+' || kind == '{') return tag;
    size_t line = tag;
    while (line > lexer->at && before.at[line - 1] != '\n')
        line--;
    bool at_line_start = line > lexer->at || lexer->line_starting;
    return at_line_start && end <= line ? line : tag;
}

static FX_MUST bool lex_data(struct lexer *lexer, size_t end) {
    if (end == lexer->at) return true;
    fx_span text = {lexer->source.at + lexer->at, end - lexer->at};
    return push(lexer, (struct fx_jinja_token){.type = FX_JT_DATA, .text = pool_copy(lexer, text)});
}

/* After a "%}" or "#}" at `at`: its sign stands before it. */
static size_t skip_after(const struct lexer *lexer, size_t at, int sign) {
    if (sign == '-') return fx_jinja__skip_space(lexer->source, at);
    bool newline = sign != '+' && at < lexer->source.len && lexer->source.at[at] == '\n';
    return at + newline;
}

static void leave_tag(struct lexer *lexer, size_t to) {
    advance(lexer, to);
    lexer->line_starting = lexer->source.at[to - 1] == '\n';
}

static FX_MUST bool skip_comment(struct lexer *lexer) {
    for (size_t at = lexer->at; at + 1 < lexer->source.len; at++) {
        if (!starts(lexer, at, "#}")) continue;
        int sign = at > lexer->at ? lexer->source.at[at - 1] : 0;
        leave_tag(lexer, skip_after(lexer, at + 2, sign));
        return true;
    }
    return lex_fail(lexer, lexer->line, "'{#' is never closed");
}

/* The end of the current tag at lexer->at: its length with the sign, 0 if none is here. */
static size_t tag_end(const struct lexer *lexer, bool statement, int *sign) {
    const char *end = statement ? "%}" : "}}";
    *sign = peek(lexer, 0);
    if (lexer->open) return 0;
    if (starts(lexer, lexer->at, end)) {
        *sign = 0;
        return 2;
    }
    bool signed_end = *sign == '-' || (statement && *sign == '+');
    return signed_end && starts(lexer, lexer->at + 1, end) ? 3 : 0;
}

static FX_MUST bool end_tag(struct lexer *lexer, bool statement, size_t len, int sign) {
    size_t after = lexer->at + len;
    if (!push_type(lexer, statement ? FX_JT_STATEMENT_END : FX_JT_EXPRESSION_END)) return false;
    if (statement)
        after = skip_after(lexer, after, sign);
    else if (sign == '-')
        after = fx_jinja__skip_space(lexer->source, after);
    leave_tag(lexer, after);
    return true;
}

static bool is_digit(int c) {
    return c >= '0' && c <= '9';
}

static bool is_word(int c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static FX_MUST bool lex_name(struct lexer *lexer) {
    size_t len = 0;
    while (is_word(peek(lexer, len)))
        len++;
    fx_span text = {lexer->source.at + lexer->at, len};
    lexer->at += len;
    return push(lexer, (struct fx_jinja_token){.type = FX_JT_NAME, .text = pool_copy(lexer, text)});
}

/* Length of digits[.digits][e[sign]digits] here; `real` says whether it has more than digits. */
static size_t number_len(const struct lexer *lexer, bool *real) {
    size_t len = 0;
    while (is_digit(peek(lexer, len)))
        len++;
    *real = false;
    if (lexer->at && lexer->source.at[lexer->at - 1] == '.') return len; /* x.0.1: two items */
    if (peek(lexer, len) == '.' && is_digit(peek(lexer, len + 1))) {
        *real = true;
        for (len++; is_digit(peek(lexer, len));)
            len++;
    }
    if ((peek(lexer, len) | 0x20) != 'e') return len;
    size_t sign = peek(lexer, len + 1) == '-' || peek(lexer, len + 1) == '+';
    if (!is_digit(peek(lexer, len + 1 + sign))) return len;
    *real = true;
    for (len += 1 + sign; is_digit(peek(lexer, len));)
        len++;
    return len;
}

static FX_MUST bool lex_number(struct lexer *lexer) {
    bool real;
    size_t len = number_len(lexer, &real);
    char text[64];
    struct fx_jinja_token token = {.type = real ? FX_JT_FLOAT : FX_JT_INTEGER};
    if (len >= sizeof text || is_word(peek(lexer, len)) ||
        (!real && len > 1 && peek(lexer, 0) == '0'))
        return lex_fail(lexer, lexer->line, "this form of a number is not supported");
    memcpy(text, lexer->source.at + lexer->at, len);
    text[len] = 0;
    if (real)
        token.real = strtod(text, NULL);
    else if (len > 18)
        return lex_fail(lexer, lexer->line, "integer %s is too large", text);
    else
        token.integer = strtoll(text, NULL, 10);
    lexer->at += len;
    return push(lexer, token);
}

static FX_MUST bool balance(struct lexer *lexer, int bracket) {
    static const char opening[] = "([{", closing[] = ")]}";
    const char *opens = strchr(opening, bracket), *closes = strchr(closing, bracket);
    if (opens && lexer->open == sizeof lexer->closers)
        return lex_fail(lexer, lexer->line, "expression nested deeper than %zu", lexer->open);
    if (opens) lexer->closers[lexer->open++] = closing[opens - opening];
    if (!closes) return true;
    if (!lexer->open) return lex_fail(lexer, lexer->line, "unexpected '%c'", bracket);
    if (lexer->closers[--lexer->open] == bracket) return true;
    return lex_fail(lexer, lexer->line, "unexpected '%c', want '%c'", bracket,
                    lexer->closers[lexer->open]);
}

static FX_MUST bool lex_operator(struct lexer *lexer) {
    static const char *const pairs[] = {"//", "**", "==", "!=", ">=", "<="};
    static const char singles[] = "+-/*%~[](){}><=.:|,;";
    uint16_t op = 0;
    for (size_t i = 0; i < FX_COUNT(pairs) && !op; i++)
        if (starts(lexer, lexer->at, pairs[i])) op = FX_JOP(pairs[i][0], pairs[i][1]);
    int first = peek(lexer, 0);
    if (!op && (!first || !strchr(singles, first)))
        return lex_fail(lexer, lexer->line, "unexpected character '%c' (0x%02x)",
                        first >= 0x20 && first < 0x7f ? first : '?', (unsigned)first);
    if (!op && !balance(lexer, first)) return false;
    lexer->at += op ? 2 : 1;
    if (!op) op = FX_JOP(0, first);
    return push(lexer, (struct fx_jinja_token){.type = FX_JT_OPERATOR, .op = op});
}

static int hex_value(int c) {
    if (is_digit(c)) return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \xhh, \uhhhh, \Uhhhhhhhh: `digits` of them after lexer->at. */
static FX_MUST bool lex_hex(struct lexer *lexer, size_t digits) {
    uint32_t point = 0;
    for (size_t i = 0; i < digits; i++) {
        int value = hex_value(peek(lexer, i));
        if (value < 0 || point > 0xfffffff)
            return lex_fail(lexer, lexer->line, "bad escape in a string: want %zu hex digits",
                            digits);
        point = point << 4 | (uint32_t)value;
    }
    size_t len = fx_jinja__put_char(point, lexer->pool);
    if (!len) return lex_fail(lexer, lexer->line, "bad escape in a string: no character");
    lexer->pool += len;
    lexer->at += digits;
    return true;
}

static void lex_octal(struct lexer *lexer) {
    uint32_t point = 0;
    for (int i = 0; i < 3 && peek(lexer, 0) >= '0' && peek(lexer, 0) <= '7'; i++)
        point = point << 3 | (uint32_t)(lexer->source.at[lexer->at++] - '0');
    lexer->pool += fx_jinja__put_char(point, lexer->pool);
}

/* After a backslash; Python's escapes, an unknown one stays as it is. */
static FX_MUST bool lex_escape(struct lexer *lexer) {
    static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
    int c = peek(lexer, 0);
    const char *simple = c > 0 ? strchr(from, c) : NULL;
    if (c >= '0' && c <= '7') {
        lex_octal(lexer);
        return true;
    }
    advance(lexer, lexer->at + 1);
    if (simple)
        *lexer->pool++ = (uint8_t)to[simple - from];
    else if (c == 'x')
        return lex_hex(lexer, 2);
    else if (c == 'u')
        return lex_hex(lexer, 4);
    else if (c == 'U')
        return lex_hex(lexer, 8);
    else if (c == 'N')
        return lex_fail(lexer, lexer->line, "\\N in a string is not supported");
    else if (c != '\n') {
        *lexer->pool++ = '\\';
        *lexer->pool++ = (uint8_t)c;
    }
    return true;
}

static FX_MUST bool lex_string(struct lexer *lexer) {
    uint32_t line = lexer->line;
    int quote = peek(lexer, 0), c;
    uint8_t *text = lexer->pool;
    lexer->at++;
    while ((c = peek(lexer, 0)) != quote) {
        if (c < 0) return lex_fail(lexer, line, "a string is never closed");
        if (c == '\\' && peek(lexer, 1) >= 0) {
            lexer->at++;
            if (!lex_escape(lexer)) return false;
            continue;
        }
        *lexer->pool++ = (uint8_t)c;
        advance(lexer, lexer->at + 1);
    }
    lexer->at++;
    return push(lexer, (struct fx_jinja_token){
                           .type = FX_JT_STRING, .text = {text, (size_t)(lexer->pool - text)}
    });
}

static FX_MUST bool lex_word(struct lexer *lexer) {
    int c = peek(lexer, 0);
    if (is_digit(c)) return lex_number(lexer);
    if (is_word(c)) return lex_name(lexer);
    if (c == '\'' || c == '"') return lex_string(lexer);
    return lex_operator(lexer);
}

static FX_MUST bool lex_tag(struct lexer *lexer, bool statement) {
    uint32_t line = lexer->line;
    lexer->open = 0;
    for (;;) {
        int sign;
        advance(lexer, fx_jinja__skip_space(lexer->source, lexer->at));
        if (lexer->at == lexer->source.len)
            return lex_fail(lexer, line, "'%s' is never closed", statement ? "{%" : "{{");
        size_t end = tag_end(lexer, statement, &sign);
        if (end) return end_tag(lexer, statement, end, sign);
        if (!lex_word(lexer)) return false;
    }
}

/* {% raw %}: its body is no template, so it can't be left to the parser. */
static bool is_raw(const struct lexer *lexer) {
    size_t at = fx_jinja__skip_space(lexer->source, lexer->at);
    return starts(lexer, at, "raw") &&
           (at + 3 == lexer->source.len || !is_word(lexer->source.at[at + 3]));
}

static FX_MUST bool lex_next(struct lexer *lexer) {
    size_t tag = find_tag(lexer);
    if (tag == lexer->source.len) {
        if (!lex_data(lexer, tag)) return false;
        advance(lexer, tag);
        return true;
    }
    int kind = lexer->source.at[tag + 1];
    int sign = tag + 2 < lexer->source.len ? lexer->source.at[tag + 2] : 0;
    if (!lex_data(lexer, data_end(lexer, tag, kind, sign))) return false;
    advance(lexer, tag + 2 + (sign == '-' || sign == '+'));
    if (kind == '#') return skip_comment(lexer);
    if (kind == '%' && is_raw(lexer))
        return lex_fail(lexer, lexer->line, "{%% raw %%} is not supported");
    if (!push_type(lexer, kind == '%' ? FX_JT_STATEMENT : FX_JT_EXPRESSION)) return false;
    return lex_tag(lexer, kind == '%');
}

/* CR and CRLF become LF; one at the end goes. */
static size_t normalize(fx_span source, uint8_t *out) {
    size_t len = 0;
    for (size_t i = 0; i < source.len; i++) {
        bool carriage = source.at[i] == '\r';
        out[len++] = carriage ? '\n' : source.at[i];
        if (carriage && i + 1 < source.len && source.at[i + 1] == '\n') i++;
    }
    return len && out[len - 1] == '\n' ? len - 1 : len;
}

bool fx_jinja__lex(fx_span source, uint8_t *pool, struct fx_jinja_tokens *tokens, fx_error *err) {
    fx_auto(uint8_t) clean = fx_alloc(source.len, 1);
    if (!clean) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a template");
    struct lexer lexer = {
        .source = {clean, normalize(source, clean)},
        .line = 1,
        .line_starting = true,
        .pool = pool,
        .tokens = tokens,
        .err = err
    };
    while (lexer.at < lexer.source.len)
        if (!lex_next(&lexer)) return false;
    return push_type(&lexer, FX_JT_END);
}
