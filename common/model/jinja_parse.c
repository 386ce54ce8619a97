#include "common/model/jinja_statements.h"

static struct fx_jinja_block *top(struct fx_jinja_statements *statements) {
    return statements->depth ? &statements->blocks[statements->depth - 1] : NULL;
}

static void land(struct fx_jinja_statements *statements, int32_t jump) {
    if (jump != FX_JINJA_NO_JUMP) fx_jinja__land(statements->parser, (size_t)jump);
}

static void land_chain(struct fx_jinja_statements *statements, int32_t jump) {
    while (jump != FX_JINJA_NO_JUMP) {
        int32_t next = statements->parser->template->code[jump].a;
        land(statements, jump);
        jump = next;
    }
}

static FX_MUST bool jump_to_end(struct fx_jinja_statements *statements,
                                struct fx_jinja_block *block) {
    int32_t at = fx_jinja__here(statements);
    if (!fx_jinja__add(statements, FX_JI_JUMP, 0, block->ends)) return false;
    block->ends = at;
    return true;
}

bool fx_jinja__open(struct fx_jinja_statements *statements, struct fx_jinja_block block) {
    struct fx_jinja_parser *parser = statements->parser;
    if (statements->depth == FX_TEMPLATE_DEPTH_MAX)
        return fx_jinja__refuse(parser, parser->token->line, "blocks nested deeper than %d",
                                FX_TEMPLATE_DEPTH_MAX);
    block.line = parser->token->line;
    block.ends = FX_JINJA_NO_JUMP;
    statements->blocks[statements->depth++] = block;
    return true;
}

static FX_MUST bool misplaced(struct fx_jinja_statements *statements, const char *what) {
    struct fx_jinja_parser *parser = statements->parser;
    return fx_jinja__refuse(parser, parser->token->line, "{%% %s %%} without its block", what);
}

struct fx_jinja_block *fx_jinja__closing(struct fx_jinja_statements *statements,
                                         enum fx_jinja_block_kind kind, const char *tag) {
    struct fx_jinja_block *block = top(statements);
    if (block && block->kind == kind) return block;
    return misplaced(statements, tag) ? block : NULL;
}

void fx_jinja__scope_count(struct fx_jinja_statements *statements) {
    struct fx_template *template = statements->parser->template;
    statements->scopes++;
    if (statements->scopes > template->scopes) template->scopes = statements->scopes;
}

bool fx_jinja__scope_open(struct fx_jinja_statements *statements) {
    fx_jinja__scope_count(statements);
    return fx_jinja__add(statements, FX_JI_SCOPE, 0, 1);
}

bool fx_jinja__scope_close(struct fx_jinja_statements *statements) {
    statements->scopes--;
    return fx_jinja__add(statements, FX_JI_SCOPE, 0, 0);
}

static FX_MUST bool parse_branch(struct fx_jinja_statements *statements,
                                 struct fx_jinja_block *block) {
    if (!fx_jinja__expression(statements->parser, true)) return false;
    block->next = fx_jinja__here(statements);
    return fx_jinja__add(statements, FX_JI_JUMP_FALSE, 0, 0);
}

static FX_MUST bool parse_if(struct fx_jinja_statements *statements) {
    return fx_jinja__open(statements, (struct fx_jinja_block){.kind = FX_JK_IF, .tag = "if"}) &&
           parse_branch(statements, top(statements));
}

static FX_MUST bool parse_elif(struct fx_jinja_statements *statements) {
    struct fx_jinja_block *block = top(statements);
    if (!block || block->kind != FX_JK_IF || block->has_else) return misplaced(statements, "elif");
    if (!jump_to_end(statements, block)) return false;
    land(statements, block->next);
    return parse_branch(statements, block);
}

/* The loop's own code ends: next round, then past the else part. */
static FX_MUST bool close_loop(struct fx_jinja_statements *statements,
                               struct fx_jinja_block *block) {
    int64_t back = (int64_t)block->body - fx_jinja__here(statements) - 1;
    if (!fx_jinja__add(statements, FX_JI_NEXT, block->name, back)) return false;
    statements->scopes--;
    return true;
}

static FX_MUST bool parse_else(struct fx_jinja_statements *statements) {
    struct fx_jinja_block *block = top(statements);
    bool takes = block && (block->kind == FX_JK_IF || block->kind == FX_JK_FOR);
    if (!takes || block->has_else) return misplaced(statements, "else");
    bool loop = block->kind == FX_JK_FOR;
    block->has_else = true;
    if (loop && !close_loop(statements, block)) return false;
    if (!jump_to_end(statements, block)) return false;
    land(statements, block->next);
    block->next = FX_JINJA_NO_JUMP;
    if (!loop) return true;
    return fx_jinja__scope_open(statements);
}

static FX_MUST bool parse_endif(struct fx_jinja_statements *statements) {
    struct fx_jinja_block *block = top(statements);
    if (!block || block->kind != FX_JK_IF) return misplaced(statements, "endif");
    land(statements, block->next);
    land_chain(statements, block->ends);
    statements->depth--;
    return true;
}

