#include <event2/event.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/rpc/client_internal.h"

enum {
    CALLS_DEFAULT = 64,
    ARENA_BYTES_DEFAULT = 64 * 1024,
    ATTEMPTS_DEFAULT = 3,
    ATTEMPTS_MOST = 5,
    KEEPALIVE_DEFAULT_MS = 10000,
    KEEPALIVE_LEAST_MS = 1000,
};

static FX_MUST bool opts_fill(const struct fx_client_opts *given, struct fx_client_opts *out,
                              fx_error *err) {
    struct fx_client_opts opts = *given;
    if (!opts.target || !*opts.target)
        return fx_fail(err, FX_INVALID_ARGUMENT, "the client needs a target");
    if (!opts.calls_max) opts.calls_max = CALLS_DEFAULT;
    if (!opts.arena_bytes) opts.arena_bytes = ARENA_BYTES_DEFAULT;
    if (!opts.message_bytes_max) opts.message_bytes_max = FX_MESSAGE_BYTES_DEFAULT;
    if (!opts.attempts_max) opts.attempts_max = ATTEMPTS_DEFAULT;
    if (opts.attempts_max > ATTEMPTS_MOST) opts.attempts_max = ATTEMPTS_MOST;
    if (!opts.keepalive_ms) opts.keepalive_ms = KEEPALIVE_DEFAULT_MS;
    if (opts.keepalive_ms < KEEPALIVE_LEAST_MS) opts.keepalive_ms = KEEPALIVE_LEAST_MS;
    opts.arena_bytes = (opts.arena_bytes + 15) & ~15u;
    *out = opts;
    return true;
}

/* -- the queue's thread: it only passes completions on, and times what is tried again. A call's
 * state belongs to its sink's thread. -- */

static gpr_timespec wait_time(const fx_client *client) {
    uint64_t now_ms = fx_clock_ms(), next_ms = UINT64_MAX;
    if (!client->again) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    for (const fx_client_call *call = client->again; call; call = call->next_again)
        if (call->again_ms < next_ms) next_ms = call->again_ms;
    return fx_rpc__in_ms(next_ms > now_ms ? next_ms - now_ms : 0);
}

static void again_due(fx_client *client) {
    uint64_t now_ms = client->again ? fx_clock_ms() : 0;
    for (fx_client_call **at = &client->again; *at;) {
        fx_client_call *call = *at;
        if (call->again_ms > now_ms) {
            at = &call->next_again;
            continue;
        }
        *at = call->next_again;
        fx_sink__push(call->sink, &call->again);
    }
}

static void pass_on(fx_client *client, struct fx_done_tag *tag) {
    fx_client_call *call = tag->call;
    uint64_t backoff_ms = tag == &call->end ? fx_client__backoff_ms(call) : 0;
    if (!backoff_ms) {
        fx_sink__push(call->sink, tag);
        return;
    }
    call->again_ms = fx_clock_ms() + backoff_ms;
    call->next_again = client->again;
    client->again = call;
}

static void *forward(void *argument) {
    fx_client *client = argument;
    for (;;) {
        grpc_event event = grpc_completion_queue_next(client->cq, wait_time(client), NULL);
        if (event.type == GRPC_QUEUE_SHUTDOWN) return NULL;
        if (event.type == GRPC_OP_COMPLETE) {
            struct fx_done_tag *tag = event.tag;
            tag->ok = event.success != 0;
            pass_on(client, tag);
        }
        again_due(client);
    }
}

static void on_wake(evutil_socket_t fd, short what, void *user) {
    (void)what;
    fx_client *client = user;
    uint64_t count;
    (void)!read(fd, &count, sizeof count);
    if (fx_client__turn(client)) event_active(client->wake, EV_READ, 1);
}

static FX_MUST bool wake_open(fx_client *client, fx_error *err) {
    if (!client->opts.base) return true;
    client->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (client->fd < 0) return fx_fail_errno(err, "eventfd");
    client->inbox.fd = client->fd;
    client->wake = event_new(client->opts.base, client->fd, EV_READ | EV_PERSIST, on_wake, client);
    if (!client->wake || event_add(client->wake, NULL) != 0)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "an event on the loop");
    return true;
}

static FX_MUST bool slots_open(fx_client *client, fx_error *err) {
    uint32_t count = client->opts.calls_max;
    client->calls = fx_alloc(count, sizeof *client->calls);
    client->memory = fx_alloc(count, client->opts.arena_bytes);
    if (!client->calls || !client->memory)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "%u call slots", count);
    return true;
}

static FX_MUST bool client_init(fx_client *client, fx_error *err) {
    if (!slots_open(client, err) || !wake_open(client, err) ||
        !fx_client__channel_open(client, err))
        return false;
    client->cq = grpc_completion_queue_create_for_next(NULL);
    int rc = pthread_create(&client->thread, NULL, forward, client);
    if (rc) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "start a thread: %s", strerror(rc));
    client->started = true;
    return true;
}

bool fx_client_open(const struct fx_client_opts *opts, fx_client **out, fx_error *err) {
    struct fx_client_opts filled;
    if (!opts_fill(opts, &filled, err)) return false;
    fx_auto(fx_client) client = fx_alloc(1, sizeof *client);
    if (!client) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "open the client");
    client->opts = filled;
    client->fd = -1;
    pthread_mutex_init(&client->lock, NULL);
    fx_sink__init(&client->inbox, -1);
    fx_rpc__init();
    if (!client_init(client, err)) return fx_wrap(err, "client of '%s'", opts->target);
    *out = fx_take(client);
    return true;
}

uint32_t fx_client_calls_active(const fx_client *client) {
    fx_client *locked = (fx_client *)(uintptr_t)client;
    pthread_mutex_lock(&locked->lock);
    uint32_t active = client->active;
    pthread_mutex_unlock(&locked->lock);
    return active;
}

/* Cancels what is in flight and hears each of them out. */
static void finish_calls(fx_client *client) {
    client->closing = true;
    FX_ASSERT(client->opts.base || client->active == 0); /* a _wait is still running */
    for (uint32_t i = 0; i < client->begun; i++)
        if (client->calls[i].in_use) fx_client_cancel(&client->calls[i]);
    while (fx_client_calls_active(client) > 0) {
        struct pollfd wait = {.fd = client->fd, .events = POLLIN};
        uint64_t count;
        (void)poll(&wait, 1, -1);
        (void)!read(client->fd, &count, sizeof count);
        while (fx_client__turn(client))
            continue;
    }
}

static void slots_close(fx_client *client) {
    for (uint32_t i = 0; i < client->begun; i++) {
        fx_arena_done(&client->calls[i].slot_arena);
        fx_sink__done(&client->calls[i].own);
    }
    free(client->calls);
    free(client->memory);
}

void fx_client_free(fx_client *client) {
    if (!client) return;
    finish_calls(client);
    fx_client__channel_close(client);
    if (client->cq) grpc_completion_queue_shutdown(client->cq);
    if (client->started) pthread_join(client->thread, NULL);
    if (client->cq) grpc_completion_queue_destroy(client->cq);
    if (client->wake) event_free(client->wake);
    if (client->fd >= 0) (void)close(client->fd);
    slots_close(client);
    fx_sink__done(&client->inbox);
    pthread_mutex_destroy(&client->lock);
    free(client);
    fx_rpc__done();
}
