#include "common/model/jinja.h"
#include <math.h>

bool fx_jinja__truth(const struct fx_jinja_value *value) {
    switch (value->kind) {
    case FX_JV_BOOL: return value->boolean;
    case FX_JV_INT: return value->integer != 0;
    case FX_JV_FLOAT: return value->real != 0;
    case FX_JV_TEXT: return value->text.len != 0;
    case FX_JV_LIST:
    case FX_JV_DICT: return value->list.count != 0;
    case FX_JV_LOOP: return true;
    case FX_JV_UNDEFINED:
    case FX_JV_NONE: break;
    }
    return false;
}

bool fx_jinja__is_number(const struct fx_jinja_value *value) {
    return value->kind == FX_JV_BOOL || value->kind == FX_JV_INT || value->kind == FX_JV_FLOAT;
}

const char *fx_jinja__kind_name(const struct fx_jinja_value *value) {
    static const char *const names[] = {
        [FX_JV_UNDEFINED] = "undefined value",
        [FX_JV_NONE] = "none",
        [FX_JV_BOOL] = "boolean",
        [FX_JV_INT] = "integer",
        [FX_JV_FLOAT] = "float",
        [FX_JV_TEXT] = "string",
        [FX_JV_LIST] = "list",
        [FX_JV_DICT] = "mapping",
        [FX_JV_LOOP] = "loop",
    };
    return names[value->kind];
}

static int64_t as_integer(const struct fx_jinja_value *value) {
    return value->kind == FX_JV_BOOL ? value->boolean : value->integer;
}

static double as_real(const struct fx_jinja_value *value) {
    return value->kind == FX_JV_FLOAT ? value->real : (double)as_integer(value);
}

static bool is_real(const struct fx_jinja_value *a, const struct fx_jinja_value *b) {
    return a->kind == FX_JV_FLOAT || b->kind == FX_JV_FLOAT;
}

static bool scalar_equal(const struct fx_jinja_value *a, const struct fx_jinja_value *b) {
    if (fx_jinja__is_number(a) && fx_jinja__is_number(b))
        return is_real(a, b) ? as_real(a) == as_real(b) : as_integer(a) == as_integer(b);
    if (a->kind != b->kind) return false;
    if (a->kind == FX_JV_TEXT) return fx_span_eq(fx_jinja__span(a->text), fx_jinja__span(b->text));
    return a->kind == FX_JV_NONE || a->kind == FX_JV_UNDEFINED ||
           (a->kind == FX_JV_LOOP && a->loop == b->loop);
}

static bool is_nested(const struct fx_jinja_value *value) {
    return value->kind == FX_JV_LIST || value->kind == FX_JV_DICT;
}

bool fx_jinja__equal(struct fx_jinja_run *run, const struct fx_jinja_value *a,
                     const struct fx_jinja_value *b, bool *out) {
    if (!is_nested(a) || a->kind != b->kind) {
        *out = scalar_equal(a, b);
        return true;
    }
    *out = a->list.count == b->list.count;
    for (size_t i = 0; *out && a->kind == FX_JV_LIST && i < a->list.count; i++) {
        if (is_nested(&a->list.at[i]) || is_nested(&b->list.at[i]))
            return fx_jinja__bad(run, "comparing nested lists is not supported");
        *out = scalar_equal(&a->list.at[i], &b->list.at[i]);
    }
    if (a->kind == FX_JV_DICT && *out && a->list.at != b->list.at)
        return fx_jinja__bad(run, "comparing mappings is not supported");
    return true;
}

static FX_MUST bool type_error(struct fx_jinja_run *run, const char *what,
                               const struct fx_jinja_value *a, const struct fx_jinja_value *b) {
    const struct fx_jinja_value *bad = b->kind == FX_JV_UNDEFINED ? b : a;
    if (bad->kind == FX_JV_UNDEFINED)
        return fx_jinja__bad(run, "'%.*s' is undefined", (int)bad->text.len,
                             (const char *)bad->text.at);
    return fx_jinja__bad(run, "%s of %s and %s", what, fx_jinja__kind_name(a),
                         fx_jinja__kind_name(b));
}

