#include "common/model/jinja.h"

/* Statements. Blocks that are open stand on a stack; their jumps are patched when they close. */

enum block_kind { BLOCK_IF, BLOCK_FOR };
enum { NO_JUMP = -1 };

struct block {
    enum block_kind kind;
    uint32_t line;
    bool has_else;
    int32_t next; /* IF: the jump past the branch being parsed. FOR: the one taken where empty */
    int32_t ends; /* chain, through `a`, of the jumps to the end */
    size_t body;  /* FOR: first instruction of the body */
    size_t name;  /* FOR: the loop variable */
};

struct statements {
    struct fx_jinja_parser *parser;
    struct block blocks[FX_TEMPLATE_DEPTH_MAX];
    size_t depth;
    uint32_t scopes; /* open now, the outermost included */
};

static FX_MUST bool emit(struct statements *statements, enum fx_jinja_op op, size_t b, int64_t a) {
    return fx_jinja__emit(statements->parser, op, b, a);
}

static int32_t here(const struct statements *statements) {
    return (int32_t)statements->parser->template->code_count;
}

static struct block *top(struct statements *statements) {
    return statements->depth ? &statements->blocks[statements->depth - 1] : NULL;
}

static void land(struct statements *statements, int32_t jump) {
    if (jump != NO_JUMP) fx_jinja__land(statements->parser, (size_t)jump);
}

static void land_chain(struct statements *statements, int32_t jump) {
    while (jump != NO_JUMP) {
        int32_t next = statements->parser->template->code[jump].a;
        land(statements, jump);
        jump = next;
    }
}

static FX_MUST bool jump_to_end(struct statements *statements, struct block *block) {
    int32_t at = here(statements);
    if (!emit(statements, FX_JI_JUMP, 0, block->ends)) return false;
    block->ends = at;
    return true;
}

static FX_MUST bool open_block(struct statements *statements, struct block block) {
    struct fx_jinja_parser *parser = statements->parser;
    if (statements->depth == FX_TEMPLATE_DEPTH_MAX)
        return fx_jinja__refuse(parser, parser->token->line, "blocks nested deeper than %d",
                                FX_TEMPLATE_DEPTH_MAX);
    block.line = parser->token->line;
    block.ends = NO_JUMP;
    statements->blocks[statements->depth++] = block;
    return true;
}

static FX_MUST bool misplaced(struct statements *statements, const char *what) {
    struct fx_jinja_parser *parser = statements->parser;
    return fx_jinja__refuse(parser, parser->token->line, "{%% %s %%} without its block", what);
}

/* A scope of its own: what is set inside does not leave. */
static void scope_opened(struct statements *statements) {
    struct fx_template *template = statements->parser->template;
    statements->scopes++;
    if (statements->scopes > template->scopes) template->scopes = statements->scopes;
}

static FX_MUST bool parse_branch(struct statements *statements, struct block *block) {
    if (!fx_jinja__expression(statements->parser, true)) return false;
    block->next = here(statements);
    return emit(statements, FX_JI_JUMP_FALSE, 0, 0);
}

static FX_MUST bool parse_if(struct statements *statements) {
    return open_block(statements, (struct block){.kind = BLOCK_IF}) &&
           parse_branch(statements, top(statements));
}

static FX_MUST bool parse_elif(struct statements *statements) {
    struct block *block = top(statements);
    if (!block || block->kind != BLOCK_IF || block->has_else) return misplaced(statements, "elif");
    if (!jump_to_end(statements, block)) return false;
    land(statements, block->next);
    return parse_branch(statements, block);
}

/* The loop's own code ends: next round, then past the else part. */
static FX_MUST bool close_loop(struct statements *statements, struct block *block) {
    int64_t back = (int64_t)block->body - here(statements) - 1;
    if (!emit(statements, FX_JI_NEXT, block->name, back)) return false;
    statements->scopes--;
    return true;
}

static FX_MUST bool parse_else(struct statements *statements) {
    struct block *block = top(statements);
    if (!block || block->has_else) return misplaced(statements, "else");
    bool loop = block->kind == BLOCK_FOR;
    block->has_else = true;
    if (loop && !close_loop(statements, block)) return false;
    if (!jump_to_end(statements, block)) return false;
    land(statements, block->next);
    block->next = NO_JUMP;
    if (!loop) return true;
    scope_opened(statements);
    return emit(statements, FX_JI_SCOPE, 0, 1);
}

