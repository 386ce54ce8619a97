#pragma once
#include <stdatomic.h>
#include <stdint.h>
#include "common/base/span.h"

/** Prometheus text. One family = HELP and TYPE lines once, then its samples. The writers put into
 *  an fx_buf, which counts what did not fit; nothing fails here. @thread any */
enum fx_metric_type { FX_METRIC_COUNTER, FX_METRIC_GAUGE };

/** `# HELP name help` and `# TYPE name counter|gauge`. */
void fx_metric_family(fx_buf *out, enum fx_metric_type type, const char *name, const char *help);
/** `name{label="value"} number`; `label` NULL: no label. The value is escaped. */
void fx_metric_sample(fx_buf *out, const char *name, const char *label, const char *value,
                      uint64_t number);
/** As above with a fraction; NaN and infinities in Prometheus' spelling. */
void fx_metric_sample_f64(fx_buf *out, const char *name, const char *label, const char *value,
                          double number);
/** A family of one sample without a label. */
void fx_metric_counter(fx_buf *out, const char *name, const char *help, uint64_t number);
void fx_metric_gauge(fx_buf *out, const char *name, const char *help, uint64_t number);

enum { FX_HISTOGRAM_BOUNDS = 18 };
/** Times in fixed buckets from 0.1 ms to 60 s. Zeroed to begin. @thread any */
struct fx_histogram {
    atomic_ullong buckets[FX_HISTOGRAM_BOUNDS + 1], sum_us;
};
void fx_histogram_add(struct fx_histogram *histogram, uint64_t us);
/** `name` ends in _seconds. */
void fx_metric_histogram(fx_buf *out, const char *name, const char *help,
                         const struct fx_histogram *histogram);
