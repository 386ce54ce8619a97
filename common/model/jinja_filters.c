#include "common/model/jinja_strip.h"

/* Filters of strings; args[0] is the value they are applied to. */

static bool filter_trim(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                        struct fx_jinja_value *out) {
    struct fx_jinja_text text;
    (void)count;
    return fx_jinja__to_text(run, &args[0], &text) &&
           fx_jinja__strip(run, text, &args[1], FX_JS_LEFT | FX_JS_RIGHT, out);
}

static FX_MUST bool change_case(struct fx_jinja_run *run, enum fx_jinja_case to,
                                const struct fx_jinja_value *value, struct fx_jinja_value *out) {
    struct fx_jinja_text text;
    out->kind = FX_JV_TEXT;
    return fx_jinja__to_text(run, value, &text) && fx_jinja__case(run, to, text, &out->text);
}

static bool filter_upper(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    (void)count;
    return change_case(run, FX_JC_UPPER, &args[0], out);
}

static bool filter_lower(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    (void)count;
    return change_case(run, FX_JC_LOWER, &args[0], out);
}

static bool filter_capitalize(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                              size_t count, struct fx_jinja_value *out) {
    (void)count;
    return change_case(run, FX_JC_CAPITALIZE, &args[0], out);
}

static bool splits_words(fx_span text, size_t i) {
    uint8_t c = text.at[i];
    return fx_jinja__space_len(text, i) || (c < 0x80 && c && strchr("-({[<", c));
}

/* Jinja's own: each word's first character upper, the rest lower. */
static bool filter_title(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    struct fx_jinja_text text, *parts;
    size_t used = 0, at = 0;
    (void)count;
    if (!fx_jinja__to_text(run, &args[0], &text)) return false;
    fx_span span = fx_jinja__span(text);
    parts = fx_arena_array(run->arena, 2 * text.len + 1, sizeof *parts);
    if (!parts) return fx_jinja__full(run);
    while (at < text.len) {
        size_t end = at, head = at + fx_jinja__char_len(span, at);
        bool gap = splits_words(span, at);
        while (end < text.len && splits_words(span, end) == gap)
            end += fx_jinja__char_len(span, end);
        parts[used] = fx_jinja__sub(text, at, gap ? end : head);
        parts[used + 1] = fx_jinja__sub(text, gap ? end : head, end);
        if (!fx_jinja__case(run, FX_JC_UPPER, parts[used], &parts[used]) ||
            !fx_jinja__case(run, FX_JC_LOWER, parts[used + 1], &parts[used + 1]))
            return false;
        used += 2;
        at = end;
    }
    out->kind = FX_JV_TEXT;
    return fx_jinja__concat(run, parts, used, &out->text);
}

static bool filter_replace(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                           size_t count, struct fx_jinja_value *out) {
    struct fx_jinja_text texts[3];
    int64_t limit = -1;
    (void)count;
    for (size_t i = 0; i < 3; i++)
        if (!fx_jinja__to_text(run, &args[i], &texts[i])) return false;
    if (args[3].kind != FX_JV_ABSENT && args[3].kind != FX_JV_NONE &&
        !fx_jinja__want_integer(run, "replace", &args[3], &limit))
        return false;
    return fx_jinja__replace(run, texts[0], texts[1], texts[2], limit, out);
}

static bool filter_string(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    struct fx_jinja_text text;
    (void)count;
    if (!fx_jinja__to_text(run, &args[0], &text)) return false;
    *out = fx_jinja__text_value(text);
    return true;
}

static bool filter_safe(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                        struct fx_jinja_value *out) {
    if (!filter_string(run, args, count, out)) return false;
    out->text.markup = true;
    return true;
}

static bool filter_escape(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    struct fx_jinja_text text;
    (void)count;
    out->kind = FX_JV_TEXT;
    return fx_jinja__to_text(run, &args[0], &text) && fx_jinja__escape(run, text, &out->text);
}

/* " " times an integer, or a string of its own. */
static FX_MUST bool indent_text(struct fx_jinja_run *run, const struct fx_jinja_value *width,
                                int64_t fallback, struct fx_jinja_text *out) {
    struct fx_jinja_value spaces, blank = fx_jinja__text_value(fx_jinja__literal(fx_span_str(" ")));
    struct fx_jinja_value times = fx_jinja__integer(fallback);
    if (width->kind == FX_JV_TEXT) {
        *out = width->text;
        return true;
    }
    if (width->kind != FX_JV_ABSENT &&
        !fx_jinja__want_integer(run, "indent", width, &times.integer))
        return false;
    if (!fx_jinja__binary(run, '*', &blank, &times, &spaces)) return false;
    *out = spaces.text;
    return true;
}

