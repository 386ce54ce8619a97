#include "services/gateway/process.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/http/tls.h"
#include "services/gateway/rpc.h"
#include "services/gateway/vocabs.h"

enum {
    DRAIN_POLL_US = 20000,
    FAREWELL_MS = 2000, /* for cancels and last bytes */
};

struct gateway *gw_process_next(struct gw_process *process) {
    return &process->loops[atomic_fetch_add(&process->turn, 1) % process->loop_count];
}

bool gw_process_listed(const struct gw_process *process) {
    for (uint32_t i = 0; i < process->loop_count; i++)
        if (!process->loops[i].metrics.listed) return false;
    return true;
}

bool gw_process_redis_ready(const struct gw_process *process) {
    for (uint32_t i = 0; i < process->loop_count; i++)
        if (!process->loops[i].metrics.redis_ready) return false;
    return true;
}

/* -- what the admin's thread asks -- */

static bool turned_within(const struct gw_process *process, uint64_t ms, char *reason) {
    for (uint32_t i = 0; i < process->loop_count; i++) {
        if (fx_loop_silence_ms(process->loops[i].loop) < ms) continue;
        (void)snprintf(reason, FX_ADMIN_REASON_MAX, "loop %u does not turn", i);
        return false;
    }
    return true;
}

static bool is_live(void *ctx, char *reason) {
    const struct gw_process *process = ctx;
    return turned_within(process, process->config->health.dead_ms, reason);
}

/* Redis away: still sound, for what needs it is answered 503 with Retry-After. */
static bool is_sound(const struct gw_process *process, char *reason) {
    const char *why = process->draining             ? "draining"
                      : !gw_process_listed(process) ? "the slicer has not listed its models yet"
                                                    : NULL;
    if (!why) return turned_within(process, process->config->health.unready_ms, reason);
    (void)snprintf(reason, FX_ADMIN_REASON_MAX, "%s", why);
    return false;
}

static bool is_ready(void *ctx, char *reason) {
    const struct gw_process *process = ctx;
    if (!is_sound(process, reason)) return false;
    if (fx_server_serving(process->rpc)) return true;
    (void)snprintf(reason, FX_ADMIN_REASON_MAX, "the gRPC API does not serve yet");
    return false;
}

/* The gRPC API's health, which readiness waits for. */
static void follow(void *ctx, bool ready, const char *reason) {
    const struct gw_process *process = ctx;
    char why[FX_ADMIN_REASON_MAX];
    bool sound = is_sound(process, why);
    (void)ready, (void)reason;
    if (sound != fx_server_serving(process->rpc)) fx_server_set_serving(process->rpc, sound);
}

static void metrics_write(void *ctx, fx_buf *out) {
    struct gw_process *process = ctx;
    struct gw_metrics *loops[GW_LOOPS_MAX];
    struct fx_server_stats rpc = fx_server_stats(process->rpc);
    for (uint32_t i = 0; i < process->loop_count; i++)
        loops[i] = &process->loops[i].metrics;
    gw_metrics_write(loops, process->loop_count, &rpc, out);
}

/* -- tokenizers -- */

static void vocabs_changed(void *user) {
    gw_models_vocabs_changed(((struct gateway *)user)->models);
}

/* A full inbox: the models' poll looks as well. */
static void on_vocabs(void *ctx) {
    struct gw_process *process = ctx;
    for (uint32_t i = 0; i < process->loop_count; i++)
        (void)!fx_loop_post(process->loops[i].loop, vocabs_changed, &process->loops[i]);
}

/* -- open -- */

static FX_MUST bool shared_open(struct gw_process *process, fx_error *err) {
    const struct gw_config *config = process->config;
    struct gw_vocabs_opts vocabs = {.slicer = config->slicer_addr,
                                    .tls = gw_config_tls(config),
                                    .on_change = on_vocabs,
                                    .ctx = process,
                                    .on_error = gateway_log_failed};
    if (*config->http_tls_cert &&
        !fx_http_tls_open(config->http_tls_cert, config->http_tls_key, &process->tls, err))
        return false;
    return gw_vocabs_open(&vocabs, &process->vocabs, err);
}

/* The others listen where the first does, also when its port was any. */
static void port_fix(struct gw_process *process) {
    char *colon = strrchr(process->http_addr, ':');
    size_t room = sizeof process->http_addr - (size_t)(colon - process->http_addr);
    (void)snprintf(colon, room, ":%u", gw_process_port(process));
}

