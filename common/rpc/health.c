#include "common/rpc/server_internal.h"
#include "grpc/health/v1/health.pb-c.h"

#define STATUS(name) GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##name

/* What a watcher's user word says: the service is none of this server's. */
static char unknown_service_;

static int status_now(const fx_call *call) {
    if (call->user == &unknown_service_) return STATUS(SERVICE_UNKNOWN);
    return call->server->serving ? STATUS(SERVING) : STATUS(NOT_SERVING);
}

static bool is_ours(const fx_server *server, const char *service) {
    return fx_server__has_service(server, fx_span_str(service));
}

static void check(fx_call *call, const void *request, void *context) {
    const Grpc__Health__V1__HealthCheckRequest *in = request;
    Grpc__Health__V1__HealthCheckResponse reply = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    if (!is_ours(context, in->service)) {
        fx_call_fail(call, FX_NOT_FOUND, "unknown service");
        return;
    }
    reply.status = (Grpc__Health__V1__HealthCheckResponse__ServingStatus)status_now(call);
    fx_call_reply(call, &reply);
}

/* Sends what has changed since the last send; under the call's lock. */
static void push(fx_call *call, void *user) {
    (void)user;
    int status = status_now(call);
    if (status == call->health_sent) return;
    Grpc__Health__V1__HealthCheckResponse reply = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    reply.status = (Grpc__Health__V1__HealthCheckResponse__ServingStatus)status;
    if (fx_call_send(call, &reply) == FX_SEND_OK) call->health_sent = status;
}

static void watch_over(fx_call *call, void *user) {
    (void)user;
    fx_call_fail(call, FX_CANCELLED, "cancelled");
}

static void watch(fx_call *call, const void *request, void *context) {
    const Grpc__Health__V1__HealthCheckRequest *in = request;
    fx_server *server = context;
    if (server->watchers++ >= FX_HEALTH_WATCHERS_MAX) {
        server->watchers--;
        fx_call_fail(call, FX_RESOURCE_EXHAUSTED, "too many watchers");
        return;
    }
    pthread_mutex_lock(&call->lock);
    call->watching = true;
    call->user = is_ours(server, in->service) ? NULL : &unknown_service_;
    fx_call_on_writable(call, push, NULL);
    push(call, NULL);
    if (server->draining)
        fx_call_fail(call, FX_UNAVAILABLE, "the server is going away");
    else
        fx_call_on_cancel(call, watch_over, NULL);
    pthread_mutex_unlock(&call->lock);
}

void fx_health__push_all(fx_server *server) {
    uint32_t begun = fx_pool__begun(&server->builtin);
    for (uint32_t i = 0; i < begun; i++) {
        fx_call *call = &server->builtin.slots[i];
        pthread_mutex_lock(&call->lock);
        if (call->watching && !call->ended) push(call, NULL);
        pthread_mutex_unlock(&call->lock);
    }
}

const struct fx_method fx_health__methods[2] = {
    {"/grpc.health.v1.Health/Check", check, &grpc__health__v1__health_check_request__descriptor,
     FX_RPC_UNARY,         5000, 1024},
    {"/grpc.health.v1.Health/Watch", watch, &grpc__health__v1__health_check_request__descriptor,
     FX_RPC_SERVER_STREAM, 0,    1024},
};
