#include "tests/bench/bench.h"
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "common/rpc/client.h"
#include "common/rpc/server.h"
#include "fractal/v1/scheduler.pb-c.h"
#include "tests/bench/child.h"
#include "tests/bench/rpc_bare.h"

/* One unary call at a time: common/rpc's server and client against an echo made of gRPC core alone,
 * in turn, so that both meet the same noise. Both servers are children with two threads, both
 * clients live here. Ours carries what every call of ours carries (trace metadata, health-checked
 * channel, a reply unpacked on the libevent loop) and answers like CancelGeneration. */

enum {
    ROUNDS = 40,
    CALLS = 250,
    WARM_CALLS = 500,
    THREADS = 2,
    ID_BYTES = 16,
    DEADLINE_MS = 10000
};

static double now_us(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* -- our server -- */

static void cancel(fx_call *call, const void *message, void *context) {
    const Fractal__V1__CancelGenerationRequest *request = message;
    Fractal__V1__CancelGenerationReply reply = FRACTAL__V1__CANCEL_GENERATION_REPLY__INIT;
    (void)context;
    FX_ASSERT(request->id.len == ID_BYTES);
    reply.state = FRACTAL__V1__GENERATION_STATE__GENERATION_STATE_CANCELLED;
    fx_call_reply(call, &reply);
}

static const struct fx_method methods[] = {
    {"/fractal.v1.SchedulerService/CancelGeneration", cancel,
     &fractal__v1__cancel_generation_request__descriptor, FX_RPC_UNARY, 0, 4096},
};

static void serve(int tell, void *ctx) {
    struct fx_server_opts opts = {.address = "127.0.0.1:0", .threads = THREADS};
    fx_server *server = NULL;
    fx_error err = {0};
    (void)ctx;
    if (!fx_server_open(&opts, methods, FX_COUNT(methods), &server, &err)) return;
    fx_server_set_serving(server, true);
    bench_child_tell(tell, fx_server_port(server));
    for (;;)
        (void)pause();
}

/* -- our client -- */

struct ours {
    struct event_base *base;
    fx_client *client;
    struct fx_client_request request;
    Fractal__V1__CancelGenerationRequest message;
    bool done;
    enum fx_code code;
};

static void on_done(void *user, const struct fx_client_result *result) {
    struct ours *ours = user;
    ours->done = true;
    ours->code = result->code;
}

static FX_MUST bool ours_open(uint16_t port, struct ours *ours, fx_error *err) {
    static uint8_t id[ID_BYTES] = "sixteen bytes id";
    char target[32];
    (void)snprintf(target, sizeof target, "127.0.0.1:%u", port);
    ours->base = event_base_new();
    fractal__v1__cancel_generation_request__init(&ours->message);
    ours->message.id = (ProtobufCBinaryData){ID_BYTES, id};
    ours->message.model = 7;
    ours->request = (struct fx_client_request){
        .method = "/fractal.v1.SchedulerService/CancelGeneration",
        .message = &ours->message,
        .reply = &fractal__v1__cancel_generation_reply__descriptor,
        .deadline_ms = DEADLINE_MS,
        .wait_for_ready = true,
        .user = ours,
        .on_done = on_done,
    };
    struct fx_client_opts opts = {.target = target, .base = ours->base};
    return fx_client_open(&opts, &ours->client, err);
}

static FX_MUST bool ours_call(struct ours *ours, fx_error *err) {
    ours->done = false;
    if (!fx_client_start(ours->client, &ours->request, NULL, err)) return false;
    while (!ours->done)
        (void)event_base_loop(ours->base, EVLOOP_ONCE);
    return ours->code == FX_OK || fx_fail(err, ours->code, "our call failed");
}

static void ours_close(struct ours *ours) {
    fx_client_free(ours->client);
    if (ours->base) event_base_free(ours->base);
}

/* -- the rounds -- */

struct pair {
    struct ours ours;
    struct bare_client *bare;
    pid_t ours_pid, bare_pid;
};

struct figures {
    double us[ROUNDS * CALLS], round_us[ROUNDS];
    double server_s, client_s;
};

static FX_MUST bool one(struct pair *pair, bool ours, fx_error *err) {
    static const uint8_t bytes[ID_BYTES + 4];
    return ours ? ours_call(&pair->ours, err) : bare_call(pair->bare, bytes, sizeof bytes, err);
}

static FX_MUST bool round_run(struct pair *pair, bool ours, size_t round, struct figures *out,
                              fx_error *err) {
    pid_t server = ours ? pair->ours_pid : pair->bare_pid;
    double *us = out->us + round * CALLS, sorted[CALLS];
    double server_s = bench_cpu_s(server), client_s = bench_cpu_s(getpid());
    for (size_t i = 0; i < CALLS; i++) {
        double begun_us = now_us();
        if (!one(pair, ours, err)) return false;
        us[i] = sorted[i] = now_us() - begun_us;
    }
    out->round_us[round] = bench_median(sorted, CALLS);
    out->server_s += bench_cpu_s(server) - server_s;
    out->client_s += bench_cpu_s(getpid()) - client_s;
    return true;
}

static FX_MUST bool rounds_run(struct pair *pair, struct figures *ours, struct figures *bare,
                               fx_error *err) {
    for (size_t i = 0; i < 2 * WARM_CALLS; i++)
        if (!one(pair, i % 2 == 0, err)) return false;
    for (size_t round = 0; round < ROUNDS; round++) {
        bool first = round % 2 == 0; /* who begins changes, too */
        if (!round_run(pair, first, round, first ? ours : bare, err) ||
            !round_run(pair, !first, round, first ? bare : ours, err))
            return false;
    }
    return true;
}

static void show(const char *name, struct figures *figures) {
    size_t count = FX_COUNT(figures->us);
    double p50 = bench_median(figures->us, count); /* sorts */
    (void)printf("%-7s p50 %6.1f us, p99 %6.1f us; CPU a call: server %5.1f us, client %5.1f us\n",
                 name, p50, figures->us[count * 99 / 100], figures->server_s * 1e6 / (double)count,
                 figures->client_s * 1e6 / (double)count);
}

static FX_MUST bool measure(struct pair *pair, fx_error *err) {
    static struct figures ours, bare;
    double ratios[ROUNDS];
    if (!rounds_run(pair, &ours, &bare, err)) return false;
    for (size_t i = 0; i < ROUNDS; i++)
        ratios[i] = ours.round_us[i] / bare.round_us[i];
    (void)printf("unary, 1 in flight, %d threads a server, %d rounds of %d calls, in turn\n",
                 THREADS, ROUNDS, CALLS);
    show("bare:", &bare);
    show("ours:", &ours);
    (void)printf("ours is %.2f times the bare p50 (median of the rounds' ratios)\n",
                 bench_median(ratios, ROUNDS));
    return true;
}

static FX_MUST bool run(int argc, char **argv, fx_error *err) {
    int threads = THREADS;
    auto_child ours = {0}, bare = {0};
    uint16_t ours_port, bare_port;
    struct pair pair = {0};
    (void)argv;
    if (argc) return fx_fail(err, FX_INVALID_ARGUMENT, "usage: fractal-bench rpc");
    if (!bench_fork(BENCH_ANY_CORE, serve, NULL, &ours, &ours_port, err) ||
        !bench_fork(BENCH_ANY_CORE, bare_serve, &threads, &bare, &bare_port, err))
        return false;
    pair.ours_pid = ours.pid;
    pair.bare_pid = bare.pid;
    bool ok = bare_open(bare_port, &pair.bare, err) && ours_open(ours_port, &pair.ours, err) &&
              measure(&pair, err);
    ours_close(&pair.ours);
    bare_close(pair.bare);
    return ok;
}

const struct bench bench_rpc = {"rpc", "unary calls of common/rpc against bare gRPC core", run};
