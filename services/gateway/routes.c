#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "services/gateway/process.h"
#include "services/gateway/telemetry.h"

#define GET(...)                                                                                   \
    { .method = FX_HTTP_GET, __VA_ARGS__ }
#define POST(...)                                                                                  \
    { .method = FX_HTTP_POST, __VA_ARGS__ }
static const struct gw_route routes[] = {
    POST(.path = {"v1", "chat", "completions"}, .path_len = 3, .kind = GW_CHAT,
         .shape = &gw_chat_shape, .serve = gw_serve_generation),
    POST(.path = {"v1", "completions"}, .path_len = 2, .kind = GW_COMPLETION,
         .shape = &gw_completion_shape, .serve = gw_serve_generation),
    POST(.path = {"tokenize"}, .path_len = 1, .kind = GW_TOKENIZE, .serve = gw_serve_tokenize),
    POST(.path = {"detokenize"}, .path_len = 1, .kind = GW_DETOKENIZE,
         .serve = gw_serve_detokenize),
    GET(.path = {"v1", "generations", "*"}, .path_len = 3, .serve = gw_serve_status),
    GET(.path = {"v1", "generations", "*", "events"}, .path_len = 4, .serve = gw_serve_events),
    POST(.path = {"v1", "generations", "*", "cancel"}, .path_len = 4, .serve = gw_serve_cancel),
    GET(.path = {"v1", "models"}, .path_len = 2, .serve = gw_serve_models),
    GET(.path = {"v1", "models"}, .path_len = 2, .has_name = true, .serve = gw_serve_model),
    GET(.path = {"v1", "telemetry"}, .path_len = 2, .by_ticket = true, .serve = gw_serve_telemetry),
    POST(.path = {"v1", "telemetry", "tickets"}, .path_len = 3, .serve = gw_serve_ticket),
};
#undef GET
#undef POST

static bool is_any(const char *segment) {
    return strcmp(segment, "*") == 0;
}

static bool path_matches(const struct gw_route *route, const struct fx_http_request *request) {
    if (route->has_name ? request->segment_count <= route->path_len
                        : request->segment_count != route->path_len)
        return false;
    for (size_t i = 0; i < route->path_len; i++)
        if (!is_any(route->path[i]) && !fx_span_eq_str(request->segments[i], route->path[i]))
            return false;
    return true;
}

/* NULL, and why, when nothing is there. HEAD is answered as GET. */
static const struct gw_route *route_find(const struct fx_http_request *request,
                                         struct gw_problem *problem, const char **allow) {
    enum fx_http_method method = request->method == FX_HTTP_HEAD ? FX_HTTP_GET : request->method;
    for (size_t i = 0; i < FX_COUNT(routes); i++) {
        if (!path_matches(&routes[i], request)) continue;
        if (routes[i].method == method) return &routes[i];
        *allow = fx_http_method_name(routes[i].method);
        gw_problem_set(problem, GW_NO_METHOD, NULL, "only %s is served here", *allow);
        return NULL;
    }
    gw_problem_set(problem, GW_NO_ROUTE, NULL, "there is nothing at this URL");
    return NULL;
}

/* What the path names; a model's `org/name` may be one encoded segment or two. */
static FX_MUST bool name_read(struct gw_visit *visit, const struct fx_http_request *request,
                              struct gw_problem *problem) {
    fx_buf name = {(uint8_t *)visit->name, 0, GW_MODEL_NAME_MAX};
    for (size_t i = 0; i < visit->route->path_len; i++)
        if (is_any(visit->route->path[i])) fx_buf_put(&name, request->segments[i]);
    for (size_t i = visit->route->path_len; i < request->segment_count; i++) {
        if (name.len) fx_buf_put(&name, fx_span_str("/"));
        fx_buf_put(&name, request->segments[i]);
    }
    if (fx_buf_fits(&name)) return true;
    return gw_refuse(problem, GW_NO_ROUTE, NULL, "nothing has so long a name");
}

/* -- answers -- */

static void on_gone(void *ctx) {
    struct gw_visit *visit = ctx;
    visit->call = NULL;
    gw_visit_gone(visit);
}

static fx_http_call *call_take(struct gw_visit *visit) {
    fx_http_call *call = visit->call;
    visit->call = NULL;
    return call;
}

