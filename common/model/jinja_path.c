#include "common/model/jinja_path.h"

static FX_MUST bool is_number(fx_span text, int64_t *out) {
    *out = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' || i > 17) return false;
        *out = *out * 10 + text.at[i] - '0';
    }
    return text.len != 0;
}

static FX_MUST bool step(struct fx_jinja_run *run, const struct fx_jinja_value *key,
                         const struct fx_jinja_value *fallback, struct fx_jinja_value *value) {
    if (!fx_jinja__item(run, value, key, value)) return false;
    if (value->kind == FX_JV_UNDEFINED && fallback && fallback->kind != FX_JV_ABSENT)
        *value = *fallback;
    return true;
}

static FX_MUST bool follow(struct fx_jinja_run *run, const struct fx_jinja_text *path,
                           const struct fx_jinja_value *fallback, struct fx_jinja_value *value) {
    for (size_t from = 0, to; from <= path->len; from = to + 1) {
        for (to = from; to < path->len && path->at[to] != '.';)
            to++;
        struct fx_jinja_value key = fx_jinja__text_value(fx_jinja__sub(*path, from, to));
        int64_t index;
        if (is_number(fx_jinja__span(key.text), &index)) key = fx_jinja__integer(index);
        if (!step(run, &key, fallback, value)) return false;
    }
    return true;
}

bool fx_jinja__path(struct fx_jinja_run *run, const struct fx_jinja_value *value,
                    const struct fx_jinja_value *attribute, const struct fx_jinja_value *fallback,
                    struct fx_jinja_value *out) {
    *out = *value;
    if (attribute->kind == FX_JV_ABSENT || attribute->kind == FX_JV_NONE) return true;
    if (attribute->kind == FX_JV_INT) return step(run, attribute, fallback, out);
    return fx_jinja__want_text(run, "attribute", attribute) &&
           follow(run, &attribute->text, fallback, out);
}

bool fx_jinja__paths(struct fx_jinja_run *run, const struct fx_jinja_value *items,
                     const struct fx_jinja_value *attribute, bool case_sensitive,
                     struct fx_jinja_value **out) {
    size_t count = items->list.count;
    struct fx_jinja_value *keys = fx_jinja__values(run, count);
    if (!keys) return false;
    for (size_t i = 0; i < count; i++) {
        if (!fx_jinja__path(run, &items->list.at[i], attribute, NULL, &keys[i])) return false;
        if (keys[i].kind == FX_JV_TEXT && !case_sensitive &&
            !fx_jinja__case(run, FX_JC_LOWER, keys[i].text, &keys[i].text))
            return false;
    }
    *out = keys;
    return true;
}

bool fx_jinja__pairs(struct fx_jinja_run *run, const struct fx_jinja_value *dict,
                     struct fx_jinja_value *out) {
    size_t count = dict->list.count;
    struct fx_jinja_value *items = fx_jinja__values(run, count);
    if (!items) return false;
    for (size_t i = 0; i < count; i++) {
        items[i] = fx_jinja__list(&dict->list.at[2 * i], 2);
        items[i].list.tuple = true;
    }
    *out = fx_jinja__list(items, count);
    return true;
}

/* Jinja compares lists of one key each: what is equal needs no order. */
static FX_MUST bool compare(struct fx_jinja_run *run, const struct fx_jinja_value *a,
                            const struct fx_jinja_value *b, int *order) {
    bool same;
    *order = 0;
    return fx_jinja__equal(run, a, b, &same) && (same || fx_jinja__order(run, a, b, order));
}

/* Merges from[start..middle) and from[middle..end) into `to`. */
static FX_MUST bool merge(struct fx_jinja_run *run, const struct fx_jinja_value *keys, bool reverse,
                          const size_t *from, size_t *to, const size_t range[3]) {
    size_t left = range[0], right = range[1];
    for (size_t i = range[0]; i < range[2]; i++) {
        int order = 0;
        if (left < range[1] && right < range[2] &&
            !compare(run, &keys[from[left]], &keys[from[right]], &order))
            return false;
        bool take_right =
            left == range[1] || (right < range[2] && (reverse ? order < 0 : order > 0));
        to[i] = take_right ? from[right++] : from[left++];
    }
    run->steps += range[2] - range[0];
    return true;
}

bool fx_jinja__sort(struct fx_jinja_run *run, const struct fx_jinja_value *keys, size_t count,
                    bool reverse, size_t **out) {
    size_t *from = fx_arena_array(run->arena, count, sizeof *from);
    size_t *to = fx_arena_array(run->arena, count, sizeof *to);
    if (!from || !to) return fx_jinja__full(run);
    for (size_t i = 0; i < count; i++)
        from[i] = i;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            size_t middle = start + width < count ? start + width : count;
            size_t end = middle + width < count ? middle + width : count;
            if (!merge(run, keys, reverse, from, to, (size_t[]){start, middle, end})) return false;
        }
        size_t *swap = from;
        from = to;
        to = swap;
    }
    *out = from;
    return true;
}
