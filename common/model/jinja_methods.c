#include "common/model/jinja_strip.h"

/* Methods of strings; args[0] is the string. */

static bool method_strip(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    (void)count;
    return fx_jinja__strip(run, args[0].text, &args[1], FX_JS_LEFT | FX_JS_RIGHT, out);
}

static bool method_lstrip(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    (void)count;
    return fx_jinja__strip(run, args[0].text, &args[1], FX_JS_LEFT, out);
}

static bool method_rstrip(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    (void)count;
    return fx_jinja__strip(run, args[0].text, &args[1], FX_JS_RIGHT, out);
}

static FX_MUST bool change_case(struct fx_jinja_run *run, enum fx_jinja_case to,
                                const struct fx_jinja_value *value, struct fx_jinja_value *out) {
    out->kind = FX_JV_TEXT;
    return fx_jinja__case(run, to, value->text, &out->text);
}

static bool method_upper(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    (void)count;
    return change_case(run, FX_JC_UPPER, &args[0], out);
}

static bool method_lower(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    (void)count;
    return change_case(run, FX_JC_LOWER, &args[0], out);
}

static bool method_title(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    (void)count;
    return change_case(run, FX_JC_TITLE, &args[0], out);
}

static bool method_capitalize(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                              size_t count, struct fx_jinja_value *out) {
    (void)count;
    return change_case(run, FX_JC_CAPITALIZE, &args[0], out);
}

static bool ends_with(struct fx_jinja_text text, struct fx_jinja_text affix, bool at_end) {
    if (affix.len > text.len) return false;
    size_t from = at_end ? text.len - affix.len : 0;
    return !affix.len || memcmp(text.at + from, affix.at, affix.len) == 0;
}

