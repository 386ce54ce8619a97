#include "common/model/jinja_code.h"

/* Expressions by recursive descent, a function per level of precedence as in Jinja's own parser.
 * It recurses because the grammar does; FX_TEMPLATE_DEPTH_MAX bounds it. Each function leaves the
 * code that pushes its value. */

static FX_MUST bool parse_or(struct fx_jinja_parser *parser);
static FX_MUST bool parse_unary(struct fx_jinja_parser *parser, bool filters);

static uint32_t line(const struct fx_jinja_parser *parser) {
    return parser->token->line;
}

bool fx_jinja__enter(struct fx_jinja_parser *parser) {
    if (parser->depth++ < FX_TEMPLATE_DEPTH_MAX) return true;
    return fx_jinja__refuse(parser, line(parser), "expression nested deeper than %d",
                            FX_TEMPLATE_DEPTH_MAX);
}

static FX_MUST bool parse_attribute(struct fx_jinja_parser *parser) {
    const struct fx_jinja_token *token = ++parser->token;
    if (token->type == FX_JT_INTEGER) {
        parser->token++;
        return fx_jinja__push_integer(parser, token->integer) &&
               fx_jinja__emit(parser, FX_JI_ITEM, 0, 0);
    }
    if (token->type != FX_JT_NAME) return fx_jinja__unexpected(parser, "a name or number");
    bool call = token[1].type == FX_JT_OPERATOR && token[1].op == FX_JOP(0, '(');
    bool macro = parser->template->macro_count && !fx_jinja__find(FX_JF_METHOD, token->text);
    if (call && !macro) return fx_jinja__application(parser, FX_JF_METHOD);
    parser->token++;
    return fx_jinja__constant(parser, FX_JI_ATTRIBUTE,
                              fx_jinja__text_value(fx_jinja__literal(token->text)));
}

static bool ends_slice_part(const struct fx_jinja_parser *parser) {
    return fx_jinja__is_op(parser, FX_JOP(0, ':')) || fx_jinja__is_op(parser, FX_JOP(0, ']'));
}

static FX_MUST bool parse_slice_part(struct fx_jinja_parser *parser) {
    return ends_slice_part(parser) ? fx_jinja__push_none(parser)
                                   : fx_jinja__expression(parser, true);
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
        if (!(step ? parse_slice_part(parser) : fx_jinja__push_none(parser))) return false;
    }
    if (fx_jinja__is_op(parser, FX_JOP(0, ',')))
        return fx_jinja__refuse(parser, line(parser), "several subscripts are not supported");
    return fx_jinja__expect_op(parser, FX_JOP(0, ']')) && fx_jinja__emit(parser, op, 0, 0);
}

static FX_MUST bool parse_call(struct fx_jinja_parser *parser) {
    size_t args;
    return fx_jinja__arguments(parser, NULL, &args) && fx_jinja__emit(parser, FX_JI_CALL, args, 0);
}

static FX_MUST bool parse_postfix(struct fx_jinja_parser *parser) {
    for (;;) {
        if (fx_jinja__is_op(parser, FX_JOP(0, '.'))) {
            if (!parse_attribute(parser)) return false;
        } else if (fx_jinja__is_op(parser, FX_JOP(0, '['))) {
            if (!parse_subscript(parser)) return false;
        } else if (fx_jinja__is_op(parser, FX_JOP(0, '('))) {
            if (!parse_call(parser)) return false;
        } else {
            return true;
        }
    }
}

/* `is divisibleby 3`: one argument may stand without parentheses. */
static FX_MUST bool parse_bare_argument(struct fx_jinja_parser *parser,
                                        const struct fx_jinja_callable *row) {
    struct fx_jinja_value test = {.kind = FX_JV_METHOD, .callable = row};
    if (!fx_jinja__enter(parser) || !fx_jinja__primary(parser) || !parse_postfix(parser))
        return false;
    parser->depth--;
    if (!fx_jinja__constant(parser, FX_JI_APPLY, test)) return false;
    parser->template->code[parser->template->code_count - 1].b = FX_JARGS(1, 0);
    return true;
}

static FX_MUST bool parse_test(struct fx_jinja_parser *parser) {
    parser->token++;
    bool negated = fx_jinja__skip_word(parser, "not");
    const struct fx_jinja_token *token = parser->token;
    const struct fx_jinja_callable *row =
        token->type == FX_JT_NAME ? fx_jinja__find(FX_JF_TEST, token->text) : NULL;
    bool bare = row && row->args_min == 1 &&
                !(token[1].type == FX_JT_OPERATOR && token[1].op == FX_JOP(0, '('));
    if (bare) {
        parser->token++;
        if (!parse_bare_argument(parser, row)) return false;
    } else if (!fx_jinja__application(parser, FX_JF_TEST)) {
        return false;
    }
    return !negated || fx_jinja__emit(parser, FX_JI_NOT, 0, 0);
}

