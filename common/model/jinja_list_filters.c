#include "common/model/jinja_path.h"

/* Filters of lists and mappings. */

static bool filter_length(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    const struct fx_jinja_value *value = &args[0];
    size_t length = 0;
    (void)count;
    if (value->kind == FX_JV_TEXT)
        length = fx_jinja__char_count(fx_jinja__span(value->text));
    else if (value->kind == FX_JV_LIST || value->kind == FX_JV_DICT || value->kind == FX_JV_VIEW)
        length = value->list.count;
    else if (value->kind == FX_JV_LOOP)
        length = value->loop->items.list.count;
    else if (value->kind != FX_JV_UNDEFINED)
        return fx_jinja__bad(run, "length of a %s", fx_jinja__kind_name(value));
    *out = fx_jinja__integer((int64_t)length);
    return true;
}

static bool filter_join(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                        struct fx_jinja_value *out) {
    struct fx_jinja_value items, item;
    struct fx_jinja_text between = fx_jinja__literal(fx_span_str(""));
    size_t used = 0;
    (void)count;
    if (!fx_jinja__iterate(run, &args[0], &items)) return false;
    if (args[1].kind != FX_JV_ABSENT && !fx_jinja__to_text(run, &args[1], &between)) return false;
    struct fx_jinja_text *parts =
        fx_arena_array(run->arena, 2 * items.list.count + 1, sizeof *parts);
    if (!parts) return fx_jinja__full(run);
    for (size_t i = 0; i < items.list.count; i++) {
        if (i) parts[used++] = between;
        if (!fx_jinja__path(run, &items.list.at[i], &args[2], NULL, &item) ||
            !fx_jinja__to_text(run, &item, &parts[used++]))
            return false;
    }
    out->kind = FX_JV_TEXT;
    return fx_jinja__concat(run, parts, used, &out->text);
}

