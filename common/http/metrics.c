#include "common/http/metrics.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { NUMBER_MAX = 40 };

static void put(fx_buf *out, const char *text) {
    fx_buf_put(out, fx_span_str(text));
}

static void put_escaped(fx_buf *out, const char *text, bool quotes) {
    for (; *text; text++) {
        if (*text == '\\')
            put(out, "\\\\");
        else if (*text == '\n')
            put(out, "\\n");
        else if (*text == '"' && quotes)
            put(out, "\\\"");
        else
            fx_buf_put(out, (fx_span){(const uint8_t *)text, 1});
    }
}

static void put_head(fx_buf *out, const char *name, const char *help, const char *type) {
    put(out, "# HELP ");
    put(out, name);
    put(out, " ");
    put_escaped(out, help, false);
    put(out, "\n# TYPE ");
    put(out, name);
    put(out, " ");
    put(out, type);
    put(out, "\n");
}

void fx_metric_family(fx_buf *out, enum fx_metric_type type, const char *name, const char *help) {
    put_head(out, name, help, type == FX_METRIC_COUNTER ? "counter" : "gauge");
}

static void sample(fx_buf *out, const char *name, const char *label, const char *value,
                   const char *number) {
    put(out, name);
    if (label) {
        put(out, "{");
        put(out, label);
        put(out, "=\"");
        put_escaped(out, value, true);
        put(out, "\"}");
    }
    put(out, " ");
    put(out, number);
    put(out, "\n");
}

void fx_metric_sample(fx_buf *out, const char *name, const char *label, const char *value,
                      uint64_t number) {
    char text[NUMBER_MAX];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    sample(out, name, label, value, text);
}

void fx_metric_sample_f64(fx_buf *out, const char *name, const char *label, const char *value,
                          double number) {
    char text[NUMBER_MAX];
    (void)snprintf(text, sizeof text, "%.17g", number);
    const char *shown = isnan(number)    ? "NaN"
                        : !isinf(number) ? text
                        : number > 0     ? "+Inf"
                                         : "-Inf";
    sample(out, name, label, value, shown);
}

void fx_metric_counter(fx_buf *out, const char *name, const char *help, uint64_t number) {
    fx_metric_family(out, FX_METRIC_COUNTER, name, help);
    fx_metric_sample(out, name, NULL, NULL, number);
}

void fx_metric_gauge(fx_buf *out, const char *name, const char *help, uint64_t number) {
    fx_metric_family(out, FX_METRIC_GAUGE, name, help);
    fx_metric_sample(out, name, NULL, NULL, number);
}

static const uint32_t bounds_us[FX_HISTOGRAM_BOUNDS] = {
    100,    250,    500,    1000,    2500,    5000,    10000,    25000,    50000,
    100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000, 30000000, 60000000};

void fx_histogram_add(struct fx_histogram *histogram, uint64_t us) {
    size_t i = 0;
    while (i < FX_HISTOGRAM_BOUNDS && us > bounds_us[i])
        i++;
    atomic_fetch_add_explicit(&histogram->buckets[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum_us, us, memory_order_relaxed);
}

static void put_line(fx_buf *out, const char *name, const char *suffix, const char *number) {
    put(out, name);
    put(out, suffix);
    put(out, " ");
    put(out, number);
    put(out, "\n");
}

void fx_metric_histogram(fx_buf *out, const char *name, const char *help,
                         const struct fx_histogram *histogram) {
    char number[NUMBER_MAX], suffix[NUMBER_MAX];
    uint64_t count = 0;
    put_head(out, name, help, "histogram");
    for (size_t i = 0; i <= FX_HISTOGRAM_BOUNDS; i++) {
        count += atomic_load_explicit(&histogram->buckets[i], memory_order_relaxed);
        if (i < FX_HISTOGRAM_BOUNDS)
            (void)snprintf(suffix, sizeof suffix, "_bucket{le=\"%g\"}", bounds_us[i] / 1e6);
        else
            (void)snprintf(suffix, sizeof suffix, "_bucket{le=\"+Inf\"}");
        (void)snprintf(number, sizeof number, "%" PRIu64, count);
        put_line(out, name, suffix, number);
    }
    put_line(out, name, "_count", number);
    (void)snprintf(number, sizeof number, "%.6f",
                   (double)atomic_load_explicit(&histogram->sum_us, memory_order_relaxed) / 1e6);
    put_line(out, name, "_sum", number);
}
