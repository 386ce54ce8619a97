#include "tools/tidy/tidy.h"
#include <string.h>

enum state { CODE, LINE_COMMENT, BLOCK_COMMENT, STRING, CHARACTER, DIRECTIVE };

struct lexer {
    const char *text;
    size_t len, at;
    char *bare, *code;
    enum state state, outer; /* outer: where a string stands, CODE or DIRECTIVE */
    bool line_is_blank;      /* nothing but space on this line yet */
};

static char peek(const struct lexer *lexer, size_t ahead) {
    return lexer->at + ahead < lexer->len ? lexer->text[lexer->at + ahead] : '\0';
}

/* Copies one character to `bare` and `code`, or a space in its place. */
static void put(struct lexer *lexer, bool bare, bool code) {
    char c = peek(lexer, 0);
    char blank = c == '\n' ? '\n' : ' ';
    lexer->bare[lexer->at] = bare ? c : blank;
    lexer->code[lexer->at] = code ? c : blank;
    lexer->at++;
}

static void put_two(struct lexer *lexer, bool bare, bool code) {
    put(lexer, bare, code);
    if (lexer->at < lexer->len) put(lexer, bare, code);
}

static void in_code(struct lexer *lexer) {
    char c = peek(lexer, 0), next = peek(lexer, 1);
    if (c == '/' && next == '*') {
        put_two(lexer, false, false);
        lexer->state = BLOCK_COMMENT;
    } else if (c == '/' && next == '/') {
        put_two(lexer, false, true);
        lexer->state = LINE_COMMENT;
    } else if (c == '"' || c == '\'') {
        put(lexer, true, true);
        lexer->state = c == '"' ? STRING : CHARACTER;
        lexer->outer = CODE;
    } else if (c == '#' && lexer->line_is_blank) {
        lexer->state = DIRECTIVE;
    } else {
        if (c == '\n')
            lexer->line_is_blank = true;
        else if (c != ' ' && c != '\t')
            lexer->line_is_blank = false;
        put(lexer, true, true);
    }
}

static void in_directive(struct lexer *lexer) {
    char c = peek(lexer, 0), next = peek(lexer, 1);
    if (c == '\\') {
        put_two(lexer, true, false);
    } else if (c == '\n' || (c == '/' && (next == '*' || next == '/'))) {
        lexer->state = CODE; /* what follows a comment on its line is lexed as code; it is rare */
    } else {
        put(lexer, true, false);
        if (c == '"' || c == '\'') lexer->state = c == '"' ? STRING : CHARACTER;
        lexer->outer = DIRECTIVE;
    }
}

static void in_text(struct lexer *lexer, char end) {
    char c = peek(lexer, 0);
    if (c == '\\') {
        put_two(lexer, true, false);
    } else if (c == '\n') { /* unfinished: an apostrophe in #error */
        lexer->state = CODE;
    } else {
        put(lexer, true, c == end && lexer->outer == CODE);
        if (c == end) lexer->state = lexer->outer;
    }
}

static void step(struct lexer *lexer) {
    switch (lexer->state) {
    case CODE: in_code(lexer); break;
    case DIRECTIVE: in_directive(lexer); break;
    case STRING: in_text(lexer, '"'); break;
    case CHARACTER: in_text(lexer, '\''); break;
    case LINE_COMMENT:
        if (peek(lexer, 0) == '\n')
            lexer->state = CODE;
        else
            put(lexer, false, false);
        break;
    case BLOCK_COMMENT:
        if (peek(lexer, 0) == '*' && peek(lexer, 1) == '/') {
            put_two(lexer, false, false);
            lexer->state = CODE;
        } else {
            put(lexer, false, false);
        }
        break;
    }
}

void fx_lex(const char *text, size_t len, char *bare, char *code) {
    struct lexer lexer = {
        .text = text, .len = len, .bare = bare, .code = code, .state = CODE, .line_is_blank = true};
    while (lexer.at < lexer.len)
        step(&lexer);
    bare[len] = code[len] = '\0';
}
