#include "common/model/jinja_path.h"

/* Methods of mappings, lists and `loop`; args[0] is the object. */

static bool method_items(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    (void)count;
    if (!fx_jinja__pairs(run, &args[0], out)) return false;
    out->kind = FX_JV_VIEW;
    return true;
}

static FX_MUST bool halves(struct fx_jinja_run *run, const struct fx_jinja_value *dict,
                           size_t which, struct fx_jinja_value *out) {
    size_t count = dict->list.count;
    struct fx_jinja_value *items = fx_jinja__values(run, count);
    if (!items) return false;
    for (size_t i = 0; i < count; i++)
        items[i] = dict->list.at[2 * i + which];
    *out = fx_jinja__list(items, count);
    out->kind = FX_JV_VIEW;
    return true;
}

static bool method_keys(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                        struct fx_jinja_value *out) {
    (void)count;
    return halves(run, &args[0], 0, out);
}

static bool method_values(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    (void)count;
    return halves(run, &args[0], 1, out);
}

static bool method_copy(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                        struct fx_jinja_value *out) {
    (void)run;
    (void)count;
    *out = args[0];
    return true;
}

static bool method_get(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                       struct fx_jinja_value *out) {
    bool same = false;
    (void)count;
    *out = args[2];
    if (out->kind == FX_JV_ABSENT) out->kind = FX_JV_NONE;
    run->steps += args[0].list.count;
    for (size_t i = 0; i < args[0].list.count && !same; i++) {
        if (!fx_jinja__equal(run, &args[0].list.at[2 * i], &args[1], &same)) return false;
        if (same) *out = args[0].list.at[2 * i + 1];
    }
    return true;
}

static FX_MUST bool occurrences(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                                int64_t *first, int64_t *times) {
    *first = -1;
    *times = 0;
    run->steps += args[0].list.count;
    for (size_t i = 0; i < args[0].list.count; i++) {
        bool same;
        if (!fx_jinja__equal(run, &args[0].list.at[i], &args[1], &same)) return false;
        if (same && *first < 0) *first = (int64_t)i;
        *times += same;
    }
    return true;
}

static bool method_index(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    int64_t first, times;
    (void)count;
    if (!occurrences(run, args, &first, &times)) return false;
    if (!times) return fx_jinja__bad(run, "index: the value is not in the list");
    *out = fx_jinja__integer(first);
    return true;
}

static bool method_count(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    int64_t first, times;
    (void)count;
    if (!occurrences(run, args, &first, &times)) return false;
    *out = fx_jinja__integer(times);
    return true;
}

static bool method_cycle(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    (void)run;
    *out = args[1 + args[0].loop->index % (count - 1)];
    return true;
}

/* True in the first round and where the arguments differ from those of the call before. */
static bool method_changed(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                           size_t count, struct fx_jinja_value *out) {
    struct fx_jinja_loop *loop = args[0].loop;
    struct fx_jinja_value *copy = fx_jinja__values(run, count - 1);
    bool same = loop->changed && loop->changed_count == count - 1;
    if (!copy) return false;
    for (size_t i = 0; i + 1 < count; i++) {
        copy[i] = args[i + 1];
        if (same && !fx_jinja__equal(run, &copy[i], &loop->changed[i], &same)) return false;
    }
    loop->changed = copy;
    loop->changed_count = count - 1;
    *out = fx_jinja__bool(!same);
    return true;
}

/* What templates get cannot be changed, as in Jinja's immutable sandbox. */
static bool method_unsafe(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          struct fx_jinja_value *out) {
    (void)count;
    (void)out;
    return fx_jinja__bad(run, "changing a %s is unsafe", fx_jinja__kind_name(&args[0]));
}

enum { LIST_DICT = FX_JM_LIST | FX_JM_DICT };

/* Rows of one name stand together. */
const struct fx_jinja_callable fx_jinja__other_methods[] = {
    {"items",      0, 0, NULL, method_items,   FX_JM_DICT},
    {"keys",       0, 0, NULL, method_keys,    FX_JM_DICT},
    {"values",     0, 0, NULL, method_values,  FX_JM_DICT},
    {"get",        1, 2, NULL, method_get,     FX_JM_DICT},
    {"copy",       0, 0, NULL, method_copy,    LIST_DICT },
    {"index",      1, 1, NULL, method_index,   FX_JM_LIST},
    {"count",      1, 1, NULL, method_count,   FX_JM_LIST},
    {"cycle",      1, 5, NULL, method_cycle,   FX_JM_LOOP},
    {"changed",    1, 5, NULL, method_changed, FX_JM_LOOP},
    {"append",     0, 5, NULL, method_unsafe,  FX_JM_LIST},
    {"extend",     0, 5, NULL, method_unsafe,  FX_JM_LIST},
    {"insert",     0, 5, NULL, method_unsafe,  FX_JM_LIST},
    {"remove",     0, 5, NULL, method_unsafe,  FX_JM_LIST},
    {"reverse",    0, 5, NULL, method_unsafe,  FX_JM_LIST},
    {"sort",       0, 5, NULL, method_unsafe,  FX_JM_LIST},
    {"clear",      0, 5, NULL, method_unsafe,  LIST_DICT },
    {"pop",        0, 5, NULL, method_unsafe,  LIST_DICT },
    {"popitem",    0, 5, NULL, method_unsafe,  FX_JM_DICT},
    {"setdefault", 0, 5, NULL, method_unsafe,  FX_JM_DICT},
    {"update",     0, 5, NULL, method_unsafe,  FX_JM_DICT},
    {NULL,         0, 0, NULL, NULL,           0         },
};