static FX_MUST bool integer_math(struct fx_jinja_run *run, int32_t op, int64_t a, int64_t b,
                                 int64_t *out) {
    bool overflow = false;
    switch (op) {
    case '+': overflow = __builtin_add_overflow(a, b, out); break;
    case '-': overflow = __builtin_sub_overflow(a, b, out); break;
    case '*': overflow = __builtin_mul_overflow(a, b, out); break;
    default: /* floor division and its rest */
        if (!b) return fx_jinja__bad(run, "division by zero");
        overflow = a == INT64_MIN && b == -1;
        if (overflow) break;
        int64_t quotient = a / b, rest = a % b;
        bool down = rest != 0 && (rest < 0) != (b < 0);
        *out = op == '%' ? rest + (down ? b : 0) : quotient - down;
    }
    return !overflow || fx_jinja__bad(run, "integer overflow");
}

static FX_MUST bool real_math(struct fx_jinja_run *run, int32_t op, double a, double b,
                              double *out) {
    if (op != '+' && op != '-' && op != '*' && b == 0)
        return fx_jinja__bad(run, "division by zero");
    switch (op) {
    case '+': *out = a + b; break;
    case '-': *out = a - b; break;
    case '*': *out = a * b; break;
    case '/': *out = a / b; break;
    default: {
        double rest = fmod(a, b);
        bool down = rest != 0 && (rest < 0) != (b < 0);
        if (op == '%')
            *out = down ? rest + b : rest != 0 ? rest : copysign(0, b);
        else
            *out = rint((a - rest) / b) - down;
    }
    }
    return true;
}

static FX_MUST bool math(struct fx_jinja_run *run, int32_t op, const struct fx_jinja_value *a,
                         const struct fx_jinja_value *b, struct fx_jinja_value *out) {
    struct fx_jinja_value result = {.kind = FX_JV_INT};
    if (op == '/' || is_real(a, b)) {
        result.kind = FX_JV_FLOAT;
        if (!real_math(run, op, as_real(a), as_real(b), &result.real)) return false;
    } else if (!integer_math(run, op, as_integer(a), as_integer(b), &result.integer)) {
        return false;
    }
    *out = result;
    return true;
}

static FX_MUST bool repeat(struct fx_jinja_run *run, const struct fx_jinja_value *text,
                           int64_t times, struct fx_jinja_value *out) {
    size_t count = times < 0 ? 0 : (size_t)times, len = text->text.len;
    if (len && count > FX_TEMPLATE_OUTPUT_BYTES_MAX / len)
        return fx_fail(run->err, FX_RESOURCE_EXHAUSTED, "a string times %zu is too long", count);
    if (!len) count = 0;
    struct fx_jinja_text *parts = fx_arena_array(run->arena, count, sizeof *parts);
    if (!parts) return fx_jinja__full(run);
    for (size_t i = 0; i < count; i++)
        parts[i] = text->text;
    out->kind = FX_JV_TEXT;
    return fx_jinja__concat(run, parts, count, &out->text);
}

static FX_MUST bool join_lists(struct fx_jinja_run *run, const struct fx_jinja_value *a,
                               const struct fx_jinja_value *b, struct fx_jinja_value *out) {
    size_t count = a->list.count + b->list.count;
    struct fx_jinja_value *items = fx_arena_array(run->arena, count, sizeof *items);
    if (!items) return fx_jinja__full(run);
    for (size_t i = 0; i < count; i++)
        items[i] = i < a->list.count ? a->list.at[i] : b->list.at[i - a->list.count];
    *out = (struct fx_jinja_value){
        .kind = FX_JV_LIST, .list = {items, count}
    };
    return true;
}

static FX_MUST bool arithmetic(struct fx_jinja_run *run, int32_t op, const struct fx_jinja_value *a,
                               const struct fx_jinja_value *b, struct fx_jinja_value *out) {
    if (fx_jinja__is_number(a) && fx_jinja__is_number(b)) return math(run, op, a, b, out);
    if (op == '+' && a->kind == FX_JV_TEXT && b->kind == FX_JV_TEXT) {
        struct fx_jinja_text parts[2] = {a->text, b->text};
        out->kind = FX_JV_TEXT;
        return fx_jinja__concat(run, parts, 2, &out->text);
    }
    if (op == '+' && a->kind == FX_JV_LIST && b->kind == FX_JV_LIST)
        return join_lists(run, a, b, out);
    if (op == '*' && a->kind == FX_JV_TEXT && b->kind == FX_JV_INT)
        return repeat(run, a, b->integer, out);
    if (op == '*' && a->kind == FX_JV_INT && b->kind == FX_JV_TEXT)
        return repeat(run, b, a->integer, out);
    if (op == '%' && a->kind == FX_JV_TEXT)
        return fx_jinja__bad(run, "string formatting with %% is not supported");
    char what[] = "'?'";
    what[1] = op == FX_JOP('/', '/') ? '/' : (char)op;
    return type_error(run, what, a, b);
}

