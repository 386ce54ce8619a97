#include "common/http/json.h"
#include <inttypes.h>
#include <stdio.h>

/* Bytes of the UTF-8 sequence at the front of `text`, 0 when there is none (RFC 3629). */
static size_t utf8_len(fx_span text) {
    uint8_t a = text.at[0];
    if (a < 0x80) return 1;
    size_t len = a >= 0xF0 ? 4 : a >= 0xE0 ? 3 : 2;
    if (a < 0xC2 || a > 0xF4 || text.len < len) return 0;
    for (size_t i = 1; i < len; i++)
        if ((text.at[i] & 0xC0) != 0x80) return 0;
    uint8_t b = text.at[1];
    bool bad = (a == 0xE0 && b < 0xA0) || (a == 0xED && b > 0x9F) || (a == 0xF0 && b < 0x90) ||
               (a == 0xF4 && b > 0x8F);
    return bad ? 0 : len;
}

static fx_span skip(fx_span text, size_t len) {
    return (fx_span){text.at + len, text.len - len};
}

bool fx_utf8_valid(fx_span text) {
    while (text.len) {
        size_t len = utf8_len(text);
        if (!len) return false;
        text = skip(text, len);
    }
    return true;
}

/* Before jansson: it recurses as deep as the text does and needs some 60 bytes a value. */
static FX_MUST bool check_size(fx_span text, fx_error *err) {
    size_t depth = 0, values = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.at[i];
        if (quoted) {
            if (c == '\\')
                i++;
            else if (c == '"')
                quoted = false;
            continue;
        }
        if (c == '"') quoted = true;
        if (c == '[' || c == '{' || c == ',') values++;
        if (c == '[' || c == '{') depth++;
        if ((c == ']' || c == '}') && depth) depth--;
        if (depth > FX_JSON_DEPTH_MAX)
            return fx_fail(err, FX_INVALID_ARGUMENT, "JSON deeper than %d levels",
                           FX_JSON_DEPTH_MAX);
    }
    if (values > FX_JSON_VALUES_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "JSON of more than %d values", FX_JSON_VALUES_MAX);
    return true;
}

bool fx_json_parse(fx_span text, json_t **out, fx_error *err) {
    if (!check_size(text, err)) return false;
    json_error_t why;
    json_t *json =
        json_loadb((const char *)text.at, text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (json) {
        *out = json;
        return true;
    }
    if (json_error_code(&why) == json_error_out_of_memory)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for the JSON");
    const char *what = json_error_code(&why) == json_error_duplicate_key  ? "a member appears twice"
                       : json_error_code(&why) == json_error_invalid_utf8 ? "invalid UTF-8"
                                                                          : "not valid JSON";
    return fx_fail(err, FX_INVALID_ARGUMENT, "%s at line %d, column %d", what, why.line,
                   why.column);
}

void fx_json_put(fx_buf *out, const char *text) {
    fx_buf_put(out, fx_span_str(text));
}

/* What a byte below 0x20, a quote or a backslash becomes. */
static void put_special(fx_buf *out, uint8_t c) {
    static const char digits[] = "0123456789abcdef";
    char u[] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15], 0};
    switch (c) {
    case '"': fx_json_put(out, "\\\""); return;
    case '\\': fx_json_put(out, "\\\\"); return;
    case '\n': fx_json_put(out, "\\n"); return;
    case '\r': fx_json_put(out, "\\r"); return;
    case '\t': fx_json_put(out, "\\t"); return;
    default: fx_json_put(out, u);
    }
}

/* Bytes at the front that need no escape. */
static size_t plain_len(fx_span text) {
    size_t i = 0;
    while (i < text.len) {
        uint8_t c = text.at[i];
        size_t len = c < 0x20 || c == '"' || c == '\\' ? 0 : utf8_len(skip(text, i));
        if (!len) break;
        i += len;
    }
    return i;
}

void fx_json_put_escaped(fx_buf *out, fx_span text) {
    while (text.len) {
        size_t plain = plain_len(text);
        fx_buf_put(out, (fx_span){text.at, plain});
        text = skip(text, plain);
        if (!text.len) return;
        if (text.at[0] < 0x80)
            put_special(out, text.at[0]);
        else
            fx_json_put(out, "\xEF\xBF\xBD");
        text = skip(text, 1);
    }
}

void fx_json_put_string(fx_buf *out, fx_span text) {
    fx_json_put(out, "\"");
    fx_json_put_escaped(out, text);
    fx_json_put(out, "\"");
}

void fx_json_put_text(fx_buf *out, const char *text) {
    if (text)
        fx_json_put_string(out, fx_span_str(text));
    else
        fx_json_put(out, "null");
}

void fx_json_put_u64(fx_buf *out, uint64_t number) {
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    fx_json_put(out, text);
}
