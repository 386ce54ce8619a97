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
        if (*text == '\\') put(out, "\\\\");
        else if (*text == '\n') put(out, "\\n");
        else if (*text == '"' && quotes) put(out, "\\\"");
        else fx_buf_put(out, (fx_span){(const uint8_t *)text, 1});
    }
}

void fx_metric_family(fx_buf *out, enum fx_metric_type type, const char *name, const char *help) {
    put(out, "# HELP ");
    put(out, name);
    put(out, " ");
    put_escaped(out, help, false);
    put(out, "\n# TYPE ");
    put(out, name);
    put(out, type == FX_METRIC_COUNTER ? " counter\n" : " gauge\n");
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
    const char *shown = isnan(number) ? "NaN" : !isinf(number) ? text : number > 0 ? "+Inf" : "-Inf";
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
