#pragma once
/* A real Redis, the real scheduler and real workers over the bundled model, and the queue's API as
 * their client. Any failure inside fails the test; fleet_close leaves nothing behind. */
#include <event2/event.h>
#include "common/base/stops.h"
#include "common/queue/queue.h"
#include "engine/sampler.h"
#include "fractal/v1/worker.pb-c.h"
#include "tests/e2e/process.h"
#include "tests/fx_test.h"
#include "tests/integ/queue/redis_fixture.h"

enum { FLEET_WORKERS_MAX = 2, FLEET_TOKENS_MAX = 1024, FLEET_ASKS_MAX = 64 };
#define FLEET_MODEL "fractal-tiny-moe"

struct fleet_worker {
    struct process process;
    char socket[128];
};
struct fleet {
    struct redis_fixture redis;
    char store[128];
    struct process scheduler;
    char scheduler_socket[128];
    struct fleet_worker workers[FLEET_WORKERS_MAX];
    struct event_base *base;
    fx_redis *client;
    fx_queue *queue;
    uint32_t model;
};

/* `workers` of them, each with `env` more variables ("NAME=value", NULL at the end, or NULL).
 * Returns when every worker is ready. */
struct fleet *fleet_open(uint32_t workers, const char *const *env);
void fleet_close(struct fleet **fleet);
#define fleet_auto __attribute__((cleanup(fleet_close))) struct fleet *
void fleet_worker_start(struct fleet *fleet, uint32_t worker, const char *const *env);
/* Until `workers` are live. */
void fleet_wait_workers(struct fleet *fleet, uint32_t workers);
/* SIGTERM, waits, and checks that it ended well. */
void fleet_worker_stop(struct fleet *fleet, uint32_t worker);
/* GetWorker; numbers only. */
Fractal__V1__WorkerStatus fleet_status(struct fleet *fleet, uint32_t worker);
/* The same once every slot and KV block is free, which must come within 3 s: a watcher sees the
 * finish a moment before the worker has its answer. */
Fractal__V1__WorkerStatus fleet_idle(struct fleet *fleet, uint32_t worker);
/* Does its log have a line with `text`? */
bool fleet_log_has(const struct fleet *fleet, uint32_t worker, const char *text);
/* A number of /proc/PID/status in KiB, "RssAnon:". */
uint64_t fleet_proc_kib(const struct fleet *fleet, uint32_t worker, const char *key);

/* One generation asked for and watched. */
struct fleet_ask {
    uint32_t prompt[FLEET_TOKENS_MAX], prompt_count;
    uint32_t max_tokens;
    float temperature;
    uint64_t seed;
    struct fx_sampling more; /* what temperature and seed do not say */
    const char *stop[FX_STOPS_MAX];
    size_t stop_count;
    bool ignore_eos;
    uint32_t logprobs;      /* 0 = none, else 1 + top_logprobs */
    uint32_t with_logprobs; /* tokens that came with as many as were asked for */
    struct fx_logprob own[FLEET_TOKENS_MAX][FX_LOGPROBS_MAX];
    fx_gen_id id;
    uint32_t tokens[FLEET_TOKENS_MAX], count;
    enum fx_finish finish;
    char detail[256];
    fx_watch *watch;
    bool submitted;
};
/* A prompt made of `text`'s bytes behind BOS. */
struct fleet_ask fleet_ask(const char *text, uint32_t max_tokens, float temperature, uint64_t seed);
void fleet_submit(struct fleet *fleet, struct fleet_ask *ask);
/* All in one go. */
void fleet_submit_all(struct fleet *fleet, struct fleet_ask *asks, size_t count);
/* Runs the loop for a while. */
void fleet_sleep(struct fleet *fleet, uint32_t ms);
/* Runs the loop until `done(ctx)`; fails the test after `ms`. */
void fleet_until(struct fleet *fleet, bool (*done)(void *ctx), void *ctx, uint32_t ms);
/* Until it has ended, or has `count` tokens. */
void fleet_wait(struct fleet *fleet, struct fleet_ask *ask, uint32_t ms);
void fleet_wait_tokens(struct fleet *fleet, struct fleet_ask *ask, uint32_t count);
void fleet_cancel(struct fleet *fleet, const struct fleet_ask *ask);
/* What the engine itself, alone and in this process, makes of the same request. */
void fleet_expect(struct fleet *fleet, const struct fleet_ask *ask);
