#include "services/gateway/logprobs.h"
#include <stdio.h>
#include "common/base/heap.h"
#include "common/http/json.h"
#include "common/model/detok.h"

enum { COUNT_MIN = 64, SLICE = 64, SLICE_ROOM = 3 * (SLICE + 3), TEXT_MAX = 256 };

static bool grow(struct gw_logprobs *logprobs) {
    uint32_t cap = logprobs->cap ? 2 * logprobs->cap : COUNT_MIN;
    void *at = fx_realloc(logprobs->at, cap, logprobs->each * sizeof *logprobs->at);
    if (!at) return false;
    logprobs->at = at;
    void *offsets = fx_realloc(logprobs->offsets, cap, sizeof *logprobs->offsets);
    if (!offsets) return false;
    logprobs->offsets = offsets;
    logprobs->cap = cap;
    return true;
}

bool gw_logprobs_add(struct gw_logprobs *logprobs, uint32_t token, fx_span text, uint32_t offset) {
    struct fx_logprob read[FX_LOGPROBS_MAX];
    uint32_t known = 0;
    if (logprobs->count == logprobs->cap && !grow(logprobs)) return false;
    struct fx_logprob *to = logprobs->at + (size_t)logprobs->count * logprobs->each;
    if (!text.len || !fx_logprobs_read(text, read, &known)) known = 0;
    for (uint32_t i = 0; i < logprobs->each; i++)
        to[i] = i < known ? read[i] : (struct fx_logprob){FX_LOGPROB_NONE, FX_LOGPROB_MIN};
    to[0].id = token;
    logprobs->offsets[logprobs->count++] = offset;
    return true;
}

void gw_logprobs_clear(struct gw_logprobs *logprobs) {
    logprobs->count = 0;
}

void gw_logprobs_drop(struct gw_logprobs *logprobs, uint32_t count) {
    size_t each = logprobs->each, rest = logprobs->count - count;
    if (!count) return;
    memmove(logprobs->at, logprobs->at + count * each, rest * each * sizeof *logprobs->at);
    memmove(logprobs->offsets, logprobs->offsets + count, rest * sizeof *logprobs->offsets);
    logprobs->count -= count;
}

void gw_logprobs_done(struct gw_logprobs *logprobs) {
    free(logprobs->at);
    free(logprobs->offsets);
    *logprobs = (struct gw_logprobs){0};
}

/* -- parts of the JSON -- */

static void put_number(float value, fx_buf *out) {
    char text[32];
    (void)snprintf(text, sizeof text, "%.9g", (double)value);
    fx_json_put(out, text);
}

void gw_token_text(const fx_tokenizer *tokenizer, uint32_t id, fx_buf *out) {
    fx_span bytes = fx_tokenizer_bytes(tokenizer, id);
    struct fx_detok detok;
    uint8_t room[SLICE_ROOM];
    fx_detok_init_middle(&detok, tokenizer);
    fx_json_put(out, "\"");
    for (size_t at = 0; at <= bytes.len; at += SLICE) {
        fx_buf text = {room, 0, sizeof room};
        size_t len = bytes.len - at < SLICE ? bytes.len - at : SLICE;
        if (len) fx_detok_push_bytes(&detok, (fx_span){bytes.at + at, len}, &text);
        if (len < SLICE) fx_detok_flush(&detok, &text);
        fx_json_put_escaped(out, (fx_span){room, text.len});
    }
    fx_json_put(out, "\"");
}

static void put_bytes(fx_span bytes, fx_buf *out) {
    fx_json_put(out, "[");
    for (size_t i = 0; i < bytes.len; i++) {
        if (i) fx_json_put(out, ",");
        fx_json_put_u64(out, bytes.at[i]);
    }
    fx_json_put(out, "]");
}

/* -- chat -- */

static void put_entry(const struct gw_logprobs *logprobs, const struct fx_logprob *entry,
                      fx_buf *out) {
    fx_span bytes = fx_tokenizer_bytes(logprobs->tokenizer, entry->id);
    fx_json_put(out, "{\"token\":");
    gw_token_text(logprobs->tokenizer, entry->id, out);
    fx_json_put(out, ",\"logprob\":");
    put_number(entry->value, out);
    fx_json_put(out, ",\"bytes\":");
    put_bytes(bytes, out);
}

