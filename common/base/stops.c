#include "common/base/stops.h"
#include "common/base/heap.h"
#include <string.h>

/* One string and how much of it the text ends with (Knuth, Morris, Pratt). */
struct pattern {
    uint8_t bytes[FX_STOP_BYTES_MAX];
    uint16_t back[FX_STOP_BYTES_MAX + 1]; /* the longest border of each prefix */
    uint16_t len, matched;
};

struct fx_stops {
    struct pattern patterns[FX_STOPS_MAX];
    size_t count, held;
    bool met;
};

/* The matched length after one byte more. */
static uint16_t next(const struct pattern *pattern, uint16_t matched, uint8_t byte) {
    while (matched && (matched == pattern->len || pattern->bytes[matched] != byte))
        matched = pattern->back[matched];
    if (pattern->bytes[matched] == byte) matched++;
    return matched;
}

static void pattern_fill(struct pattern *pattern, fx_span text) {
    pattern->len = (uint16_t)text.len;
    memcpy(pattern->bytes, text.at, text.len);
    for (uint16_t i = 1; i < pattern->len; i++)
        pattern->back[i + 1] = next(pattern, pattern->back[i], pattern->bytes[i]);
}

bool fx_stops_new(const fx_span *strings, size_t count, fx_stops **out, fx_error *err) {
    if (!count || count > FX_STOPS_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%zu stop strings: 1 to %d", count, FX_STOPS_MAX);
    for (size_t i = 0; i < count; i++)
        if (!strings[i].len || strings[i].len > FX_STOP_BYTES_MAX)
            return fx_fail(err, FX_INVALID_ARGUMENT, "a stop string of %zu bytes: 1 to %d",
                           strings[i].len, FX_STOP_BYTES_MAX);
    fx_stops *stops = fx_alloc(1, sizeof *stops);
    if (!stops) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for stop strings");
    for (size_t i = 0; i < count; i++)
        pattern_fill(&stops->patterns[i], strings[i]);
    stops->count = count;
    *out = stops;
    return true;
}

void fx_stops_free(fx_stops *stops) {
    free(stops);
}

/* Moves all patterns on; tells the longest that is complete and the longest that is begun. */
static void advance(fx_stops *stops, uint8_t byte, size_t *complete, size_t *begun) {
    *complete = *begun = 0;
    for (size_t i = 0; i < stops->count; i++) {
        struct pattern *pattern = &stops->patterns[i];
        pattern->matched = next(pattern, pattern->matched, byte);
        if (pattern->matched > *begun) *begun = pattern->matched;
        if (pattern->matched == pattern->len && pattern->len > *complete) *complete = pattern->len;
    }
}

/* The longest begun string: what is held is its beginning, so nothing else need be kept. */
static const struct pattern *holder(const fx_stops *stops) {
    const struct pattern *longest = &stops->patterns[0];
    for (size_t i = 1; i < stops->count; i++)
        if (stops->patterns[i].matched > longest->matched) longest = &stops->patterns[i];
    return longest;
}

static void release(fx_stops *stops, fx_span held, uint8_t byte, size_t keep, fx_buf *out) {
    size_t all = held.len + 1, show = all - keep;
    fx_buf_put(out, (fx_span){held.at, show < held.len ? show : held.len});
    if (show == all) fx_buf_put(out, (fx_span){&byte, 1});
    stops->held = keep;
}

static void push_byte(fx_stops *stops, uint8_t byte, fx_buf *out) {
    size_t complete, begun;
    fx_span held = {holder(stops)->bytes, stops->held};
    advance(stops, byte, &complete, &begun);
    stops->met = complete > 0;
    release(stops, held, byte, complete ? complete : begun, out);
    if (stops->met) stops->held = 0;
}

bool fx_stops_push(fx_stops *stops, fx_span text, fx_buf *out) {
    for (size_t i = 0; i < text.len && !stops->met; i++)
        push_byte(stops, text.at[i], out);
    return stops->met;
}

size_t fx_stops_held(const fx_stops *stops) {
    return stops->held;
}

void fx_stops_flush(fx_stops *stops, fx_buf *out) {
    fx_buf_put(out, (fx_span){holder(stops)->bytes, stops->held});
    stops->held = 0;
}