static FX_MUST bool parse_endif(struct statements *statements) {
    struct block *block = top(statements);
    if (!block || block->kind != BLOCK_IF) return misplaced(statements, "endif");
    land(statements, block->next);
    land_chain(statements, block->ends);
    statements->depth--;
    return true;
}

static FX_MUST bool parse_target(struct statements *statements, size_t *name) {
    static const char *const reserved[] = {"true", "True", "false", "False", "none",
                                           "None", "loop", "not",   "and",   "or",
                                           "in",   "is",   "if",    "else"};
    struct fx_jinja_parser *parser = statements->parser;
    const struct fx_jinja_token *token = parser->token;
    if (token->type != FX_JT_NAME) return fx_jinja__unexpected(parser, "a variable's name");
    for (size_t i = 0; i < FX_COUNT(reserved); i++)
        if (fx_span_eq_str(token->text, reserved[i]))
            return fx_jinja__refuse(parser, token->line, "can't assign to '%s'", reserved[i]);
    parser->token++;
    return fx_jinja__name(parser, token->text, name);
}

/* `for x in y if condition`: a loop of its own that keeps what passes. */
static FX_MUST bool parse_selection(struct statements *statements, size_t name) {
    int32_t empty = here(statements);
    if (!emit(statements, FX_JI_SELECT, name, 0)) return false;
    scope_opened(statements);
    if (!fx_jinja__expression(statements->parser, true)) return false;
    statements->scopes--;
    if (!emit(statements, FX_JI_SELECT_NEXT, name, empty - here(statements))) return false;
    land(statements, empty);
    return true;
}

static FX_MUST bool parse_for(struct statements *statements) {
    struct fx_jinja_parser *parser = statements->parser;
    struct block block = {.kind = BLOCK_FOR};
    if (!parse_target(statements, &block.name)) return false;
    if (fx_jinja__is_op(parser, FX_JOP(0, ',')))
        return fx_jinja__refuse(parser, parser->token->line,
                                "{%% for %%} over several variables is not supported");
    if (!fx_jinja__skip_word(parser, "in")) return fx_jinja__unexpected(parser, "'in'");
    if (!open_block(statements, block) || !fx_jinja__expression(parser, false)) return false;
    if (fx_jinja__skip_word(parser, "if") && !parse_selection(statements, block.name)) return false;
    if (fx_jinja__is_word(parser, "recursive"))
        return fx_jinja__refuse(parser, parser->token->line,
                                "{%% for ... recursive %%} is not supported");
    top(statements)->next = here(statements);
    if (!emit(statements, FX_JI_FOR, block.name, 0)) return false;
    top(statements)->body = (size_t)here(statements);
    scope_opened(statements);
    return true;
}

static FX_MUST bool parse_endfor(struct statements *statements) {
    struct block *block = top(statements);
    if (!block || block->kind != BLOCK_FOR) return misplaced(statements, "endfor");
    if (!block->has_else) {
        if (!close_loop(statements, block)) return false;
        land(statements, block->next);
    } else {
        if (!emit(statements, FX_JI_SCOPE, 0, 0)) return false;
        statements->scopes--;
    }
    land_chain(statements, block->ends);
    statements->depth--;
    return true;
}

/* The innermost loop whose body is being parsed. */
static struct block *inner_loop(struct statements *statements) {
    for (size_t i = statements->depth; i-- > 0;)
        if (statements->blocks[i].kind == BLOCK_FOR && !statements->blocks[i].has_else)
            return &statements->blocks[i];
    return NULL;
}

static FX_MUST bool parse_break(struct statements *statements) {
    struct block *loop = inner_loop(statements);
    if (!loop) return misplaced(statements, "break");
    return emit(statements, FX_JI_LEAVE, 0, 0) && jump_to_end(statements, loop);
}

