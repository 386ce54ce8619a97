#include "common/model/jinja.h"
#include "common/model/jinja_space.h"
#include <time.h>

/* range(), dict(), namespace(), raise_exception() and strftime_now(). */

static FX_MUST bool only_positional(struct fx_jinja_run *run, const char *name, size_t count,
                                    size_t keywords, size_t min, size_t max) {
    if (!keywords && count >= min && count <= max) return true;
    return fx_jinja__bad(run, "%s: %zu arguments, want %zu to %zu", name, count + keywords, min,
                         max);
}

static bool call_range(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                       size_t keywords, struct fx_jinja_value *out) {
    int64_t start = 0, stop = 0, step = 1;
    if (!only_positional(run, "range", count, keywords, 1, 3) ||
        !fx_jinja__want_integer(run, "range", &args[count > 1], &stop) ||
        (count > 1 && !fx_jinja__want_integer(run, "range", &args[0], &start)) ||
        (count > 2 && !fx_jinja__want_integer(run, "range", &args[2], &step)))
        return false;
    if (!step) return fx_jinja__bad(run, "range: a step of zero");
    bool empty = step > 0 ? start >= stop : start <= stop;
    uint64_t span = (uint64_t)(step > 0 ? stop : start) - (uint64_t)(step > 0 ? start : stop);
    uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    uint64_t length = empty ? 0 : (span - 1) / stride + 1;
    if (length > FX_JINJA_RANGE_MAX)
        return fx_jinja__bad(run, "range: more than %d numbers", FX_JINJA_RANGE_MAX);
    struct fx_jinja_value *items = fx_jinja__values(run, length);
    if (!items) return false;
    for (size_t i = 0; i < length; i++)
        items[i] = fx_jinja__integer(start + (int64_t)i * step);
    *out = fx_jinja__list(items, length);
    return true;
}

/* The pairs of a mapping given by position, then the keywords: as in dict(other, a=1). */
static FX_MUST bool take_pairs(struct fx_jinja_run *run, const char *name,
                               const struct fx_jinja_value *args, size_t count, size_t keywords,
                               struct fx_jinja_value *out) {
    size_t first = count ? args[0].list.count : 0;
    if (count > 1 || (count && args[0].kind != FX_JV_DICT))
        return fx_jinja__bad(run, "%s takes a mapping or named arguments", name);
    struct fx_jinja_value *pairs = fx_jinja__values(run, 2 * (first + keywords));
    if (!pairs) return false;
    for (size_t i = 0; i < 2 * first; i++)
        pairs[i] = args[0].list.at[i];
    for (size_t i = 0; i < 2 * keywords; i++)
        pairs[2 * first + i] = args[count + i];
    return fx_jinja__dict_new(run, pairs, first + keywords, out);
}

static bool call_dict(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                      size_t keywords, struct fx_jinja_value *out) {
    return take_pairs(run, "dict()", args, count, keywords, out);
}

static bool call_namespace(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                           size_t count, size_t keywords, struct fx_jinja_value *out) {
    struct fx_jinja_value pairs;
    struct fx_jinja_namespace *space;
    if (!take_pairs(run, "namespace()", args, count, keywords, &pairs) ||
        !fx_jinja__space_new(run, pairs.list.count, &space))
        return false;
    for (size_t i = 0; i < pairs.list.count; i++) {
        const struct fx_jinja_value *pair = &pairs.list.at[2 * i];
        if (!fx_jinja__want_text(run, "namespace()", &pair[0]) ||
            !fx_jinja__space_set(run, space, &pair[0], pair[1]))
            return false;
    }
    *out = (struct fx_jinja_value){.kind = FX_JV_NAMESPACE, .space = space};
    return true;
}

/* The template refuses the conversation: its text is the whole error. */
static bool call_raise(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                       size_t keywords, struct fx_jinja_value *out) {
    struct fx_jinja_text text;
    (void)out;
    if (!only_positional(run, "raise_exception", count, keywords, 1, 1) ||
        !fx_jinja__to_text(run, &args[0], &text))
        return false;
    run->raised = true;
    int len = text.len < sizeof run->err->text ? (int)text.len : INT16_MAX;
    return fx_fail(run->err, FX_INVALID_ARGUMENT, "%.*s", len, (const char *)text.at);
}

enum { TIME_TEXT = 512 };

static bool call_strftime(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                          size_t keywords, struct fx_jinja_value *out) {
    char text[TIME_TEXT];
    time_t now = (time_t)run->now_s;
    struct tm local;
    if (!only_positional(run, "strftime_now", count, keywords, 1, 1) ||
        !fx_jinja__want_text(run, "strftime_now", &args[0]))
        return false;
    const char *format = fx_arena_copy(run->arena, fx_jinja__span(args[0].text));
    if (!format) return fx_jinja__full(run);
    if (!localtime_r(&now, &local)) return fx_jinja__bad(run, "strftime_now: no such time");
    size_t len = *format ? strftime(text, sizeof text, format, &local) : 0;
    if (!len && *format) return fx_jinja__bad(run, "strftime_now: the format is too long");
    const char *copy = fx_arena_copy(run->arena, (fx_span){(const uint8_t *)text, len});
    if (!copy) return fx_jinja__full(run);
    *out = fx_jinja__text_value(fx_jinja__literal((fx_span){(const uint8_t *)copy, len}));
    out->text.user = args[0].text.user || args[0].text.origin;
    return true;
}

const struct fx_jinja_routine fx_jinja__builtins[] = {
    {"range",           call_range    },
    {"dict",            call_dict     },
    {"namespace",       call_namespace},
    {"raise_exception", call_raise    },
    {"strftime_now",    call_strftime },
};
