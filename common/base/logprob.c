#include "common/base/logprob.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BITS_DIGITS = 8, ID_DIGITS = 10 };

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

void fx_logprobs_write(const struct fx_logprob *logprobs, uint32_t count, fx_buf *out) {
    char text[24];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bits = bits_of(logprobs[i].value);
        if (i && logprobs[i].id == FX_LOGPROB_NONE) continue;
        if (i)
            (void)snprintf(text, sizeof text, "/%" PRIu32 ":%08" PRIx32, logprobs[i].id, bits);
        else
            (void)snprintf(text, sizeof text, "%08" PRIx32, bits);
        fx_buf_put(out, fx_span_str(text));
    }
}

static fx_span rest(fx_span text, size_t from) {
    return (fx_span){text.at + from, text.len - from};
}

static bool value_read(fx_span *text, float *out) {
    uint32_t bits = 0;
    if (text->len < BITS_DIGITS) return false;
    for (size_t i = 0; i < BITS_DIGITS; i++) {
        const char digits[] = "0123456789abcdef";
        const char *at = memchr(digits, text->at[i], sizeof digits - 1);
        if (!at) return false;
        bits = bits << 4 | (uint32_t)(at - digits);
    }
    memcpy(out, &bits, sizeof *out);
    *text = rest(*text, BITS_DIGITS);
    return isfinite(*out);
}

/* "/id:" */
static bool id_read(fx_span *text, uint32_t *out) {
    uint64_t id = 0;
    size_t at = 1;
    if (text->at[0] != '/') return false;
    for (; at < text->len && at <= ID_DIGITS && text->at[at] >= '0' && text->at[at] <= '9'; at++)
        id = id * 10 + (uint64_t)(text->at[at] - '0');
    if (at == 1 || at == text->len || text->at[at] != ':' || id >= FX_LOGPROB_NONE) return false;
    *out = (uint32_t)id;
    *text = rest(*text, at + 1);
    return true;
}

bool fx_logprobs_read(fx_span text, struct fx_logprob out[FX_LOGPROBS_MAX], uint32_t *count) {
    uint32_t n = 1;
    if (!value_read(&text, &out[0].value)) return false;
    for (; text.len; n++)
        if (n == FX_LOGPROBS_MAX || !id_read(&text, &out[n].id) ||
            !value_read(&text, &out[n].value))
            return false;
    *count = n;
    return true;
}
