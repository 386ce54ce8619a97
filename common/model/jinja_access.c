#include "common/model/jinja_space.h"

static const struct fx_jinja_value none_ = {.kind = FX_JV_NONE};

/* An undefined value remembers the name it should have had. */
static struct fx_jinja_value missing(const struct fx_jinja_value *key) {
    struct fx_jinja_value value = {.kind = FX_JV_UNDEFINED};
    if (key->kind == FX_JV_TEXT)
        value.text = key->text;
    else
        value.text = fx_jinja__literal(fx_span_str("element"));
    return value;
}

static struct fx_jinja_value number(size_t value) {
    return (struct fx_jinja_value){.kind = FX_JV_INT, .integer = (int64_t)value};
}

static struct fx_jinja_value boolean(bool value) {
    return (struct fx_jinja_value){.kind = FX_JV_BOOL, .boolean = value};
}

static struct fx_jinja_value neighbour(const struct fx_jinja_loop *loop, size_t index,
                                       const struct fx_jinja_value *key) {
    return index < loop->items.list.count ? loop->items.list.at[index] : missing(key);
}

static struct fx_jinja_value loop_item(const struct fx_jinja_loop *loop,
                                       const struct fx_jinja_value *key) {
    fx_span name = fx_jinja__span(key->text);
    size_t count = loop->items.list.count, index = loop->index;
    if (key->kind != FX_JV_TEXT) return missing(key);
    if (fx_span_eq_str(name, "index")) return number(index + 1);
    if (fx_span_eq_str(name, "index0")) return number(index);
    if (fx_span_eq_str(name, "revindex")) return number(count - index);
    if (fx_span_eq_str(name, "revindex0")) return number(count - index - 1);
    if (fx_span_eq_str(name, "length")) return number(count);
    if (fx_span_eq_str(name, "first")) return boolean(index == 0);
    if (fx_span_eq_str(name, "last")) return boolean(index + 1 == count);
    if (fx_span_eq_str(name, "depth")) return number(1);
    if (fx_span_eq_str(name, "depth0")) return number(0);
    if (fx_span_eq_str(name, "previtem")) return neighbour(loop, index - 1, key);
    if (fx_span_eq_str(name, "nextitem")) return neighbour(loop, index + 1, key);
    return missing(key);
}

static FX_MUST bool dict_item(struct fx_jinja_run *run, const struct fx_jinja_value *dict,
                              const struct fx_jinja_value *key, struct fx_jinja_value *out) {
    struct fx_jinja_value found = missing(key);
    bool same = false;
    run->steps += dict->list.count / 4;
    for (size_t i = 0; i < dict->list.count && !same; i++) {
        const struct fx_jinja_value *pair = &dict->list.at[2 * i];
        if (!fx_jinja__equal(run, &pair[0], key, &same)) return false;
        if (same) found = pair[1];
    }
    *out = found;
    return true;
}

static struct fx_jinja_value space_item(const struct fx_jinja_value *space,
                                        const struct fx_jinja_value *key) {
    if (key->kind != FX_JV_TEXT) return missing(key);
    return fx_jinja__space_get(space->space, fx_jinja__span(key->text));
}

static bool is_index(const struct fx_jinja_value *key) {
    return key->kind == FX_JV_INT || key->kind == FX_JV_BOOL;
}

static int64_t index_of(const struct fx_jinja_value *key) {
    return key->kind == FX_JV_BOOL ? key->boolean : key->integer;
}

/* Counts from the end where negative; false when outside. */
static bool resolve_index(int64_t index, size_t count, size_t *out) {
    if (index < 0) index += (int64_t)count;
    if (index < 0 || index >= (int64_t)count) return false;
    *out = (size_t)index;
    return true;
}

static struct fx_jinja_value text_item(const struct fx_jinja_value *text,
                                       const struct fx_jinja_value *key) {
    fx_span span = fx_jinja__span(text->text);
    size_t index;
    if (!is_index(key) || !resolve_index(index_of(key), fx_jinja__char_count(span), &index))
        return missing(key);
    size_t at = fx_jinja__char_at(span, index);
    struct fx_jinja_value out = *text;
    out.text = fx_jinja__sub(text->text, at, at + fx_jinja__char_len(span, at));
    return out;
}

