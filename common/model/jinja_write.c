#include "common/model/jinja.h"
#include <math.h>
#include <stdio.h>

/* A value as json.dumps() or repr() writes it. Written twice by the same code: once to measure,
 * once into the arena. */

struct writer {
    struct fx_jinja_run *run;
    const struct fx_jinja_style *style;
    uint8_t *at, *origin; /* NULL while measuring */
    size_t len, depth;
    bool user; /* what is being written comes from the user */
};

static void put(struct writer *writer, fx_span bytes) {
    if (writer->at && bytes.len) {
        memcpy(writer->at + writer->len, bytes.at, bytes.len);
        memset(writer->origin + writer->len, writer->user, bytes.len);
    }
    writer->len += bytes.len;
}

static void put_str(struct writer *writer, const char *text) {
    put(writer, fx_span_str(text));
}

static void put_text(struct writer *writer, const struct fx_jinja_text *text) {
    for (size_t i = 0; i < text->len; i++) {
        writer->user = text->origin ? text->origin[i] : text->user;
        put(writer, (fx_span){text->at + i, 1});
    }
    writer->user = false;
}

/* \x41, \u0041 or \U00000041; JSON has \u0041 and pairs of them only. */
static void put_point(struct writer *writer, uint32_t point) {
    char text[16];
    if (writer->style->json && point > 0xffff)
        (void)snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd800 + ((point - 0x10000) >> 10),
                       0xdc00 + ((point - 0x10000) & 0x3ff));
    else if (writer->style->json || (point > 0xff && point <= 0xffff))
        (void)snprintf(text, sizeof text, "\\u%04x", point);
    else
        (void)snprintf(text, sizeof text, point > 0xff ? "\\U%08x" : "\\x%02x", point);
    put_str(writer, text);
}

static bool is_escaped(const struct writer *writer, uint32_t point) {
    if (!writer->style->json) return !fx_jinja__printable(point);
    return point < 0x20 || (writer->style->ascii && point > 0x7e);
}

static void put_char(struct writer *writer, fx_span bytes, uint32_t point, char quote) {
    static const char from[] = "\\\n\r\t\b\f", to[] = "\\nrtbf";
    size_t simple = writer->style->json ? 6 : 4; /* repr() knows fewer of them */
    const char *known = point && point < 0x80 ? memchr(from, (int)point, simple) : NULL;
    char escape[3] = "\\";
    escape[1] = known ? to[known - from] : quote;
    if (known || point == (uint32_t)quote)
        put_str(writer, escape);
    else if (is_escaped(writer, point))
        put_point(writer, point);
    else
        put(writer, bytes);
}

static bool has(const struct fx_jinja_text *text, int byte) {
    return text->len && memchr(text->at, byte, text->len);
}

static void put_string(struct writer *writer, const struct fx_jinja_text *text) {
    bool single = !writer->style->json && !(has(text, '\'') && !has(text, '"'));
    const char *quote = single ? "'" : "\"";
    fx_span span = fx_jinja__span(*text);
    bool markup = text->markup && !writer->style->json;
    if (markup) put_str(writer, "Markup(");
    put_str(writer, quote);
    for (size_t i = 0, len; i < text->len; i += len) {
        len = fx_jinja__char_len(span, i);
        writer->user = text->origin ? text->origin[i] : text->user;
        put_char(writer, (fx_span){text->at + i, len}, fx_jinja__point(span, i, len), *quote);
    }
    writer->user = false;
    put_str(writer, quote);
    if (markup) put_str(writer, ")");
}

static const char *word(const struct writer *writer, const struct fx_jinja_value *value) {
    bool json = writer->style->json;
    if (value->kind == FX_JV_NONE) return json ? "null" : "None";
    if (value->kind == FX_JV_UNDEFINED) return json ? NULL : "Undefined";
    if (value->kind == FX_JV_BOOL && value->boolean) return json ? "true" : "True";
    return value->kind == FX_JV_BOOL ? json ? "false" : "False" : NULL;
}

static void put_number(struct writer *writer, const struct fx_jinja_value *value) {
    char number[FX_JINJA_INT_TEXT];
    if (value->kind == FX_JV_INT) {
        (void)snprintf(number, sizeof number, "%lld", (long long)value->integer);
        put_str(writer, number);
    } else if (writer->style->json && !isfinite(value->real)) {
        put_str(writer, isnan(value->real) ? "NaN" : value->real < 0 ? "-Infinity" : "Infinity");
    } else {
        size_t len = fx_jinja__real(value->real, number);
        put(writer, (fx_span){(const uint8_t *)number, len});
    }
}

static FX_MUST bool put_scalar(struct writer *writer, const struct fx_jinja_value *value) {
    const char *constant = word(writer, value);
    if (constant)
        put_str(writer, constant);
    else if (value->kind == FX_JV_TEXT)
        put_string(writer, &value->text);
    else if (value->kind == FX_JV_INT || value->kind == FX_JV_FLOAT)
        put_number(writer, value);
    else
        return fx_jinja__bad(writer->run, "%s of a %s is not supported",
                             writer->style->json ? "tojson" : "printing",
                             fx_jinja__kind_name(value));
    return true;
}

