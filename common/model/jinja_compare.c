#include "common/model/jinja_number.h"

/* Equality, order, `in`. */

bool fx_jinja__type_error(struct fx_jinja_run *run, const char *what,
                          const struct fx_jinja_value *a, const struct fx_jinja_value *b) {
    const struct fx_jinja_value *bad = b->kind == FX_JV_UNDEFINED ? b : a;
    if (bad->kind == FX_JV_UNDEFINED)
        return fx_jinja__bad(run, "'%.*s' is undefined", (int)bad->text.len,
                             (const char *)bad->text.at);
    return fx_jinja__bad(run, "%s of %s and %s", what, fx_jinja__kind_name(a),
                         fx_jinja__kind_name(b));
}

static bool scalar_equal(const struct fx_jinja_value *a, const struct fx_jinja_value *b) {
    if (fx_jinja__is_number(a) && fx_jinja__is_number(b))
        return fx_jinja__is_real(a, b) ? fx_jinja__as_real(a) == fx_jinja__as_real(b)
                                       : fx_jinja__as_integer(a) == fx_jinja__as_integer(b);
    if (a->kind != b->kind) return false;
    if (a->kind == FX_JV_TEXT) return fx_span_eq(fx_jinja__span(a->text), fx_jinja__span(b->text));
    switch (a->kind) {
    case FX_JV_NONE:
    case FX_JV_UNDEFINED: return true;
    case FX_JV_STREAM: return a->stream == b->stream;
    case FX_JV_LOOP: return a->loop == b->loop;
    case FX_JV_NAMESPACE: return a->space == b->space;
    case FX_JV_MACRO: return a->macro == b->macro;
    case FX_JV_FUNCTION: return a->function == b->function;
    default: return false;
    }
}

static bool is_nested(const struct fx_jinja_value *value) {
    return value->kind == FX_JV_LIST || value->kind == FX_JV_DICT;
}

/* Two lists or mappings, as far as they have been compared. */
struct pair {
    const struct fx_jinja_value *a, *b;
    size_t next;
};

static const struct fx_jinja_value *value_of(const struct fx_jinja_value *dict,
                                             const struct fx_jinja_value *key) {
    for (size_t i = 0; i < dict->list.count; i++)
        if (scalar_equal(&dict->list.at[2 * i], key)) return &dict->list.at[2 * i + 1];
    return NULL;
}

/* The next two elements to compare; false where the second has no such key. */
static bool next_pair(struct fx_jinja_run *run, struct pair *top, struct pair *out) {
    size_t i = top->next++;
    *out = (struct pair){&top->a->list.at[i], NULL, 0};
    if (top->a->kind == FX_JV_LIST) {
        out->b = &top->b->list.at[i];
        return true;
    }
    run->steps += top->b->list.count;
    out->a = &top->a->list.at[2 * i + 1];
    out->b = value_of(top->b, &top->a->list.at[2 * i]);
    return out->b != NULL;
}

static bool same_shape(const struct pair *pair) {
    return is_nested(pair->a) && pair->a->kind == pair->b->kind &&
           pair->a->list.count == pair->b->list.count &&
           (pair->a->kind == FX_JV_DICT || pair->a->list.tuple == pair->b->list.tuple);
}

bool fx_jinja__equal(struct fx_jinja_run *run, const struct fx_jinja_value *a,
                     const struct fx_jinja_value *b, bool *out) {
    struct pair stack[FX_JINJA_NESTING_MAX], now = {a, b, 0};
    size_t depth = 0;
    *out = false;
    for (;;) {
        run->steps += now.a->kind == FX_JV_TEXT ? now.a->text.len / FX_JINJA_BYTES_STEP : 0;
        if (!is_nested(now.a) && !is_nested(now.b)) {
            if (!scalar_equal(now.a, now.b)) return true;
        } else if (!same_shape(&now)) {
            return true;
        } else if (depth == FX_JINJA_NESTING_MAX) {
            return fx_jinja__bad(run, "lists nested deeper than %d", FX_JINJA_NESTING_MAX);
        } else {
            stack[depth++] = now;
        }
        run->steps += depth != 0;
        while (depth && stack[depth - 1].next == stack[depth - 1].a->list.count)
            depth--;
        if (!depth) break;
        if (!next_pair(run, &stack[depth - 1], &now)) return true;
    }
    *out = true;
    return true;
}

