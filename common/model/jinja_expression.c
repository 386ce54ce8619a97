#include "common/model/jinja.h"

/* Expressions by recursive descent, a function per level of precedence as in Jinja's own parser.
 * It recurses because the grammar does; FX_TEMPLATE_DEPTH_MAX bounds it. Each function leaves the
 * code that pushes its value. */

static FX_MUST bool parse_or(struct fx_jinja_parser *parser);
static FX_MUST bool parse_unary(struct fx_jinja_parser *parser, bool filters);

static uint32_t line(const struct fx_jinja_parser *parser) {
    return parser->token->line;
}

static FX_MUST bool enter(struct fx_jinja_parser *parser) {
    if (parser->depth++ < FX_TEMPLATE_DEPTH_MAX) return true;
    return fx_jinja__refuse(parser, line(parser), "expression nested deeper than %d",
                            FX_TEMPLATE_DEPTH_MAX);
}

static FX_MUST bool constant(struct fx_jinja_parser *parser, struct fx_jinja_value value) {
    return fx_jinja__constant(parser, FX_JI_CONST, value);
}

static FX_MUST bool push_none(struct fx_jinja_parser *parser) {
    return constant(parser, (struct fx_jinja_value){.kind = FX_JV_NONE});
}

static FX_MUST bool push_text(struct fx_jinja_parser *parser, fx_span text) {
    return constant(parser,
                    (struct fx_jinja_value){.kind = FX_JV_TEXT, .text = fx_jinja__literal(text)});
}

