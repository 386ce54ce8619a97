#pragma once
#include <stdbool.h>
#include "common/base/error.h"
#include "common/base/span.h"
#include "common/http/metrics.h"

enum {
    FX_ADMIN_REASON_MAX = 256,         /* bytes of a reason, NUL included */
    FX_ADMIN_METRICS_MAX = 256 * 1024, /* bytes of one /metrics answer */
    FX_ADMIN_FOLLOW_MS = 100,
};

/** Plain HTTP for probes on FX_ADMIN_ADDR, on a thread of its own: GET (and HEAD) /livez, /readyz
 *  and /metrics, everything else 404 or 405. */
typedef struct fx_admin fx_admin;

struct fx_admin_opts {
    const char *addr; /* "127.0.0.1:51052", "[::1]:0", port 0 = any; borrowed during the call */
    void *ctx;        /* handed to the callbacks; must outlive the server */
    /* All are called on the admin's thread, so they read atomics or take a lock, and never
     * block. `reason` (NUL-terminated, at most FX_ADMIN_REASON_MAX) is shown when they are false.
     */
    bool (*live)(void *ctx, char *reason);   /* NULL: always alive while the thread answers */
    bool (*ready)(void *ctx, char *reason);  /* required; its 503 carries Retry-After */
    void (*metrics)(void *ctx, fx_buf *out); /* NULL: an empty page */
    /** Every FX_ADMIN_FOLLOW_MS, with what `ready` says then: for other faces of readiness.
     *  NULL: nobody follows */
    void (*follow)(void *ctx, bool ready, const char *reason);
};

/** Listens and starts the thread. @own caller, fx_admin_free
 *  @err UNAVAILABLE (port in use: names address and remedy), INVALID_ARGUMENT, RESOURCE_EXHAUSTED
 */
FX_MUST bool fx_admin_open(const struct fx_admin_opts *opts, fx_admin **out, fx_error *err);
/** The port really bound (for port 0). @thread any */
uint16_t fx_admin_port(const fx_admin *admin);
/** Stops the thread and frees; NULL is fine. @thread the opener's */
void fx_admin_free(fx_admin *admin);
FX_DEFINE_AUTO(fx_admin, fx_admin_free)
