#pragma once
#include "common/base/error.h"
#include "common/base/span.h"

/** Stop strings in a growing text, wherever tokens cut it. The first byte at which one of them is
 *  complete ends the text; of several that end there the longest counts. Text that may still become
 *  one is held back. @thread one owner */
typedef struct fx_stops fx_stops;

enum { FX_STOPS_MAX = 4, FX_STOP_BYTES_MAX = 1024 };

/** Copies `count` strings. @own caller, fx_stops_free() @err INVALID_ARGUMENT (none or too many, an
 *  empty or too long one), RESOURCE_EXHAUSTED */
FX_MUST bool fx_stops_new(const fx_span *strings, size_t count, fx_stops **out, fx_error *err);
/** NULL is fine. */
void fx_stops_free(fx_stops *stops);
FX_DEFINE_AUTO(fx_stops, fx_stops_free)

/** Takes more text and appends to `out` what is sure to be shown: at most what was held plus
 * `text`, nothing once met. Allocates nothing. True: a stop string is complete, now or before. */
bool fx_stops_push(fx_stops *stops, fx_span text, fx_buf *out);
/** How many bytes are held back: less than the longest stop string. */
size_t fx_stops_held(const fx_stops *stops);
/** The end: appends what was held, nothing once met. */
void fx_stops_flush(fx_stops *stops, fx_buf *out);
