#include "common/model/jinja.h"

/* Filters and methods; args[0] is the value they are applied to. */

static FX_MUST bool give_text(struct fx_jinja_text text, struct fx_jinja_value *out) {
    *out = (struct fx_jinja_value){.kind = FX_JV_TEXT, .text = text};
    return true;
}

static FX_MUST bool want_text(struct fx_jinja_run *run, const char *what,
                              const struct fx_jinja_value *value) {
    if (value->kind == FX_JV_TEXT) return true;
    if (value->kind == FX_JV_UNDEFINED)
        return fx_jinja__bad(run, "'%.*s' is undefined", (int)value->text.len,
                             (const char *)value->text.at);
    return fx_jinja__bad(run, "%s wants a string, not a %s", what, fx_jinja__kind_name(value));
}

enum { LEFT = 1, RIGHT = 2 };

static bool has_char(fx_span set, fx_span text, size_t at, size_t len) {
    return len <= set.len && memmem(set.at, set.len, text.at + at, len) != NULL;
}

/* Python's strip(chars): any of the characters of `set`. */
static struct fx_jinja_text strip_set(struct fx_jinja_text text, fx_span set, unsigned sides) {
    fx_span span = fx_jinja__span(text);
    size_t from = 0, to = text.len;
    while (sides & LEFT && from < to) {
        size_t len = fx_jinja__char_len(span, from);
        if (!has_char(set, span, from, len)) break;
        from += len;
    }
    while (sides & RIGHT && to > from) {
        size_t start = to - 1;
        while (start > from && (span.at[start] & 0xc0) == 0x80)
            start--;
        if (!has_char(set, span, start, to - start)) break;
        to = start;
    }
    return fx_jinja__sub(text, from, to);
}

static struct fx_jinja_text strip_space(struct fx_jinja_text text, unsigned sides) {
    fx_span span = fx_jinja__span(text);
    size_t from = sides & LEFT ? fx_jinja__skip_space(span, 0) : 0;
    size_t to = sides & RIGHT ? fx_jinja__trim_end(span, from) : text.len;
    return fx_jinja__sub(text, from, to);
}

static FX_MUST bool strip(struct fx_jinja_run *run, struct fx_jinja_text text,
                          const struct fx_jinja_value *args, size_t count, unsigned sides,
                          struct fx_jinja_value *out) {
    if (count == 1 || args[1].kind == FX_JV_NONE) return give_text(strip_space(text, sides), out);
    if (!want_text(run, "strip", &args[1])) return false;
    return give_text(strip_set(text, fx_jinja__span(args[1].text), sides), out);
}

static bool filter_trim(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                        struct fx_jinja_value *out) {
    struct fx_jinja_text text;
    return fx_jinja__to_text(run, &args[0], &text) &&
           strip(run, text, args, count, LEFT | RIGHT, out);
}

static bool method_strip(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    return want_text(run, "strip()", &args[0]) &&
           strip(run, args[0].text, args, count, LEFT | RIGHT, out);
}

static bool method_lstrip(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    return want_text(run, "lstrip()", &args[0]) && strip(run, args[0].text, args, count, LEFT, out);
}

static bool method_rstrip(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    return want_text(run, "rstrip()", &args[0]) &&
           strip(run, args[0].text, args, count, RIGHT, out);
}

/* ASCII only: what other letters become takes tables we don't have, so they are refused. */
static FX_MUST bool change_case(struct fx_jinja_run *run, struct fx_jinja_text text, bool up,
                                struct fx_jinja_value *out) {
    struct fx_jinja_text changed;
    uint8_t first = up ? 'a' : 'A', last = up ? 'z' : 'Z';
    if (!fx_jinja__concat(run, &text, 1, &changed)) return false; /* a copy to write to */
    uint8_t *at = (uint8_t *)(uintptr_t)changed.at;
    for (size_t i = 0; i < changed.len; i++) {
        if (at[i] >= 0x80)
            return fx_jinja__bad(run, "%s of letters beyond ASCII is not supported",
                                 up ? "upper" : "lower");
        if (at[i] >= first && at[i] <= last) at[i] ^= 0x20;
    }
    return give_text(changed, out);
}

static bool filter_upper(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    struct fx_jinja_text text;
    (void)count;
    return fx_jinja__to_text(run, &args[0], &text) && change_case(run, text, true, out);
}

static bool filter_lower(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    struct fx_jinja_text text;
    (void)count;
    return fx_jinja__to_text(run, &args[0], &text) && change_case(run, text, false, out);
}

static bool method_upper(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    (void)count;
    return want_text(run, "upper()", &args[0]) && change_case(run, args[0].text, true, out);
}

static bool method_lower(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    (void)count;
    return want_text(run, "lower()", &args[0]) && change_case(run, args[0].text, false, out);
}

static FX_MUST bool has_affix(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                              bool at_end, struct fx_jinja_value *out) {
    const char *what = at_end ? "endswith()" : "startswith()";
    if (!want_text(run, what, &args[0]) || !want_text(run, what, &args[1])) return false;
    struct fx_jinja_text text = args[0].text, affix = args[1].text;
    size_t from = at_end && affix.len <= text.len ? text.len - affix.len : 0;
    bool yes =
        affix.len <= text.len && (!affix.len || memcmp(text.at + from, affix.at, affix.len) == 0);
    *out = (struct fx_jinja_value){.kind = FX_JV_BOOL, .boolean = yes};
    return true;
}