void gw_visit_headers(const struct gw_visit *visit, struct gw_headers *out) {
    uint64_t us = fx_clock_us() - visit->begun_us;
    gw_limit_headers(&visit->limits, &out->limits);
    (void)snprintf(out->ms, sizeof out->ms, "%" PRIu64, us / 1000);
    out->count = 0;
    out->at[out->count++] =
        (struct fx_http_header){fx_span_str("openai-processing-ms"), fx_span_str(out->ms)};
    for (size_t i = 0; i < out->limits.count; i++)
        out->at[out->count++] = out->limits.headers[i];
}

void gw_http_refuse(struct gw_visit *visit, const struct gw_problem *problem) {
    struct fx_http_problem http = gw_problem_http(problem);
    struct gw_headers headers;
    gw_visit_headers(visit, &headers);
    http.headers = headers.at;
    http.header_count = headers.count;
    fx_http_reply_problem(call_take(visit), &http);
}

static void refuse_now(struct gw_visit *visit, const struct gw_problem *problem) {
    if (!gw_visit_here(visit)) return;
    visit->front->refuse(visit, problem);
    gw_visit_unref(visit);
}

/* A refusal that waits for its headers. */
struct refusing {
    struct gw_visit *visit;
    struct gw_problem problem;
};

static void on_looked(void *ctx, const struct gw_limit_state *state,
                      const struct gw_problem *problem) {
    struct refusing *refusing = ctx;
    struct gw_visit *visit = refusing->visit;
    (void)problem; /* then without the headers */
    visit->limits = *state;
    refuse_now(visit, &refusing->problem);
    free(refusing);
    gw_visit_unref(visit); /* the look's */
}

void gw_visit_refuse(struct gw_visit *visit, const struct gw_problem *problem) {
    bool look = gw_visit_here(visit) && gw_limited(&visit->who) && !visit->looked;
    struct refusing *refusing = look ? fx_alloc(1, sizeof *refusing) : NULL;
    if (!refusing) {
        refuse_now(visit, problem);
        return;
    }
    *refusing = (struct refusing){visit, *problem};
    visit->looked = true;
    gw_visit_ref(visit);
    gw_limits_look(visit->gateway->limits, &visit->who, on_looked, refusing);
}

static void reply(struct gw_visit *visit, const char *content_type, fx_span body) {
    struct gw_headers headers;
    if (!visit->call) return;
    gw_visit_headers(visit, &headers);
    fx_http_reply(call_take(visit), &(struct fx_http_reply){.status = 200,
                                                            .content_type = content_type,
                                                            .body = body,
                                                            .headers = headers.at,
                                                            .header_count = headers.count});
    gw_visit_unref(visit);
}

void gw_visit_reply(struct gw_visit *visit, fx_span json) {
    reply(visit, NULL, json);
}

void gw_visit_stream_head(struct gw_visit *visit) {
    reply(visit, "text/event-stream; charset=utf-8", (fx_span){NULL, 0});
}

void gw_visit_reply_written(struct gw_visit *visit, void (*write)(const void *what, fx_buf *out),
                            const void *what) {
    struct gw_problem problem;
    fx_buf out = {0};
    write(what, &out);
    fx_auto(uint8_t) json = fx_alloc(1, out.len);
    if (!json) {
        gw_problem_set(&problem, GW_UNAVAILABLE, NULL, "no memory for the answer");
        gw_visit_refuse(visit, &problem);
        return;
    }
    out = (fx_buf){json, 0, out.len};
    write(what, &out);
    gw_visit_reply(visit, (fx_span){json, out.len});
}

void gw_visit_stream_end(struct gw_visit *visit) {
    if (!visit->call) return;
    fx_http_stream_end(call_take(visit));
    gw_visit_unref(visit);
}

/* -- the way in -- */

bool gw_http_read(struct gw_visit *visit, struct gw_problem *problem) {
    if (!visit->route->kind) return true;
    fx_span key = fx_http_header(visit->http, "idempotency-key");
    if (!gw_once_read(visit, key, visit->http->body, problem)) return false;
    if (!gw_request_parse(visit->route->kind, visit->http->body, &visit->request, problem))
        return false;
    fx_http_call_drop_body(visit->call);
    if (visit->request.stream && visit->http->http_1_0)
        return gw_refuse(problem, GW_OLD_HTTP, NULL, "a stream needs HTTP/1.1");
    return true;
}

/* What spends nothing only looks, for its headers; the others look when they take. */
static void on_seen(void *ctx, const struct gw_limit_state *state,
                    const struct gw_problem *problem) {
    struct gw_visit *visit = ctx;
    (void)problem;
    visit->limits = *state;
    if (gw_visit_here(visit)) visit->route->serve(visit);
    gw_visit_unref(visit); /* the look's */
}

