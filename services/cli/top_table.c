#include "services/cli/top_table.h"
#include <stdio.h>
#include <string.h>
#include "common/base/auto.h"

enum { NAME_MIN = 20, NAME_MAX_WIDTH = 40, CELL_MAX = 24, WORKER_SHOWN = 8, PATH_MAX_BYTES = 48 };

enum kind {
    NUMBER, /* whole */
    REAL,   /* with a digit or two */
    SHARE,  /* used of all */
    MILLIS,
};

/* A column: where its figure is in a model's or worker's object. */
struct column {
    const char *title;
    enum kind kind;
    uint32_t width;
    uint32_t rank;          /* 1 is shown first */
    const char *path, *all; /* `all`: of a SHARE */
    bool free;              /* of a SHARE: the path is what is left of `all` */
};
static const struct column columns[] = {
    {"SLOTS",     SHARE,  9,  1, "slots.free",                 "slots.total",    true },
    {"WAIT",      NUMBER, 6,  1, "queue.waiting",              NULL,             false},
    {"RUN",       NUMBER, 5,  1, "batch.running",              NULL,             false},
    {"ROWS",      REAL,   7,  3, "batch.mean_rows",            NULL,             false},
    {"TOK/S",     REAL,   8,  1, "tokens_per_s.decode",        NULL,             false},
    {"PROMPT/S",  REAL,   9,  3, "tokens_per_s.prefill",       NULL,             false},
    {"KV",        SHARE,  12, 2, "kv_pages.used",              "kv_pages.total", false},
    {"TTFT p50",  MILLIS, 9,  4, "latency_ms.first_token.p50", NULL,             false},
    {"p95",       MILLIS, 7,  6, "latency_ms.first_token.p95", NULL,             false},
    {"p99",       MILLIS, 7,  5, "latency_ms.first_token.p99", NULL,             false},
    {"ITL p50",   MILLIS, 9,  4, "latency_ms.inter_token.p50", NULL,             false},
    {"p95",       MILLIS, 7,  6, "latency_ms.inter_token.p95", NULL,             false},
    {"p99",       MILLIS, 7,  5, "latency_ms.inter_token.p99", NULL,             false},
    {"QUEUE p50", MILLIS, 10, 5, "latency_ms.queue.p50",       NULL,             false},
    {"p95",       MILLIS, 7,  6, "latency_ms.queue.p95",       NULL,             false},
    {"p99",       MILLIS, 7,  6, "latency_ms.queue.p99",       NULL,             false},
};

/* What fits. */
struct layout {
    uint32_t rank, name;
};

static struct layout layout_of(const struct cli_top_view *view) {
    struct layout out = {UINT32_MAX, NAME_MAX_WIDTH};
    if (!view->width) return out;
    uint32_t used = NAME_MIN;
    for (out.rank = 0;; out.rank++) {
        uint32_t more = 0, left = 0;
        for (size_t i = 0; i < FX_COUNT(columns); i++) {
            more += columns[i].rank == out.rank + 1 ? columns[i].width : 0;
            left += columns[i].rank > out.rank;
        }
        if (!left || used + more > view->width) break;
        used += more;
    }
    out.name = view->width > used ? NAME_MIN + view->width - used : NAME_MIN;
    if (out.name > NAME_MAX_WIDTH) out.name = NAME_MAX_WIDTH;
    return out;
}

static void put(fx_buf *out, const char *text) {
    fx_buf_put(out, fx_span_str(text));
}

static const json_t *at_path(const json_t *of, const char *path) {
    char name[PATH_MAX_BYTES];
    while (*path) {
        size_t len = strcspn(path, ".");
        (void)snprintf(name, sizeof name, "%.*s", (int)len, path);
        of = json_object_get(of, name);
        path += path[len] ? len + 1 : len;
    }
    return json_is_number(of) ? of : NULL;
}

static void real_text(double value, char out[CELL_MAX]) {
    (void)snprintf(out, CELL_MAX, "%.*f", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value);
}

static void millis_text(double ms, char out[CELL_MAX]) {
    if (ms < 9999.5)
        real_text(ms, out);
    else
        (void)snprintf(out, CELL_MAX, "%.1fs", ms / 1000);
}

