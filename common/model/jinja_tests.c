#include "common/model/jinja.h"

/* {{ value is test }}; args[0] is the value. */

#define JINJA_TEST(name, expression)                                                               \
    static bool test_##name(struct fx_jinja_run *run, const struct fx_jinja_value *args,           \
                            size_t count, struct fx_jinja_value *out) {                            \
        const struct fx_jinja_value *value = &args[0];                                             \
        (void)run;                                                                                 \
        (void)count;                                                                               \
        bool yes = (expression);                                                                   \
        *out = (struct fx_jinja_value){.kind = FX_JV_BOOL, .boolean = yes};                        \
        return true;                                                                               \
    }

JINJA_TEST(defined, value->kind != FX_JV_UNDEFINED)
JINJA_TEST(undefined, value->kind == FX_JV_UNDEFINED)
JINJA_TEST(none, value->kind == FX_JV_NONE)
JINJA_TEST(string, value->kind == FX_JV_TEXT)
JINJA_TEST(number, fx_jinja__is_number(value))
JINJA_TEST(integer, value->kind == FX_JV_INT)
JINJA_TEST(float, value->kind == FX_JV_FLOAT)
JINJA_TEST(boolean, value->kind == FX_JV_BOOL)
JINJA_TEST(true, value->kind == FX_JV_BOOL && value->boolean)
JINJA_TEST(false, value->kind == FX_JV_BOOL && !value->boolean)
JINJA_TEST(mapping, value->kind == FX_JV_DICT)
JINJA_TEST(callable, value->kind == FX_JV_MACRO || value->kind == FX_JV_FUNCTION ||
                         value->kind == FX_JV_METHOD || value->kind == FX_JV_UNDEFINED)

/* Undefined has a length and can be iterated. */
static bool is_sequence(const struct fx_jinja_value *value) {
    return value->kind == FX_JV_LIST || value->kind == FX_JV_TEXT || value->kind == FX_JV_DICT ||
           value->kind == FX_JV_UNDEFINED;
}
JINJA_TEST(sequence, is_sequence(value))
JINJA_TEST(iterable, is_sequence(value) || value->kind == FX_JV_LOOP || value->kind == FX_JV_VIEW ||
                         value->kind == FX_JV_STREAM)

static FX_MUST bool rest(struct fx_jinja_run *run, const struct fx_jinja_value *a,
                         const struct fx_jinja_value *b, int64_t want, bool *out) {
    struct fx_jinja_value left, right = {.kind = FX_JV_INT, .integer = want};
    return fx_jinja__binary(run, '%', a, b, &left) && fx_jinja__equal(run, &left, &right, out);
}

static FX_MUST bool is_rest(struct fx_jinja_run *run, const struct fx_jinja_value *a, int64_t by,
                            int64_t want, struct fx_jinja_value *out) {
    struct fx_jinja_value divisor = {.kind = FX_JV_INT, .integer = by};
    bool yes;
    if (!rest(run, a, &divisor, want, &yes)) return false;
    *out = (struct fx_jinja_value){.kind = FX_JV_BOOL, .boolean = yes};
    return true;
}

static bool test_odd(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                     struct fx_jinja_value *out) {
    (void)count;
    return is_rest(run, &args[0], 2, 1, out);
}

static bool test_even(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                      struct fx_jinja_value *out) {
    (void)count;
    return is_rest(run, &args[0], 2, 0, out);
}

static bool test_divisibleby(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                             size_t count, struct fx_jinja_value *out) {
    bool yes;
    (void)count;
    if (!rest(run, &args[0], &args[1], 0, &yes)) return false;
    *out = (struct fx_jinja_value){.kind = FX_JV_BOOL, .boolean = yes};
    return true;
}

static bool test_equalto(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    (void)count;
    return fx_jinja__binary(run, FX_JOP('=', '='), &args[0], &args[1], out);
}

static bool test_ne(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                    struct fx_jinja_value *out) {
    (void)count;
    return fx_jinja__binary(run, FX_JOP('!', '='), &args[0], &args[1], out);
}

static bool test_in(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                    struct fx_jinja_value *out) {
    (void)count;
    return fx_jinja__binary(run, FX_JB_IN, &args[0], &args[1], out);
}

#define JINJA_COMPARISON(name, op)                                                                 \
    static bool test_##name(struct fx_jinja_run *run, const struct fx_jinja_value *args,           \
                            size_t count, struct fx_jinja_value *out) {                            \
        (void)count;                                                                               \
        return fx_jinja__binary(run, op, &args[0], &args[1], out);                                 \
    }
