#include "common/model/jinja_path.h"

/* map, select and their kin: filters that apply a filter or test to each item. */

/* The filter or test named by `name` with the arguments after it. */
static FX_MUST bool apply_named(struct fx_jinja_run *run, enum fx_jinja_family family,
                                const struct fx_jinja_value *name,
                                const struct fx_jinja_value *value,
                                const struct fx_jinja_value *rest, size_t count,
                                struct fx_jinja_value *out) {
    struct fx_jinja_value args[FX_JINJA_ARGS_MAX + 1] = {*value};
    const char *what = family == FX_JF_TEST ? "test" : "filter";
    if (!fx_jinja__want_text(run, what, name)) return false;
    const struct fx_jinja_callable *row = fx_jinja__find(family, fx_jinja__span(name->text));
    if (!row)
        return fx_jinja__bad(run, "%s '%.*s' is not supported", what,
                             name->text.len < 64 ? (int)name->text.len : 64,
                             (const char *)name->text.at);
    if (row->args_max == FX_JINJA_ARGS_MAX)
        return fx_jinja__bad(run, "'%s' inside of another is not supported", row->name);
    for (size_t i = 0; i < count; i++)
        args[i + 1] = rest[i];
    run->steps++;
    return fx_jinja__apply(run, row, args, count + 1, 0, out);
}

/* As Jinja: nothing in what is false, be it none. */
static FX_MUST bool walk(struct fx_jinja_run *run, const struct fx_jinja_value *value,
                         struct fx_jinja_value *items) {
    *items = fx_jinja__list(NULL, 0);
    return !fx_jinja__truth(value) || fx_jinja__iterate(run, value, items);
}

enum { MAP_ATTRIBUTE = 4, MAP_DEFAULT = 5 };

static bool filter_map(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                       struct fx_jinja_value *out) {
    struct fx_jinja_value items;
    bool named = args[MAP_ATTRIBUTE].kind == FX_JV_ABSENT;
    if (named && (count < 2 || args[MAP_DEFAULT].kind != FX_JV_ABSENT))
        return fx_jinja__bad(run, "map wants a filter or attribute=");
    if (!walk(run, &args[0], &items)) return false;
    struct fx_jinja_value *mapped = fx_jinja__values(run, items.list.count);
    if (!mapped) return false;
    for (size_t i = 0; i < items.list.count; i++) {
        const struct fx_jinja_value *item = &items.list.at[i];
        if (!(named
                  ? apply_named(run, FX_JF_FILTER, &args[1], item, &args[2], count - 2, &mapped[i])
                  : fx_jinja__path(run, item, &args[MAP_ATTRIBUTE], &args[MAP_DEFAULT],
                                   &mapped[i])))
            return false;
    }
    return fx_jinja__stream(run, mapped, items.list.count, out);
}

/* `test` and what follows: args[1..); without one, truth itself. */
static FX_MUST bool choose(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                           size_t count, const struct fx_jinja_value *attribute, bool want,
                           struct fx_jinja_value *out) {
    struct fx_jinja_value items, value, result;
    if (!walk(run, &args[0], &items)) return false;
    struct fx_jinja_value *kept = fx_jinja__values(run, items.list.count);
    size_t used = 0;
    if (!kept) return false;
    for (size_t i = 0; i < items.list.count; i++) {
        if (!fx_jinja__path(run, &items.list.at[i], attribute, NULL, &value)) return false;
        result = value;
        size_t first = attribute->kind == FX_JV_ABSENT ? 1 : 2;
        if (count > first && !apply_named(run, FX_JF_TEST, &args[first], &value, &args[first + 1],
                                          count - first - 1, &result))
            return false;
        if (fx_jinja__truth(&result) == want) kept[used++] = items.list.at[i];
    }
    return fx_jinja__stream(run, kept, used, out);
}

static const struct fx_jinja_value absent = {.kind = FX_JV_ABSENT};

static bool filter_select(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    return choose(run, args, count, &absent, true, out);
}

static bool filter_reject(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    return choose(run, args, count, &absent, false, out);
}

static bool filter_selectattr(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                              size_t count, struct fx_jinja_value *out) {
    return choose(run, args, count, &args[1], true, out);
}

static bool filter_rejectattr(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                              size_t count, struct fx_jinja_value *out) {
    return choose(run, args, count, &args[1], false, out);
}

static const char *const map_names[] = {"", "", "", "attribute", "default"};

const struct fx_jinja_callable fx_jinja__pick_filters[] = {
    {"map",        1, 5, map_names, filter_map,        0},
    {"select",     0, 5, NULL,      filter_select,     0},
    {"reject",     0, 5, NULL,      filter_reject,     0},
    {"selectattr", 1, 5, NULL,      filter_selectattr, 0},
    {"rejectattr", 1, 5, NULL,      filter_rejectattr, 0},
    {NULL,         0, 0, NULL,      NULL,              0},
};