static FX_MUST bool push_integer(struct fx_jinja_parser *parser, int64_t integer) {
    return constant(parser, (struct fx_jinja_value){.kind = FX_JV_INT, .integer = integer});
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

/* (a, b, name=c): positional, then by name in the order of `parameters`. */
static FX_MUST bool parse_argument(struct fx_jinja_parser *parser,
                                   const struct fx_jinja_callable *callee, size_t index) {
    const struct fx_jinja_token *token = parser->token;
    if (fx_jinja__is_op(parser, FX_JOP(0, '*')) || fx_jinja__is_op(parser, FX_JOP('*', '*')))
        return fx_jinja__refuse(parser, token->line, "'*' in a call is not supported");
    bool named = token->type == FX_JT_NAME && token[1].type == FX_JT_OPERATOR &&
                 token[1].op == FX_JOP(0, '=');
    if (named) {
        if (!callee->parameters || index >= callee->args_max ||
            !fx_span_eq_str(token->text, callee->parameters[index]))
            return fx_jinja__refuse(parser, token->line, "%s: argument '%.*s=' is not supported",
                                    callee->name, (int)token->text.len,
                                    (const char *)token->text.at);
        parser->token += 2;
    }
    return fx_jinja__expression(parser, true);
}

static FX_MUST bool parse_arguments(struct fx_jinja_parser *parser,
                                    const struct fx_jinja_callable *callee, size_t *count) {
    uint32_t at = line(parser);
    *count = 0;
    if (fx_jinja__skip_op(parser, FX_JOP(0, '('))) {
        while (!fx_jinja__is_op(parser, FX_JOP(0, ')'))) {
            if (*count && !fx_jinja__expect_op(parser, FX_JOP(0, ','))) return false;
            if (*count && fx_jinja__is_op(parser, FX_JOP(0, ')'))) break;
            if (*count == FX_JINJA_ARGS_MAX)
                return fx_jinja__refuse(parser, at, "%s: too many arguments", callee->name);
            if (!parse_argument(parser, callee, (*count)++)) return false;
        }
        if (!fx_jinja__expect_op(parser, FX_JOP(0, ')'))) return false;
    }
    if (*count >= callee->args_min && *count <= callee->args_max) return true;
    return fx_jinja__refuse(parser, at, "%s: %zu arguments, want %zu to %zu", callee->name, *count,
                            callee->args_min, callee->args_max);
}

/* raise_exception(text), the only function. */
static FX_MUST bool parse_call(struct fx_jinja_parser *parser, const struct fx_jinja_token *name) {
    static const struct fx_jinja_callable raise = {"raise_exception", 1, 1, NULL, NULL};
    size_t count;
    if (!fx_span_eq_str(name->text, raise.name))
        return fx_jinja__refuse(parser, name->line, "function %.*s() is not supported",
                                (int)name->text.len, (const char *)name->text.at);
    return parse_arguments(parser, &raise, &count) && fx_jinja__emit(parser, FX_JI_RAISE, 0, 0) &&
           push_none(parser);
}

static FX_MUST bool parse_name(struct fx_jinja_parser *parser) {
    const struct fx_jinja_token *token = parser->token++;
    struct fx_jinja_value value;
    size_t name;
    if (literal_word(token->text, &value)) return constant(parser, value);
    if (fx_jinja__is_op(parser, FX_JOP(0, '('))) return parse_call(parser, token);
    return fx_jinja__name(parser, token->text, &name) &&
           fx_jinja__emit(parser, FX_JI_LOAD, 0, (int64_t)name);
}

/* Adjacent literals are one. */
static FX_MUST bool parse_strings(struct fx_jinja_parser *parser) {
    bool first = true;
    for (; parser->token->type == FX_JT_STRING; first = false) {
        if (!push_text(parser, parser->token++->text)) return false;
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

static FX_MUST bool parse_parentheses(struct fx_jinja_parser *parser) {
    parser->token++;
    if (fx_jinja__is_op(parser, FX_JOP(0, ')')))
        return fx_jinja__refuse(parser, line(parser), "a tuple is not supported");
    return fx_jinja__expression(parser, true) && fx_jinja__expect_op(parser, FX_JOP(0, ')'));
}

static FX_MUST bool parse_operand(struct fx_jinja_parser *parser) {
    switch (parser->token->op) {
    case FX_JOP(0, '('): return parse_parentheses(parser);
    case FX_JOP(0, '['): return parse_list(parser);
    case FX_JOP(0, '{'):
        return fx_jinja__refuse(parser, line(parser), "a mapping literal {...} is not supported");
    default: return fx_jinja__unexpected(parser, "an expression");
    }
}

static FX_MUST bool parse_primary(struct fx_jinja_parser *parser) {
    const struct fx_jinja_token *token = parser->token;
    switch (token->type) {
    case FX_JT_NAME: return parse_name(parser);
    case FX_JT_STRING: return parse_strings(parser);
    case FX_JT_INTEGER: parser->token++; return push_integer(parser, token->integer);
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

static const struct fx_jinja_callable *find(const struct fx_jinja_callable *rows, fx_span name) {
    for (; rows->name; rows++)
        if (fx_span_eq_str(name, rows->name)) return rows;
    return NULL;
}

/* Applies a row of `rows` named by the current token to the value on the stack. */
static FX_MUST bool apply(struct fx_jinja_parser *parser, enum fx_jinja_op op, const char *what,
                          const struct fx_jinja_callable *rows) {
    const struct fx_jinja_token *token = parser->token;
    size_t count;
    if (token->type != FX_JT_NAME) return fx_jinja__unexpected(parser, "a name");
    const struct fx_jinja_callable *row = find(rows, token->text);
    if (!row)
        return fx_jinja__refuse(parser, token->line, "%s '%.*s' is not supported", what,
                                (int)token->text.len, (const char *)token->text.at);
    parser->token++;
    return parse_arguments(parser, row, &count) && fx_jinja__emit(parser, op, count, row - rows);
}

static FX_MUST bool parse_attribute(struct fx_jinja_parser *parser) {
    const struct fx_jinja_token *token = ++parser->token;
    if (token->type == FX_JT_INTEGER) {
        parser->token++;
        return push_integer(parser, token->integer) && fx_jinja__emit(parser, FX_JI_ITEM, 0, 0);
    }
    if (token->type != FX_JT_NAME) return fx_jinja__unexpected(parser, "a name or number");
    if (token[1].type == FX_JT_OPERATOR && token[1].op == FX_JOP(0, '('))
        return apply(parser, FX_JI_METHOD, "method", fx_jinja__methods);
    parser->token++;
    return fx_jinja__constant(
        parser, FX_JI_ATTRIBUTE,
        (struct fx_jinja_value){.kind = FX_JV_TEXT, .text = fx_jinja__literal(token->text)});
}

static bool ends_slice_part(const struct fx_jinja_parser *parser) {
    return fx_jinja__is_op(parser, FX_JOP(0, ':')) || fx_jinja__is_op(parser, FX_JOP(0, ']'));
}

static FX_MUST bool parse_slice_part(struct fx_jinja_parser *parser) {
    return ends_slice_part(parser) ? push_none(parser) : fx_jinja__expression(parser, true);
}

static FX_MUST bool parse_subscript(struct fx_jinja_parser *parser) {
    enum fx_jinja_op op = FX_JI_ITEM;
    parser->token++;
    if (fx_jinja__is_op(parser, FX_JOP(0, ']'))) return fx_jinja__unexpected(parser, "a key");
    if (!parse_slice_part(parser)) return false;
    if (fx_jinja__skip_op(parser, FX_JOP(0, ':'))) {
        op = FX_JI_SLICE;
        if (!parse_slice_part(parser)) return false;
        bool step = fx_jinja__skip_op(parser, FX_JOP(0, ':'));
        if (!(step ? parse_slice_part(parser) : push_none(parser))) return false;
    }
    if (fx_jinja__is_op(parser, FX_JOP(0, ',')))
        return fx_jinja__refuse(parser, line(parser), "a tuple is not supported");
    return fx_jinja__expect_op(parser, FX_JOP(0, ']')) && fx_jinja__emit(parser, op, 0, 0);
}

static FX_MUST bool parse_postfix(struct fx_jinja_parser *parser) {
    for (;;) {
        if (fx_jinja__is_op(parser, FX_JOP(0, '.'))) {
            if (!parse_attribute(parser)) return false;
        } else if (fx_jinja__is_op(parser, FX_JOP(0, '['))) {
            if (!parse_subscript(parser)) return false;
        } else if (fx_jinja__is_op(parser, FX_JOP(0, '('))) {
            return fx_jinja__refuse(parser, line(parser), "calling a value is not supported");
        } else {
            return true;
        }
    }
}

/* `is divisibleby 3`: one argument may stand without parentheses. */
static FX_MUST bool parse_bare_argument(struct fx_jinja_parser *parser,
                                        const struct fx_jinja_callable *row) {
    if (!enter(parser) || !parse_primary(parser) || !parse_postfix(parser)) return false;
    parser->depth--;
    return fx_jinja__emit(parser, FX_JI_TEST, 1, row - fx_jinja__tests);
}

static FX_MUST bool parse_test(struct fx_jinja_parser *parser) {
    parser->token++;
    bool negated = fx_jinja__skip_word(parser, "not");
    const struct fx_jinja_token *token = parser->token;
    const struct fx_jinja_callable *row = find(fx_jinja__tests, token->text);
    bool bare = row && token->type == FX_JT_NAME && row->args_min == 1 &&
                !(token[1].type == FX_JT_OPERATOR && token[1].op == FX_JOP(0, '('));
    if (bare) {
        parser->token++;
        if (!parse_bare_argument(parser, row)) return false;
    } else if (!apply(parser, FX_JI_TEST, "test", fx_jinja__tests)) {
        return false;
    }
    return !negated || fx_jinja__emit(parser, FX_JI_NOT, 0, 0);
}

static FX_MUST bool parse_filters(struct fx_jinja_parser *parser) {
    for (;;) {
        if (fx_jinja__skip_op(parser, FX_JOP(0, '|'))) {
            if (!apply(parser, FX_JI_FILTER, "filter", fx_jinja__filters)) return false;
        } else if (fx_jinja__is_word(parser, "is")) {
            if (!parse_test(parser)) return false;
        } else {
            return true;
        }
    }
}

static FX_MUST bool parse_sign(struct fx_jinja_parser *parser) {
    bool minus = parser->token->op == FX_JOP(0, '-');
    parser->token++;
    if (!enter(parser) || !parse_unary(parser, false)) return false;
    parser->depth--;
    return fx_jinja__emit(parser, minus ? FX_JI_NEGATE : FX_JI_PLUS, 0, 0);
}

static FX_MUST bool parse_unary(struct fx_jinja_parser *parser, bool filters) {
    bool sign = fx_jinja__is_op(parser, FX_JOP(0, '-')) || fx_jinja__is_op(parser, FX_JOP(0, '+'));
    if (!(sign ? parse_sign(parser) : parse_primary(parser)) || !parse_postfix(parser))
        return false;
    if (filters && !parse_filters(parser)) return false;
    if (!fx_jinja__is_op(parser, FX_JOP('*', '*'))) return true;
    return fx_jinja__refuse(parser, line(parser), "operator '**' is not supported");
}

static bool is_one_of(const struct fx_jinja_parser *parser, const uint16_t *ops) {
    for (; *ops; ops++)
        if (fx_jinja__is_op(parser, *ops)) return true;
    return false;
}

static FX_MUST bool parse_product(struct fx_jinja_parser *parser) {
    static const uint16_t ops[] = {FX_JOP(0, '*'), FX_JOP(0, '/'), FX_JOP('/', '/'), FX_JOP(0, '%'),
                                   0};
    if (!parse_unary(parser, true)) return false;
    while (is_one_of(parser, ops)) {
        uint16_t op = parser->token++->op;
        if (!parse_unary(parser, true) || !fx_jinja__emit(parser, FX_JI_BINARY, 0, op))
            return false;
    }
    return true;
}

static FX_MUST bool parse_concat(struct fx_jinja_parser *parser) {
    if (!parse_product(parser)) return false;
    while (fx_jinja__skip_op(parser, FX_JOP(0, '~')))
        if (!parse_product(parser) || !fx_jinja__emit(parser, FX_JI_CONCAT, 0, 0)) return false;
    return true;
}

static FX_MUST bool parse_sum(struct fx_jinja_parser *parser) {
    static const uint16_t ops[] = {FX_JOP(0, '+'), FX_JOP(0, '-'), 0};
    if (!parse_concat(parser)) return false;
    while (is_one_of(parser, ops)) {
        uint16_t op = parser->token++->op;
        if (!parse_concat(parser) || !fx_jinja__emit(parser, FX_JI_BINARY, 0, op)) return false;
    }
    return true;
}

/* The comparison at the current token, 0 if there is none; takes it. */
static uint16_t take_comparison(struct fx_jinja_parser *parser) {
    static const uint16_t ops[] = {FX_JOP('=', '='),
                                   FX_JOP('!', '='),
                                   FX_JOP('<', '='),
                                   FX_JOP('>', '='),
                                   FX_JOP(0, '<'),
                                   FX_JOP(0, '>'),
                                   0};
    if (is_one_of(parser, ops)) return parser->token++->op;
    if (fx_jinja__skip_word(parser, "in")) return FX_JB_IN;
    const struct fx_jinja_token *token = parser->token;
    bool not_in = fx_jinja__is_word(parser, "not") && token[1].type == FX_JT_NAME &&
                  fx_span_eq_str(token[1].text, "in");
    if (!not_in) return 0;
    parser->token += 2;
    return FX_JB_NOT_IN;
}

static FX_MUST bool parse_comparison(struct fx_jinja_parser *parser) {
    if (!parse_sum(parser)) return false;
    uint16_t op = take_comparison(parser);
    if (!op) return true;
    if (!parse_sum(parser) || !fx_jinja__emit(parser, FX_JI_BINARY, 0, op)) return false;
    uint32_t at = line(parser);
    if (!take_comparison(parser)) return true;
    return fx_jinja__refuse(parser, at, "a chained comparison is not supported");
}

static FX_MUST bool parse_not(struct fx_jinja_parser *parser) {
    size_t negations = 0;
    while (fx_jinja__skip_word(parser, "not"))
        negations++;
    if (!parse_comparison(parser)) return false;
    while (negations--)
        if (!fx_jinja__emit(parser, FX_JI_NOT, 0, 0)) return false;
    return true;
}

static FX_MUST bool parse_and(struct fx_jinja_parser *parser) {
    if (!parse_not(parser)) return false;
    while (fx_jinja__skip_word(parser, "and")) {
        size_t jump = parser->template->code_count;
        if (!fx_jinja__emit(parser, FX_JI_AND, 0, 0) || !parse_not(parser)) return false;
        fx_jinja__land(parser, jump);
    }
    return true;
}

static FX_MUST bool parse_or(struct fx_jinja_parser *parser) {
    if (!parse_and(parser)) return false;
    while (fx_jinja__skip_word(parser, "or")) {
        size_t jump = parser->template->code_count;
        if (!fx_jinja__emit(parser, FX_JI_OR, 0, 0) || !parse_and(parser)) return false;
        fx_jinja__land(parser, jump);
    }
    return true;
}

/* Brings code[middle..end) in front of code[start..middle). Jumps are relative and stay inside
 * their part, so both parts move as they are. */
static void reverse(struct fx_jinja_instruction *code, size_t from, size_t to) {
    for (; from + 1 < to; from++, to--) {
        struct fx_jinja_instruction swap = code[from];
        code[from] = code[to - 1];
        code[to - 1] = swap;
    }
}
static void rotate(struct fx_jinja_instruction *code, size_t start, size_t middle, size_t end) {
    reverse(code, start, middle);
    reverse(code, middle, end);
    reverse(code, start, end);
}

/* `a if b else c`: a's code comes first in the text and second when run. */
static FX_MUST bool parse_condition(struct fx_jinja_parser *parser, size_t start) {
    struct fx_template *template = parser->template;
    size_t middle = template->code_count;
    if (!parse_or(parser)) return false;
    size_t skip = template->code_count;
    if (!fx_jinja__emit(parser, FX_JI_JUMP_FALSE, 0, 0)) return false;
    size_t moved = start + (template->code_count - middle); /* where a's code will begin */
    rotate(template->code, start, middle, template->code_count);
    skip = skip - middle + start;
    FX_ASSERT(moved == skip + 1);
    size_t end = template->code_count;
    if (!fx_jinja__emit(parser, FX_JI_JUMP, 0, 0)) return false;
    fx_jinja__land(parser, skip);
    if (fx_jinja__skip_word(parser, "else")) {
        if (!fx_jinja__expression(parser, true)) return false;
    } else if (!constant(parser, (struct fx_jinja_value){.kind = FX_JV_UNDEFINED})) {
        return false;
    }
    fx_jinja__land(parser, end);
    return true;
}

bool fx_jinja__expression(struct fx_jinja_parser *parser, bool conditional) {
    size_t start = parser->template->code_count;
    if (!enter(parser) || !parse_or(parser)) return false;
    while (conditional && fx_jinja__skip_word(parser, "if"))
        if (!parse_condition(parser, start)) return false;
    parser->depth--;
    if (!conditional || !fx_jinja__is_op(parser, FX_JOP(0, '('))) return true;
    return fx_jinja__refuse(parser, line(parser), "calling a value is not supported");
}
