#include "common/base/heap.h"
#include "common/model/jinja_statements.h"

/* {% macro name(a, b=1) %}: code of its own, jumped over where it stands. */

static FX_MUST bool new_macro(struct fx_jinja_parser *parser, struct fx_jinja_macro **out) {
    struct fx_template *template = parser->template;
    if (!template->macros)
        template->macros = fx_alloc(FX_JINJA_MACROS_MAX, sizeof *template->macros);
    if (!template->macros)
        return fx_fail(parser->err, FX_RESOURCE_EXHAUSTED, "memory for a template");
    if (template->macro_count == FX_JINJA_MACROS_MAX)
        return fx_jinja__refuse(parser, parser->token->line, "more than %d macros",
                                FX_JINJA_MACROS_MAX);
    *out = &template->macros[template->macro_count++];
    return true;
}

/* The default's code runs where the argument is missing, after those before it. */
static FX_MUST bool parse_default(struct fx_jinja_statements *statements, size_t name) {
    size_t jump = statements->parser->template->code_count;
    if (!fx_jinja__add(statements, FX_JI_DEFAULT, name, 0) ||
        !fx_jinja__expression(statements->parser, true) ||
        !fx_jinja__add(statements, FX_JI_STORE, 0, (int64_t)name))
        return false;
    fx_jinja__land(statements->parser, jump);
    return true;
}

static FX_MUST bool parse_parameter(struct fx_jinja_statements *statements,
                                    struct fx_jinja_macro *macro, bool *defaults) {
    struct fx_jinja_parser *parser = statements->parser;
    uint32_t line = parser->token->line;
    size_t *name = &macro->parameters[macro->count];
    if (macro->count == FX_JINJA_PARAMETERS_MAX)
        return fx_jinja__refuse(parser, line, "more than %d parameters", FX_JINJA_PARAMETERS_MAX);
    if (!fx_jinja__target(statements, name)) return false;
    macro->count++;
    if (fx_jinja__skip_op(parser, FX_JOP(0, '='))) {
        *defaults = true;
        return parse_default(statements, *name);
    }
    return !*defaults ||
           fx_jinja__refuse(parser, line, "a parameter without a default follows one with it");
}

static FX_MUST bool parse_parameters(struct fx_jinja_statements *statements,
                                     struct fx_jinja_macro *macro) {
    struct fx_jinja_parser *parser = statements->parser;
    bool defaults = false;
    if (!fx_jinja__expect_op(parser, FX_JOP(0, '('))) return false;
    while (!fx_jinja__skip_op(parser, FX_JOP(0, ')'))) {
        if (macro->count && !fx_jinja__expect_op(parser, FX_JOP(0, ','))) return false;
        if (macro->count && fx_jinja__skip_op(parser, FX_JOP(0, ')'))) return true;
        if (!parse_parameter(statements, macro, &defaults)) return false;
    }
    return true;
}

/* Only where its variables are its own and the outermost ones. */
static FX_MUST bool is_outermost(struct fx_jinja_statements *statements) {
    for (size_t i = 0; i < statements->depth; i++)
        if (statements->blocks[i].kind != FX_JK_IF)
            return fx_jinja__refuse(statements->parser, statements->parser->token->line,
                                    "{%% macro %%} inside of {%% %s %%} is not supported",
                                    statements->blocks[i].tag);
    return true;
}

bool fx_jinja__parse_macro(struct fx_jinja_statements *statements) {
    struct fx_jinja_parser *parser = statements->parser;
    struct fx_jinja_block block = {
        .kind = FX_JK_MACRO, .tag = "macro", .scopes = statements->scopes};
    struct fx_jinja_macro *macro;
    if (!is_outermost(statements) || !new_macro(parser, &macro) ||
        !fx_jinja__target(statements, &macro->name) ||
        !fx_jinja__add(statements, FX_JI_MACRO, 0, macro - parser->template->macros) ||
        !fx_jinja__add(statements, FX_JI_STORE, 0, (int64_t)macro->name))
        return false;
    block.body = parser->template->code_count;
    if (!fx_jinja__add(statements, FX_JI_JUMP, 0, 0) || !fx_jinja__open(statements, block))
        return false;
    macro->entry = parser->template->code_count;
    statements->scopes = 1;
    return parse_parameters(statements, macro);
}

bool fx_jinja__parse_endmacro(struct fx_jinja_statements *statements) {
    const struct fx_jinja_block *block = fx_jinja__closing(statements, FX_JK_MACRO, "endmacro");
    struct fx_jinja_parser *parser = statements->parser;
    if (!block || !fx_jinja__add(statements, FX_JI_RETURN, 0, 0)) return false;
    fx_jinja__land(parser, block->body);
    statements->scopes = block->scopes;
    statements->depth--;
    return true;
}
