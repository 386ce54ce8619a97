#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/bench/gateway_internal.h"

/* The gateway alone, between a load generator and a scripted token source (source.h): it has one
 * core to itself, what is not measured shares another. "A core" is a second of the gateway's own
 * processor time, all of its threads: the steadier figure on a busy machine. */

enum {
    ROUNDS = 7,
    CONNECTIONS = 128,
    STREAM_CONNECTIONS = 64, /* two workers' slots */
    STREAM_TOKENS = 256,
    MANY = 10000,
    MANY_TOKENS = 20,
    MANY_PACE_MS = 1000,
    LATENCY_CONNECTIONS = 16,
    LATENCY_TOKENS = 500,
    LATENCY_PACE_MS = 20,
};
static const double WARM_S = 0.3, ROUND_S = 1.5;

/* -- answers of one token -- */

struct rates {
    double wall[ROUNDS], core[ROUNDS]; /* a second; a second of processor time */
};

static FX_MUST bool rate_take(struct stand *stand, struct load_opts opts, struct rates *out,
                              size_t round, fx_error *err) {
    struct load_result result;
    opts.connections = CONNECTIONS;
    opts.tokens = 1;
    opts.warm_s = WARM_S;
    opts.seconds = ROUND_S;
    if (!stand_load(stand, opts, &result, err)) return false;
    out->wall[round] = (double)result.answers / result.seconds;
    out->core[round] = (double)result.answers / result.cpu_s;
    return true;
}

static void rates_show(const char *name, struct rates *rates) {
    double wall = bench_median(rates->wall, ROUNDS), core = bench_median(rates->core, ROUNDS);
    (void)printf("  %-22s %7.0f answers/s, %7.0f a core (%.1f us each)\n", name, wall, core,
                 1e6 / core);
}

static FX_MUST bool answers_measure(struct stand *stand, enum load_kind kind, const char *name,
                                    fx_error *err) {
    struct rates echo, gateway;
    double wall[ROUNDS], core[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++) {
        struct load_opts first = {.kind = i % 2 ? kind : LOAD_ECHO};
        struct load_opts second = {.kind = i % 2 ? LOAD_ECHO : kind};
        if (!rate_take(stand, first, i % 2 ? &gateway : &echo, i, err) ||
            !rate_take(stand, second, i % 2 ? &echo : &gateway, i, err))
            return false;
        wall[i] = gateway.wall[i] / echo.wall[i];
        core[i] = gateway.core[i] / echo.core[i];
    }
    rates_show("bare echo", &echo);
    rates_show(name, &gateway);
    (void)printf("  of the echo %.0f %% by the clock, %.0f %% a core (medians of %d pairs)\n",
                 100 * bench_median(wall, ROUNDS), 100 * bench_median(core, ROUNDS), ROUNDS);
    return true;
}

bool gateway_answers(struct stand *stand, fx_error *err) {
    (void)printf("answers of one token with a key, %d keep-alive connections, in turn with a bare "
                 "libevent + llhttp echo\n",
                 CONNECTIONS);
    return answers_measure(stand, LOAD_WHOLE, "gateway, one JSON", err) &&
           answers_measure(stand, LOAD_STREAM, "gateway, streamed", err);
}

/* -- events -- */

bool gateway_events(struct stand *stand, fx_error *err) {
    double wall[ROUNDS], core[ROUNDS], together[ROUNDS];
    struct load_opts opts = {.kind = LOAD_STREAM,
                             .connections = STREAM_CONNECTIONS,
                             .tokens = STREAM_TOKENS,
                             .warm_s = WARM_S,
                             .seconds = ROUND_S};
    for (size_t i = 0; i < ROUNDS; i++) {
        struct load_result result;
        if (!stand_load(stand, opts, &result, err)) return false;
        wall[i] = (double)result.events / result.seconds;
        core[i] = (double)result.events / result.cpu_s;
        together[i] = (double)result.events / (double)result.reads;
    }
    double core_median = bench_median(core, ROUNDS);
    (void)printf("events of %d streams of %d tokens, as fast as they are taken\n",
                 STREAM_CONNECTIONS, STREAM_TOKENS);
    (void)printf("  %.0f events/s, %.0f a core (%.1f us each), %.1f in a client's read\n",
                 bench_median(wall, ROUNDS), core_median, 1e6 / core_median,
                 bench_median(together, ROUNDS));
    return true;
}

/* -- many open streams -- */

struct watching {
    struct stand *stand;
    uint64_t private_kib, rss_kib;
    bool ok;
    fx_error err;
};

static void on_midway(void *ctx) {
    struct watching *watching = ctx;
    watching->ok = bench_memory(watching->stand->gateway.pid, &watching->private_kib,
                                &watching->rss_kib, &watching->err);
}

