/* A call of the public gRPC API from its handler to its end. */
#include "services/gateway/rpc.h"
#include <stdio.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/base/log.h"
#include "fractal/v1/inference.pb-c.h"

enum {
    ARENA_REST = 256 * 1024, /* of a call, over its message */
    SMALL_BYTES = 64 * 1024, /* a request that names no more than a model or an answer */
    HEADER_NAME_MAX = 48,
};

/* A call from its metadata on, in its arena. */
struct admission {
    struct gateway *gateway; /* the loop that it belongs to */
    fx_call *call;
    fx_span key; /* borrowed from its metadata */
    uint64_t begun_us;
    struct gw_identity who; /* once that is known */
};

/* -- the end -- */

static void call_refuse(fx_call *call, const struct gw_problem *problem) {
    gw_rpc_details(call, problem);
    fx_call_fail(call, gw_rpc_code(problem), "%s", problem->message);
}

/* A job that still waits in the inbox keeps the visit. Nobody pokes once a call has ended. */
static void ended(struct gw_visit *visit, enum fx_code code) {
    visit->rpc->call = NULL;
    gateway_log_rpc(visit->gateway, visit->trace.request_id, visit->route->path[0], code,
                    fx_clock_us() - visit->begun_us);
    if (!visit->rpc->poked) return;
    visit->rpc->held = true;
    gw_visit_ref(visit);
}

static void limits_tell(struct gw_visit *visit) {
    struct gw_limit_headers limits;
    gw_limit_headers(&visit->limits, &limits);
    for (size_t i = 0; i < limits.count; i++) {
        const struct fx_http_header *header = &limits.headers[i];
        char name[HEADER_NAME_MAX], value[GW_LIMIT_TEXT];
        (void)snprintf(name, sizeof name, "%.*s", (int)header->name.len,
                       (const char *)header->name.at);
        (void)snprintf(value, sizeof value, "%.*s", (int)header->value.len,
                       (const char *)header->value.at);
        fx_call_trailer(visit->rpc->call, name, value);
    }
}

void gw_rpc_reply(struct gw_visit *visit, const void *message) {
    limits_tell(visit);
    fx_call_reply(visit->rpc->call, message);
    ended(visit, FX_OK);
}

void gw_rpc_finish(struct gw_visit *visit) {
    limits_tell(visit);
    fx_call_finish(visit->rpc->call);
    ended(visit, FX_OK);
}

void gw_rpc_fail(struct gw_visit *visit, const struct gw_problem *problem) {
    limits_tell(visit);
    call_refuse(visit->rpc->call, problem);
    ended(visit, gw_rpc_code(problem));
}

void gw_rpc_cut(struct gw_visit *visit, const struct gw_problem *problem) {
    enum fx_code code = gw_rpc_code(problem);
    fx_call_cut(visit->rpc->call, code, "%s", problem->message);
    ended(visit, code);
}

/* The client left or its deadline passed; then the status is the server's. */
static void gone(struct gw_visit *visit) {
    bool late = fx_call_deadline_ms(visit->rpc->call) <= fx_clock_ms();
    fx_call_fail(visit->rpc->call, FX_CANCELLED, "the client left");
    ended(visit, late ? FX_DEADLINE_EXCEEDED : FX_CANCELLED);
    gw_visit_gone(visit);
}

/* -- from the queues' threads to the loop -- */

static void on_poke(void *user) {
    struct gw_visit *visit = user;
    visit->rpc->poked = false;
    if (!visit->rpc->call) {
        if (visit->rpc->held) gw_visit_unref(visit);
    } else if (fx_call_cancelled(visit->rpc->call)) {
        gone(visit);
    } else {
        gw_rpc_pump(visit);
    }
}

void gw_rpc_poke(struct gw_visit *visit) {
    if (atomic_exchange(&visit->rpc->poked, true)) return;
    if (!fx_loop_post(visit->gateway->loop, on_poke, visit)) visit->rpc->poked = false;
}

static void on_cancel(fx_call *call, void *user) {
    (void)call;
    gw_rpc_poke(user);
}