static FX_MUST bool element(struct fx_jinja_run *run, const struct fx_jinja_value *object,
                            const struct fx_jinja_value *key, struct fx_jinja_value *out) {
    size_t index;
    switch (object->kind) {
    case FX_JV_UNDEFINED:
        return fx_jinja__bad(run, "'%.*s' is undefined", (int)object->text.len,
                             (const char *)object->text.at);
    case FX_JV_DICT: return dict_item(run, object, key, out);
    case FX_JV_NAMESPACE: *out = space_item(object, key); return true;
    case FX_JV_LOOP: *out = loop_item(object->loop, key); return true;
    case FX_JV_TEXT: *out = text_item(object, key); return true;
    case FX_JV_LIST:
        *out = is_index(key) && resolve_index(index_of(key), object->list.count, &index)
                   ? object->list.at[index]
                   : missing(key);
        return true;
    default: *out = missing(key); return true;
    }
}

/* The method of that name, as a value that is defined and true. */
static bool as_method(const struct fx_jinja_value *object, const struct fx_jinja_value *name,
                      struct fx_jinja_value *out) {
    const struct fx_jinja_callable *row =
        name->kind == FX_JV_TEXT ? fx_jinja__method_of(object, fx_jinja__span(name->text)) : NULL;
    if (row) *out = (struct fx_jinja_value){.kind = FX_JV_METHOD, .callable = row};
    return row != NULL;
}

/* As Jinja: object[key] falls back to the attribute of that name. */
bool fx_jinja__item(struct fx_jinja_run *run, const struct fx_jinja_value *object,
                    const struct fx_jinja_value *key, struct fx_jinja_value *out) {
    struct fx_jinja_value found, method;
    if (!element(run, object, key, &found)) return false;
    bool fall = found.kind == FX_JV_UNDEFINED && as_method(object, key, &method);
    *out = fall ? method : found;
    return true;
}

bool fx_jinja__attribute(struct fx_jinja_run *run, const struct fx_jinja_value *object,
                         const struct fx_jinja_value *name, struct fx_jinja_value *out) {
    struct fx_jinja_value method;
    if (!as_method(object, name, &method)) return element(run, object, name, out);
    *out = method;
    return true;
}

struct range {
    int64_t start, step;
    size_t count;
};

