#pragma once
#include "common/model/jinja.h"

/* Strings taken apart: shared by filters and methods. */

enum { FX_JS_LEFT = 1, FX_JS_RIGHT = 2 };
/** Python's strip(chars): of whitespace where `chars` is ABSENT or NONE. */
FX_MUST bool fx_jinja__strip(struct fx_jinja_run *run, struct fx_jinja_text text,
                             const struct fx_jinja_value *chars, unsigned sides,
                             struct fx_jinja_value *out);
/** Python's replace(old, new, limit); < 0: all. */
FX_MUST bool fx_jinja__replace(struct fx_jinja_run *run, struct fx_jinja_text text,
                               struct fx_jinja_text old, struct fx_jinja_text fresh, int64_t limit,
                               struct fx_jinja_value *out);
/** A LIST of the parts; `separator` NULL: whitespace. `from_right`: as rsplit(). */
FX_MUST bool fx_jinja__split(struct fx_jinja_run *run, struct fx_jinja_text text,
                             const fx_span *separator, int64_t limit, bool from_right,
                             struct fx_jinja_value *out);
/** Python's splitlines(), without the line ends. */
FX_MUST bool fx_jinja__lines(struct fx_jinja_run *run, struct fx_jinja_text text,
                             struct fx_jinja_value *out);