bool gateway_streams(struct stand *stand, fx_error *err) {
    struct watching watching = {.stand = stand};
    struct load_result result;
    struct load_opts opts = {.kind = LOAD_STREAM,
                             .connections = MANY,
                             .tokens = MANY_TOKENS,
                             .pace_ms = MANY_PACE_MS,
                             .midway = on_midway,
                             .ctx = &watching};
    uint64_t private_kib, rss_kib;
    if (!stand_gateway(stand, err) ||
        !bench_memory(stand->gateway.pid, &private_kib, &rss_kib, err))
        return false;
    if (!stand_load(stand, opts, &result, err)) return false;
    if (!watching.ok)
        return fx_fail(err, FX_UNAVAILABLE, "not all streams were open at once: %s",
                       watching.err.text);
    (void)printf("%d streams open at once, a token every %d ms, %d each\n", MANY, MANY_PACE_MS,
                 MANY_TOKENS);
    (void)printf("  %llu of %d tokens came, %llu answers wrong; %.0f events/s for %.0f %% of a "
                 "core\n",
                 (unsigned long long)result.tokens, MANY * MANY_TOKENS,
                 (unsigned long long)result.wrong, (double)result.events / result.seconds,
                 100 * result.cpu_s / result.seconds);
    (void)printf("  RSS %llu kB before, %llu kB with them: %.2f kB a stream\n",
                 (unsigned long long)rss_kib, (unsigned long long)watching.rss_kib,
                 (double)(watching.rss_kib - rss_kib) * 1.024 / MANY);
    return true;
}

/* -- latency -- */

static void latency_show(const struct load_result *result, bool first) {
    const double *us = result->latency_us;
    size_t count = result->latency_count;
    (void)printf("a token's way from its publishing to the client, %d streams stepping together "
                 "every %d ms, %zu tokens, %s\n"
                 "  p50 %.0f us, p90 %.0f us, p99 %.0f us, most %.0f us\n",
                 LATENCY_CONNECTIONS, LATENCY_PACE_MS, count,
                 first ? "before the machine's other programs (SCHED_RR)"
                       : "among the machine's other programs",
                 us[count / 2], us[count * 90 / 100], us[count * 99 / 100], us[count - 1]);
}

/* An idle core: what else runs on the machine has to wait. */
bool gateway_latency(fx_error *err) {
    struct stand stand = {0};
    struct load_result result = {0};
    struct load_opts opts = {.kind = LOAD_STREAM,
                             .connections = LATENCY_CONNECTIONS,
                             .tokens = LATENCY_TOKENS,
                             .pace_ms = LATENCY_PACE_MS};
    bool first = bench_first(true), ok = stand_open(&stand, err);
    opts.times = stand.source_opts.times;
    ok = ok && stand_load(&stand, opts, &result, err);
    if (ok && !result.latency_count) ok = fx_fail(err, FX_DATA_LOSS, "no token's time is known");
    if (ok) latency_show(&result, first);
    free(result.latency_us);
    stand_close(&stand);
    (void)bench_first(false);
    return ok;
}

/* -- the command -- */

/* One after the other over one stand; these others have what they stand on to themselves. */
static const struct {
    const char *name;
    bool (*run)(struct stand *stand, fx_error *err);
} parts[] = {
    {"answers", gateway_answers},
    {"events",  gateway_events },
    {"streams", gateway_streams},
};
static const struct {
    const char *name;
    bool (*run)(fx_error *err);
} own_parts[] = {
    {"path",    gateway_path   }, /* before anything is pinned */
    {"latency", gateway_latency},
};

static bool wanted(int argc, char **argv, const char *name) {
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], name) == 0) return true;
    return argc == 0;
}

static bool is_part(const char *name) {
    bool known = false;
    for (size_t i = 0; i < FX_COUNT(parts); i++)
        known |= strcmp(name, parts[i].name) == 0;
    for (size_t i = 0; i < FX_COUNT(own_parts); i++)
        known |= strcmp(name, own_parts[i].name) == 0;
    return known;
}

static FX_MUST bool own_run(int argc, char **argv, int *count, fx_error *err) {
    *count = 0;
    for (size_t i = 0; i < FX_COUNT(own_parts); i++) {
        if (!wanted(argc, argv, own_parts[i].name)) continue;
        if (!own_parts[i].run(err)) return fx_wrap(err, "%s", own_parts[i].name);
        (void)fflush(stdout);
        ++*count;
    }
    return true;
}

static FX_MUST bool parts_run(int argc, char **argv, fx_error *err) {
    struct stand stand = {0};
    bool ok = stand_open(&stand, err);
    for (size_t i = 0; ok && i < FX_COUNT(parts); i++) {
        if (!wanted(argc, argv, parts[i].name)) continue;
        ok = parts[i].run(&stand, err) || fx_wrap(err, "%s", parts[i].name);
        (void)fflush(stdout);
    }
    stand_close(&stand);
    return ok;
}

static FX_MUST bool run(int argc, char **argv, fx_error *err) {
    int own;
    for (int i = 0; i < argc; i++)
        if (!is_part(argv[i]))
            return fx_fail(err, FX_INVALID_ARGUMENT,
                           "usage: fractal-bench gateway [answers|events|latency|path|streams]...");
    if (!own_run(argc, argv, &own, err)) return false;
    return (argc && own == argc) || parts_run(argc, argv, err);
}

const struct bench bench_gateway = {
    "gateway", "of the gateway: [answers|events|latency|path|streams]...", run};