static FX_MUST bool loops_open(struct gw_process *process, fx_error *err) {
    (void)snprintf(process->http_addr, sizeof process->http_addr, "%s", process->config->http_addr);
    for (uint32_t i = 0; i < process->loop_count; i++) {
        struct gateway *gateway = &process->loops[i];
        gateway->process = process;
        gateway->index = i;
        if (!gateway_open(gateway, err)) return false;
        if (!i) port_fix(process);
    }
    return true;
}

static FX_MUST bool loops_start(struct gw_process *process, fx_error *err) {
    for (uint32_t i = 0; i < process->loop_count; i++)
        if (!fx_loop_start(process->loops[i].loop, err)) return false;
    return true;
}

static FX_MUST bool admin_open(struct gw_process *process, fx_error *err) {
    struct fx_admin_opts opts = {.addr = process->config->admin_addr,
                                 .ctx = process,
                                 .live = is_live,
                                 .ready = is_ready,
                                 .metrics = metrics_write,
                                 .follow = follow};
    return fx_admin_open(&opts, &process->admin, err) || fx_wrap(err, "FX_ADMIN_ADDR");
}

bool gw_process_open(const struct gw_config *config, struct gw_process **out, fx_error *err) {
    struct gw_process *process = fx_alloc(1, sizeof *process);
    if (!process) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory");
    process->config = config;
    process->loop_count = gw_config_loops(config);
    if (!shared_open(process, err) || !loops_open(process, err) || !gw_rpc_open(process, err) ||
        !admin_open(process, err) || !loops_start(process, err)) {
        gw_process_close(process);
        return false;
    }
    *out = process;
    return true;
}

uint16_t gw_process_port(const struct gw_process *process) {
    return fx_http_server_port(process->loops[0].server);
}

uint16_t gw_process_rpc_port(const struct gw_process *process) {
    return fx_server_port(process->rpc);
}

/* -- drain and close -- */

/* On each loop in turn; false: one has ended. */
static bool on_loops(struct gw_process *process, void (*job)(void *gateway)) {
    for (uint32_t i = 0; i < process->loop_count; i++)
        if (!fx_loop_call(process->loops[i].loop, job, &process->loops[i])) return false;
    return true;
}

static bool is_answered(struct gw_process *process) {
    if (fx_server_stats(process->rpc).calls_active) return false;
    if (!on_loops(process, gateway_drain_check)) return true;
    for (uint32_t i = 0; i < process->loop_count; i++)
        if (!process->loops[i].answered) return false;
    return true;
}

static bool is_quiet(struct gw_process *process) {
    if (!is_answered(process)) return false;
    for (uint32_t i = 0; i < process->loop_count; i++)
        if (!process->loops[i].drained) return false;
    return true;
}

static bool wait_for(bool (*is)(struct gw_process *process), struct gw_process *process,
                     uint64_t end_ms) {
    for (; !is(process); usleep(DRAIN_POLL_US))
        if (fx_clock_ms() >= end_ms) return false;
    return true;
}

void gw_process_drain(struct gw_process *process) {
    uint64_t end_ms = fx_clock_ms() + process->config->health.drain_ms;
    process->draining = true;
    fx_server_set_serving(process->rpc, false);
    if (!on_loops(process, gateway_drain_begin)) return;
    bool answered = wait_for(is_answered, process, end_ms);
    if (!answered && !on_loops(process, gateway_drain_end)) return;
    if (!on_loops(process, gateway_unlisten)) return;
    uint64_t least_ms = fx_clock_ms() + FAREWELL_MS;
    (void)wait_for(is_quiet, process, answered && end_ms > least_ms ? end_ms : least_ms);
}

static void nothing(void *user) {
    (void)user;
}

/* Ends the gRPC API's calls, which the loops do. Whatever a loop had begun before it could see that
 * we drain is over then. */
static void rpc_stop(struct gw_process *process) {
    process->draining = true;
    for (uint32_t i = 0; i < process->loop_count; i++)
        if (process->loops[i].loop) (void)!fx_loop_call(process->loops[i].loop, nothing, NULL);
    if (process->rpc) (void)!fx_server_stop(process->rpc, 0, &(fx_error){0});
}

void gw_process_close(struct gw_process *process) {
    if (!process) return;
    fx_admin_free(process->admin);
    rpc_stop(process);
    for (uint32_t i = 0; i < process->loop_count; i++)
        if (process->loops[i].loop) fx_loop_stop(process->loops[i].loop);
    gw_vocabs_stop(process->vocabs); /* it posts to the loops, and they ask it until they end */
    fx_server_free(process->rpc);
    for (uint32_t i = 0; i < process->loop_count; i++)
        gateway_close(&process->loops[i]);
    gw_vocabs_free(process->vocabs);
    fx_http_tls_free(process->tls);
    free(process);
}