bool fx_jinja__target(struct fx_jinja_statements *statements, size_t *name) {
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
    if (!fx_jinja__name(parser, token->text, name)) return false;
    parser->assigned[*name] = true;
    return true;
}

/* `a`, `a, b` or `(a, b)`. */
bool fx_jinja__targets(struct fx_jinja_statements *statements, struct fx_jinja_targets *out) {
    struct fx_jinja_parser *parser = statements->parser;
    bool parenthesis = fx_jinja__skip_op(parser, FX_JOP(0, '('));
    *out = (struct fx_jinja_targets){0};
    do {
        if (out->tuple && parser->token->type != FX_JT_NAME) break; /* the last comma */
        if (out->count == FX_JINJA_TARGETS_MAX)
            return fx_jinja__refuse(parser, parser->token->line, "more than %d variables",
                                    FX_JINJA_TARGETS_MAX);
        if (!fx_jinja__target(statements, &out->names[out->count++])) return false;
        out->tuple = out->tuple || fx_jinja__is_op(parser, FX_JOP(0, ','));
    } while (fx_jinja__skip_op(parser, FX_JOP(0, ',')));
    return !parenthesis || fx_jinja__expect_op(parser, FX_JOP(0, ')'));
}

bool fx_jinja__store(struct fx_jinja_statements *statements,
                     const struct fx_jinja_targets *targets) {
    if (targets->tuple && !fx_jinja__add(statements, FX_JI_UNPACK, 0, (int64_t)targets->count))
        return false;
    for (size_t i = 0; i < targets->count; i++)
        if (!fx_jinja__add(statements, FX_JI_STORE, 0, (int64_t)targets->names[i])) return false;
    return true;
}

/* Where the loop has several variables, the item first goes to one that no template can name. */
static FX_MUST bool loop_variable(struct fx_jinja_statements *statements,
                                  const struct fx_jinja_targets *targets, size_t *name) {
    *name = targets->names[0];
    return !targets->tuple || fx_jinja__name(statements->parser, fx_span_str(" item"), name);
}

static FX_MUST bool unpack_item(struct fx_jinja_statements *statements,
                                const struct fx_jinja_targets *targets, size_t name) {
    return !targets->tuple || (fx_jinja__add(statements, FX_JI_LOAD, 0, (int64_t)name) &&
                               fx_jinja__store(statements, targets));
}

/* `for x in y if condition`: a loop of its own that keeps what passes. */
static FX_MUST bool parse_selection(struct fx_jinja_statements *statements,
                                    const struct fx_jinja_targets *targets, size_t name) {
    int32_t empty = fx_jinja__here(statements);
    if (!fx_jinja__add(statements, FX_JI_SELECT, name, 0)) return false;
    fx_jinja__scope_count(statements);
    if (!unpack_item(statements, targets, name) || !fx_jinja__expression(statements->parser, true))
        return false;
    statements->scopes--;
    int32_t here = fx_jinja__here(statements);
    if (!fx_jinja__add(statements, FX_JI_SELECT_NEXT, name, empty - here)) return false;
    land(statements, empty);
    return true;
}

static FX_MUST bool parse_for(struct fx_jinja_statements *statements) {
    struct fx_jinja_parser *parser = statements->parser;
    struct fx_jinja_block block = {.kind = FX_JK_FOR, .tag = "for"};
    struct fx_jinja_targets targets;
    if (!fx_jinja__targets(statements, &targets) ||
        !loop_variable(statements, &targets, &block.name))
        return false;
    if (!fx_jinja__skip_word(parser, "in")) return fx_jinja__unexpected(parser, "'in'");
    if (!fx_jinja__open(statements, block) || !fx_jinja__tuple(parser, false)) return false;
    if (fx_jinja__skip_word(parser, "if") && !parse_selection(statements, &targets, block.name))
        return false;
    if (fx_jinja__is_word(parser, "recursive"))
        return fx_jinja__refuse(parser, parser->token->line,
                                "{%% for ... recursive %%} is not supported");
    top(statements)->next = fx_jinja__here(statements);
    if (!fx_jinja__add(statements, FX_JI_FOR, block.name, 0)) return false;
    top(statements)->body = (size_t)fx_jinja__here(statements);
    fx_jinja__scope_count(statements);
    return unpack_item(statements, &targets, block.name);
}

static FX_MUST bool parse_endfor(struct fx_jinja_statements *statements) {
    struct fx_jinja_block *block = top(statements);
    if (!block || block->kind != FX_JK_FOR) return misplaced(statements, "endfor");
    if (!block->has_else) {
        if (!close_loop(statements, block)) return false;
        land(statements, block->next);
    } else if (!fx_jinja__scope_close(statements)) {
        return false;
    }
    land_chain(statements, block->ends);
    statements->depth--;
    return true;
}

