#include "common/model/jinja_number.h"
#include <math.h>

bool fx_jinja__truth(const struct fx_jinja_value *value) {
    switch (value->kind) {
    case FX_JV_BOOL: return value->boolean;
    case FX_JV_INT: return value->integer != 0;
    case FX_JV_FLOAT: return value->real != 0;
    case FX_JV_TEXT: return value->text.len != 0;
    case FX_JV_LIST:
    case FX_JV_DICT:
    case FX_JV_VIEW: return value->list.count != 0;
    case FX_JV_STREAM:
    case FX_JV_LOOP:
    case FX_JV_NAMESPACE:
    case FX_JV_MACRO:
    case FX_JV_FUNCTION:
    case FX_JV_METHOD: return true;
    case FX_JV_UNDEFINED:
    case FX_JV_NONE:
    case FX_JV_ABSENT: break;
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
        [FX_JV_VIEW] = "view of a mapping",
        [FX_JV_STREAM] = "generator",
        [FX_JV_LOOP] = "loop",
        [FX_JV_NAMESPACE] = "namespace",
        [FX_JV_MACRO] = "macro",
        [FX_JV_FUNCTION] = "function",
        [FX_JV_METHOD] = "method",
        [FX_JV_ABSENT] = "missing argument",
    };
    return names[value->kind];
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

/* base ** exponent of integers, the exponent not negative. */
static FX_MUST bool integer_power(struct fx_jinja_run *run, int64_t base, int64_t exponent,
                                  int64_t *out) {
    int64_t result = 1;
    bool overflow = false;
    for (; exponent && !overflow; exponent >>= 1) {
        if (exponent & 1) overflow = __builtin_mul_overflow(result, base, &result);
        if (exponent > 1 && !overflow) overflow = __builtin_mul_overflow(base, base, &base);
    }
    *out = result;
    return !overflow || fx_jinja__bad(run, "integer overflow");
}

static FX_MUST bool power(struct fx_jinja_run *run, const struct fx_jinja_value *a,
                          const struct fx_jinja_value *b, struct fx_jinja_value *out) {
    bool real = fx_jinja__is_real(a, b) || fx_jinja__as_integer(b) < 0;
    if (real && fx_jinja__as_real(a) == 0 && fx_jinja__as_real(b) < 0)
        return fx_jinja__bad(run, "zero to a negative power");
    if (real && fx_jinja__as_real(a) < 0 && fx_jinja__as_real(b) != floor(fx_jinja__as_real(b)))
        return fx_jinja__bad(run, "a complex number is not supported");
    if (!real) {
        *out = (struct fx_jinja_value){.kind = FX_JV_INT};
        return integer_power(run, fx_jinja__as_integer(a), fx_jinja__as_integer(b), &out->integer);
    }
    *out = (struct fx_jinja_value){.kind = FX_JV_FLOAT,
                                   .real = pow(fx_jinja__as_real(a), fx_jinja__as_real(b))};
    return isfinite(out->real) || !isfinite(fx_jinja__as_real(a)) ||
           !isfinite(fx_jinja__as_real(b)) || fx_jinja__bad(run, "the power is too large");
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
    if (op == FX_JOP('*', '*')) return power(run, a, b, out);
    if (op == '/' || fx_jinja__is_real(a, b)) {
        result.kind = FX_JV_FLOAT;
        if (!real_math(run, op, fx_jinja__as_real(a), fx_jinja__as_real(b), &result.real))
            return false;
    } else if (!integer_math(run, op, fx_jinja__as_integer(a), fx_jinja__as_integer(b),
                             &result.integer)) {
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
    struct fx_jinja_text one = text->text;
    uint8_t *bytes = fx_arena_alloc(run->arena, count * len);
    uint8_t *origin = one.origin ? fx_arena_alloc(run->arena, count * len) : NULL;
    if (!bytes || (one.origin && !origin)) return fx_jinja__full(run);
    for (size_t i = 0; len && i < count; i++) {
        memcpy(bytes + i * len, one.at, len);
        if (origin) memcpy(origin + i * len, one.origin, len);
    }
    run->steps += count * len / FX_JINJA_BYTES_STEP;
    *out = fx_jinja__text_value(
        (struct fx_jinja_text){bytes, count * len, origin, one.user, one.markup});
    return true;
}

static FX_MUST bool join_lists(struct fx_jinja_run *run, const struct fx_jinja_value *a,
                               const struct fx_jinja_value *b, struct fx_jinja_value *out) {
    size_t count = a->list.count + b->list.count;
    bool tuple = a->list.tuple;
    if (tuple != b->list.tuple) return fx_jinja__bad(run, "'+' of list and tuple");
    struct fx_jinja_value *items = fx_jinja__values(run, count);
    if (!items) return false;
    for (size_t i = 0; i < count; i++)
        items[i] = i < a->list.count ? a->list.at[i] : b->list.at[i - a->list.count];
    run->steps += count;
    *out = fx_jinja__list(items, count);
    out->list.tuple = tuple;
    return true;
}

static FX_MUST bool repeat_list(struct fx_jinja_run *run, const struct fx_jinja_value *list,
                                int64_t times, struct fx_jinja_value *out) {
    size_t count = times < 0 ? 0 : (size_t)times, len = list->list.count;
    bool tuple = list->list.tuple;
    if (len && count > FX_JINJA_RANGE_MAX / len)
        return fx_fail(run->err, FX_RESOURCE_EXHAUSTED, "a list times %zu is too long", count);
    struct fx_jinja_value *items = fx_jinja__values(run, len ? count * len : 0);
    if (!items) return false;
    for (size_t i = 0; len && i < count * len; i++)
        items[i] = list->list.at[i % len];
    run->steps += len ? count * len : 0;
    *out = fx_jinja__list(items, len ? count * len : 0);
    out->list.tuple = tuple;
    return true;
}

static bool is_count(const struct fx_jinja_value *value) {
    return value->kind == FX_JV_INT || value->kind == FX_JV_BOOL;
}

static FX_MUST bool arithmetic(struct fx_jinja_run *run, int32_t op, const struct fx_jinja_value *a,
                               const struct fx_jinja_value *b, struct fx_jinja_value *out) {
    if (fx_jinja__is_number(a) && fx_jinja__is_number(b)) return math(run, op, a, b, out);
    if (op == '+' && a->kind == FX_JV_TEXT && b->kind == FX_JV_TEXT) {
        struct fx_jinja_text left = a->text, right = b->text; /* out may be one of them */
        out->kind = FX_JV_TEXT;
        return fx_jinja__add_texts(run, left, right, &out->text);
    }
    if (op == '+' && a->kind == FX_JV_LIST && b->kind == FX_JV_LIST)
        return join_lists(run, a, b, out);
    if (op == '*' && is_count(b) && a->kind == FX_JV_LIST)
        return repeat_list(run, a, fx_jinja__as_integer(b), out);
    if (op == '*' && is_count(a) && b->kind == FX_JV_LIST)
        return repeat_list(run, b, fx_jinja__as_integer(a), out);
    if (op == '*' && is_count(b) && a->kind == FX_JV_TEXT)
        return repeat(run, a, fx_jinja__as_integer(b), out);
    if (op == '*' && is_count(a) && b->kind == FX_JV_TEXT)
        return repeat(run, b, fx_jinja__as_integer(a), out);
    if (op == '%' && a->kind == FX_JV_TEXT)
        return fx_jinja__bad(run, "string formatting with %% is not supported");
    char what[] = "'?'";
    what[1] = (char)(op & 0xff);
    return fx_jinja__type_error(run, what, a, b);
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
        if (!fx_jinja__contains(run, a, b, &yes)) return false;
        yes = yes == (op == FX_JB_IN);
        break;
    case '<':
    case '>':
    case FX_JOP('<', '='):
    case FX_JOP('>', '='):
        if (!fx_jinja__order(run, a, b, &order_of)) return false;
        yes = holds(op, order_of);
        break;
    default: return arithmetic(run, op, a, b, out);
    }
    *out = (struct fx_jinja_value){.kind = FX_JV_BOOL, .boolean = yes};
    return true;
}

bool fx_jinja__negate(struct fx_jinja_run *run, bool minus, struct fx_jinja_value *value) {
    if (!fx_jinja__is_number(value)) return fx_jinja__type_error(run, "sign", value, value);
    if (value->kind == FX_JV_FLOAT) {
        value->real = minus ? -value->real : value->real;
        return true;
    }
    int64_t number = fx_jinja__as_integer(value);
    *value = (struct fx_jinja_value){.kind = FX_JV_INT, .integer = minus ? -number : number};
    return true;
}

bool fx_jinja__want_text(struct fx_jinja_run *run, const char *what,
                         const struct fx_jinja_value *value) {
    if (value->kind == FX_JV_TEXT) return true;
    if (value->kind == FX_JV_UNDEFINED)
        return fx_jinja__bad(run, "'%.*s' is undefined", (int)value->text.len,
                             (const char *)value->text.at);
    return fx_jinja__bad(run, "%s wants a string, not a %s", what, fx_jinja__kind_name(value));
}

bool fx_jinja__want_integer(struct fx_jinja_run *run, const char *what,
                            const struct fx_jinja_value *value, int64_t *out) {
    if (value->kind != FX_JV_INT && value->kind != FX_JV_BOOL)
        return fx_jinja__bad(run, "%s wants an integer, not a %s", what,
                             fx_jinja__kind_name(value));
    *out = fx_jinja__as_integer(value);
    return true;
}
