#pragma once
#include <stdio.h>
#include "common/base/span.h"

/** Writes text and flushes. To a terminal, control characters other than LF and tab become '?':
 *  a model's text must not drive it. */
void cli_put_text(FILE *out, fx_span text);
/** "1.5 MB", "340 B". `out` holds 16. */
const char *cli_bytes(double bytes, char out[16]);
