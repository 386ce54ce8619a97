#include "common/model/jinja.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* int, float, abs, round. */

enum { DIGITS_MAX = 64, PRECISION_MAX = 30 };

/* A number's text as Python's float() takes it, less infinities and underscores. */
static bool parse_real(fx_span text, double *out) {
    char copy[DIGITS_MAX], *end;
    size_t from = fx_jinja__skip_space(text, 0), to = fx_jinja__trim_end(text, from);
    if (to == from || to - from >= sizeof copy) return false;
    for (size_t i = from; i < to; i++) {
        if (!text.at[i] || !strchr("0123456789+-.eE", text.at[i])) return false;
        copy[i - from] = (char)text.at[i];
    }
    copy[to - from] = 0;
    *out = strtod(copy, &end);
    return end == copy + (to - from);
}

static bool parse_integer(fx_span text, int base, int64_t *out) {
    char copy[DIGITS_MAX], *end;
    size_t from = fx_jinja__skip_space(text, 0), to = fx_jinja__trim_end(text, from);
    if (to == from || to - from >= sizeof copy) return false;
    memcpy(copy, text.at + from, to - from);
    copy[to - from] = 0;
    errno = 0;
    long long value = strtoll(copy, &end, base);
    if (errno || end != copy + (to - from)) return false;
    *out = value;
    return true;
}

static bool fits_integer(double value) {
    return value > -9.2e18 && value < 9.2e18;
}

/* int(default, base) */
static bool filter_int(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                       struct fx_jinja_value *out) {
    int64_t base = 10, integer = 0;
    double real = 0;
    (void)count;
    if (args[2].kind != FX_JV_ABSENT && !fx_jinja__want_integer(run, "int", &args[2], &base))
        return false;
    if (base < 2 || base > 36) return fx_jinja__bad(run, "int: a base of 2 to 36");
    const struct fx_jinja_value *value = &args[0];
    if (value->kind == FX_JV_UNDEFINED) return fx_jinja__want_text(run, "int", value);
    bool text = value->kind == FX_JV_TEXT;
    bool whole = value->kind == FX_JV_INT || value->kind == FX_JV_BOOL;
    if (whole) integer = value->kind == FX_JV_BOOL ? value->boolean : value->integer;
    if (text) whole = parse_integer(fx_jinja__span(value->text), (int)base, &integer);
    if (value->kind == FX_JV_FLOAT) real = value->real;
    bool number = value->kind == FX_JV_FLOAT ||
                  (text && !whole && parse_real(fx_jinja__span(value->text), &real));
    if (number && isfinite(real) && !fits_integer(real))
        return fx_jinja__bad(run, "integer overflow");
    if (whole)
        *out = fx_jinja__integer(integer);
    else if (number && isfinite(real))
        *out = fx_jinja__integer((int64_t)real);
    else
        *out = args[1].kind == FX_JV_ABSENT ? fx_jinja__integer(0) : args[1];
    return true;
}

static bool filter_float(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    const struct fx_jinja_value *value = &args[0];
    double real = 0;
    bool ok = fx_jinja__is_number(value);
    (void)count;
    if (value->kind == FX_JV_UNDEFINED) return fx_jinja__want_text(run, "float", value);
    if (value->kind == FX_JV_BOOL) real = value->boolean;
    if (value->kind == FX_JV_INT) real = (double)value->integer;
    if (value->kind == FX_JV_FLOAT) real = value->real;
    if (value->kind == FX_JV_TEXT) ok = parse_real(fx_jinja__span(value->text), &real);
    *out = ok || args[1].kind == FX_JV_ABSENT
               ? (struct fx_jinja_value){.kind = FX_JV_FLOAT, .real = real}
               : args[1];
    return true;
}

static bool filter_abs(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                       struct fx_jinja_value *out) {
    const struct fx_jinja_value *value = &args[0];
    bool minus = (value->kind == FX_JV_INT && value->integer < 0) ||
                 (value->kind == FX_JV_FLOAT && signbit(value->real));
    (void)count;
    *out = *value;
    return fx_jinja__negate(run, minus, out);
}

/* Python's round(): the nearest decimal to the exact binary value, ties to even. */
static double round_common(double value, int precision) {
    char text[512];
    (void)snprintf(text, sizeof text, "%.*f", precision, value);
    return strtod(text, NULL);
}

/* round(precision, method) */
static bool filter_round(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    int64_t precision = 0;
    fx_span method = fx_span_str("common");
    (void)count;
    if (!fx_jinja__is_number(&args[0]))
        return fx_jinja__bad(run, "round of a %s", fx_jinja__kind_name(&args[0]));
    if (args[1].kind != FX_JV_ABSENT && !fx_jinja__want_integer(run, "round", &args[1], &precision))
        return false;
    if (args[2].kind == FX_JV_TEXT) method = fx_jinja__span(args[2].text);
    if (precision < 0 || precision > PRECISION_MAX)
        return fx_jinja__bad(run, "round: a precision of 0 to %d", PRECISION_MAX);
    bool common = fx_span_eq_str(method, "common"), up = fx_span_eq_str(method, "ceil");
    if (!common && !up && !fx_span_eq_str(method, "floor"))
        return fx_jinja__bad(run, "round: method must be common, ceil or floor");
    *out = args[0];
    if (args[0].kind == FX_JV_BOOL) *out = fx_jinja__integer(args[0].boolean);
    if (common && args[0].kind != FX_JV_FLOAT) return true;
    double value = args[0].kind == FX_JV_FLOAT ? args[0].real : (double)out->integer;
    double scale = pow(10, (double)precision);
    double scaled = up ? ceil(value * scale) : floor(value * scale);
    bool finite = isfinite(value);
    double rounded = common ? round_common(value, (int)precision) : scaled / scale;
    *out = (struct fx_jinja_value){.kind = FX_JV_FLOAT, .real = finite ? rounded : value};
    return true;
}

static const char *const int_names[] = {"default", "base"};
static const char *const round_names[] = {"precision", "method"};

const struct fx_jinja_callable fx_jinja__number_filters[] = {
    {"int",   0, 2, int_names,   filter_int,   0},
    {"float", 0, 1, int_names,   filter_float, 0},
    {"abs",   0, 0, NULL,        filter_abs,   0},
    {"round", 0, 2, round_names, filter_round, 0},
    {NULL,    0, 0, NULL,        NULL,         0},
};