static FX_MUST bool parse_continue(struct statements *statements) {
    struct block *loop = inner_loop(statements);
    if (!loop) return misplaced(statements, "continue");
    int64_t back = (int64_t)loop->body - here(statements) - 1;
    return emit(statements, FX_JI_NEXT, loop->name, back) && jump_to_end(statements, loop);
}

static FX_MUST bool parse_set(struct statements *statements) {
    struct fx_jinja_parser *parser = statements->parser;
    size_t name = 0;
    if (!parse_target(statements, &name)) return false;
    uint32_t line = parser->token->line;
    if (fx_jinja__is_op(parser, FX_JOP(0, '.')))
        return fx_jinja__refuse(parser, line, "{%% set %%} of an attribute is not supported");
    if (fx_jinja__is_op(parser, FX_JOP(0, ',')))
        return fx_jinja__refuse(parser, line, "{%% set %%} of a tuple is not supported");
    if (!fx_jinja__skip_op(parser, FX_JOP(0, '=')))
        return fx_jinja__refuse(parser, line, "{%% set %%} of a block is not supported");
    return fx_jinja__expression(parser, true) && emit(statements, FX_JI_STORE, 0, (int64_t)name);
}

static const struct {
    const char *name;
    bool (*parse)(struct statements *statements);
} tags[] = {
    {"if",       parse_if      },
    {"elif",     parse_elif    },
    {"else",     parse_else    },
    {"endif",    parse_endif   },
    {"for",      parse_for     },
    {"endfor",   parse_endfor  },
    {"set",      parse_set     },
    {"break",    parse_break   },
    {"continue", parse_continue},
};

static FX_MUST bool parse_statement(struct statements *statements) {
    struct fx_jinja_parser *parser = statements->parser;
    const struct fx_jinja_token *token = ++parser->token;
    if (token->type != FX_JT_NAME) return fx_jinja__unexpected(parser, "a statement");
    for (size_t i = 0; i < FX_COUNT(tags); i++) {
        if (!fx_span_eq_str(token->text, tags[i].name)) continue;
        parser->token++;
        if (!tags[i].parse(statements)) return false;
        if (fx_jinja__is_op(parser, FX_JOP(0, ',')))
            return fx_jinja__refuse(parser, token->line, "a tuple is not supported");
        if (parser->token->type != FX_JT_STATEMENT_END) return fx_jinja__unexpected(parser, "'%}'");
        parser->token++;
        return true;
    }
    return fx_jinja__refuse(parser, token->line, "{%% %.*s %%} is not supported",
                            token->text.len < 64 ? (int)token->text.len : 64,
                            (const char *)token->text.at);
}

static FX_MUST bool parse_print(struct statements *statements) {
    struct fx_jinja_parser *parser = statements->parser;
    parser->token++;
    if (!fx_jinja__expression(parser, true)) return false;
    if (fx_jinja__is_op(parser, FX_JOP(0, ',')))
        return fx_jinja__refuse(parser, parser->token->line, "a tuple is not supported");
    if (parser->token->type != FX_JT_EXPRESSION_END) return fx_jinja__unexpected(parser, "'}}'");
    if (!emit(statements, FX_JI_PRINT, 0, 0)) return false;
    parser->token++;
    return true;
}

static FX_MUST bool parse_data(struct statements *statements) {
    struct fx_jinja_value value = {.kind = FX_JV_TEXT,
                                   .text = fx_jinja__literal(statements->parser->token->text)};
    if (!fx_jinja__constant(statements->parser, FX_JI_TEXT, value)) return false;
    statements->parser->token++;
    return true;
}

static FX_MUST bool parse_next(struct statements *statements) {
    switch (statements->parser->token->type) {
    case FX_JT_DATA: return parse_data(statements);
    case FX_JT_EXPRESSION: return parse_print(statements);
    default: return parse_statement(statements);
    }
}

bool fx_jinja__parse(struct fx_jinja_parser *parser) {
    struct statements statements = {.parser = parser, .scopes = 1};
    parser->template->scopes = 1;
    while (parser->token->type != FX_JT_END)
        if (!parse_next(&statements)) return false;
    const struct block *open = top(&statements);
    if (!open) return true;
    return fx_jinja__refuse(parser, open->line, "{%% %s %%} is never closed",
                            open->kind == BLOCK_FOR ? "for" : "if");
}