static int64_t slice_part(const struct fx_jinja_value *part, int64_t fallback) {
    return part->kind == FX_JV_NONE ? fallback : index_of(part);
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

/* Python's PySlice_AdjustIndices; the parts are integers or NONE. */
static FX_MUST bool slice_range(struct fx_jinja_run *run, const struct fx_jinja_value parts[3],
                                size_t count, struct range *out) {
    int64_t n = (int64_t)count, step = slice_part(&parts[2], 1);
    if (step == 0) return fx_jinja__bad(run, "a slice's step is zero");
    step = clamp(step, -INT32_MAX, INT32_MAX);
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    int64_t start = slice_part(&parts[0], step < 0 ? INT64_MAX : 0);
    int64_t stop = slice_part(&parts[1], 0);
    start = clamp(start < 0 ? start + n : start, low, high);
    stop = clamp(stop < 0 ? stop + n : stop, low, high);
    if (parts[1].kind == FX_JV_NONE) stop = step < 0 ? -1 : n;
    int64_t span = step > 0 ? stop - start : start - stop, stride = step > 0 ? step : -step;
    *out = (struct range){start, step, span > 0 ? (size_t)((span - 1) / stride + 1) : 0};
    return true;
}

static FX_MUST bool slice_list(struct fx_jinja_run *run, const struct fx_jinja_value *list,
                               const struct fx_jinja_value parts[3], struct fx_jinja_value *out) {
    struct range range;
    if (!slice_range(run, parts, list->list.count, &range)) return false;
    struct fx_jinja_value *items = fx_arena_array(run->arena, range.count, sizeof *items);
    if (!items) return fx_jinja__full(run);
    for (size_t i = 0; i < range.count; i++)
        items[i] = list->list.at[range.start + (int64_t)i * range.step];
    *out = fx_jinja__list(items, range.count);
    out->list.tuple = list->list.tuple;
    return true;
}

/* Byte offsets of all characters and of the end. */
static FX_MUST bool char_offsets(struct fx_jinja_run *run, fx_span text, size_t count,
                                 size_t **out) {
    size_t *offsets = fx_arena_array(run->arena, count + 1, sizeof *offsets);
    if (!offsets) return fx_jinja__full(run);
    for (size_t i = 0; i < count; i++)
        offsets[i + 1] = offsets[i] + fx_jinja__char_len(text, offsets[i]);
    *out = offsets;
    return true;
}

static FX_MUST bool slice_strided(struct fx_jinja_run *run, struct fx_jinja_text text, size_t count,
                                  struct range range, struct fx_jinja_text *out) {
    size_t *offsets;
    struct fx_jinja_text *chars = fx_arena_array(run->arena, range.count, sizeof *chars);
    if (!chars) return fx_jinja__full(run);
    if (!char_offsets(run, fx_jinja__span(text), count, &offsets)) return false;
    for (size_t i = 0; i < range.count; i++) {
        size_t at = (size_t)(range.start + (int64_t)i * range.step);
        chars[i] = fx_jinja__sub(text, offsets[at], offsets[at + 1]);
    }
    return fx_jinja__concat(run, chars, range.count, out);
}

static FX_MUST bool slice_text(struct fx_jinja_run *run, const struct fx_jinja_value *value,
                               const struct fx_jinja_value parts[3], struct fx_jinja_value *out) {
    struct range range;
    struct fx_jinja_text text = value->text;
    fx_span span = fx_jinja__span(text);
    size_t count = fx_jinja__char_count(span);
    if (!slice_range(run, parts, count, &range)) return false;
    if (range.step != 1) {
        if (!slice_strided(run, text, count, range, &text)) return false;
    } else {
        size_t from = fx_jinja__char_at(span, (size_t)range.start);
        fx_span rest = {span.at + from, span.len - from};
        text = fx_jinja__sub(text, from, from + fx_jinja__char_at(rest, range.count));
    }
    *out = (struct fx_jinja_value){.kind = FX_JV_TEXT, .text = text};
    return true;
}

bool fx_jinja__slice(struct fx_jinja_run *run, const struct fx_jinja_value *object,
                     const struct fx_jinja_value parts[3], struct fx_jinja_value *out) {
    bool whole = true;
    for (size_t i = 0; i < 3; i++)
        whole = whole && (parts[i].kind == FX_JV_NONE || is_index(&parts[i]));
    if (whole && object->kind == FX_JV_LIST) return slice_list(run, object, parts, out);
    if (whole && object->kind == FX_JV_TEXT) return slice_text(run, object, parts, out);
    if (object->kind == FX_JV_UNDEFINED) return fx_jinja__item(run, object, &none_, out);
    return fx_jinja__bad(run, "%s of a %s", whole ? "a slice" : "a slice by no integers",
                         fx_jinja__kind_name(object));
}

static FX_MUST bool characters(struct fx_jinja_run *run, const struct fx_jinja_value *value,
                               struct fx_jinja_value *out) {
    size_t count = fx_jinja__char_count(fx_jinja__span(value->text)), *offsets;
    struct fx_jinja_value *items = fx_arena_array(run->arena, count, sizeof *items);
    if (!items) return fx_jinja__full(run);
    if (!char_offsets(run, fx_jinja__span(value->text), count, &offsets)) return false;
    for (size_t i = 0; i < count; i++) {
        items[i].kind = FX_JV_TEXT;
        items[i].text = fx_jinja__sub(value->text, offsets[i], offsets[i + 1]);
        items[i].text.markup = false;
    }
    run->steps += count;
    *out = fx_jinja__list(items, count);
    return true;
}

static FX_MUST bool keys(struct fx_jinja_run *run, const struct fx_jinja_value *dict,
                         struct fx_jinja_value *out) {
    struct fx_jinja_value *items = fx_arena_array(run->arena, dict->list.count, sizeof *items);
    if (!items) return fx_jinja__full(run);
    for (size_t i = 0; i < dict->list.count; i++)
        items[i] = dict->list.at[2 * i];
    *out = fx_jinja__list(items, dict->list.count);
    return true;
}

bool fx_jinja__stream(struct fx_jinja_run *run, const struct fx_jinja_value *items, size_t count,
                      struct fx_jinja_value *out) {
    struct fx_jinja_stream *stream = fx_arena_alloc(run->arena, sizeof *stream);
    if (!stream) return fx_jinja__full(run);
    *stream = (struct fx_jinja_stream){items, count};
    *out = (struct fx_jinja_value){.kind = FX_JV_STREAM, .stream = stream};
    return true;
}

bool fx_jinja__iterate(struct fx_jinja_run *run, const struct fx_jinja_value *value,
                       struct fx_jinja_value *out) {
    switch (value->kind) {
    case FX_JV_LIST: *out = *value; return true;
    case FX_JV_VIEW: *out = fx_jinja__list(value->list.at, value->list.count); return true;
    case FX_JV_STREAM:
        *out = fx_jinja__list(value->stream->at, value->stream->count);
        value->stream->count = 0;
        return true;
    case FX_JV_TEXT: return characters(run, value, out);
    case FX_JV_DICT: return keys(run, value, out);
    case FX_JV_UNDEFINED: *out = fx_jinja__list(NULL, 0); return true;
    default: return fx_jinja__bad(run, "a %s is not iterable", fx_jinja__kind_name(value));
    }
}
