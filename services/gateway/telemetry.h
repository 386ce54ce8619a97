#pragma once
#include <sys/queue.h>
#include "services/gateway/visit.h"

/** Live figures of the whole fleet as a stream of snapshots (README.md has their JSON). The loop
 *  reads them from Redis once a second while somebody listens, for all its listeners together.
 *  @thread the loop's */
struct gw_telemetry;

enum {
    GW_TELEMETRY_EVERY_MS = 1000,
    GW_TELEMETRY_LISTENERS_MAX = 64,       /* of a loop; one more: 503 */
    GW_TELEMETRY_KEY_LISTENERS_MAX = 8,    /* of a key at a loop; one more: 429 */
    GW_TELEMETRY_EVENT_MAX = 512 * 1024,   /* bytes; models that do not fit are counted, not told */
    GW_TELEMETRY_UNSENT_MAX = 64 * 1024,   /* bytes; who has not read more misses snapshots */
    GW_TELEMETRY_CHECK_MS = 2000,          /* is the listener's key still good? */
    GW_TELEMETRY_UNCHECKED_MS_MAX = 15000, /* without an answer to that: ended */
    GW_TICKET_BYTES = 32,
    GW_TICKET_TTL_S = 60,
    GW_TICKETS_MAX = 1024,   /* of a loop in GW_TICKET_TTL_S; one more: 429 */
    GW_TICKETS_KEY_MAX = 64, /* of a key, likewise */
};

/** A client that gets the snapshots; its visit's. */
struct gw_listener {
    TAILQ_ENTRY(gw_listener) entry;
    struct gw_visit *visit;
    bool checking;
    uint64_t asked_ms, good_ms; /* about its key */
};

struct gw_telemetry_opts {
    struct event_base *base;
    fx_queue *queue;
    struct gw_auth *auth;
    struct gw_metrics *metrics;
};

/** @own caller, gw_telemetry_free @err RESOURCE_EXHAUSTED */
FX_MUST bool gw_telemetry_open(const struct gw_telemetry_opts *opts, struct gw_telemetry **out,
                               fx_error *err);
/** After what it asks has been freed. NULL is fine. */
void gw_telemetry_free(struct gw_telemetry *telemetry);
/** Ends all streams. */
void gw_telemetry_drain(struct gw_telemetry *telemetry);

/** GET /v1/telemetry. */
void gw_serve_telemetry(struct gw_visit *visit);
/** Its client left; fine when it does not listen. */
void gw_telemetry_left(struct gw_visit *visit);

/* telemetry_ticket.c: browsers' EventSource sends no headers. A ticket is 256 random bits, good for
 * one stream within GW_TICKET_TTL_S at any gateway; Redis has its SHA-256 and that of the key. */

/** POST /v1/telemetry/tickets. */
void gw_serve_ticket(struct gw_visit *visit);
/** `?ticket=` of a request without a key. */
bool gw_ticket_of(const struct fx_http_request *request, fx_span *out);
/** Begins the visit with the key that the ticket was given for. */
void gw_ticket_redeem(struct gw_visit *visit, fx_span ticket);
/** May one more be given to this key? Counts it. */
FX_MUST bool gw_telemetry_ticket_allowed(struct gw_telemetry *telemetry,
                                         const uint8_t key[FX_SHA256_BYTES]);