/* < 0, 0, > 0; numbers with numbers and strings with strings (by code point). */
static FX_MUST bool order(struct fx_jinja_run *run, const struct fx_jinja_value *a,
                          const struct fx_jinja_value *b, int *out) {
    if (fx_jinja__is_number(a) && fx_jinja__is_number(b)) {
        double left = as_real(a), right = as_real(b);
        *out = (left > right) - (left < right);
        if (!is_real(a, b))
            *out = (as_integer(a) > as_integer(b)) - (as_integer(a) < as_integer(b));
        return true;
    }
    if (a->kind != FX_JV_TEXT || b->kind != FX_JV_TEXT) return type_error(run, "order", a, b);
    size_t shorter = a->text.len < b->text.len ? a->text.len : b->text.len;
    *out = shorter ? memcmp(a->text.at, b->text.at, shorter) : 0;
    if (!*out) *out = (a->text.len > b->text.len) - (a->text.len < b->text.len);
    return true;
}

static FX_MUST bool contains(struct fx_jinja_run *run, const struct fx_jinja_value *needle,
                             const struct fx_jinja_value *hay, bool *out) {
    *out = false;
    if (hay->kind == FX_JV_UNDEFINED) return true;
    if (hay->kind == FX_JV_TEXT && needle->kind == FX_JV_TEXT) {
        *out = !needle->text.len || (hay->text.len && memmem(hay->text.at, hay->text.len,
                                                             needle->text.at, needle->text.len));
        return true;
    }
    if (hay->kind != FX_JV_LIST && hay->kind != FX_JV_DICT)
        return type_error(run, "'in'", needle, hay);
    size_t step = hay->kind == FX_JV_DICT ? 2 : 1;
    for (size_t i = 0; i < hay->list.count && !*out; i++)
        if (!fx_jinja__equal(run, needle, &hay->list.at[i * step], out)) return false;
    return true;
}

static bool holds(int32_t op, int order_of) {
    switch (op) {
    case '<': return order_of < 0;
    case '>': return order_of > 0;
    case FX_JOP('<', '='): return order_of <= 0;
    default: return order_of >= 0;
    }
}

bool fx_jinja__binary(struct fx_jinja_run *run, int32_t op, const struct fx_jinja_value *a,
                      const struct fx_jinja_value *b, struct fx_jinja_value *out) {
    bool yes = false;
    int order_of = 0;
    switch (op) {
    case FX_JOP('=', '='):
    case FX_JOP('!', '='):
        if (!fx_jinja__equal(run, a, b, &yes)) return false;
        yes = yes == (op == FX_JOP('=', '='));
        break;
    case FX_JB_IN:
    case FX_JB_NOT_IN:
        if (!contains(run, a, b, &yes)) return false;
        yes = yes == (op == FX_JB_IN);
        break;
    case '<':
    case '>':
    case FX_JOP('<', '='):
    case FX_JOP('>', '='):
        if (!order(run, a, b, &order_of)) return false;
        yes = holds(op, order_of);
        break;
    default: return arithmetic(run, op, a, b, out);
    }
    *out = (struct fx_jinja_value){.kind = FX_JV_BOOL, .boolean = yes};
    return true;
}

bool fx_jinja__negate(struct fx_jinja_run *run, bool minus, struct fx_jinja_value *value) {
    if (!fx_jinja__is_number(value)) return type_error(run, "sign", value, value);
    if (value->kind == FX_JV_FLOAT) {
        value->real = minus ? -value->real : value->real;
        return true;
    }
    int64_t number = as_integer(value);
    *value = (struct fx_jinja_value){.kind = FX_JV_INT, .integer = minus ? -number : number};
    return true;
}
