#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include "common/base/clock.h"
#include "common/rpc/descriptors_internal.h"
#include "common/rpc/server_internal.h"

static void on_shutdown(void *owner, bool ok) {
    (void)ok;
    fx_server *server = owner;
    pthread_mutex_lock(&server->stop_lock);
    server->shutdown_done = true;
    pthread_cond_broadcast(&server->stop_change);
    pthread_mutex_unlock(&server->stop_lock);
}

static bool is_idle(fx_server *server) {
    return server->shutdown_done && server->posted == 0 && fx_pool__active(&server->calls) == 0 &&
           fx_pool__active(&server->builtin) == 0;
}

static bool wait_idle(fx_server *server, uint64_t ms) {
    uint64_t at_us = fx_clock_us() + ms * 1000;
    struct timespec until = {(time_t)(at_us / 1000000), (long)(at_us % 1000000) * 1000};
    int rc = 0;
    pthread_mutex_lock(&server->stop_lock);
    while (!is_idle(server) && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&server->stop_change, &server->stop_lock, &until);
    bool idle = is_idle(server);
    pthread_mutex_unlock(&server->stop_lock);
    return idle;
}

/* Streams of the built-in services never end by themselves. */
static void close_builtin(fx_server *server) {
    uint32_t begun = fx_pool__begun(&server->builtin);
    for (uint32_t i = 0; i < begun; i++) {
        fx_call *call = &server->builtin.slots[i];
        pthread_mutex_lock(&call->lock);
        bool live = call->method && call->refs > 0 && !call->ended && !call->closed;
        if (live) {
            fx_call__close(call, FX_UNAVAILABLE, "the server is going away");
            fx_call__cancelled(call);
        }
        pthread_mutex_unlock(&call->lock);
    }
}

static void queues_stop(fx_server *server) {
    for (uint32_t i = 0; i < server->threads; i++)
        grpc_completion_queue_shutdown(server->queues[i].cq);
    for (uint32_t i = 0; i < server->threads; i++) {
        struct fx_queue *queue = &server->queues[i];
        if (queue->started)
            pthread_join(queue->thread, NULL);
        else
            (void)fx_queue__run(queue); /* drains what was posted */
        queue->started = false;
    }
}

/* Half-opened: no thread may run, so this one turns the queues until core lets go. */
static void abandon(fx_server *server) {
    server->draining = true;
    server->shutdown = (struct fx_tag){on_shutdown, server};
    grpc_server_shutdown_and_notify(server->core, server->queues[0].cq, &server->shutdown);
    grpc_server_cancel_all_calls(server->core);
    queues_stop(server);
}

bool fx_server_stop(fx_server *server, uint32_t grace_ms, fx_error *err) {
    if (server->stopped) return true;
    fx_server_set_serving(server, false);
    server->draining = true;
    server->serving = false;
    server->shutdown = (struct fx_tag){on_shutdown, server};
    grpc_server_shutdown_and_notify(server->core, server->queues[0].cq, &server->shutdown);
    close_builtin(server);
    bool idle = wait_idle(server, grace_ms);
    if (!idle) {
        grpc_server_cancel_all_calls(server->core);
        idle = wait_idle(server, FX_SERVER_CANCEL_MS);
    }
    server->stopped = true;
    server->leaked = !idle;
    if (!idle)
        return fx_fail(err, FX_DEADLINE_EXCEEDED, "%u calls were never ended by their handlers",
                       fx_pool__active(&server->calls));
    queues_stop(server);
    return true;
}

static bool is_running(const fx_server *server) {
    return server->threads > 0 && server->queues[server->threads - 1].started && !server->stopped;
}

static void core_destroy(fx_server *server) {
    if (server->core) {
        if (!server->stopped) abandon(server);
        grpc_server_destroy(server->core);
    }
    for (uint32_t i = 0; i < FX_RPC_THREADS_MAX; i++)
        if (server->queues[i].cq) grpc_completion_queue_destroy(server->queues[i].cq);
}

void fx_server_free(fx_server *server) {
    if (!server) return;
    if (is_running(server)) (void)!fx_server_stop(server, 0, NULL);
    if (server->leaked) return;
    core_destroy(server);
    fx_certs_free(server->tls.certs);
    fx_descriptors__free(server->descriptors);
    fx_pool__done(&server->calls);
    fx_pool__done(&server->builtin);
    pthread_mutex_destroy(&server->stop_lock);
    pthread_cond_destroy(&server->stop_change);
    free(server);
    fx_rpc__done();
}
