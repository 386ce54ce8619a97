#include "common/model/jinja_code.h"

/* The innermost parts of expressions, and the arguments of calls. */

static FX_MUST bool constant(struct fx_jinja_parser *parser, struct fx_jinja_value value) {
    return fx_jinja__constant(parser, FX_JI_CONST, value);
}

bool fx_jinja__push_none(struct fx_jinja_parser *parser) {
    return constant(parser, (struct fx_jinja_value){.kind = FX_JV_NONE});
}

bool fx_jinja__push_text(struct fx_jinja_parser *parser, fx_span text) {
    return constant(parser, fx_jinja__text_value(fx_jinja__literal(text)));
}

bool fx_jinja__push_integer(struct fx_jinja_parser *parser, int64_t integer) {
    return constant(parser, fx_jinja__integer(integer));
}

/* true, False, none ...: names that are constants. */
static bool literal_word(fx_span name, struct fx_jinja_value *out) {
    bool yes = fx_span_eq_str(name, "true") || fx_span_eq_str(name, "True");
    bool no = fx_span_eq_str(name, "false") || fx_span_eq_str(name, "False");
    bool none = fx_span_eq_str(name, "none") || fx_span_eq_str(name, "None");
    *out = (struct fx_jinja_value){.kind = none ? FX_JV_NONE : FX_JV_BOOL};
    if (!none) out->boolean = yes;
    return yes || no || none;
}

static bool is_keyword(const struct fx_jinja_token *token) {
    return token->type == FX_JT_NAME && token[1].type == FX_JT_OPERATOR &&
           token[1].op == FX_JOP(0, '=');
}

/* A name that `callee` does not take is refused at once. */
static FX_MUST bool parse_keyword(struct fx_jinja_parser *parser,
                                  const struct fx_jinja_callable *callee) {
    const struct fx_jinja_token *token = parser->token;
    if (callee && fx_jinja__parameter(callee, token->text) == callee->args_max)
        return fx_jinja__refuse(parser, token->line, "%s: argument '%.*s=' is not supported",
                                callee->name, (int)token->text.len, (const char *)token->text.at);
    parser->token += 2;
    return fx_jinja__push_text(parser, token->text) && fx_jinja__expression(parser, true);
}

static FX_MUST bool parse_argument(struct fx_jinja_parser *parser,
                                   const struct fx_jinja_callable *callee, size_t *count,
                                   size_t *keywords) {
    uint32_t line = parser->token->line;
    bool keyword = is_keyword(parser->token);
    if (fx_jinja__is_op(parser, FX_JOP(0, '*')) || fx_jinja__is_op(parser, FX_JOP('*', '*')))
        return fx_jinja__refuse(parser, line, "'*' in a call is not supported");
    if (*count + *keywords == FX_JARGS_MAX)
        return fx_jinja__refuse(parser, line, "more than %d arguments", FX_JARGS_MAX);
    if (!keyword && *keywords)
        return fx_jinja__refuse(parser, line, "an argument without a name follows one with a name");
    *(keyword ? keywords : count) += 1;
    return keyword ? parse_keyword(parser, callee) : fx_jinja__expression(parser, true);
}

static FX_MUST bool parse_parenthesis(struct fx_jinja_parser *parser,
                                      const struct fx_jinja_callable *callee, size_t *count,
                                      size_t *keywords) {
    parser->token++;
    while (!fx_jinja__skip_op(parser, FX_JOP(0, ')'))) {
        bool first = !*count && !*keywords;
        if (!first && !fx_jinja__expect_op(parser, FX_JOP(0, ','))) return false;
        if (!first && fx_jinja__skip_op(parser, FX_JOP(0, ')'))) return true;
        if (!parse_argument(parser, callee, count, keywords)) return false;
    }
    return true;
}

bool fx_jinja__arguments(struct fx_jinja_parser *parser, const struct fx_jinja_callable *callee,
                         size_t *args) {
    size_t count = 0, keywords = 0;
    uint32_t line = parser->token->line;
    if (!fx_jinja__enter(parser)) return false;
    if (fx_jinja__is_op(parser, FX_JOP(0, '(')) &&
        !parse_parenthesis(parser, callee, &count, &keywords))
        return false;
    parser->depth--;
    *args = FX_JARGS(count, keywords);
    count += keywords;
    if (!callee || (count >= callee->args_min && count <= callee->args_max)) return true;
    return fx_jinja__refuse(parser, line, "%s: %zu arguments, want %zu to %zu", callee->name, count,
                            callee->args_min, callee->args_max);
}

