#include "common/model/jinja.h"
#include "common/model/jinja_tables.h"

/* Case as Python's str has it. */

static bool in_spans(const struct fx_jinja_span *spans, size_t count, uint32_t point) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (spans[middle].last < point)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && spans[low].first <= point;
}

/* The surrogates count as hidden too: no text of ours has them. */
bool fx_jinja__printable(uint32_t point) {
    if (point < 0x7f) return point >= 0x20;
    return !in_spans(hidden, FX_COUNT(hidden), point);
}

static uint32_t move(const struct fx_jinja_move *moves, size_t count, uint32_t point) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (moves[middle].last < point)
            low = middle + 1;
        else
            high = middle;
    }
    bool moved = low < count && moves[low].first <= point &&
                 (point - moves[low].first) % moves[low].step == 0;
    return moved ? (uint32_t)((int32_t)point + moves[low].delta) : point;
}

static const struct fx_jinja_many *find_many(const struct fx_jinja_many *rows, size_t count,
                                             uint32_t point) {
    for (size_t i = 0; i < count; i++)
        if (rows[i].point == point) return &rows[i];
    return NULL;
}

/* Writes what the character becomes, at most three; returns how many. */
static size_t map_point(enum fx_jinja_case to, uint32_t point, uint32_t out[3]) {
    const struct fx_jinja_many *many = NULL;
    if (point >= 0x80 && to == FX_JC_TITLE)
        many = find_many(title_many, FX_COUNT(title_many), point);
    if (point >= 0x80 && !many)
        many = to == FX_JC_LOWER ? find_many(lower_many, FX_COUNT(lower_many), point)
                                 : find_many(upper_many, FX_COUNT(upper_many), point);
    if (!many) {
        out[0] = to == FX_JC_LOWER ? move(lower_moves, FX_COUNT(lower_moves), point)
                                   : move(upper_moves, FX_COUNT(upper_moves), point);
        return 1;
    }
    size_t count = 0;
    while (count < 3 && many->to[count]) {
        out[count] = many->to[count];
        count++;
    }
    return count;
}

static bool is_cased(uint32_t point) {
    return in_spans(cased, FX_COUNT(cased), point);
}

static bool is_ignorable(uint32_t point) {
    return in_spans(ignorable, FX_COUNT(ignorable), point);
}

enum { SIGMA = 0x3a3, FINAL_SIGMA = 0x3c2 };

struct caser {
    fx_span text;
    struct fx_jinja_text from;
    enum fx_jinja_case to;
    uint8_t *at, *origin; /* NULL while measuring */
    size_t len;
    bool before; /* the last character that is not ignorable was cased */
    bool inside; /* TITLE: the last character was cased; CAPITALIZE: not the first */
};

/* A cased character comes first among those that are not ignorable. */
static bool cased_after(const struct caser *caser, size_t from) {
    while (from < caser->text.len) {
        size_t len = fx_jinja__char_len(caser->text, from);
        uint32_t point = fx_jinja__point(caser->text, from, len);
        if (!is_ignorable(point)) return is_cased(point);
        from += len;
    }
    return false;
}

static enum fx_jinja_case case_here(const struct caser *caser) {
    switch (caser->to) {
    case FX_JC_TITLE:
    case FX_JC_CAPITALIZE: return caser->inside ? FX_JC_LOWER : FX_JC_TITLE;
    default: return caser->to;
    }
}

static void put(struct caser *caser, const uint8_t *bytes, size_t len, bool user) {
    if (caser->at) {
        memcpy(caser->at + caser->len, bytes, len);
        memset(caser->origin + caser->len, user, len);
    }
    caser->len += len;
}

static void put_mapped(struct caser *caser, size_t i, size_t len, uint32_t point) {
    uint32_t points[3];
    uint8_t bytes[4];
    enum fx_jinja_case to = case_here(caser);
    size_t count = map_point(to, point, points);
    bool user = caser->from.origin ? caser->from.origin[i] : caser->from.user;
    bool sigma = to == FX_JC_LOWER && point == SIGMA;
    if (sigma && caser->before && !cased_after(caser, i + len)) points[0] = FINAL_SIGMA;
    for (size_t n = 0; n < count; n++)
        put(caser, bytes, fx_jinja__put_char(points[n], bytes), user);
}

/* A byte that is no UTF-8 stays as it is. */
static void change(struct caser *caser) {
    for (size_t i = 0, len; i < caser->text.len; i += len) {
        len = fx_jinja__char_len(caser->text, i);
        uint32_t point = fx_jinja__point(caser->text, i, len);
        bool bad = len == 1 && point >= 0x80;
        bool user = caser->from.origin ? caser->from.origin[i] : caser->from.user;
        if (bad)
            put(caser, caser->text.at + i, 1, user);
        else
            put_mapped(caser, i, len, point);
        bool letter = !bad && is_cased(point);
        if (bad || !is_ignorable(point)) caser->before = letter;
        caser->inside = caser->to == FX_JC_CAPITALIZE || letter;
    }
}

bool fx_jinja__case(struct fx_jinja_run *run, enum fx_jinja_case to, struct fx_jinja_text text,
                    struct fx_jinja_text *out) {
    struct caser measure = {.text = fx_jinja__span(text), .from = text, .to = to};
    struct caser writer = measure;
    change(&measure);
    writer.at = fx_arena_alloc(run->arena, measure.len);
    writer.origin = fx_arena_alloc(run->arena, measure.len);
    if (!writer.at || !writer.origin) return fx_jinja__full(run);
    change(&writer);
    run->steps += text.len / FX_JINJA_BYTES_STEP;
    *out = (struct fx_jinja_text){writer.at, measure.len, writer.origin, false, text.markup};
    return true;
}
