#include <stdio.h>
#include <string.h>
#include "services/gateway/telemetry.h"
#include "common/http/json.h"

enum { TICKET_HEX = 2 * GW_TICKET_BYTES, KEY_MAX = 96, JSON_MAX = 160 };

/* fx:ticket:<SHA-256 of the ticket>: the ticket itself is nowhere but with its owner. */
static fx_span key_of(fx_span ticket, char out[KEY_MAX]) {
    uint8_t digest[FX_SHA256_BYTES];
    char hex[FX_SHA256_HEX];
    fx_sha256(ticket, digest);
    fx_hex((fx_span){digest, sizeof digest}, hex);
    (void)snprintf(out, KEY_MAX, "fx:ticket:%s", hex);
    return fx_span_str(out);
}

static void refuse(struct gw_visit *visit, enum gw_reason reason, const char *message) {
    struct gw_problem problem;
    gw_problem_set(&problem, reason, NULL, "%s", message);
    gw_visit_refuse(visit, &problem);
}

/* -- giving -- */

static void on_given(void *ctx, const redisReply *reply, const fx_error *err) {
    struct gw_visit *visit = ctx;
    char json[JSON_MAX];
    if (err || !fx_span_eq_str(fx_redis_span(reply), "OK")) {
        refuse(visit, GW_UNAVAILABLE, "tickets can't be kept at the moment");
    } else if (gw_visit_here(visit)) {
        int len = snprintf(json, sizeof json, "{\"ticket\":\"%s\",\"expires_in_s\":%d}",
                           visit->name, GW_TICKET_TTL_S);
        gw_visit_reply(visit, (fx_span){(const uint8_t *)json, (size_t)len});
        explicit_bzero(json, sizeof json);
    }
    explicit_bzero(visit->name, sizeof visit->name);
    gw_visit_unref(visit); /* the question's */
}

/* The ticket waits in the visit's name for its answer. */
static void ticket_draw(struct gw_visit *visit) {
    uint8_t bytes[GW_TICKET_BYTES];
    _Static_assert(sizeof visit->name > TICKET_HEX, "a ticket fits");
    fx_random(bytes, sizeof bytes);
    fx_hex((fx_span){bytes, sizeof bytes}, visit->name);
    explicit_bzero(bytes, sizeof bytes);
}

void gw_serve_ticket(struct gw_visit *visit) {
    char key[KEY_MAX], digest[FX_SHA256_HEX], ttl[16];
    fx_error err = {0};
    if (!gw_telemetry_ticket_allowed(visit->gateway->telemetry, visit->who.digest)) {
        refuse(visit, GW_BUSY, "too many tickets in a minute");
        return;
    }
    ticket_draw(visit);
    fx_hex((fx_span){visit->who.digest, sizeof visit->who.digest}, digest);
    (void)snprintf(ttl, sizeof ttl, "%d", GW_TICKET_TTL_S);
    const fx_span words[] = {fx_span_str("SET"),  key_of(fx_span_str(visit->name), key),
                             fx_span_str(digest), fx_span_str("EX"),
                             fx_span_str(ttl),    fx_span_str("NX")};
    gw_visit_ref(visit); /* the question's */
    if (!fx_redis_argv(visit->gateway->ledger, FX_COUNT(words), words, on_given, visit, &err))
        on_given(visit, NULL, &err);
}

/* -- taking -- */

bool gw_ticket_of(const struct fx_http_request *request, fx_span *out) {
    if (fx_http_header(request, "authorization").len || fx_http_header(request, "x-auth-token").len)
        return false;
    fx_span ticket = fx_http_query(request, "ticket");
    if (!ticket.at) return false;
    *out = ticket;
    return true;
}

static void on_taken(void *ctx, const redisReply *reply, const fx_error *err) {
    struct gw_visit *visit = ctx;
    uint8_t digest[FX_SHA256_BYTES];
    if (err)
        refuse(visit, GW_UNAVAILABLE, "tickets can't be checked at the moment");
    else if (!fx_unhex(fx_redis_span(reply), digest, sizeof digest))
        refuse(visit, GW_BAD_KEY, "the ticket is not valid: it was used, or is too old");
    else if (gw_visit_here(visit))
        gw_visit_begin_digest(visit, digest);
    gw_visit_unref(visit); /* the question's */
}

/* GETDEL: of two who come with it at the same time, one gets in. */
void gw_ticket_redeem(struct gw_visit *visit, fx_span ticket) {
    uint8_t bytes[GW_TICKET_BYTES];
    char key[KEY_MAX];
    fx_error err = {0};
    if (!fx_unhex(ticket, bytes, sizeof bytes)) {
        refuse(visit, GW_BAD_KEY, "the ticket is malformed");
        return;
    }
    const fx_span words[] = {fx_span_str("GETDEL"), key_of(ticket, key)};
    gw_visit_ref(visit); /* the question's */
    if (!fx_redis_argv(visit->gateway->ledger, FX_COUNT(words), words, on_taken, visit, &err))
        on_taken(visit, NULL, &err);
}