static void on_writable(fx_call *call, void *user) {
    struct gw_visit *visit = user;
    (void)call;
    if (atomic_exchange(&visit->rpc->wants, false)) gw_rpc_poke(visit);
}

static void begin_on_loop(void *user) {
    struct gw_visit *visit = user;
    const struct admission *admission = fx_call_user(visit->rpc->call);
    fx_call_on_writable(visit->rpc->call, on_writable, visit);
    fx_call_on_cancel(visit->rpc->call, on_cancel, visit);
    gw_visit_known(visit, &admission->who);
}

static void busy(fx_call *call) {
    struct gw_problem problem;
    gw_problem_set(&problem, GW_BUSY, NULL, "too many calls at once; try again");
    call_refuse(call, &problem);
}

/* One piece of memory: free() of the visit frees both. */
struct rpc_visit {
    struct gw_visit visit;
    struct gw_rpc rpc;
};

static void begin(fx_call *call, const void *message, const struct gw_route *route) {
    const struct admission *admission = fx_call_user(call);
    struct rpc_visit *both = fx_alloc(1, sizeof *both);
    if (both) {
        struct gw_visit *visit = &both->visit;
        visit->rpc = &both->rpc;
        visit->refs = 1; /* the call's */
        visit->gateway = admission->gateway;
        visit->route = route;
        visit->front = &gw_rpc_front;
        visit->rpc->call = call;
        visit->rpc->message = message;
        visit->trace = *fx_call_trace(call);
        visit->begun_us = admission->begun_us;
        if (fx_loop_post(visit->gateway->loop, begin_on_loop, visit)) return;
        free(both);
    }
    busy(call);
}

/* -- before the message -- */

static void on_known(void *ctx, const struct gw_identity *who, const struct gw_problem *problem) {
    struct admission *admission = ctx;
    if (!problem) {
        admission->who = *who;
        fx_call_next(admission->call); /* which hands it to its method */
        return;
    }
    gateway_log_rpc(admission->gateway, fx_call_trace(admission->call)->request_id, "admit",
                    gw_rpc_code(problem), fx_clock_us() - admission->begun_us);
    call_refuse(admission->call, problem);
}

static void admit_on_loop(void *user) {
    struct admission *admission = user;
    gw_auth_check(admission->gateway->auth, admission->key, fx_call_trace(admission->call),
                  on_known, admission);
}

static FX_MUST bool is_plausible(fx_call *call, const struct gw_process *process, fx_span *key,
                                 struct gw_problem *problem) {
    if (process->draining)
        return gw_refuse(problem, GW_SHUTTING_DOWN, NULL, "the gateway is shutting down");
    return gw_auth_key_of(fx_call_metadata(call, "authorization"),
                          fx_call_metadata(call, "x-auth-token"), key, problem);
}

/* A call that is nobody's costs no more than its metadata. */
static void admit(fx_call *call, const void *message, void *process) {
    struct gw_problem problem;
    struct admission *admission = fx_arena_alloc(fx_call_arena(call), sizeof *admission);
    (void)message;
    FX_ASSERT(admission); /* it is the first in there */
    if (!is_plausible(call, process, &admission->key, &problem)) {
        call_refuse(call, &problem);
        return;
    }
    admission->gateway = gw_process_next(process);
    admission->call = call;
    admission->begun_us = fx_clock_us();
    fx_call_set_user(call, admission);
    if (!fx_loop_post(admission->gateway->loop, admit_on_loop, admission)) busy(call);
}

/* A message that no method gets to see. */
static void refuse(fx_call *call, const fx_error *err, const char *field, void *process) {
    struct gw_problem problem;
    (void)process;
    if (!*field) {
        fx_call_fail_error(call, err);
        return;
    }
    gw_problem_set(&problem, GW_BAD_VALUE, field, "%s", err->text);
    call_refuse(call, &problem);
}

/* -- methods -- */

static void generate(fx_call *call, const void *message, void *process) {
    static const struct gw_route route = {.path = {"Generate"},
                                          .kind = GW_COMPLETION,
                                          .shape = &gw_completion_shape,
                                          .serve = gw_serve_generation};
    (void)process;
    begin(call, message, &route);
}