static bool filter_indent(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    struct fx_jinja_text indent, newline = fx_jinja__literal(fx_span_str("\n"));
    struct fx_jinja_value lines;
    size_t used = 0;
    (void)count;
    if (!fx_jinja__want_text(run, "indent", &args[0]) || !indent_text(run, &args[1], 4, &indent))
        return false;
    struct fx_jinja_text parts[2] = {args[0].text, newline}, ended;
    if (!fx_jinja__concat(run, parts, 2, &ended) || !fx_jinja__lines(run, ended, &lines))
        return false;
    struct fx_jinja_text *all = fx_arena_array(run->arena, 3 * lines.list.count + 1, sizeof *all);
    if (!all) return fx_jinja__full(run);
    bool blank = fx_jinja__truth(&args[3]);
    for (size_t i = 0; i < lines.list.count; i++) {
        struct fx_jinja_text line = lines.list.at[i].text;
        bool indented = i ? blank || line.len : fx_jinja__truth(&args[2]);
        if (i) all[used++] = newline;
        if (indented) all[used++] = indent;
        all[used++] = line;
    }
    out->kind = FX_JV_TEXT;
    return fx_jinja__concat(run, all, used, &out->text);
}

static bool given(const struct fx_jinja_value *value) {
    return value->kind != FX_JV_ABSENT && value->kind != FX_JV_NONE;
}

/* separators=(item, key) */
static FX_MUST bool take_separators(struct fx_jinja_run *run, const struct fx_jinja_value *value,
                                    struct fx_jinja_style *style) {
    if (!given(value)) return true;
    if (value->kind != FX_JV_LIST || value->list.count != 2 ||
        value->list.at[0].kind != FX_JV_TEXT || value->list.at[1].kind != FX_JV_TEXT)
        return fx_jinja__bad(run, "tojson: separators are two strings");
    style->item = value->list.at[0].text;
    style->key = value->list.at[1].text;
    return true;
}

/* json.dumps(value, ensure_ascii=False ...), as transformers defines it. */
static bool filter_tojson(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    struct fx_jinja_style style = {
        .json = true,
        .ascii = fx_jinja__truth(&args[1]),
        .indented = given(&args[2]),
        .sorted = fx_jinja__truth(&args[4]),
        .item = fx_jinja__literal(fx_span_str(given(&args[2]) ? "," : ", ")),
        .key = fx_jinja__literal(fx_span_str(": ")),
    };
    (void)count;
    if (style.indented && !indent_text(run, &args[2], 0, &style.indent)) return false;
    out->kind = FX_JV_TEXT;
    return take_separators(run, &args[3], &style) &&
           fx_jinja__write(run, &style, &args[0], &out->text);
}

static bool filter_default(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                           size_t count, struct fx_jinja_value *out) {
    bool falsy_too = fx_jinja__truth(&args[2]);
    bool missing = args[0].kind == FX_JV_UNDEFINED || (falsy_too && !fx_jinja__truth(&args[0]));
    (void)run;
    (void)count;
    *out = args[missing];
    if (out->kind == FX_JV_ABSENT) *out = fx_jinja__text_value(fx_jinja__literal(fx_span_str("")));
    return true;
}

static const char *const trim_names[] = {"chars"};
static const char *const default_names[] = {"default_value", "boolean"};
static const char *const replace_names[] = {"old", "new", "count"};
static const char *const indent_names[] = {"width", "first", "blank"};
static const char *const tojson_names[] = {"ensure_ascii", "indent", "separators", "sort_keys"};

const struct fx_jinja_callable fx_jinja__text_filters[] = {
    {"trim",       0, 1, trim_names,    filter_trim,       0},
    {"upper",      0, 0, NULL,          filter_upper,      0},
    {"lower",      0, 0, NULL,          filter_lower,      0},
    {"capitalize", 0, 0, NULL,          filter_capitalize, 0},
    {"title",      0, 0, NULL,          filter_title,      0},
    {"replace",    2, 3, replace_names, filter_replace,    0},
    {"string",     0, 0, NULL,          filter_string,     0},
    {"safe",       0, 0, NULL,          filter_safe,       0},
    {"escape",     0, 0, NULL,          filter_escape,     0},
    {"e",          0, 0, NULL,          filter_escape,     0},
    {"indent",     0, 3, indent_names,  filter_indent,     0},
    {"tojson",     0, 4, tojson_names,  filter_tojson,     0},
    {"default",    0, 2, default_names, filter_default,    0},
    {"d",          0, 2, default_names, filter_default,    0},
    {NULL,         0, 0, NULL,          NULL,              0},
};