/* The innermost loop whose body is being parsed; what is captured can't be left half done. */
static struct fx_jinja_block *inner_loop(struct fx_jinja_statements *statements) {
    for (size_t i = statements->depth; i-- > 0;) {
        struct fx_jinja_block *block = &statements->blocks[i];
        if (block->kind == FX_JK_FOR && !block->has_else) return block;
        if (block->kind != FX_JK_IF && block->kind != FX_JK_FOR) return NULL;
    }
    return NULL;
}

static FX_MUST bool parse_break(struct fx_jinja_statements *statements) {
    struct fx_jinja_block *loop = inner_loop(statements);
    if (!loop) return misplaced(statements, "break");
    return fx_jinja__add(statements, FX_JI_LEAVE, 0, 0) && jump_to_end(statements, loop);
}

static FX_MUST bool parse_continue(struct fx_jinja_statements *statements) {
    struct fx_jinja_block *loop = inner_loop(statements);
    if (!loop) return misplaced(statements, "continue");
    int64_t back = (int64_t)loop->body - fx_jinja__here(statements) - 1;
    return fx_jinja__add(statements, FX_JI_NEXT, loop->name, back) && jump_to_end(statements, loop);
}

static const struct {
    const char *name;
    bool (*parse)(struct fx_jinja_statements *statements);
} tags[] = {
    {"if",            parse_if                     },
    {"elif",          parse_elif                   },
    {"else",          parse_else                   },
    {"endif",         parse_endif                  },
    {"for",           parse_for                    },
    {"endfor",        parse_endfor                 },
    {"break",         parse_break                  },
    {"continue",      parse_continue               },
    {"set",           fx_jinja__parse_set          },
    {"endset",        fx_jinja__parse_endset       },
    {"filter",        fx_jinja__parse_filter       },
    {"endfilter",     fx_jinja__parse_endfilter    },
    {"with",          fx_jinja__parse_with         },
    {"endwith",       fx_jinja__parse_endwith      },
    {"generation",    fx_jinja__parse_generation   },
    {"endgeneration", fx_jinja__parse_endgeneration},
    {"macro",         fx_jinja__parse_macro        },
    {"endmacro",      fx_jinja__parse_endmacro     },
};

static FX_MUST bool parse_statement(struct fx_jinja_statements *statements) {
    struct fx_jinja_parser *parser = statements->parser;
    const struct fx_jinja_token *token = ++parser->token;
    if (token->type != FX_JT_NAME) return fx_jinja__unexpected(parser, "a statement");
    for (size_t i = 0; i < FX_COUNT(tags); i++) {
        if (!fx_span_eq_str(token->text, tags[i].name)) continue;
        parser->token++;
        if (!tags[i].parse(statements)) return false;
        if (parser->token->type != FX_JT_STATEMENT_END) return fx_jinja__unexpected(parser, "'%}'");
        parser->token++;
        return true;
    }
    return fx_jinja__refuse(parser, token->line, "{%% %.*s %%} is not supported",
                            token->text.len < 64 ? (int)token->text.len : 64,
                            (const char *)token->text.at);
}

static FX_MUST bool parse_print(struct fx_jinja_statements *statements) {
    struct fx_jinja_parser *parser = statements->parser;
    parser->token++;
    if (!fx_jinja__tuple(parser, true)) return false;
    if (parser->token->type != FX_JT_EXPRESSION_END) return fx_jinja__unexpected(parser, "'}}'");
    if (!fx_jinja__add(statements, FX_JI_PRINT, 0, 0)) return false;
    parser->token++;
    return true;
}

static FX_MUST bool parse_data(struct fx_jinja_statements *statements) {
    struct fx_jinja_value value = {.kind = FX_JV_TEXT,
                                   .text = fx_jinja__literal(statements->parser->token->text)};
    if (!fx_jinja__constant(statements->parser, FX_JI_TEXT, value)) return false;
    statements->parser->token++;
    return true;
}

static FX_MUST bool parse_next(struct fx_jinja_statements *statements) {
    switch (statements->parser->token->type) {
    case FX_JT_DATA: return parse_data(statements);
    case FX_JT_EXPRESSION: return parse_print(statements);
    default: return parse_statement(statements);
    }
}

/* A function that is none of ours and that nothing in the template can be. */
static FX_MUST bool check_calls(struct fx_jinja_parser *parser) {
    for (size_t i = FX_JN_COUNT; i < parser->template->name_count; i++) {
        fx_span name = parser->template->names[i];
        if (parser->called[i] && !parser->assigned[i])
            return fx_jinja__refuse(parser, parser->called[i], "function %.*s() is not supported",
                                    name.len < 64 ? (int)name.len : 64, (const char *)name.at);
    }
    return true;
}

bool fx_jinja__parse(struct fx_jinja_parser *parser) {
    struct fx_jinja_statements statements = {.parser = parser, .scopes = 1};
    parser->template->scopes = 1;
    while (parser->token->type != FX_JT_END)
        if (!parse_next(&statements)) return false;
    const struct fx_jinja_block *open = top(&statements);
    if (open) return fx_jinja__refuse(parser, open->line, "{%% %s %%} is never closed", open->tag);
    return check_calls(parser);
}
