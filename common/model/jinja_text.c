#include "common/model/jinja.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_uniform(const struct fx_jinja_text *parts, size_t count, bool *user) {
    const struct fx_jinja_text *first = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!parts[i].len) continue;
        if (parts[i].origin || (first && first->user != parts[i].user)) return false;
        first = &parts[i];
    }
    *user = first && first->user;
    return true;
}

static void put_origin(uint8_t *out, const struct fx_jinja_text *part) {
    if (part->origin)
        memcpy(out, part->origin, part->len);
    else
        memset(out, part->user, part->len);
}

bool fx_jinja__concat(struct fx_jinja_run *run, const struct fx_jinja_text *parts, size_t count,
                      struct fx_jinja_text *out) {
    bool user = false;
    bool uniform = is_uniform(parts, count, &user);
    size_t len = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    run->steps += len / FX_JINJA_BYTES_STEP;
    uint8_t *bytes = fx_arena_alloc(run->arena, len);
    uint8_t *origin = uniform ? NULL : fx_arena_alloc(run->arena, len);
    if (!bytes || (!uniform && !origin)) return fx_jinja__full(run);
    for (size_t i = 0; i < count; i++) {
        if (!parts[i].len) continue;
        memcpy(bytes + at, parts[i].at, parts[i].len);
        if (origin) put_origin(origin + at, &parts[i]);
        at += parts[i].len;
    }
    *out = (struct fx_jinja_text){bytes, len, origin, user, false};
    return true;
}

static const char *entity(uint8_t byte) {
    switch (byte) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '\'': return "&#39;";
    case '"': return "&#34;";
    default: return NULL;
    }
}

bool fx_jinja__escape(struct fx_jinja_run *run, struct fx_jinja_text text,
                      struct fx_jinja_text *out) {
    size_t special = 0, from = 0, used = 0;
    for (size_t i = 0; i < text.len; i++)
        special += entity(text.at[i]) != NULL;
    struct fx_jinja_text *parts = fx_arena_array(run->arena, 2 * special + 1, sizeof *parts);
    if (!parts) return fx_jinja__full(run);
    for (size_t i = 0; i < text.len && !text.markup; i++) {
        const char *name = entity(text.at[i]);
        if (!name) continue;
        parts[used++] = fx_jinja__sub(text, from, i);
        parts[used] = fx_jinja__literal(fx_span_str(name));
        parts[used++].user = text.origin ? text.origin[i] : text.user;
        from = i + 1;
    }
    parts[used++] = fx_jinja__sub(text, from, text.len);
    if (!fx_jinja__concat(run, parts, used, out)) return false;
    out->markup = true;
    return true;
}

bool fx_jinja__add_texts(struct fx_jinja_run *run, struct fx_jinja_text a, struct fx_jinja_text b,
                         struct fx_jinja_text *out) {
    struct fx_jinja_text parts[2] = {a, b};
    bool markup = a.markup || b.markup;
    for (size_t i = 0; i < 2 && markup; i++)
        if (!fx_jinja__escape(run, parts[i], &parts[i])) return false;
    if (!fx_jinja__concat(run, parts, 2, out)) return false;
    out->markup = markup;
    return true;
}

struct fx_jinja_text fx_jinja__sub(struct fx_jinja_text text, size_t from, size_t to) {
    text.at = text.at ? text.at + from : NULL;
    if (text.origin) text.origin += from;
    text.len = to - from;
    return text;
}

/* Digits of the shortest decimal that reads back as `value`, and its exponent: 0.d1d2... * 10^e */
static int shortest(double value, char digits[20], int *exponent) {
    char text[FX_JINJA_INT_TEXT];
    int precision = 1, count = 0;
    do
        (void)snprintf(text, sizeof text, "%.*e", precision - 1, value);
    while (strtod(text, NULL) != value && precision++ < 17);
    for (const char *at = text; *at != 'e'; at++)
        if (*at >= '0' && *at <= '9') digits[count++] = *at;
    *exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10) + 1;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    return count;
}

static size_t real_plain(const char *digits, int count, int exponent, char *out) {
    size_t len = 0;
    if (exponent <= 0) out[len++] = '0', out[len++] = '.';
    for (int i = exponent; i < 0; i++)
        out[len++] = '0';
    for (int i = 0; i < count || i < exponent; i++) {
        out[len++] = i < count ? digits[i] : '0';
        if (i == exponent - 1) out[len++] = '.';
    }
    if (out[len - 1] == '.') out[len++] = '0';
    return len;
}

static size_t real_scientific(const char *digits, int count, int exponent, char *out) {
    size_t len = 0;
    out[len++] = digits[0];
    if (count > 1) out[len++] = '.';
    for (int i = 1; i < count; i++)
        out[len++] = digits[i];
    int written = snprintf(out + len, 6, "e%c%02d", exponent < 1 ? '-' : '+', abs(exponent - 1));
    return len + (size_t)written;
}

size_t fx_jinja__real(double value, char out[FX_JINJA_INT_TEXT]) {
    char digits[20] = {0};
    int exponent = 0;
    size_t sign = signbit(value) && !isnan(value);
    if (isnan(value) || isinf(value))
        return (size_t)snprintf(out, FX_JINJA_INT_TEXT, "%s%s", sign ? "-" : "",
                                isnan(value) ? "nan" : "inf");
    out[0] = '-';
    int count = shortest(fabs(value), digits, &exponent);
    if (value == 0) exponent = 1;
    bool plain = exponent > -4 && exponent <= 16;
    return sign + (plain ? real_plain : real_scientific)(digits, count, exponent, out + sign);
}

static FX_MUST bool number_text(struct fx_jinja_run *run, const struct fx_jinja_value *value,
                                struct fx_jinja_text *out) {
    char text[FX_JINJA_INT_TEXT];
    size_t len = value->kind == FX_JV_FLOAT
                     ? fx_jinja__real(value->real, text)
                     : (size_t)snprintf(text, sizeof text, "%lld", (long long)value->integer);
    char *copy = fx_arena_copy(run->arena, (fx_span){(const uint8_t *)text, len});
    if (!copy) return fx_jinja__full(run);
    *out = fx_jinja__literal((fx_span){(const uint8_t *)copy, len});
    return true;
}

bool fx_jinja__to_text(struct fx_jinja_run *run, const struct fx_jinja_value *value,
                       struct fx_jinja_text *out) {
    switch (value->kind) {
    case FX_JV_UNDEFINED: *out = fx_jinja__literal(fx_span_str("")); return true;
    case FX_JV_NONE: *out = fx_jinja__literal(fx_span_str("None")); return true;
    case FX_JV_BOOL:
        *out = fx_jinja__literal(fx_span_str(value->boolean ? "True" : "False"));
        return true;
    case FX_JV_INT:
    case FX_JV_FLOAT: return number_text(run, value, out);
    case FX_JV_TEXT: *out = value->text; return true;
    case FX_JV_LIST:
    case FX_JV_DICT: return fx_jinja__repr(run, value, out);
    default: break;
    }
    return fx_jinja__bad(run, "printing a %s is not supported", fx_jinja__kind_name(value));
}
