#include "services/gateway/telemetry.h"
#include <event2/event.h>
#include <stdio.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/http/json.h"
#include "common/http/sse.h"
#include "services/gateway/process.h"
#include "services/gateway/telemetry_json.h"

enum { TAIL_BYTES = 64 }; /* behind the models */

TAILQ_HEAD(gw_listeners, gw_listener);

struct model {
    uint32_t number;
    char name[FX_QUEUE_NAME_MAX + 1];
};

struct gw_telemetry {
    struct gw_telemetry_opts opts;
    struct event *tick; /* pending while somebody listens */
    struct gw_listeners listeners;
    uint32_t listener_count;
    uint32_t tickets; /* given since tickets_ms; to whom: their keys' digests begin so */
    uint64_t tickets_ms, ticket_keys[GW_TICKETS_MAX];

    /* one read */
    bool reading;
    struct model models[FX_QUEUE_MODELS_MAX];
    size_t model_count, model_next, told, omitted;
    fx_buf next; /* being written */
    fx_buf last; /* whole; len 0: none yet */
    uint64_t last_ms;
};

/* -- the snapshot -- */

static void snapshot_open(struct gw_telemetry *telemetry) {
    fx_buf *out = &telemetry->next;
    out->len = 0;
    fx_sse_open(out);
    fx_json_put(out, "{\"at_ms\":");
    fx_json_put_u64(out, fx_wall_ms());
    fx_json_put(out, ",\"models\":[");
    telemetry->told = telemetry->omitted = telemetry->model_next = 0;
}

static void snapshot_send(struct gw_telemetry *telemetry, struct gw_listener *listener) {
    fx_http_call *call = listener->visit->call;
    if (fx_http_stream_unsent(call) > GW_TELEMETRY_UNSENT_MAX) {
        gw_count(&telemetry->opts.metrics->telemetry_missed, 1);
        return;
    }
    gw_count(&telemetry->opts.metrics->telemetry_events, 1);
    fx_http_stream_write(call, (fx_span){telemetry->last.at, telemetry->last.len});
}

/* The same bytes to each. */
static void snapshot_close(struct gw_telemetry *telemetry) {
    struct gw_listener *listener;
    fx_buf *out = &telemetry->next, was = telemetry->last;
    fx_json_put(out, "],\"models_omitted\":");
    fx_json_put_u64(out, telemetry->omitted);
    fx_json_put(out, "}");
    fx_sse_close(out);
    FX_ASSERT(fx_buf_fits(out));
    telemetry->last = *out;
    telemetry->last_ms = fx_clock_ms();
    telemetry->next = was;
    telemetry->reading = false;
    TAILQ_FOREACH(listener, &telemetry->listeners, entry) snapshot_send(telemetry, listener);
}

static bool worth_telling(const struct fx_queue_stats *stats) {
    return stats->live_count || stats->waiting || stats->running;
}

static void model_put(struct gw_telemetry *telemetry, const struct model *model,
                      const struct fx_queue_stats *stats) {
    fx_buf *out = &telemetry->next;
    size_t before = out->len;
    if (!worth_telling(stats)) return;
    if (telemetry->told) fx_json_put(out, ",");
    gw_fleet_model_write(model->name, stats, out);
    if (out->len + TAIL_BYTES <= out->cap) {
        telemetry->told++;
    } else {
        out->len = before;
        telemetry->omitted++;
    }
}

/* -- reading, one model after the other -- */

static void model_ask(struct gw_telemetry *telemetry);

static void on_figures(void *ctx, const struct fx_queue_stats *stats, const fx_error *err) {
    struct gw_telemetry *telemetry = ctx;
    if (err) {
        telemetry->reading = false; /* no snapshot: the next tick tries again */
        return;
    }
    model_put(telemetry, &telemetry->models[telemetry->model_next++], stats);
    model_ask(telemetry);
}

static void model_ask(struct gw_telemetry *telemetry) {
    if (telemetry->model_next == telemetry->model_count) {
        snapshot_close(telemetry);
        return;
    }
    uint32_t number = telemetry->models[telemetry->model_next].number;
    telemetry->reading =
        fx_queue_figures(telemetry->opts.queue, number, on_figures, telemetry, &(fx_error){0});
}