/* A string or a tuple of them. */
static FX_MUST bool has_affix(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                              bool at_end, struct fx_jinja_value *out) {
    const char *what = at_end ? "endswith()" : "startswith()";
    bool tuple = args[1].kind == FX_JV_LIST && args[1].list.tuple, yes = false;
    const struct fx_jinja_value *affix = tuple ? args[1].list.at : &args[1];
    for (size_t count = tuple ? args[1].list.count : 1; count--; affix++) {
        if (!fx_jinja__want_text(run, what, affix)) return false;
        yes = yes || ends_with(args[0].text, affix->text, at_end);
    }
    *out = fx_jinja__bool(yes);
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

static bool method_removeprefix(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                                size_t count, struct fx_jinja_value *out) {
    (void)count;
    if (!fx_jinja__want_text(run, "removeprefix()", &args[1])) return false;
    struct fx_jinja_text text = args[0].text;
    size_t len = ends_with(text, args[1].text, false) ? args[1].text.len : 0;
    *out = fx_jinja__text_value(fx_jinja__sub(text, len, text.len));
    return true;
}

static bool method_removesuffix(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                                size_t count, struct fx_jinja_value *out) {
    (void)count;
    if (!fx_jinja__want_text(run, "removesuffix()", &args[1])) return false;
    struct fx_jinja_text text = args[0].text;
    size_t len = ends_with(text, args[1].text, true) ? args[1].text.len : 0;
    *out = fx_jinja__text_value(fx_jinja__sub(text, 0, text.len - len));
    return true;
}

static bool given(const struct fx_jinja_value *value) {
    return value->kind != FX_JV_ABSENT;
}

static FX_MUST bool split(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                          bool from_right, struct fx_jinja_value *out) {
    int64_t limit = -1;
    fx_span separator = {0};
    bool space = !given(&args[1]) || args[1].kind == FX_JV_NONE;
    if (!space) {
        if (!fx_jinja__want_text(run, "split()", &args[1])) return false;
        separator = fx_jinja__span(args[1].text);
    }
    if (given(&args[2]) && !fx_jinja__want_integer(run, "split()", &args[2], &limit)) return false;
    return fx_jinja__split(run, args[0].text, space ? NULL : &separator, limit, from_right, out);
}

static bool method_split(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    (void)count;
    return split(run, args, false, out);
}

static bool method_rsplit(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    (void)count;
    return split(run, args, true, out);
}

static bool method_splitlines(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                              size_t count, struct fx_jinja_value *out) {
    (void)count;
    return fx_jinja__lines(run, args[0].text, out);
}

static bool method_replace(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                           size_t count, struct fx_jinja_value *out) {
    int64_t limit = -1;
    (void)count;
    return fx_jinja__want_text(run, "replace()", &args[1]) &&
           fx_jinja__want_text(run, "replace()", &args[2]) &&
           (!given(&args[3]) || fx_jinja__want_integer(run, "replace()", &args[3], &limit)) &&
           fx_jinja__replace(run, args[0].text, args[1].text, args[2].text, limit, out);
}

static bool method_join(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                        struct fx_jinja_value *out) {
    struct fx_jinja_value items;
    size_t used = 0;
    (void)count;
    if (!fx_jinja__iterate(run, &args[1], &items)) return false;
    struct fx_jinja_text *parts =
        fx_arena_array(run->arena, 2 * items.list.count + 1, sizeof *parts);
    if (!parts) return fx_jinja__full(run);
    for (size_t i = 0; i < items.list.count; i++) {
        if (!fx_jinja__want_text(run, "join()", &items.list.at[i])) return false;
        if (i) parts[used++] = args[0].text;
        parts[used++] = items.list.at[i].text;
    }
    out->kind = FX_JV_TEXT;
    return fx_jinja__concat(run, parts, used, &out->text);
}

/* The character index of `needle`, -1 where it is not. */
static bool method_find(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                        struct fx_jinja_value *out) {
    (void)count;
    if (!fx_jinja__want_text(run, "find()", &args[1])) return false;
    fx_span text = fx_jinja__span(args[0].text);
    size_t at = fx_jinja__seek(text, 0, fx_jinja__span(args[1].text));
    run->steps += text.len / FX_JINJA_BYTES_STEP;
    *out = fx_jinja__integer(at > text.len ? -1
                                           : (int64_t)fx_jinja__char_count((fx_span){text.at, at}));
    return true;
}

static bool method_count(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    (void)count;
    if (!fx_jinja__want_text(run, "count()", &args[1])) return false;
    fx_span text = fx_jinja__span(args[0].text), needle = fx_jinja__span(args[1].text);
    int64_t found = 0;
    if (!needle.len) found = (int64_t)fx_jinja__char_count(text) + 1;
    for (size_t at = 0; needle.len; at += needle.len, found++) {
        at = fx_jinja__seek(text, at, needle);
        if (at > text.len) break;
    }
    run->steps += text.len / FX_JINJA_BYTES_STEP;
    *out = fx_jinja__integer(found);
    return true;
}

/* Of ASCII digits; others are refused. */
static bool method_isdigit(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                           size_t count, struct fx_jinja_value *out) {
    bool yes = args[0].text.len != 0;
    (void)count;
    for (size_t i = 0; i < args[0].text.len; i++) {
        uint8_t c = args[0].text.at[i];
        if (c >= 0x80) return fx_jinja__bad(run, "isdigit() beyond ASCII is not supported");
        yes = yes && c >= '0' && c <= '9';
    }
    *out = fx_jinja__bool(yes);
    return true;
}

static const char *const split_names[] = {"sep", "maxsplit"};

const struct fx_jinja_callable fx_jinja__text_methods[] = {
    {"strip",        0, 1, NULL,        method_strip,        FX_JM_TEXT},
    {"lstrip",       0, 1, NULL,        method_lstrip,       FX_JM_TEXT},
    {"rstrip",       0, 1, NULL,        method_rstrip,       FX_JM_TEXT},
    {"upper",        0, 0, NULL,        method_upper,        FX_JM_TEXT},
    {"lower",        0, 0, NULL,        method_lower,        FX_JM_TEXT},
    {"title",        0, 0, NULL,        method_title,        FX_JM_TEXT},
    {"capitalize",   0, 0, NULL,        method_capitalize,   FX_JM_TEXT},
    {"startswith",   1, 1, NULL,        method_startswith,   FX_JM_TEXT},
    {"endswith",     1, 1, NULL,        method_endswith,     FX_JM_TEXT},
    {"removeprefix", 1, 1, NULL,        method_removeprefix, FX_JM_TEXT},
    {"removesuffix", 1, 1, NULL,        method_removesuffix, FX_JM_TEXT},
    {"split",        0, 2, split_names, method_split,        FX_JM_TEXT},
    {"rsplit",       0, 2, split_names, method_rsplit,       FX_JM_TEXT},
    {"splitlines",   0, 0, NULL,        method_splitlines,   FX_JM_TEXT},
    {"replace",      2, 3, NULL,        method_replace,      FX_JM_TEXT},
    {"join",         1, 1, NULL,        method_join,         FX_JM_TEXT},
    {"find",         1, 1, NULL,        method_find,         FX_JM_TEXT},
    {"count",        1, 1, NULL,        method_count,        FX_JM_TEXT},
    {"isdigit",      0, 0, NULL,        method_isdigit,      FX_JM_TEXT},
    {NULL,           0, 0, NULL,        NULL,                0         },
};