static FX_MUST bool order_scalars(struct fx_jinja_run *run, const struct fx_jinja_value *a,
                                  const struct fx_jinja_value *b, int *out) {
    if (fx_jinja__is_number(a) && fx_jinja__is_number(b)) {
        double left = fx_jinja__as_real(a), right = fx_jinja__as_real(b);
        *out = (left > right) - (left < right);
        if (!fx_jinja__is_real(a, b))
            *out = (fx_jinja__as_integer(a) > fx_jinja__as_integer(b)) -
                   (fx_jinja__as_integer(a) < fx_jinja__as_integer(b));
        return true;
    }
    if (a->kind != FX_JV_TEXT || b->kind != FX_JV_TEXT)
        return fx_jinja__type_error(run, "order", a, b);
    size_t shorter = a->text.len < b->text.len ? a->text.len : b->text.len;
    run->steps += shorter / FX_JINJA_BYTES_STEP;
    *out = shorter ? memcmp(a->text.at, b->text.at, shorter) : 0;
    if (!*out) *out = (a->text.len > b->text.len) - (a->text.len < b->text.len);
    return true;
}

bool fx_jinja__order(struct fx_jinja_run *run, const struct fx_jinja_value *a,
                     const struct fx_jinja_value *b, int *out) {
    if (a->kind != FX_JV_LIST || b->kind != FX_JV_LIST || a->list.tuple != b->list.tuple)
        return order_scalars(run, a, b, out);
    size_t left = a->list.count, right = b->list.count;
    for (size_t i = 0; i < left && i < right; i++) {
        bool same;
        if (!fx_jinja__equal(run, &a->list.at[i], &b->list.at[i], &same)) return false;
        if (!same) return order_scalars(run, &a->list.at[i], &b->list.at[i], out);
    }
    *out = (left > right) - (left < right);
    return true;
}

/* What was looked at is gone. */
static FX_MUST bool stream_contains(struct fx_jinja_run *run, const struct fx_jinja_value *needle,
                                    struct fx_jinja_stream *stream, bool *out) {
    run->steps += stream->count / 4;
    for (*out = false; stream->count && !*out; stream->at++, stream->count--)
        if (!fx_jinja__equal(run, needle, stream->at, out)) return false;
    return true;
}

bool fx_jinja__contains(struct fx_jinja_run *run, const struct fx_jinja_value *needle,
                        const struct fx_jinja_value *hay, bool *out) {
    *out = false;
    run->steps += hay->kind == FX_JV_TEXT ? hay->text.len / FX_JINJA_BYTES_STEP : 0;
    if (hay->kind == FX_JV_UNDEFINED) return true;
    if (hay->kind == FX_JV_TEXT && needle->kind == FX_JV_TEXT) {
        *out = !needle->text.len || (hay->text.len && memmem(hay->text.at, hay->text.len,
                                                             needle->text.at, needle->text.len));
        return true;
    }
    if (hay->kind == FX_JV_STREAM) return stream_contains(run, needle, hay->stream, out);
    if (hay->kind != FX_JV_LIST && hay->kind != FX_JV_DICT && hay->kind != FX_JV_VIEW)
        return fx_jinja__type_error(run, "'in'", needle, hay);
    size_t step = hay->kind == FX_JV_DICT ? 2 : 1;
    if (step == 2 && !fx_jinja__want_key(run, needle)) return false;
    run->steps += hay->list.count / 4;
    for (size_t i = 0; i < hay->list.count && !*out; i++)
        if (!fx_jinja__equal(run, needle, &hay->list.at[i * step], out)) return false;
    return true;
}
