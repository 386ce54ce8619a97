#pragma once
#include <stdint.h>
#include "common/base/error.h"

/* gRPC core and nothing of ours: an echo of bytes, as plain as the C API has it. */

#define BARE_METHOD "/bench.Echo/Echo"

/** Serves in a child until it is killed: `threads` threads, a completion queue each. */
void bare_serve(int tell, void *threads);

struct bare_client;
/** @own caller, bare_close() @err UNAVAILABLE */
FX_MUST bool bare_open(uint16_t port, struct bare_client **out, fx_error *err);
/** One call, one batch, waited for on its completion queue. */
FX_MUST bool bare_call(struct bare_client *client, const void *bytes, size_t len, fx_error *err);
void bare_close(struct bare_client *client);