static void on_models(void *ctx, const struct fx_queue_model *models, size_t count,
                      const fx_error *err) {
    struct gw_telemetry *telemetry = ctx;
    if (err) {
        telemetry->reading = false;
        return;
    }
    telemetry->model_count = count < FX_QUEUE_MODELS_MAX ? count : FX_QUEUE_MODELS_MAX;
    for (size_t i = 0; i < telemetry->model_count; i++) {
        telemetry->models[i].number = models[i].number;
        (void)snprintf(telemetry->models[i].name, sizeof telemetry->models[i].name, "%s",
                       models[i].name);
    }
    snapshot_open(telemetry);
    model_ask(telemetry);
}

static void read_begin(struct gw_telemetry *telemetry) {
    if (telemetry->reading) return;
    telemetry->reading =
        fx_queue_models(telemetry->opts.queue, on_models, telemetry, &(fx_error){0});
}

/* -- listeners -- */

static void listener_leave(struct gw_listener *listener) {
    struct gw_visit *visit = listener->visit;
    struct gw_telemetry *telemetry = visit->gateway->telemetry;
    TAILQ_REMOVE(&telemetry->listeners, listener, entry);
    telemetry->opts.metrics->telemetry_listeners = --telemetry->listener_count;
    if (!telemetry->listener_count) (void)event_del(telemetry->tick);
    visit->listener = NULL;
    free(listener);
}

void gw_telemetry_left(struct gw_visit *visit) {
    if (visit->listener) listener_leave(visit->listener);
}

static void listener_end(struct gw_listener *listener) {
    struct gw_visit *visit = listener->visit;
    listener_leave(listener);
    gw_visit_stream_end(visit);
}

void gw_telemetry_drain(struct gw_telemetry *telemetry) {
    struct gw_listener *listener, *next;
    for (listener = TAILQ_FIRST(&telemetry->listeners); listener; listener = next) {
        next = TAILQ_NEXT(listener, entry);
        listener_end(listener);
    }
}

/* Nobody could say: for a while that is no reason. */
static void on_checked(void *ctx, const struct gw_identity *who, const struct gw_problem *problem) {
    struct gw_visit *visit = ctx;
    struct gw_listener *listener = visit->listener;
    (void)who;
    if (listener) {
        uint64_t now_ms = fx_clock_ms();
        bool unsure = problem && problem->reason == GW_UNAVAILABLE &&
                      now_ms - listener->good_ms < GW_TELEMETRY_UNCHECKED_MS_MAX;
        listener->checking = false;
        if (!problem) listener->good_ms = now_ms;
        if (problem && !unsure) listener_end(listener);
    }
    gw_visit_unref(visit); /* the question's */
}

/* A key that was revoked meanwhile ends its streams. */
static void listener_check(struct gw_telemetry *telemetry, struct gw_listener *listener) {
    struct gw_visit *visit = listener->visit;
    uint64_t now_ms = fx_clock_ms();
    if (listener->checking || now_ms - listener->asked_ms < GW_TELEMETRY_CHECK_MS) return;
    listener->checking = true;
    listener->asked_ms = now_ms;
    gw_visit_ref(visit); /* the question's */
    gw_auth_check_digest(telemetry->opts.auth, visit->who.digest, &visit->trace, on_checked, visit);
}

static void on_tick(evutil_socket_t fd, short what, void *arg) {
    struct gw_telemetry *telemetry = arg;
    struct gw_listener *listener, *next;
    (void)fd, (void)what;
    for (listener = TAILQ_FIRST(&telemetry->listeners); listener; listener = next) {
        next = TAILQ_NEXT(listener, entry); /* the answer may come at once, and end this one */
        listener_check(telemetry, listener);
    }
    if (telemetry->listener_count) read_begin(telemetry);
}

static FX_MUST bool listener_allowed(const struct gw_telemetry *telemetry,
                                     const struct gw_visit *visit, struct gw_problem *problem) {
    const struct gw_listener *listener;
    uint32_t own = 0;
    if (visit->http->http_1_0)
        return gw_refuse(problem, GW_OLD_HTTP, NULL, "a stream needs HTTP/1.1");
    if (visit->gateway->process->draining)
        return gw_refuse(problem, GW_UNAVAILABLE, NULL, "the gateway is shutting down");
    if (telemetry->listener_count >= GW_TELEMETRY_LISTENERS_MAX)
        return gw_refuse(problem, GW_UNAVAILABLE, NULL, "too many listen here already");
    TAILQ_FOREACH(listener, &telemetry->listeners, entry)
    own += fx_equal_ct(listener->visit->who.digest, visit->who.digest, FX_SHA256_BYTES);
    if (own < GW_TELEMETRY_KEY_LISTENERS_MAX) return true;
    return gw_refuse(problem, GW_BUSY, NULL, "%d streams of this key are open already",
                     GW_TELEMETRY_KEY_LISTENERS_MAX);
}