static void chat(fx_call *call, const void *message, void *process) {
    static const struct gw_route route = {
        .path = {"Chat"}, .kind = GW_CHAT, .shape = &gw_chat_shape, .serve = gw_serve_generation};
    (void)process;
    begin(call, message, &route);
}

static void follow(fx_call *call, const void *message, void *process) {
    static const struct gw_route route = {.path = {"Follow"}, .serve = gw_rpc_serve_follow};
    (void)process;
    begin(call, message, &route);
}

static void get_generation(fx_call *call, const void *message, void *process) {
    static const struct gw_route route = {.path = {"GetGeneration"}, .serve = gw_rpc_serve_get};
    (void)process;
    begin(call, message, &route);
}

static void cancel_generation(fx_call *call, const void *message, void *process) {
    static const struct gw_route route = {.path = {"CancelGeneration"},
                                          .serve = gw_rpc_serve_cancel};
    (void)process;
    begin(call, message, &route);
}

static void list_models(fx_call *call, const void *message, void *process) {
    static const struct gw_route route = {.path = {"ListModels"}, .serve = gw_rpc_serve_models};
    (void)process;
    begin(call, message, &route);
}

static void count_tokens(fx_call *call, const void *message, void *process) {
    static const struct gw_route route = {
        .path = {"CountTokens"}, .kind = GW_TOKENIZE, .serve = gw_rpc_serve_count};
    (void)process;
    begin(call, message, &route);
}

/* The transport bounds a message by FX_BODY_BYTES_MAX. */
static const struct fx_method methods[] = {
    {"/fractal.v1.InferenceService/Generate",         generate,          &fractal__v1__generate_request__descriptor,
     FX_RPC_SERVER_STREAM,                                                                                                         0,     UINT32_MAX },
    {"/fractal.v1.InferenceService/Chat",             chat,              &fractal__v1__chat_request__descriptor,
     FX_RPC_SERVER_STREAM,                                                                                                         0,     UINT32_MAX },
    {"/fractal.v1.InferenceService/Follow",           follow,            &fractal__v1__follow_request__descriptor,
     FX_RPC_SERVER_STREAM,                                                                                                         0,     SMALL_BYTES},
    {"/fractal.v1.InferenceService/GetGeneration",    get_generation,
     &fractal__v1__inference_service_get_generation_request__descriptor,                                             FX_RPC_UNARY, 30000,
     SMALL_BYTES                                                                                                                                     },
    {"/fractal.v1.InferenceService/CancelGeneration", cancel_generation,
     &fractal__v1__inference_service_cancel_generation_request__descriptor,                                          FX_RPC_UNARY, 30000,
     SMALL_BYTES                                                                                                                                     },
    {"/fractal.v1.InferenceService/ListModels",       list_models,
     &fractal__v1__inference_service_list_models_request__descriptor,                                                FX_RPC_UNARY, 30000,
     SMALL_BYTES                                                                                                                                     },
    {"/fractal.v1.InferenceService/CountTokens",      count_tokens,
     &fractal__v1__count_tokens_request__descriptor,                                                                 FX_RPC_UNARY, 30000, UINT32_MAX },
};

bool gw_rpc_open(struct gw_process *process, fx_error *err) {
    const struct gw_config *config = process->config;
    struct fx_server_opts opts = {
        .address = config->grpc_addr,
        .threads = config->rpc_threads,
        .calls_max = GW_RPC_CALLS_MAX,
        .arena_bytes = config->body_bytes_max + ARENA_REST,
        .message_bytes_max = config->body_bytes_max,
        .reply_bytes_max = GW_RPC_REPLY_BYTES_MAX,
        .admit = admit,
        .refuse = refuse,
        .tls = gw_config_tls(config),
        .plaintext = config->plaintext,
        .context = process,
    };
    return fx_server_open(&opts, methods, FX_COUNT(methods), &process->rpc, err) ||
           fx_wrap(err, "FX_GRPC_ADDR");
}
