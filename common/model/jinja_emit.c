#include "common/model/jinja_code.h"
#include "common/base/heap.h"
#include <stdio.h>

static FX_MUST bool grow(struct fx_jinja_parser *parser, void **at, size_t *cap, size_t size) {
    size_t wanted = *cap ? 2 * *cap : 64;
    void *grown = fx_realloc(*at, wanted, size);
    if (!grown) return fx_fail(parser->err, FX_RESOURCE_EXHAUSTED, "memory for a template");
    *at = grown;
    *cap = wanted;
    return true;
}

bool fx_jinja__emit(struct fx_jinja_parser *parser, enum fx_jinja_op op, size_t b, int64_t a) {
    struct fx_template *template = parser->template;
    void *code = template->code;
    if (template->code_count == FX_JINJA_CODE_MAX)
        return fx_jinja__refuse(parser, parser->token->line, "more than %d instructions",
                                FX_JINJA_CODE_MAX);
    if (template->code_count == template->code_cap) {
        if (!grow(parser, &code, &template->code_cap, sizeof *template->code)) return false;
        template->code = code;
    }
    template->code[template->code_count++] =
        (struct fx_jinja_instruction){(uint16_t)op, (uint16_t)b, parser->token->line, (int32_t)a};
    return true;
}

bool fx_jinja__constant(struct fx_jinja_parser *parser, enum fx_jinja_op op,
                        struct fx_jinja_value value) {
    struct fx_template *template = parser->template;
    void *constants = template->constants;
    if (template->constant_count == template->constant_cap) {
        if (!grow(parser, &constants, &template->constant_cap, sizeof *template->constants))
            return false;
        template->constants = constants;
    }
    template->constants[template->constant_count] = value;
    return fx_jinja__emit(parser, op, 0, (int64_t) template->constant_count++);
}

bool fx_jinja__name(struct fx_jinja_parser *parser, fx_span name, size_t *out) {
    struct fx_template *template = parser->template;
    for (size_t i = 0; i < template->name_count; i++) {
        if (!fx_span_eq(template->names[i], name)) continue;
        *out = i;
        return true;
    }
    if (template->name_count == FX_JINJA_NAMES_MAX)
        return fx_jinja__refuse(parser, parser->token->line, "more than %d variables",
                                FX_JINJA_NAMES_MAX);
    *out = template->name_count;
    template->names[template->name_count++] = name;
    return true;
}

void fx_jinja__land(struct fx_jinja_parser *parser, size_t at) {
    size_t target = parser->template->code_count;
    parser->template->code[at].a = (int32_t)(target - at - 1);
}

bool fx_jinja__is_op(const struct fx_jinja_parser *parser, uint16_t op) {
    return parser->token->type == FX_JT_OPERATOR && parser->token->op == op;
}

bool fx_jinja__is_word(const struct fx_jinja_parser *parser, const char *word) {
    return parser->token->type == FX_JT_NAME && fx_span_eq_str(parser->token->text, word);
}

bool fx_jinja__skip_op(struct fx_jinja_parser *parser, uint16_t op) {
    bool is = fx_jinja__is_op(parser, op);
    parser->token += is;
    return is;
}

bool fx_jinja__skip_word(struct fx_jinja_parser *parser, const char *word) {
    bool is = fx_jinja__is_word(parser, word);
    parser->token += is;
    return is;
}

static const char *operator_text(uint16_t op, char out[3]) {
    size_t len = 0;
    if (op >> 8) out[len++] = (char)(op >> 8);
    out[len++] = (char)(op & 0xff);
    out[len] = 0;
    return out;
}

static const char *token_text(const struct fx_jinja_token *token, char *out, size_t cap) {
    static const char *const names[] = {
        [FX_JT_DATA] = "text",           [FX_JT_EXPRESSION] = "'{{'",
        [FX_JT_EXPRESSION_END] = "'}}'", [FX_JT_STATEMENT] = "'{%'",
        [FX_JT_STATEMENT_END] = "'%}'",  [FX_JT_STRING] = "a string",
        [FX_JT_INTEGER] = "a number",    [FX_JT_FLOAT] = "a number",
        [FX_JT_END] = "the end",
    };
    char op[3];
    if (token->type == FX_JT_NAME) {
        int len = token->text.len < 64 ? (int)token->text.len : 64;
        (void)snprintf(out, cap, "'%.*s'", len, (const char *)token->text.at);
    } else if (token->type == FX_JT_OPERATOR) {
        (void)snprintf(out, cap, "'%s'", operator_text(token->op, op));
    } else {
        return names[token->type];
    }
    return out;
}

bool fx_jinja__unexpected(struct fx_jinja_parser *parser, const char *wanted) {
    char text[80];
    const struct fx_jinja_token *token = parser->token;
    return fx_jinja__refuse(parser, token->line, "%s is unexpected, want %s",
                            token_text(token, text, sizeof text), wanted);
}

bool fx_jinja__expect_op(struct fx_jinja_parser *parser, uint16_t op) {
    char text[3], wanted[8];
    if (fx_jinja__skip_op(parser, op)) return true;
    (void)snprintf(wanted, sizeof wanted, "'%s'", operator_text(op, text));
    return fx_jinja__unexpected(parser, wanted);
}