static bool method_startswith(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                              size_t count, struct fx_jinja_value *out) {
    (void)count;
    return has_affix(run, args, false, out);
}

static bool method_endswith(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                            size_t count, struct fx_jinja_value *out) {
    (void)count;
    return has_affix(run, args, true, out);
}

static bool filter_length(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    const struct fx_jinja_value *value = &args[0];
    size_t length = 0;
    (void)count;
    if (value->kind == FX_JV_TEXT)
        length = fx_jinja__char_count(fx_jinja__span(value->text));
    else if (value->kind == FX_JV_LIST || value->kind == FX_JV_DICT)
        length = value->list.count;
    else if (value->kind == FX_JV_LOOP)
        length = value->loop->items.list.count;
    else if (value->kind != FX_JV_UNDEFINED)
        return fx_jinja__bad(run, "length of a %s", fx_jinja__kind_name(value));
    *out = (struct fx_jinja_value){.kind = FX_JV_INT, .integer = (int64_t)length};
    return true;
}

static bool filter_default(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                           size_t count, struct fx_jinja_value *out) {
    bool falsy_too = count > 2 && fx_jinja__truth(&args[2]);
    bool missing = args[0].kind == FX_JV_UNDEFINED || (falsy_too && !fx_jinja__truth(&args[0]));
    (void)run;
    if (!missing)
        *out = args[0];
    else if (count > 1)
        *out = args[1];
    else
        return give_text(fx_jinja__literal(fx_span_str("")), out);
    return true;
}

static bool filter_join(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                        struct fx_jinja_value *out) {
    struct fx_jinja_value items;
    struct fx_jinja_text between = fx_jinja__literal(fx_span_str("")), joined;
    if (!fx_jinja__iterate(run, &args[0], &items)) return false;
    if (count > 1 && !fx_jinja__to_text(run, &args[1], &between)) return false;
    struct fx_jinja_text *parts =
        fx_arena_array(run->arena, 2 * items.list.count + 1, sizeof *parts);
    if (!parts) return fx_jinja__full(run);
    size_t used = 0;
    for (size_t i = 0; i < items.list.count; i++) {
        if (i) parts[used++] = between;
        if (!fx_jinja__to_text(run, &items.list.at[i], &parts[used++])) return false;
    }
    return fx_jinja__concat(run, parts, used, &joined) && give_text(joined, out);
}

static bool filter_tojson(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    struct fx_jinja_text text;
    (void)count;
    return fx_jinja__to_json(run, &args[0], &text) && give_text(text, out);
}

static bool filter_string(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    struct fx_jinja_text text;
    (void)count;
    return fx_jinja__to_text(run, &args[0], &text) && give_text(text, out);
}

static FX_MUST bool pick(struct fx_jinja_run *run, const struct fx_jinja_value *value, bool last,
                         struct fx_jinja_value *out) {
    struct fx_jinja_value items;
    if (!fx_jinja__iterate(run, value, &items)) return false;
    if (items.list.count) {
        *out = items.list.at[last ? items.list.count - 1 : 0];
        return true;
    }
    *out = (struct fx_jinja_value){
        .kind = FX_JV_UNDEFINED,
        .text = fx_jinja__literal(fx_span_str(last ? "last item" : "first item"))};
    return true;
}

static bool filter_first(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    (void)count;
    return pick(run, &args[0], false, out);
}

static bool filter_last(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                        struct fx_jinja_value *out) {
    (void)count;
    return pick(run, &args[0], true, out);
}

static const char *const trim_parameters[] = {"chars"};
static const char *const default_parameters[] = {"default_value", "boolean"};
static const char *const join_parameters[] = {"d"};

const struct fx_jinja_callable fx_jinja__filters[] = {
    {"trim",    0, 1, trim_parameters,    filter_trim   },
    {"length",  0, 0, NULL,               filter_length },
    {"count",   0, 0, NULL,               filter_length },
    {"upper",   0, 0, NULL,               filter_upper  },
    {"lower",   0, 0, NULL,               filter_lower  },
    {"default", 0, 2, default_parameters, filter_default},
    {"d",       0, 2, default_parameters, filter_default},
    {"join",    0, 1, join_parameters,    filter_join   },
    {"tojson",  0, 0, NULL,               filter_tojson },
    {"string",  0, 0, NULL,               filter_string },
    {"first",   0, 0, NULL,               filter_first  },
    {"last",    0, 0, NULL,               filter_last   },
    {NULL,      0, 0, NULL,               NULL          },
};

const struct fx_jinja_callable fx_jinja__methods[] = {
    {"strip",      0, 1, NULL, method_strip     },
    {"lstrip",     0, 1, NULL, method_lstrip    },
    {"rstrip",     0, 1, NULL, method_rstrip    },
    {"upper",      0, 0, NULL, method_upper     },
    {"lower",      0, 0, NULL, method_lower     },
    {"startswith", 1, 1, NULL, method_startswith},
    {"endswith",   1, 1, NULL, method_endswith  },
    {NULL,         0, 0, NULL, NULL             },
};