static void serve(struct gw_visit *visit) {
    struct gw_problem problem = {0};
    if (!visit->front->read(visit, &problem)) {
        gw_visit_refuse(visit, &problem);
    } else if (!visit->route->shape && gw_limited(&visit->who)) {
        visit->looked = true;
        gw_visit_ref(visit);
        gw_limits_look(visit->gateway->limits, &visit->who, on_seen, visit);
    } else {
        visit->route->serve(visit);
    }
}

void gw_visit_known(struct gw_visit *visit, const struct gw_identity *who) {
    visit->who = *who;
    serve(visit);
}

static void on_authenticated(void *ctx, const struct gw_identity *who,
                             const struct gw_problem *problem) {
    struct gw_visit *visit = ctx;
    if (problem) {
        gw_visit_refuse(visit, problem);
    } else if (gw_visit_here(visit)) {
        gw_visit_known(visit, who);
    }
    gw_visit_unref(visit); /* the question's */
}

void gw_visit_begin(struct gw_visit *visit, fx_span key) {
    gw_visit_ref(visit); /* the question's */
    gw_auth_check(visit->gateway->auth, key, &visit->trace, on_authenticated, visit);
}

void gw_visit_begin_digest(struct gw_visit *visit, const uint8_t digest[FX_SHA256_BYTES]) {
    gw_visit_ref(visit); /* the question's */
    gw_auth_check_digest(visit->gateway->auth, digest, &visit->trace, on_authenticated, visit);
}

static void visit_begin(struct gw_visit *visit, const struct fx_http_request *request) {
    struct gw_problem problem = {0};
    fx_span key = {0}, ticket;
    if (visit->route->by_ticket && gw_ticket_of(request, &ticket)) {
        gw_ticket_redeem(visit, ticket);
        return;
    }
    if (!gw_auth_key(request, &key, &problem) || !name_read(visit, request, &problem)) {
        gw_visit_refuse(visit, &problem);
        return;
    }
    gw_visit_begin(visit, key);
}

static void refuse_early(fx_http_call *call, const struct gw_problem *problem, const char *allow) {
    struct fx_http_problem http = gw_problem_http(problem);
    http.allow = allow;
    fx_http_reply_problem(call, &http);
}

/* NULL: not now, or not this; and why. */
static const struct gw_route *route_open(const struct gateway *gateway,
                                         const struct fx_http_request *request,
                                         struct gw_problem *problem, const char **allow) {
    if (!gateway->process->draining) return route_find(request, problem, allow);
    fx_http_server_drain(gateway->server); /* before the loop is told: this connection ends too */
    gw_problem_set(problem, GW_SHUTTING_DOWN, NULL, "this gateway is shutting down; try again");
    return NULL;
}

bool gw_routes_admit(void *ctx, fx_http_call *call, const struct fx_http_request *request) {
    struct gw_problem problem = {0};
    const char *allow = NULL;
    fx_span key;
    if (route_open(ctx, request, &problem, &allow) && gw_auth_key(request, &key, &problem))
        return true;
    refuse_early(call, &problem, allow);
    return false;
}

/* The official clients say how often they have tried. */
static bool is_retry(const struct fx_http_request *request) {
    fx_span count = fx_http_header(request, "x-stainless-retry-count");
    return count.len && !fx_span_eq_str(count, "0");
}

void gw_routes_serve(void *ctx, fx_http_call *call, const struct fx_http_request *request) {
    struct gw_problem problem = {0};
    const char *allow = NULL;
    const struct gw_route *route = route_open(ctx, request, &problem, &allow);
    struct gw_visit *visit = route ? fx_alloc(1, sizeof *visit) : NULL;
    if (route && !visit) gw_problem_set(&problem, GW_UNAVAILABLE, NULL, "no memory");
    if (!visit) {
        refuse_early(call, &problem, allow);
        return;
    }
    visit->refs = 1; /* the call's */
    visit->gateway = ctx;
    visit->route = route;
    visit->front = &gw_http_front;
    visit->gateway->visit_count++;
    visit->call = call;
    visit->http = request;
    visit->begun_us = fx_clock_us();
    if (is_retry(request)) gw_count(&visit->gateway->metrics.retries, 1);
    fx_trace_accept(fx_span_str(fx_http_call_id(call)), fx_http_header(request, "traceparent"),
                    &visit->trace);
    fx_http_call_on_gone(call, on_gone, visit);
    fx_http_stream_on_taken(call, gw_unread_taken, visit);
    visit_begin(visit, request);
}
