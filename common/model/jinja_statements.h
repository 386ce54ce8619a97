#pragma once
#include "common/model/jinja_code.h"

/* Statements. Blocks that are open stand on a stack; their jumps are patched when they close. */

enum fx_jinja_block_kind {
    FX_JK_IF,
    FX_JK_FOR,
    FX_JK_SET,
    FX_JK_FILTER,
    FX_JK_MACRO,
    FX_JK_SCOPE, /* with, generation */
    FX_JK_COUNT,
};
enum { FX_JINJA_NO_JUMP = -1 };

/** `{% for a, (b, c) in` is refused; `a, b` are the targets. */
struct fx_jinja_targets {
    size_t names[FX_JINJA_TARGETS_MAX], count;
    bool tuple;
};

struct fx_jinja_block {
    enum fx_jinja_block_kind kind;
    uint32_t line;
    const char *tag; /* that opened it */
    bool has_else;
    int32_t next;    /* IF: the jump past the branch being parsed. FOR: the one taken where empty */
    int32_t ends;    /* chain, through `a`, of the jumps to the end. MACRO: the jump past it */
    size_t body;     /* FOR: first instruction of the body */
    size_t name;     /* FOR: the loop variable; SET: the target */
    uint32_t scopes; /* MACRO: those outside */
    const struct fx_jinja_token *filters; /* SET, FILTER: what is applied at the end */
};

struct fx_jinja_statements {
    struct fx_jinja_parser *parser;
    struct fx_jinja_block blocks[FX_TEMPLATE_DEPTH_MAX];
    size_t depth;
    uint32_t scopes; /* open now, the outermost included */
};

static inline FX_MUST bool fx_jinja__add(struct fx_jinja_statements *statements,
                                         enum fx_jinja_op op, size_t b, int64_t a) {
    return fx_jinja__emit(statements->parser, op, b, a);
}
static inline int32_t fx_jinja__here(const struct fx_jinja_statements *statements) {
    return (int32_t)statements->parser->template->code_count;
}

/* jinja_parse.c */
FX_MUST bool fx_jinja__open(struct fx_jinja_statements *statements, struct fx_jinja_block block);
/** The innermost block, which must be of this kind: NULL, with the error set, where it isn't. */
struct fx_jinja_block *fx_jinja__closing(struct fx_jinja_statements *statements,
                                         enum fx_jinja_block_kind kind, const char *tag);
/** A scope of its own: what is set inside does not leave. */
FX_MUST bool fx_jinja__scope_open(struct fx_jinja_statements *statements);
FX_MUST bool fx_jinja__scope_close(struct fx_jinja_statements *statements);
void fx_jinja__scope_count(struct fx_jinja_statements *statements);
/** A variable's name that may be assigned to. */
FX_MUST bool fx_jinja__target(struct fx_jinja_statements *statements, size_t *name);
FX_MUST bool fx_jinja__targets(struct fx_jinja_statements *statements,
                               struct fx_jinja_targets *out);
/** Stores what is on the stack. */
FX_MUST bool fx_jinja__store(struct fx_jinja_statements *statements,
                             const struct fx_jinja_targets *targets);

/* jinja_parse_set.c, jinja_parse_macro.c: the tags, after their names */
bool fx_jinja__parse_set(struct fx_jinja_statements *statements);
bool fx_jinja__parse_endset(struct fx_jinja_statements *statements);
bool fx_jinja__parse_filter(struct fx_jinja_statements *statements);
bool fx_jinja__parse_endfilter(struct fx_jinja_statements *statements);
bool fx_jinja__parse_with(struct fx_jinja_statements *statements);
bool fx_jinja__parse_endwith(struct fx_jinja_statements *statements);
bool fx_jinja__parse_generation(struct fx_jinja_statements *statements);
bool fx_jinja__parse_endgeneration(struct fx_jinja_statements *statements);
bool fx_jinja__parse_macro(struct fx_jinja_statements *statements);
bool fx_jinja__parse_endmacro(struct fx_jinja_statements *statements);
