#include "common/model/jinja.h"
#include <stdio.h>

/* json.dumps(value, ensure_ascii=False), as transformers' tojson. Written twice by the same code:
 * once to measure, once into the arena. */

enum { NESTING_MAX = 32 };

struct writer {
    uint8_t *at, *origin; /* NULL while measuring */
    size_t len;
    bool user; /* what is being written comes from the user */
};

static void put(struct writer *writer, fx_span bytes) {
    if (writer->at && bytes.len) {
        memcpy(writer->at + writer->len, bytes.at, bytes.len);
        memset(writer->origin + writer->len, writer->user, bytes.len);
    }
    writer->len += bytes.len;
}

static void put_text(struct writer *writer, const char *text) {
    put(writer, fx_span_str(text));
}

static void put_byte(struct writer *writer, uint8_t byte) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    char escape[8];
    const char *known = byte ? strchr(from, byte) : NULL;
    if (byte >= 0x20 && !known) {
        put(writer, (fx_span){&byte, 1});
        return;
    }
    if (known)
        (void)snprintf(escape, sizeof escape, "\\%c", to[known - from]);
    else
        (void)snprintf(escape, sizeof escape, "\\u%04x", byte);
    put_text(writer, escape);
}

static void put_string(struct writer *writer, const struct fx_jinja_text *text) {
    put_text(writer, "\"");
    for (size_t i = 0; i < text->len; i++) {
        writer->user = text->origin ? text->origin[i] : text->user;
        put_byte(writer, text->at[i]);
    }
    writer->user = false;
    put_text(writer, "\"");
}

static FX_MUST bool put_scalar(struct fx_jinja_run *run, struct writer *writer,
                               const struct fx_jinja_value *value) {
    char number[FX_JINJA_INT_TEXT];
    switch (value->kind) {
    case FX_JV_NONE: put_text(writer, "null"); return true;
    case FX_JV_BOOL: put_text(writer, value->boolean ? "true" : "false"); return true;
    case FX_JV_INT:
        (void)snprintf(number, sizeof number, "%lld", (long long)value->integer);
        put_text(writer, number);
        return true;
    case FX_JV_FLOAT: {
        size_t len = fx_jinja__real(value->real, number);
        put(writer, (fx_span){(const uint8_t *)number, len});
        return true;
    }
    case FX_JV_TEXT: put_string(writer, &value->text); return true;
    case FX_JV_UNDEFINED:
    case FX_JV_LIST:
    case FX_JV_DICT:
    case FX_JV_LOOP: break;
    }
    return fx_jinja__bad(run, "tojson of a %s", fx_jinja__kind_name(value));
}

/* A list or mapping whose elements are being written. */
struct open {
    const struct fx_jinja_value *value;
    size_t next;
};

static bool is_nested(const struct fx_jinja_value *value) {
    return value->kind == FX_JV_LIST || value->kind == FX_JV_DICT;
}

/* The next element of `top`, after its comma and key; NULL at the end. */
static const struct fx_jinja_value *next_element(struct writer *writer, struct open *top) {
    const struct fx_jinja_value *value = top->value;
    size_t i = top->next++;
    bool dict = value->kind == FX_JV_DICT;
    if (i == value->list.count) {
        put_text(writer, dict ? "}" : "]");
        return NULL;
    }
    if (i) put_text(writer, ", ");
    if (!dict) return &value->list.at[i];
    put_string(writer, &value->list.at[2 * i].text);
    put_text(writer, ": ");
    return &value->list.at[2 * i + 1];
}

static FX_MUST bool write_value(struct fx_jinja_run *run, struct writer *writer,
                                const struct fx_jinja_value *value) {
    struct open stack[NESTING_MAX];
    size_t depth = 0;
    while (value || depth) {
        if (!value) {
            value = next_element(writer, &stack[depth - 1]);
            if (!value) depth--;
        } else if (is_nested(value)) {
            if (depth == NESTING_MAX) return fx_jinja__bad(run, "tojson: nested too deeply");
            put_text(writer, value->kind == FX_JV_DICT ? "{" : "[");
            stack[depth++] = (struct open){value, 0};
            value = NULL;
        } else {
            if (!put_scalar(run, writer, value)) return false;
            value = NULL;
        }
    }
    return true;
}

bool fx_jinja__to_json(struct fx_jinja_run *run, const struct fx_jinja_value *value,
                       struct fx_jinja_text *out) {
    struct writer writer = {0};
    if (!write_value(run, &writer, value)) return false;
    size_t len = writer.len;
    writer = (struct writer){.at = fx_arena_alloc(run->arena, len),
                             .origin = fx_arena_alloc(run->arena, len)};
    if (!writer.at || !writer.origin) return fx_jinja__full(run);
    if (!write_value(run, &writer, value)) return false;
    FX_ASSERT(writer.len == len);
    *out = (struct fx_jinja_text){writer.at, len, writer.origin, false};
    return true;
}
