#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Borrowed bytes. */
typedef struct fx_span {
    const uint8_t *at;
    size_t len;
} fx_span;

/** Growing text or bytes in a buffer the caller sized: `len` counts what was asked for, so
 *  len > cap means it did not fit (what fits is written, nothing past cap). */
typedef struct fx_buf {
    uint8_t *at;
    size_t len, cap;
} fx_buf;

static inline fx_span fx_span_str(const char *text) {
    return (fx_span){(const uint8_t *)text, strlen(text)};
}
static inline bool fx_span_eq(fx_span a, fx_span b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}
static inline bool fx_span_eq_str(fx_span a, const char *text) {
    return fx_span_eq(a, fx_span_str(text));
}
static inline void fx_buf_put(fx_buf *buf, fx_span bytes) {
    size_t room = buf->len < buf->cap ? buf->cap - buf->len : 0;
    size_t fits = bytes.len < room ? bytes.len : room;
    if (fits) memcpy(buf->at + buf->len, bytes.at, fits);
    buf->len += bytes.len;
}
static inline bool fx_buf_fits(const fx_buf *buf) {
    return buf->len <= buf->cap;
}
