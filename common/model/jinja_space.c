#include "common/model/jinja_space.h"

/* Mappings: immutable DICTs, and namespaces, which alone can change. */

struct fx_jinja_value *fx_jinja__values(struct fx_jinja_run *run, size_t count) {
    struct fx_jinja_value *values = fx_arena_array(run->arena, count, sizeof *values);
    if (!values) (void)fx_jinja__full(run);
    return values;
}

bool fx_jinja__space_new(struct fx_jinja_run *run, size_t cap, struct fx_jinja_namespace **out) {
    struct fx_jinja_namespace *space = fx_arena_alloc(run->arena, sizeof *space);
    if (!space) return fx_jinja__full(run);
    space->pairs = fx_jinja__values(run, 2 * cap);
    space->cap = cap;
    if (!space->pairs) return false;
    *out = space;
    return true;
}

static struct fx_jinja_value *find(const struct fx_jinja_namespace *space, fx_span name) {
    for (size_t i = 0; i < space->count; i++)
        if (fx_span_eq(fx_jinja__span(space->pairs[2 * i].text), name))
            return &space->pairs[2 * i + 1];
    return NULL;
}

struct fx_jinja_value fx_jinja__space_get(const struct fx_jinja_namespace *space, fx_span name) {
    const struct fx_jinja_value *found = find(space, name);
    struct fx_jinja_value missing = {.kind = FX_JV_UNDEFINED, .text = fx_jinja__literal(name)};
    return found ? *found : missing;
}

static FX_MUST bool grow(struct fx_jinja_run *run, struct fx_jinja_namespace *space) {
    size_t cap = 2 * space->cap + 4;
    struct fx_jinja_value *pairs = fx_jinja__values(run, 2 * cap);
    if (!pairs) return false;
    for (size_t i = 0; i < 2 * space->count; i++)
        pairs[i] = space->pairs[i];
    space->pairs = pairs;
    space->cap = cap;
    return true;
}

bool fx_jinja__space_set(struct fx_jinja_run *run, struct fx_jinja_namespace *space,
                         const struct fx_jinja_value *name, struct fx_jinja_value value) {
    struct fx_jinja_value *found = find(space, fx_jinja__span(name->text));
    if (found) {
        *found = value;
        return true;
    }
    if (space->count == space->cap && !grow(run, space)) return false;
    space->pairs[2 * space->count] = *name;
    space->pairs[2 * space->count + 1] = value;
    space->count++;
    return true;
}

bool fx_jinja__want_key(struct fx_jinja_run *run, const struct fx_jinja_value *key) {
    if (key->kind != FX_JV_DICT && (key->kind != FX_JV_LIST || key->list.tuple)) return true;
    return fx_jinja__bad(run, "a %s can't be a key", fx_jinja__kind_name(key));
}

static FX_MUST bool find_key(struct fx_jinja_run *run, const struct fx_jinja_value *pairs,
                             size_t count, const struct fx_jinja_value *key, size_t *out) {
    bool same = false;
    size_t i = 0;
    for (; i < count && !same; i++)
        if (!fx_jinja__equal(run, &pairs[2 * i], key, &same)) return false;
    *out = same ? i - 1 : count;
    return true;
}

bool fx_jinja__dict_new(struct fx_jinja_run *run, const struct fx_jinja_value *pairs, size_t count,
                        struct fx_jinja_value *out) {
    struct fx_jinja_value *copy = fx_jinja__values(run, 2 * count);
    size_t used = 0, at;
    if (!copy) return false;
    for (size_t i = 0; i < count; i++, pairs += 2) {
        if (!fx_jinja__want_key(run, &pairs[0])) return false;
        if (!find_key(run, copy, used, &pairs[0], &at)) return false;
        if (at == used) copy[2 * used++] = pairs[0];
        copy[2 * at + 1] = pairs[1];
    }
    *out = fx_jinja__list(copy, used);
    out->kind = FX_JV_DICT;
    return true;
}