static void put_token(const struct gw_logprobs *logprobs, const struct fx_logprob *at,
                      fx_buf *out) {
    put_entry(logprobs, at, out);
    fx_json_put(out, ",\"top_logprobs\":[");
    for (uint32_t i = 1; i < logprobs->each && at[i].id != FX_LOGPROB_NONE; i++) {
        if (i > 1) fx_json_put(out, ",");
        put_entry(logprobs, &at[i], out);
        fx_json_put(out, "}");
    }
    fx_json_put(out, "]}");
}

void gw_logprobs_chat(const struct gw_logprobs *logprobs, fx_buf *out) {
    if (!logprobs || !logprobs->tokenizer) {
        fx_json_put(out, "null");
        return;
    }
    fx_json_put(out, "{\"content\":[");
    for (uint32_t i = 0; i < logprobs->count; i++) {
        if (i) fx_json_put(out, ",");
        put_token(logprobs, logprobs->at + (size_t)i * logprobs->each, out);
    }
    fx_json_put(out, "],\"refusal\":null}");
}

/* -- completions -- */

static bool is_text(const fx_tokenizer *tokenizer, fx_span bytes) {
    struct fx_detok detok;
    uint8_t room[3 * (TEXT_MAX + 3)];
    fx_buf text = {room, 0, sizeof room};
    if (bytes.len > TEXT_MAX) return true;
    fx_detok_init_middle(&detok, tokenizer);
    fx_detok_push_bytes(&detok, bytes, &text);
    fx_detok_flush(&detok, &text);
    return fx_span_eq(bytes, (fx_span){room, text.len});
}

/* What is no text is told by its bytes, so that no two of them look the same. */
static void put_name(const struct gw_logprobs *logprobs, uint32_t id, fx_buf *out) {
    fx_span bytes = fx_tokenizer_bytes(logprobs->tokenizer, id);
    if (is_text(logprobs->tokenizer, bytes)) {
        fx_json_put_string(out, bytes);
        return;
    }
    fx_json_put(out, "\"bytes:");
    for (size_t i = 0; i < bytes.len; i++) {
        char hex[8];
        (void)snprintf(hex, sizeof hex, "\\\\x%02x", bytes.at[i]);
        fx_json_put(out, hex);
    }
    fx_json_put(out, "\"");
}

/* Is the text of place `index` that of an earlier one? A key must not come twice. */
static bool came_before(const struct gw_logprobs *logprobs, const struct fx_logprob *at,
                        uint32_t index) {
    fx_span bytes = fx_tokenizer_bytes(logprobs->tokenizer, at[index].id);
    for (uint32_t i = 0; i < index; i++)
        if (fx_span_eq(bytes, fx_tokenizer_bytes(logprobs->tokenizer, at[i].id))) return true;
    return false;
}

/* The token's own and the likeliest. */
static void put_top(const struct gw_logprobs *logprobs, const struct fx_logprob *at, fx_buf *out) {
    fx_json_put(out, "{");
    for (uint32_t i = 0; i < logprobs->each && at[i].id != FX_LOGPROB_NONE; i++) {
        if (came_before(logprobs, at, i)) continue;
        if (i) fx_json_put(out, ",");
        put_name(logprobs, at[i].id, out);
        fx_json_put(out, ":");
        put_number(at[i].value, out);
    }
    fx_json_put(out, "}");
}

enum column { TOKENS, VALUES, TOP, OFFSETS };

static void put_column(const struct gw_logprobs *logprobs, enum column column, fx_buf *out) {
    fx_json_put(out, "[");
    for (uint32_t i = 0; i < logprobs->count; i++) {
        const struct fx_logprob *at = logprobs->at + (size_t)i * logprobs->each;
        if (i) fx_json_put(out, ",");
        switch (column) {
        case TOKENS: put_name(logprobs, at->id, out); break;
        case VALUES: put_number(at->value, out); break;
        case TOP: put_top(logprobs, at, out); break;
        case OFFSETS: fx_json_put_u64(out, logprobs->offsets[i]); break;
        }
    }
    fx_json_put(out, "]");
}

void gw_logprobs_completion(const struct gw_logprobs *logprobs, fx_buf *out) {
    if (!logprobs || !logprobs->tokenizer) {
        fx_json_put(out, "null");
        return;
    }
    fx_json_put(out, "{\"tokens\":");
    put_column(logprobs, TOKENS, out);
    fx_json_put(out, ",\"token_logprobs\":");
    put_column(logprobs, VALUES, out);
    fx_json_put(out, ",\"top_logprobs\":");
    put_column(logprobs, TOP, out);
    fx_json_put(out, ",\"text_offset\":");
    put_column(logprobs, OFFSETS, out);
    fx_json_put(out, "}");
}
