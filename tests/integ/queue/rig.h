#pragma once
/* The queue's calls as blocking ones, for tables of tests: each runs the loop until its answer. */
#include <event2/event.h>
#include "common/queue/queue.h"
#include "tests/fx_test.h"
#include "tests/integ/queue/redis_fixture.h"

enum { RIG_MODEL = 7, RIG_TOKENS_MAX = 2048 };

struct rig {
    struct redis_fixture server;
    struct event_base *base;
    fx_redis *redis, *redis_b; /* two clients of one loop */
    fx_queue *queue, *queue_b; /* b: the other scheduler, the other worker */
};

struct rig_task {
    fx_gen_id id;
    uint32_t epoch, logged_count;
    uint32_t logged[64];
    char task[64], numerics[FX_QUEUE_NAME_MAX + 1];
    bool cancelled;
};
struct rig_tasks {
    size_t count;
    struct rig_task at[FX_QUEUE_PULL_MAX];
};

/** A row of a table; `run` starts with an empty Redis. */
struct rig_row {
    const char *name;
    void (*run)(struct rig *rig);
};
/** main of a test file: one Redis, one cmocka test a row. */
int rig_main(const char *group, const struct rig_row *rows, size_t count);
#define RIG_MAIN(rows)                                                                             \
    int main(void) {                                                                               \
        return rig_main(__FILE__, (rows), FX_TEST_COUNT(rows));                                    \
    }

/** The parts of rig_main, for tests with processes of their own: Redis and loop, clients. */
void rig_start(struct rig *rig);
void rig_connect(struct rig *rig);
void rig_flush(struct rig *rig);
void rig_disconnect(struct rig *rig);
void rig_stop(struct rig *rig);

/* Queue options for the tests: lease 1.5 s, retain 100 s, silence 200 ms, model_max 64,
 * tenant_max 32. */
fx_gen_id rig_id(uint32_t n);
uint32_t rig_number(const fx_gen_id *id);
/** Runs the loop for a while. */
void rig_sleep(struct rig *rig, uint32_t ms);
/** Runs the loop until `*flag`; fails the test after 3 s. */
void rig_until(struct rig *rig, const bool *flag);

struct fx_submit rig_submission(uint32_t n, uint64_t tenant);
struct fx_submit_result rig_submit(struct rig *rig, uint32_t n, uint64_t tenant);
struct fx_submit_result rig_submit_as(struct rig *rig, const struct fx_submit *submit);
void rig_beat(struct rig *rig, const char *worker, uint32_t slots);
void rig_beat_as(struct rig *rig, const struct fx_worker_info *worker);
struct fx_count_result rig_dispatch(struct rig *rig);
struct fx_count_result rig_reclaim(struct rig *rig);
struct rig_tasks rig_pull(struct rig *rig, const char *worker, uint32_t count);
struct rig_tasks rig_pull_as(struct rig *rig, const char *worker, const char *numerics,
                             uint32_t count);
struct fx_write_result rig_append(struct rig *rig, uint32_t n, uint32_t epoch, uint32_t first,
                                  const uint32_t *tokens, uint32_t count);
struct fx_write_result rig_finish(struct rig *rig, uint32_t n, uint32_t epoch, uint32_t last,
                                  enum fx_finish reason);
struct fx_write_result rig_renew(struct rig *rig, uint32_t n, uint32_t epoch, const char *worker,
                                 bool give_back);
/** `worker` of the result is not kept. */
struct fx_gen_info rig_cancel(struct rig *rig, uint32_t n);
struct fx_gen_info rig_get(struct rig *rig, uint32_t n);
/** `live` of the result is not kept. */
struct fx_queue_stats rig_stats(struct rig *rig);
/** The whole log; tokens and detail stay until the next call. */
struct fx_gen_tokens rig_log(struct rig *rig, uint32_t n);
/** A worker "w" with 8 slots, generation n submitted, dispatched and pulled by "w". */
void rig_running(struct rig *rig, uint32_t n);
/** Ends the lease of generation n now. */
void rig_expire(struct rig *rig, uint32_t n);
/** Integer reply of a command; -1 for nil. */
long long rig_int(struct rig *rig, const char *fmt, ...);
/** The group's lag by XINFO GROUPS; -1 when it is nil. */
long long rig_lag(struct rig *rig);