static FX_MUST bool pick(struct fx_jinja_run *run, const struct fx_jinja_value *value, bool last,
                         struct fx_jinja_value *out) {
    struct fx_jinja_value items;
    bool stream = value->kind == FX_JV_STREAM;
    if (stream && last) return fx_jinja__bad(run, "last of a generator");
    if (!fx_jinja__iterate(run, value, &items)) return false;
    if (stream && items.list.count) { /* the rest of it stays */
        value->stream->at++;
        value->stream->count = items.list.count - 1;
    }
    if (items.list.count)
        *out = items.list.at[last ? items.list.count - 1 : 0];
    else
        *out = fx_jinja__undefined(last ? "last item" : "first item");
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

static bool filter_list(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                        struct fx_jinja_value *out) {
    (void)count;
    if (!fx_jinja__iterate(run, &args[0], out)) return false;
    out->list.tuple = false;
    return true;
}

static bool filter_items(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    (void)count;
    struct fx_jinja_value pairs = fx_jinja__list(NULL, 0);
    if (args[0].kind == FX_JV_DICT) {
        if (!fx_jinja__pairs(run, &args[0], &pairs)) return false;
    } else if (args[0].kind != FX_JV_UNDEFINED) {
        return fx_jinja__bad(run, "items of a %s", fx_jinja__kind_name(&args[0]));
    }
    return fx_jinja__stream(run, pairs.list.at, pairs.list.count, out);
}

static bool filter_reverse(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                           size_t count, struct fx_jinja_value *out) {
    struct fx_jinja_value parts[3] = {
        {.kind = FX_JV_NONE}, {.kind = FX_JV_NONE}, fx_jinja__integer(-1)};
    struct fx_jinja_value items = args[0];
    (void)count;
    if (items.kind != FX_JV_TEXT && !fx_jinja__iterate(run, &args[0], &items)) return false;
    if (!fx_jinja__slice(run, &items, parts, out)) return false;
    return items.kind == FX_JV_TEXT || fx_jinja__stream(run, out->list.at, out->list.count, out);
}

static FX_MUST bool reorder(struct fx_jinja_run *run, const struct fx_jinja_value *items,
                            const struct fx_jinja_value *keys, bool reverse,
                            struct fx_jinja_value *out) {
    size_t count = items->list.count, *order;
    struct fx_jinja_value *sorted = fx_jinja__values(run, count);
    if (!sorted || !fx_jinja__sort(run, keys, count, reverse, &order)) return false;
    for (size_t i = 0; i < count; i++)
        sorted[i] = items->list.at[order[i]];
    *out = fx_jinja__list(sorted, count);
    return true;
}

/* sort(reverse, case_sensitive, attribute) */
static bool filter_sort(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                        struct fx_jinja_value *out) {
    struct fx_jinja_value items, *keys;
    (void)count;
    return fx_jinja__iterate(run, &args[0], &items) &&
           fx_jinja__paths(run, &items, &args[3], fx_jinja__truth(&args[2]), &keys) &&
           reorder(run, &items, keys, fx_jinja__truth(&args[1]), out);
}

/* dictsort(case_sensitive, by, reverse) */
static bool filter_dictsort(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                            size_t count, struct fx_jinja_value *out) {
    struct fx_jinja_value items, *keys, index = fx_jinja__integer(0);
    (void)count;
    if (args[0].kind != FX_JV_DICT)
        return fx_jinja__bad(run, "dictsort of a %s", fx_jinja__kind_name(&args[0]));
    if (args[2].kind != FX_JV_ABSENT) {
        if (!fx_jinja__want_text(run, "dictsort", &args[2])) return false;
        fx_span by = fx_jinja__span(args[2].text);
        index.integer = fx_span_eq_str(by, "value");
        if (!index.integer && !fx_span_eq_str(by, "key"))
            return fx_jinja__bad(run, "dictsort: by is 'key' or 'value'");
    }
    return fx_jinja__pairs(run, &args[0], &items) &&
           fx_jinja__paths(run, &items, &index, fx_jinja__truth(&args[1]), &keys) &&
           reorder(run, &items, keys, fx_jinja__truth(&args[3]), out);
}

/* unique(case_sensitive, attribute): the first of each */
static bool filter_unique(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    struct fx_jinja_value items, *keys;
    (void)count;
    if (!fx_jinja__iterate(run, &args[0], &items) ||
        !fx_jinja__paths(run, &items, &args[2], fx_jinja__truth(&args[1]), &keys))
        return false;
    struct fx_jinja_value *kept = fx_jinja__values(run, items.list.count);
    size_t used = 0;
    if (!kept) return false;
    for (size_t i = 0; i < items.list.count; i++) {
        bool seen = false;
        if (!fx_jinja__want_key(run, &keys[i])) return false;
        for (size_t k = 0; k < used && !seen; k++)
            if (!fx_jinja__equal(run, &keys[k], &keys[i], &seen)) return false;
        run->steps += used;
        if (run->steps > FX_TEMPLATE_STEPS_MAX) break; /* the machine says so */
        if (seen) continue;
        keys[used] = keys[i];
        kept[used++] = items.list.at[i];
    }
    return fx_jinja__stream(run, kept, used, out);
}

/* min and max: (case_sensitive, attribute) */
static FX_MUST bool extreme(struct fx_jinja_run *run, const struct fx_jinja_value *args, int sign,
                            struct fx_jinja_value *out) {
    struct fx_jinja_value items, *keys;
    size_t best = 0;
    if (!fx_jinja__iterate(run, &args[0], &items) ||
        !fx_jinja__paths(run, &items, &args[2], fx_jinja__truth(&args[1]), &keys))
        return false;
    for (size_t i = 1; i < items.list.count; i++) {
        int order;
        if (!fx_jinja__order(run, &keys[i], &keys[best], &order)) return false;
        if (order * sign > 0) best = i;
    }
    *out = items.list.count ? items.list.at[best] : fx_jinja__undefined("an empty sequence's item");
    return true;
}

static bool filter_min(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                       struct fx_jinja_value *out) {
    (void)count;
    return extreme(run, args, -1, out);
}

static bool filter_max(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                       struct fx_jinja_value *out) {
    (void)count;
    return extreme(run, args, 1, out);
}

/* sum(attribute, start) */
static bool filter_sum(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                       struct fx_jinja_value *out) {
    struct fx_jinja_value items, item;
    (void)count;
    if (!fx_jinja__iterate(run, &args[0], &items)) return false;
    *out = args[2].kind == FX_JV_ABSENT ? fx_jinja__integer(0) : args[2];
    if (out->kind == FX_JV_TEXT) return fx_jinja__bad(run, "sum of strings");
    for (size_t i = 0; i < items.list.count; i++)
        if (!fx_jinja__path(run, &items.list.at[i], &args[1], NULL, &item) ||
            !fx_jinja__binary(run, '+', out, &item, out))
            return false;
    return true;
}

static const char *const join_names[] = {"d", "attribute"};
static const char *const sort_names[] = {"reverse", "case_sensitive", "attribute"};
static const char *const dictsort_names[] = {"case_sensitive", "by", "reverse"};
static const char *const unique_names[] = {"case_sensitive", "attribute"};
static const char *const sum_names[] = {"attribute", "start"};

const struct fx_jinja_callable fx_jinja__list_filters[] = {
    {"length",   0, 0, NULL,           filter_length,   0},
    {"count",    0, 0, NULL,           filter_length,   0},
    {"join",     0, 2, join_names,     filter_join,     0},
    {"first",    0, 0, NULL,           filter_first,    0},
    {"last",     0, 0, NULL,           filter_last,     0},
    {"list",     0, 0, NULL,           filter_list,     0},
    {"items",    0, 0, NULL,           filter_items,    0},
    {"reverse",  0, 0, NULL,           filter_reverse,  0},
    {"sort",     0, 3, sort_names,     filter_sort,     0},
    {"dictsort", 0, 3, dictsort_names, filter_dictsort, 0},
    {"unique",   0, 2, unique_names,   filter_unique,   0},
    {"min",      0, 2, unique_names,   filter_min,      0},
    {"max",      0, 2, unique_names,   filter_max,      0},
    {"sum",      0, 2, sum_names,      filter_sum,      0},
    {NULL,       0, 0, NULL,           NULL,            0},
};