static void cell_text(const struct column *column, const json_t *of, char out[CELL_MAX]) {
    const json_t *figure = at_path(of, column->path);
    const json_t *all = column->all ? at_path(of, column->all) : NULL;
    double value = json_number_value(figure), whole = json_number_value(all);
    (void)snprintf(out, CELL_MAX, "-");
    if (!figure || (column->all && !all)) return;
    switch (column->kind) {
    case NUMBER: (void)snprintf(out, CELL_MAX, "%.0f", value); return;
    case REAL: real_text(value, out); return;
    case MILLIS: millis_text(value, out); return;
    case SHARE:
        (void)snprintf(out, CELL_MAX, "%.0f/%.0f", column->free ? whole - value : value, whole);
        return;
    }
}

/* One byte a column: what is not plain ASCII becomes '?'. */
static void name_put(const char *indent, const char *name, uint32_t width, fx_buf *out) {
    uint32_t used = (uint32_t)strlen(indent);
    put(out, indent);
    for (; *name && used < width; name++, used++) {
        bool plain = *name >= 0x20 && *name < 0x7f;
        fx_buf_put(out, (fx_span){(const uint8_t *)(plain ? name : "?"), 1});
    }
    for (; used < width; used++)
        put(out, " ");
}

static void cell_put(const char *text, uint32_t width, fx_buf *out) {
    char cell[CELL_MAX * 2];
    (void)snprintf(cell, sizeof cell, "%*s", (int)width, text);
    put(out, cell);
}

static void cells_put(const struct layout *layout, const json_t *of, fx_buf *out) {
    char text[CELL_MAX];
    for (size_t i = 0; i < FX_COUNT(columns); i++) {
        if (columns[i].rank > layout->rank) continue;
        if (of)
            cell_text(&columns[i], of, text);
        else
            (void)snprintf(text, sizeof text, "%s", columns[i].title);
        cell_put(text, columns[i].width, out);
    }
    put(out, "\n");
}

static const char *text_of(const json_t *of, const char *name) {
    const char *text = json_string_value(json_object_get(of, name));
    return text ? text : "?";
}

static void model_put(const struct layout *layout, const json_t *model, fx_buf *out) {
    const json_t *workers = json_object_get(model, "workers");
    char name[WORKER_SHOWN + sizeof " leaving"];
    name_put("", text_of(model, "model"), layout->name, out);
    cells_put(layout, model, out);
    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);
        bool leaving = json_is_true(json_object_get(worker, "leaving"));
        (void)snprintf(name, sizeof name, "%.*s%s", WORKER_SHOWN, text_of(worker, "worker"),
                       leaving ? " leaving" : "");
        name_put("  ", name, layout->name, out);
        cells_put(layout, worker, out);
    }
}

static double sum_of(const json_t *models, const char *path) {
    double sum = 0;
    for (size_t i = 0; i < json_array_size(models); i++)
        sum += json_number_value(at_path(json_array_get(models, i), path));
    return sum;
}

static void sums_put(const json_t *models, fx_buf *out) {
    char line[192];
    size_t workers = 0;
    for (size_t i = 0; i < json_array_size(models); i++)
        workers += json_array_size(json_object_get(json_array_get(models, i), "workers"));
    (void)snprintf(line, sizeof line,
                   "models %zu  workers %zu  running %.0f  waiting %.0f  %.1f tokens/s\n",
                   json_array_size(models), workers, sum_of(models, "queue.running"),
                   sum_of(models, "queue.waiting"), sum_of(models, "tokens_per_s.decode"));
    put(out, line);
}

void cli_top_table(const json_t *snapshot, const struct cli_top_view *view, fx_buf *out) {
    const json_t *models = json_object_get(snapshot, "models");
    struct layout layout = layout_of(view);
    sums_put(models, out);
    name_put("", "MODEL", layout.name, out);
    cells_put(&layout, NULL, out);
    for (size_t i = 0; i < json_array_size(models); i++)
        model_put(&layout, json_array_get(models, i), out);
}