JINJA_COMPARISON(lt, '<')
JINJA_COMPARISON(le, FX_JOP('<', '='))
JINJA_COMPARISON(gt, '>')
JINJA_COMPARISON(ge, FX_JOP('>', '='))

/* As str.islower(), by what changing the case does: letters that have one are all of it. */
static FX_MUST bool has_case(struct fx_jinja_run *run, const struct fx_jinja_value *value,
                             enum fx_jinja_case same, enum fx_jinja_case other,
                             struct fx_jinja_value *out) {
    struct fx_jinja_text text, kept, changed;
    if (!fx_jinja__to_text(run, value, &text) || !fx_jinja__case(run, same, text, &kept) ||
        !fx_jinja__case(run, other, text, &changed))
        return false;
    fx_span span = fx_jinja__span(text);
    *out = fx_jinja__bool(fx_span_eq(span, fx_jinja__span(kept)) &&
                          !fx_span_eq(span, fx_jinja__span(changed)));
    return true;
}

static bool test_lower(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                       struct fx_jinja_value *out) {
    (void)count;
    return has_case(run, &args[0], FX_JC_LOWER, FX_JC_UPPER, out);
}

static bool test_upper(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                       struct fx_jinja_value *out) {
    (void)count;
    return has_case(run, &args[0], FX_JC_UPPER, FX_JC_LOWER, out);
}

/* Identity: for what templates can hold, equal and of one kind, and not a list made twice. */
static bool test_sameas(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                        struct fx_jinja_value *out) {
    const struct fx_jinja_value *a = &args[0], *b = &args[1];
    bool nested = a->kind == FX_JV_LIST || a->kind == FX_JV_DICT;
    bool same = a->kind == b->kind;
    (void)count;
    if (same && nested)
        same = a->list.at == b->list.at && a->list.count == b->list.count;
    else if (same && !fx_jinja__equal(run, a, b, &same))
        return false;
    *out = fx_jinja__bool(same);
    return true;
}

const struct fx_jinja_callable fx_jinja__tests[] = {
    {"defined",     0, 0, NULL, test_defined,     0},
    {"undefined",   0, 0, NULL, test_undefined,   0},
    {"none",        0, 0, NULL, test_none,        0},
    {"string",      0, 0, NULL, test_string,      0},
    {"number",      0, 0, NULL, test_number,      0},
    {"integer",     0, 0, NULL, test_integer,     0},
    {"float",       0, 0, NULL, test_float,       0},
    {"boolean",     0, 0, NULL, test_boolean,     0},
    {"true",        0, 0, NULL, test_true,        0},
    {"false",       0, 0, NULL, test_false,       0},
    {"mapping",     0, 0, NULL, test_mapping,     0},
    {"sequence",    0, 0, NULL, test_sequence,    0},
    {"iterable",    0, 0, NULL, test_iterable,    0},
    {"callable",    0, 0, NULL, test_callable,    0},
    {"odd",         0, 0, NULL, test_odd,         0},
    {"even",        0, 0, NULL, test_even,        0},
    {"lower",       0, 0, NULL, test_lower,       0},
    {"upper",       0, 0, NULL, test_upper,       0},
    {"divisibleby", 1, 1, NULL, test_divisibleby, 0},
    {"equalto",     1, 1, NULL, test_equalto,     0},
    {"eq",          1, 1, NULL, test_equalto,     0},
    {"==",          1, 1, NULL, test_equalto,     0},
    {"ne",          1, 1, NULL, test_ne,          0},
    {"!=",          1, 1, NULL, test_ne,          0},
    {"in",          1, 1, NULL, test_in,          0},
    {"sameas",      1, 1, NULL, test_sameas,      0},
    {"lt",          1, 1, NULL, test_lt,          0},
    {"lessthan",    1, 1, NULL, test_lt,          0},
    {"<",           1, 1, NULL, test_lt,          0},
    {"le",          1, 1, NULL, test_le,          0},
    {"<=",          1, 1, NULL, test_le,          0},
    {"gt",          1, 1, NULL, test_gt,          0},
    {"greaterthan", 1, 1, NULL, test_gt,          0},
    {">",           1, 1, NULL, test_gt,          0},
    {"ge",          1, 1, NULL, test_ge,          0},
    {">=",          1, 1, NULL, test_ge,          0},
    {NULL,          0, 0, NULL, NULL,             0},
};