/* JSON's keys are strings. */
static FX_MUST bool put_key(struct writer *writer, const struct fx_jinja_value *key) {
    bool quoted = writer->style->json && key->kind != FX_JV_TEXT;
    if (quoted) put_str(writer, "\"");
    if (!put_scalar(writer, key)) return false;
    if (quoted) put_str(writer, "\"");
    put_text(writer, &writer->style->key);
    return true;
}

/* A list or mapping whose elements are being written. */
struct open {
    const struct fx_jinja_value *value;
    size_t next;
    size_t *order; /* of a mapping's pairs, NULL: as they are */
};

static bool is_nested(const struct fx_jinja_value *value) {
    return value->kind == FX_JV_LIST || value->kind == FX_JV_DICT;
}

static void put_line(struct writer *writer) {
    if (!writer->style->indented) return;
    put_str(writer, "\n");
    for (size_t i = 0; i < writer->depth; i++)
        put_text(writer, &writer->style->indent);
}

static void put_bracket(struct writer *writer, const struct fx_jinja_value *value, bool opening) {
    bool tuple = value->list.tuple && value->kind == FX_JV_LIST && !writer->style->json;
    const char *pair = value->kind == FX_JV_DICT ? "{}" : tuple ? "()" : "[]";
    writer->depth -= !opening;
    if (!opening && value->list.count) put_line(writer);
    if (!opening && tuple && value->list.count == 1) put_str(writer, ",");
    put(writer, (fx_span){(const uint8_t *)pair + !opening, 1});
    writer->depth += opening;
}

/* The next element of `top`, after its comma and key; NULL at the end. */
static FX_MUST bool next_element(struct writer *writer, struct open *top,
                                 const struct fx_jinja_value **out) {
    const struct fx_jinja_value *value = top->value;
    size_t i = top->next++;
    *out = NULL;
    if (i == value->list.count) {
        put_bracket(writer, value, false);
        return true;
    }
    if (i) put_text(writer, &writer->style->item);
    put_line(writer);
    if (value->kind == FX_JV_LIST) {
        *out = &value->list.at[i];
        return true;
    }
    if (top->order) i = top->order[i];
    *out = &value->list.at[2 * i + 1];
    return put_key(writer, &value->list.at[2 * i]);
}

/* sort_keys: an insertion sort, stable; mappings are small. */
static FX_MUST bool sort_keys(struct writer *writer, struct open *open) {
    const struct fx_jinja_value *pairs = open->value->list.at;
    size_t count = open->value->list.count;
    if (!writer->style->sorted || open->value->kind != FX_JV_DICT) return true;
    open->order = fx_arena_array(writer->run->arena, count, sizeof *open->order);
    if (!open->order) return fx_jinja__full(writer->run);
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (int order = 1; at > 0; at--) {
            if (!fx_jinja__order(writer->run, &pairs[2 * open->order[at - 1]], &pairs[2 * i],
                                 &order))
                return false;
            if (order <= 0) break;
            open->order[at] = open->order[at - 1];
        }
        open->order[at] = i;
        writer->run->steps += i - at;
    }
    return true;
}

static FX_MUST bool write_value(struct writer *writer, const struct fx_jinja_value *value) {
    struct open stack[FX_JINJA_NESTING_MAX];
    size_t depth = 0;
    while (value || depth) {
        if (!value) {
            if (!next_element(writer, &stack[depth - 1], &value)) return false;
            if (!value) depth--;
        } else if (is_nested(value)) {
            if (depth == FX_JINJA_NESTING_MAX)
                return fx_jinja__bad(writer->run, "lists nested deeper than %d",
                                     FX_JINJA_NESTING_MAX);
            put_bracket(writer, value, true);
            stack[depth++] = (struct open){value, 0, NULL};
            if (!sort_keys(writer, &stack[depth - 1])) return false;
            value = NULL;
        } else {
            if (!put_scalar(writer, value)) return false;
            value = NULL;
        }
    }
    return true;
}

bool fx_jinja__write(struct fx_jinja_run *run, const struct fx_jinja_style *style,
                     const struct fx_jinja_value *value, struct fx_jinja_text *out) {
    struct writer writer = {.run = run, .style = style};
    if (!write_value(&writer, value)) return false;
    size_t len = writer.len;
    run->steps += len / FX_JINJA_BYTES_STEP;
    writer = (struct writer){.run = run,
                             .style = style,
                             .at = fx_arena_alloc(run->arena, len),
                             .origin = fx_arena_alloc(run->arena, len)};
    if (!writer.at || !writer.origin) return fx_jinja__full(run);
    if (!write_value(&writer, value)) return false;
    FX_ASSERT(writer.len == len);
    *out = (struct fx_jinja_text){writer.at, len, writer.origin, false, false};
    return true;
}

bool fx_jinja__repr(struct fx_jinja_run *run, const struct fx_jinja_value *value,
                    struct fx_jinja_text *out) {
    struct fx_jinja_style style = {.item = fx_jinja__literal(fx_span_str(", ")),
                                   .key = fx_jinja__literal(fx_span_str(": "))};
    return fx_jinja__write(run, &style, value, out);
}
