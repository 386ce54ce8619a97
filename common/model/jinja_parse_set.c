#include "common/model/jinja_statements.h"

/* {% set %} in its forms, {% filter %}, {% with %} and {% generation %}. */

static FX_MUST bool set_attribute(struct fx_jinja_statements *statements, size_t space) {
    struct fx_jinja_parser *parser = statements->parser;
    const struct fx_jinja_token *token = ++parser->token;
    if (token->type != FX_JT_NAME) return fx_jinja__unexpected(parser, "a name");
    size_t name;
    parser->token++;
    if (!fx_jinja__is_op(parser, FX_JOP(0, '=')))
        return fx_jinja__refuse(parser, token->line,
                                "{%% set %%} of an attribute is only supported with '='");
    parser->token++;
    return fx_jinja__name(parser, token->text, &name) && fx_jinja__tuple(parser, true) &&
           fx_jinja__add(statements, FX_JI_SET_ATTRIBUTE, name, (int64_t)space);
}

/* `| a | b(c)` before the end of the tag: applied to the block's text when it closes. */
static FX_MUST bool skip_filters(struct fx_jinja_statements *statements,
                                 const struct fx_jinja_token **out) {
    struct fx_jinja_parser *parser = statements->parser;
    *out = parser->token;
    while (parser->token->type != FX_JT_STATEMENT_END)
        parser->token++;
    return true;
}

static FX_MUST bool apply_filters(struct fx_jinja_statements *statements,
                                  const struct fx_jinja_token *filters) {
    struct fx_jinja_parser *parser = statements->parser;
    const struct fx_jinja_token *back = parser->token;
    parser->token = filters;
    while (parser->token->type != FX_JT_STATEMENT_END) {
        if (!fx_jinja__skip_op(parser, FX_JOP(0, '|'))) return fx_jinja__unexpected(parser, "'|'");
        if (!fx_jinja__application(parser, FX_JF_FILTER)) return false;
    }
    parser->token = back;
    return true;
}

static FX_MUST bool open_capture(struct fx_jinja_statements *statements,
                                 struct fx_jinja_block block) {
    return fx_jinja__open(statements, block) && fx_jinja__scope_open(statements) &&
           fx_jinja__add(statements, FX_JI_CAPTURE, 0, 1);
}

static FX_MUST bool close_capture(struct fx_jinja_statements *statements,
                                  const struct fx_jinja_block *block) {
    statements->depth--;
    return fx_jinja__add(statements, FX_JI_CAPTURE, 0, 0) && fx_jinja__scope_close(statements) &&
           apply_filters(statements, block->filters);
}

static FX_MUST bool set_block(struct fx_jinja_statements *statements, size_t name) {
    struct fx_jinja_block block = {.kind = FX_JK_SET, .tag = "set", .name = name};
    return skip_filters(statements, &block.filters) && open_capture(statements, block);
}

bool fx_jinja__parse_set(struct fx_jinja_statements *statements) {
    struct fx_jinja_parser *parser = statements->parser;
    struct fx_jinja_targets targets;
    bool attribute = parser->token->type == FX_JT_NAME && parser->token[1].type == FX_JT_OPERATOR &&
                     parser->token[1].op == FX_JOP(0, '.');
    if (attribute) {
        size_t space;
        return fx_jinja__name(parser, parser->token++->text, &space) &&
               set_attribute(statements, space);
    }
    if (!fx_jinja__targets(statements, &targets)) return false;
    if (fx_jinja__skip_op(parser, FX_JOP(0, '=')))
        return fx_jinja__tuple(parser, true) && fx_jinja__store(statements, &targets);
    bool block = !targets.tuple && (parser->token->type == FX_JT_STATEMENT_END ||
                                    fx_jinja__is_op(parser, FX_JOP(0, '|')));
    if (!block) return fx_jinja__unexpected(parser, "'='");
    return set_block(statements, targets.names[0]);
}

bool fx_jinja__parse_endset(struct fx_jinja_statements *statements) {
    const struct fx_jinja_block *block = fx_jinja__closing(statements, FX_JK_SET, "endset");
    return block && close_capture(statements, block) &&
           fx_jinja__add(statements, FX_JI_STORE, 0, (int64_t)block->name);
}

/* `{% filter a | b %}`: the first filter has no bar. */
bool fx_jinja__parse_filter(struct fx_jinja_statements *statements) {
    struct fx_jinja_block block = {.kind = FX_JK_FILTER, .tag = "filter"};
    return skip_filters(statements, &block.filters) && open_capture(statements, block);
}

bool fx_jinja__parse_endfilter(struct fx_jinja_statements *statements) {
    struct fx_jinja_parser *parser = statements->parser;
    struct fx_jinja_block *block = fx_jinja__closing(statements, FX_JK_FILTER, "endfilter");
    const struct fx_jinja_token *back = parser->token;
    if (!block || !fx_jinja__add(statements, FX_JI_CAPTURE, 0, 0)) return false;
    parser->token = block->filters;
    if (!fx_jinja__application(parser, FX_JF_FILTER) || !apply_filters(statements, parser->token))
        return false;
    parser->token = back;
    statements->depth--;
    return fx_jinja__scope_close(statements) && fx_jinja__add(statements, FX_JI_PRINT, 0, 0);
}

/* The values are those outside of the new scope. */
bool fx_jinja__parse_with(struct fx_jinja_statements *statements) {
    struct fx_jinja_parser *parser = statements->parser;
    size_t names[FX_JINJA_TARGETS_MAX], count = 0;
    if (!fx_jinja__open(statements, (struct fx_jinja_block){.kind = FX_JK_SCOPE, .tag = "with"}))
        return false;
    while (parser->token->type != FX_JT_STATEMENT_END) {
        if (count && !fx_jinja__expect_op(parser, FX_JOP(0, ','))) return false;
        if (count == FX_COUNT(names))
            return fx_jinja__refuse(parser, parser->token->line, "more than %zu variables", count);
        if (!fx_jinja__target(statements, &names[count++]) ||
            !fx_jinja__expect_op(parser, FX_JOP(0, '=')) || !fx_jinja__expression(parser, true))
            return false;
    }
    if (!fx_jinja__scope_open(statements)) return false;
    while (count--)
        if (!fx_jinja__add(statements, FX_JI_STORE, 0, (int64_t)names[count])) return false;
    return true;
}

static FX_MUST bool close_scope(struct fx_jinja_statements *statements, const char *tag) {
    const struct fx_jinja_block *block = fx_jinja__closing(statements, FX_JK_SCOPE, tag);
    if (!block) return false;
    if (strcmp(tag + 3, block->tag) != 0)
        return fx_jinja__refuse(statements->parser, statements->parser->token->line,
                                "{%% %s %%} without its block", tag);
    statements->depth--;
    return fx_jinja__scope_close(statements);
}

bool fx_jinja__parse_endwith(struct fx_jinja_statements *statements) {
    return close_scope(statements, "endwith");
}

/* Marks the assistant's own text for training; for us its text is text. */
bool fx_jinja__parse_generation(struct fx_jinja_statements *statements) {
    return fx_jinja__open(statements,
                          (struct fx_jinja_block){.kind = FX_JK_SCOPE, .tag = "generation"}) &&
           fx_jinja__scope_open(statements);
}

bool fx_jinja__parse_endgeneration(struct fx_jinja_statements *statements) {
    return close_scope(statements, "endgeneration");
}
