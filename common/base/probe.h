#pragma once
#include "common/base/error.h"

enum { FX_PROBE_MS = 2000 }; /* connecting, asking and the answer's first line together */

/** Asks "GET `path`" at `addr` ("host:port", a wildcard host means this machine) over plain HTTP.
 *  True: the answer is 200. For container health checks: no thread, nothing that outlives it.
 *  @err UNAVAILABLE with the answer's status and its first words, or what could not be done */
FX_MUST bool fx_probe(const char *addr, const char *path, fx_error *err);
