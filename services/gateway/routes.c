#include <string.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "services/gateway/visit.h"

static const struct gw_route routes[] = {
    {{"v1", "chat", "completions"},
     3,                                false,
     FX_HTTP_POST,                                         GW_CHAT,
     &gw_chat_shape,
     gw_serve_generation                                                                       },
    {{"v1", "completions", NULL},
     2,                                false,
     FX_HTTP_POST,                                         GW_COMPLETION,
     &gw_completion_shape,
     gw_serve_generation                                                                       },
    {{"v1", "models", NULL},        2, false, FX_HTTP_GET, 0,             NULL, gw_serve_models},
    {{"v1", "models", NULL},        2, true,  FX_HTTP_GET, 0,             NULL, gw_serve_model },
};

static bool path_matches(const struct gw_route *route, const struct fx_http_request *request) {
    if (route->has_name ? request->segment_count <= route->path_len
                        : request->segment_count != route->path_len)
        return false;
    for (size_t i = 0; i < route->path_len; i++)
        if (!fx_span_eq_str(request->segments[i], route->path[i])) return false;
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

/* The model's name: `org/name` may be one encoded segment or two. */
static FX_MUST bool name_read(struct gw_visit *visit, const struct fx_http_request *request,
                              struct gw_problem *problem) {
    fx_buf name = {(uint8_t *)visit->name, 0, GW_MODEL_NAME_MAX};
    if (!visit->route->has_name) return true;
    for (size_t i = visit->route->path_len; i < request->segment_count; i++) {
        if (name.len) fx_buf_put(&name, fx_span_str("/"));
        fx_buf_put(&name, request->segments[i]);
    }
    if (fx_buf_fits(&name)) return true;
    return gw_refuse(problem, GW_NO_MODEL, "model", "no model has so long a name");
}

/* -- life -- */

void gw_visit_ref(struct gw_visit *visit) {
    visit->refs++;
}

void gw_visit_unref(struct gw_visit *visit) {
    if (--visit->refs) return;
    gw_generation_done(visit);
    free(visit);
}

static void on_gone(void *ctx) {
    struct gw_visit *visit = ctx;
    visit->call = NULL;
    gw_models_leave(visit->gateway->models, &visit->waiter);
    gw_generation_gone(visit);
    gw_visit_unref(visit);
}

static fx_http_call *call_take(struct gw_visit *visit) {
    fx_http_call *call = visit->call;
    visit->call = NULL;
    return call;
}

void gw_visit_refuse(struct gw_visit *visit, const struct gw_problem *problem) {
    struct fx_http_problem http = gw_problem_http(problem);
    if (!visit->call) return;
    fx_http_reply_problem(call_take(visit), &http);
    gw_visit_unref(visit);
}

void gw_visit_reply(struct gw_visit *visit, fx_span json) {
    if (!visit->call) return;
    fx_http_reply(call_take(visit), &(struct fx_http_reply){.status = 200, .body = json});
    gw_visit_unref(visit);
}

void gw_visit_stream_end(struct gw_visit *visit) {
    if (!visit->call) return;
    fx_http_stream_end(call_take(visit));
    gw_visit_unref(visit);
}

/* -- the way in -- */

static void on_authenticated(void *ctx, const struct gw_identity *who,
                             const struct gw_problem *problem) {
    struct gw_visit *visit = ctx;
    if (problem) {
        gw_visit_refuse(visit, problem);
    } else if (visit->call) {
        visit->who = *who;
        visit->route->serve(visit);
    }
    gw_visit_unref(visit); /* the question's */
}

static FX_MUST bool body_read(struct gw_visit *visit, const struct fx_http_request *request,
                              struct gw_problem *problem) {
    if (!visit->route->kind) return true;
    if (!gw_request_parse(visit->route->kind, request->body, &visit->request, problem))
        return false;
    fx_http_call_drop_body(visit->call);
    if (visit->request.stream && request->http_1_0)
        return gw_refuse(problem, GW_OLD_HTTP, NULL, "a stream needs HTTP/1.1");
    return true;
}

static void visit_begin(struct gw_visit *visit, const struct fx_http_request *request) {
    struct gw_problem problem = {0};
    fx_span key = {0};
    bool ok = gw_auth_key(request, &key, &problem) && name_read(visit, request, &problem) &&
              body_read(visit, request, &problem);
    if (!ok) {
        gw_visit_refuse(visit, &problem);
        return;
    }
    gw_visit_ref(visit); /* the question's */
    gw_auth_check(visit->gateway->auth, key, &visit->trace, on_authenticated, visit);
}

static void refuse_early(fx_http_call *call, const struct gw_problem *problem, const char *allow) {
    struct fx_http_problem http = gw_problem_http(problem);
    http.allow = allow;
    fx_http_reply_problem(call, &http);
}

void gw_routes_serve(void *ctx, fx_http_call *call, const struct fx_http_request *request) {
    struct gw_problem problem = {0};
    const char *allow = NULL;
    const struct gw_route *route = route_find(request, &problem, &allow);
    struct gw_visit *visit = route ? fx_alloc(1, sizeof *visit) : NULL;
    if (route && !visit) gw_problem_set(&problem, GW_UNAVAILABLE, NULL, "no memory");
    if (!visit) {
        refuse_early(call, &problem, allow);
        return;
    }
    visit->refs = 1; /* the call's */
    visit->gateway = ctx;
    visit->route = route;
    visit->call = call;
    visit->begun_us = fx_clock_us();
    fx_trace_accept(fx_span_str(fx_http_call_id(call)), fx_http_header(request, "traceparent"),
                    &visit->trace);
    fx_http_call_on_gone(call, on_gone, visit);
    visit_begin(visit, request);
}
