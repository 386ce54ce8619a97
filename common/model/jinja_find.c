#include "common/model/jinja.h"

/* Filters, tests and methods by name, and how their arguments find their places. */

static const struct fx_jinja_callable *find_in(const struct fx_jinja_callable *rows, fx_span name) {
    for (; rows->name; rows++)
        if (fx_span_eq_str(name, rows->name)) return rows;
    return NULL;
}

enum { TABLES_MAX = 4 };

const struct fx_jinja_callable *fx_jinja__find(enum fx_jinja_family family, fx_span name) {
    static const struct fx_jinja_callable *const tables[][TABLES_MAX] = {
        [FX_JF_FILTER] = {fx_jinja__text_filters,   fx_jinja__list_filters, fx_jinja__pick_filters,
                          fx_jinja__number_filters},
        [FX_JF_TEST] = {fx_jinja__tests},
        [FX_JF_METHOD] = {fx_jinja__text_methods,                        fx_jinja__other_methods                      },
    };
    const struct fx_jinja_callable *row = NULL;
    for (size_t i = 0; i < TABLES_MAX && tables[family][i] && !row; i++)
        row = find_in(tables[family][i], name);
    return row;
}

static unsigned kind_bit(const struct fx_jinja_value *object) {
    switch (object->kind) {
    case FX_JV_TEXT: return FX_JM_TEXT;
    case FX_JV_LIST: return FX_JM_LIST;
    case FX_JV_DICT: return FX_JM_DICT;
    case FX_JV_LOOP: return FX_JM_LOOP;
    default: return 0;
    }
}

const struct fx_jinja_callable *fx_jinja__method_of(const struct fx_jinja_value *object,
                                                    fx_span name) {
    const struct fx_jinja_callable *row = find_in(
        object->kind == FX_JV_TEXT ? fx_jinja__text_methods : fx_jinja__other_methods, name);
    for (; row && row->name && fx_span_eq_str(name, row->name); row++)
        if (row->kinds & kind_bit(object)) return row;
    return NULL;
}

size_t fx_jinja__parameter(const struct fx_jinja_callable *row, fx_span name) {
    size_t i = 0;
    if (!row->parameters) return row->args_max;
    while (i < row->args_max && !fx_span_eq_str(name, row->parameters[i]))
        i++;
    return i;
}

bool fx_jinja__apply(struct fx_jinja_run *run, const struct fx_jinja_callable *row,
                     const struct fx_jinja_value *args, size_t count, size_t keywords,
                     struct fx_jinja_value *out) {
    struct fx_jinja_value placed[FX_JINJA_ARGS_MAX + 1];
    FX_ASSERT(row->args_max <= FX_JINJA_ARGS_MAX);
    size_t given = count - 1 + keywords, last = count;
    if (given < row->args_min || given > row->args_max)
        return fx_jinja__bad(run, "%s: %zu arguments, want %zu to %zu", row->name, given,
                             row->args_min, row->args_max);
    for (size_t i = 0; i <= FX_JINJA_ARGS_MAX; i++)
        placed[i] = i < count ? args[i] : (struct fx_jinja_value){.kind = FX_JV_ABSENT};
    for (const struct fx_jinja_value *pair = args + count; keywords--; pair += 2) {
        size_t i = fx_jinja__parameter(row, fx_jinja__span(pair[0].text)) + 1;
        if (i > row->args_max || placed[i].kind != FX_JV_ABSENT)
            return fx_jinja__bad(run, "%s: argument '%.*s=' has no place", row->name,
                                 (int)pair[0].text.len, (const char *)pair[0].text.at);
        placed[i] = pair[1];
        if (i >= last) last = i + 1;
    }
    return row->call(run, placed, last, out);
}
