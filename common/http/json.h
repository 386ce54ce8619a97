#pragma once
#include <jansson.h>
#include "common/base/error.h"
#include "common/base/span.h"

enum {
    FX_JSON_DEPTH_MAX = 128,
    FX_JSON_VALUES_MAX = 262144, /* members and elements of one text */
};

static inline void fx_json_decref(json_t *json) {
    json_decref(json);
}
FX_DEFINE_AUTO(json_t, fx_json_decref)

/** One JSON text: valid UTF-8, no duplicate member, no depth or count past the limits above. The
 *  error says line and column and never echoes the input. @own caller, json_decref
 *  @err INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
FX_MUST bool fx_json_parse(fx_span text, json_t **out, fx_error *err);

bool fx_utf8_valid(fx_span text);

/* Writers; they count what does not fit, so a first pass into a buffer of no bytes measures. */

/** Raw text, as `{"a":`. */
void fx_json_put(fx_buf *out, const char *text);
/** A quoted, escaped string; bytes that are no UTF-8 become U+FFFD. */
void fx_json_put_string(fx_buf *out, fx_span text);
/** The same without the quotes. */
void fx_json_put_escaped(fx_buf *out, fx_span text);
/** A quoted string, or null. */
void fx_json_put_text(fx_buf *out, const char *text);
void fx_json_put_u64(fx_buf *out, uint64_t number);