static FX_MUST bool listener_add(struct gw_telemetry *telemetry, struct gw_visit *visit,
                                 struct gw_problem *problem) {
    const struct timeval every = {GW_TELEMETRY_EVERY_MS / 1000, 0};
    if (!listener_allowed(telemetry, visit, problem)) return false;
    visit->listener = fx_alloc(1, sizeof *visit->listener);
    if (!visit->listener || (!telemetry->listener_count && event_add(telemetry->tick, &every))) {
        free(visit->listener);
        visit->listener = NULL;
        return gw_refuse(problem, GW_UNAVAILABLE, NULL, "no memory");
    }
    *visit->listener =
        (struct gw_listener){.visit = visit, .asked_ms = fx_clock_ms(), .good_ms = fx_clock_ms()};
    TAILQ_INSERT_TAIL(&telemetry->listeners, visit->listener, entry);
    telemetry->opts.metrics->telemetry_listeners = ++telemetry->listener_count;
    return true;
}

void gw_serve_telemetry(struct gw_visit *visit) {
    struct gw_telemetry *telemetry = visit->gateway->telemetry;
    struct gw_headers headers;
    struct gw_problem problem;
    if (visit->http->method == FX_HTTP_HEAD) {
        gw_visit_stream_head(visit);
        return;
    }
    if (!listener_add(telemetry, visit, &problem)) {
        gw_visit_refuse(visit, &problem);
        return;
    }
    gw_visit_headers(visit, &headers);
    fx_http_stream_begin(visit->call, headers.at, headers.count, visit->gateway->config->ping_ms);
    visit->http = NULL;
    if (telemetry->last.len && fx_clock_ms() - telemetry->last_ms < GW_TELEMETRY_EVERY_MS)
        snapshot_send(telemetry, visit->listener);
    else
        read_begin(telemetry);
}

bool gw_telemetry_ticket_allowed(struct gw_telemetry *telemetry,
                                 const uint8_t key[FX_SHA256_BYTES]) {
    uint64_t now_ms = fx_clock_ms(), begin;
    uint32_t own = 0;
    memcpy(&begin, key, sizeof begin);
    if (now_ms - telemetry->tickets_ms >= GW_TICKET_TTL_S * 1000ULL) {
        telemetry->tickets_ms = now_ms;
        telemetry->tickets = 0;
    }
    for (uint32_t i = 0; i < telemetry->tickets; i++)
        own += telemetry->ticket_keys[i] == begin;
    if (telemetry->tickets == GW_TICKETS_MAX || own >= GW_TICKETS_KEY_MAX) return false;
    telemetry->ticket_keys[telemetry->tickets++] = begin;
    return true;
}

/* -- life -- */

bool gw_telemetry_open(const struct gw_telemetry_opts *opts, struct gw_telemetry **out,
                       fx_error *err) {
    struct gw_telemetry *telemetry = fx_alloc(1, sizeof *telemetry);
    if (!telemetry) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for telemetry");
    telemetry->opts = *opts;
    TAILQ_INIT(&telemetry->listeners);
    telemetry->tick = event_new(opts->base, -1, EV_PERSIST, on_tick, telemetry);
    telemetry->next = (fx_buf){fx_alloc(1, GW_TELEMETRY_EVENT_MAX), 0, GW_TELEMETRY_EVENT_MAX};
    telemetry->last = (fx_buf){fx_alloc(1, GW_TELEMETRY_EVENT_MAX), 0, GW_TELEMETRY_EVENT_MAX};
    if (telemetry->tick && telemetry->next.at && telemetry->last.at) {
        *out = telemetry;
        return true;
    }
    gw_telemetry_free(telemetry);
    return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for telemetry");
}

void gw_telemetry_free(struct gw_telemetry *telemetry) {
    if (!telemetry) return;
    if (telemetry->tick) event_free(telemetry->tick);
    free(telemetry->next.at);
    free(telemetry->last.at);
    free(telemetry);
}