static FX_MUST bool parse_filters(struct fx_jinja_parser *parser) {
    for (;;) {
        if (fx_jinja__skip_op(parser, FX_JOP(0, '|'))) {
            if (!fx_jinja__application(parser, FX_JF_FILTER)) return false;
        } else if (fx_jinja__is_word(parser, "is")) {
            if (!parse_test(parser)) return false;
        } else if (fx_jinja__is_op(parser, FX_JOP(0, '('))) {
            if (!parse_call(parser)) return false;
        } else {
            return true;
        }
    }
}

static FX_MUST bool parse_sign(struct fx_jinja_parser *parser) {
    bool minus = parser->token->op == FX_JOP(0, '-');
    parser->token++;
    if (!fx_jinja__enter(parser) || !parse_unary(parser, false)) return false;
    parser->depth--;
    return fx_jinja__emit(parser, minus ? FX_JI_NEGATE : FX_JI_PLUS, 0, 0);
}

static FX_MUST bool parse_unary(struct fx_jinja_parser *parser, bool filters) {
    bool sign = fx_jinja__is_op(parser, FX_JOP(0, '-')) || fx_jinja__is_op(parser, FX_JOP(0, '+'));
    if (!(sign ? parse_sign(parser) : fx_jinja__primary(parser)) || !parse_postfix(parser))
        return false;
    return !filters || parse_filters(parser);
}

/* From the left, as Jinja does it. */
static FX_MUST bool parse_power(struct fx_jinja_parser *parser) {
    if (!parse_unary(parser, true)) return false;
    while (fx_jinja__skip_op(parser, FX_JOP('*', '*')))
        if (!parse_unary(parser, true) ||
            !fx_jinja__emit(parser, FX_JI_BINARY, 0, FX_JOP('*', '*')))
            return false;
    return true;
}

static bool is_one_of(const struct fx_jinja_parser *parser, const uint16_t *ops) {
    for (; *ops; ops++)
        if (fx_jinja__is_op(parser, *ops)) return true;
    return false;
}

static FX_MUST bool parse_product(struct fx_jinja_parser *parser) {
    static const uint16_t ops[] = {FX_JOP(0, '*'), FX_JOP(0, '/'), FX_JOP('/', '/'), FX_JOP(0, '%'),
                                   0};
    if (!parse_power(parser)) return false;
    while (is_one_of(parser, ops)) {
        uint16_t op = parser->token++->op;
        if (!parse_power(parser) || !fx_jinja__emit(parser, FX_JI_BINARY, 0, op)) return false;
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

/* `a < b < c`: each but the last goes to the end where it does not hold. */
static FX_MUST bool parse_comparison(struct fx_jinja_parser *parser) {
    size_t jumps[FX_TEMPLATE_DEPTH_MAX], count = 0;
    if (!parse_sum(parser)) return false;
    for (uint16_t op = take_comparison(parser), next = 0; op; op = next) {
        if (!parse_sum(parser)) return false;
        uint32_t at = line(parser);
        next = take_comparison(parser);
        if (next && count == FX_COUNT(jumps))
            return fx_jinja__refuse(parser, at, "more than %zu comparisons in a chain", count);
        if (next) jumps[count++] = parser->template->code_count;
        if (!(next ? fx_jinja__emit(parser, FX_JI_CHAIN, op, 0)
                   : fx_jinja__emit(parser, FX_JI_BINARY, 0, op)))
            return false;
    }
    while (count)
        fx_jinja__land(parser, jumps[--count]);
    return true;
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
    } else if (!fx_jinja__constant(parser, FX_JI_CONST,
                                   (struct fx_jinja_value){.kind = FX_JV_UNDEFINED})) {
        return false;
    }
    fx_jinja__land(parser, end);
    return true;
}

bool fx_jinja__expression(struct fx_jinja_parser *parser, bool conditional) {
    size_t start = parser->template->code_count;
    if (!fx_jinja__enter(parser) || !parse_or(parser)) return false;
    while (conditional && fx_jinja__skip_word(parser, "if"))
        if (!parse_condition(parser, start)) return false;
    parser->depth--;
    return true;
}

static bool ends_tuple(const struct fx_jinja_parser *parser) {
    return parser->token->type == FX_JT_EXPRESSION_END ||
           parser->token->type == FX_JT_STATEMENT_END || fx_jinja__is_op(parser, FX_JOP(0, ')'));
}

bool fx_jinja__tuple(struct fx_jinja_parser *parser, bool conditional) {
    int64_t count = 1;
    if (!fx_jinja__expression(parser, conditional)) return false;
    if (!fx_jinja__is_op(parser, FX_JOP(0, ','))) return true;
    while (fx_jinja__skip_op(parser, FX_JOP(0, ',')) && !ends_tuple(parser)) {
        if (!fx_jinja__expression(parser, conditional)) return false;
        count++;
    }
    return fx_jinja__emit(parser, FX_JI_LIST, 1, count);
}