bool fx_jinja__application(struct fx_jinja_parser *parser, enum fx_jinja_family family) {
    static const char *const names[] = {"filter", "test", "method"};
    const struct fx_jinja_token *token = parser->token;
    enum fx_jinja_op op = family == FX_JF_METHOD ? FX_JI_METHOD : FX_JI_APPLY;
    size_t args;
    if (token->type != FX_JT_NAME) return fx_jinja__unexpected(parser, "a name");
    struct fx_jinja_value row = {.kind = FX_JV_METHOD,
                                 .callable = fx_jinja__find(family, token->text)};
    if (!row.callable)
        return fx_jinja__refuse(parser, token->line, "%s '%.*s' is not supported", names[family],
                                (int)token->text.len, (const char *)token->text.at);
    parser->token++;
    if (!fx_jinja__arguments(parser, row.callable, &args) || !fx_jinja__constant(parser, op, row))
        return false;
    parser->template->code[parser->template->code_count - 1].b = (uint16_t)args;
    return true;
}

static FX_MUST bool parse_name(struct fx_jinja_parser *parser) {
    const struct fx_jinja_token *token = parser->token++;
    struct fx_jinja_value value;
    size_t name;
    if (literal_word(token->text, &value)) return constant(parser, value);
    if (!fx_jinja__name(parser, token->text, &name)) return false;
    if (fx_jinja__is_op(parser, FX_JOP(0, '(')) && !parser->called[name])
        parser->called[name] = token->line;
    return fx_jinja__emit(parser, FX_JI_LOAD, 0, (int64_t)name);
}

/* Adjacent literals are one. */
static FX_MUST bool parse_strings(struct fx_jinja_parser *parser) {
    bool first = true;
    for (; parser->token->type == FX_JT_STRING; first = false) {
        if (!fx_jinja__push_text(parser, parser->token++->text)) return false;
        if (!first && !fx_jinja__emit(parser, FX_JI_CONCAT, 0, 0)) return false;
    }
    return true;
}

static FX_MUST bool parse_list(struct fx_jinja_parser *parser) {
    int64_t count = 0;
    parser->token++;
    while (!fx_jinja__is_op(parser, FX_JOP(0, ']'))) {
        if (count && !fx_jinja__expect_op(parser, FX_JOP(0, ','))) return false;
        if (fx_jinja__is_op(parser, FX_JOP(0, ']'))) break;
        if (!fx_jinja__expression(parser, true)) return false;
        count++;
    }
    parser->token++;
    return fx_jinja__emit(parser, FX_JI_LIST, 0, count);
}

static FX_MUST bool parse_dict(struct fx_jinja_parser *parser) {
    int64_t count = 0;
    parser->token++;
    while (!fx_jinja__is_op(parser, FX_JOP(0, '}'))) {
        if (count && !fx_jinja__expect_op(parser, FX_JOP(0, ','))) return false;
        if (fx_jinja__is_op(parser, FX_JOP(0, '}'))) break;
        if (!fx_jinja__expression(parser, true) || !fx_jinja__expect_op(parser, FX_JOP(0, ':')) ||
            !fx_jinja__expression(parser, true))
            return false;
        count++;
    }
    parser->token++;
    return fx_jinja__emit(parser, FX_JI_DICT, 0, count);
}

static FX_MUST bool parse_group(struct fx_jinja_parser *parser) {
    parser->token++;
    if (fx_jinja__skip_op(parser, FX_JOP(0, ')'))) return fx_jinja__emit(parser, FX_JI_LIST, 1, 0);
    return fx_jinja__tuple(parser, true) && fx_jinja__expect_op(parser, FX_JOP(0, ')'));
}

static FX_MUST bool parse_operand(struct fx_jinja_parser *parser) {
    switch (parser->token->op) {
    case FX_JOP(0, '('): return parse_group(parser);
    case FX_JOP(0, '['): return parse_list(parser);
    case FX_JOP(0, '{'): return parse_dict(parser);
    default: return fx_jinja__unexpected(parser, "an expression");
    }
}

bool fx_jinja__primary(struct fx_jinja_parser *parser) {
    const struct fx_jinja_token *token = parser->token;
    switch (token->type) {
    case FX_JT_NAME: return parse_name(parser);
    case FX_JT_STRING: return parse_strings(parser);
    case FX_JT_INTEGER: parser->token++; return fx_jinja__push_integer(parser, token->integer);
    case FX_JT_FLOAT:
        parser->token++;
        return constant(parser, (struct fx_jinja_value){.kind = FX_JV_FLOAT, .real = token->real});
    case FX_JT_OPERATOR: return parse_operand(parser);
    case FX_JT_DATA:
    case FX_JT_EXPRESSION:
    case FX_JT_EXPRESSION_END:
    case FX_JT_STATEMENT:
    case FX_JT_STATEMENT_END:
    case FX_JT_END: break;
    }
    return fx_jinja__unexpected(parser, "an expression");
}
