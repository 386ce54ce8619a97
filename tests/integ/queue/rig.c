#include "tests/integ/queue/rig.h"
#include <stdarg.h>
#include "common/base/clock.h"

enum { WAIT_MS = 3000 };

fx_gen_id rig_id(uint32_t n) {
    fx_gen_id id = {{0xab}};
    for (int i = 0; i < 4; i++)
        id.bytes[12 + i] = (uint8_t)(n >> (24 - 8 * i));
    return id;
}

uint32_t rig_number(const fx_gen_id *id) {
    uint32_t n = 0;
    for (int i = 0; i < 4; i++)
        n = n << 8 | id->bytes[12 + i];
    return n;
}

static void on_timer(evutil_socket_t fd, short what, void *ctx) {
    (void)fd, (void)what;
    *(bool *)ctx = true;
}

static bool loop_for(struct rig *rig, uint32_t ms, const bool *flag) {
    bool over = false;
    struct timeval tv = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
    struct event *timer = evtimer_new(rig->base, on_timer, &over);
    assert_non_null(timer);
    (void)event_add(timer, &tv);
    while (!over && !(flag && *flag))
        (void)event_base_loop(rig->base, EVLOOP_ONCE);
    event_free(timer);
    return flag && *flag;
}

void rig_sleep(struct rig *rig, uint32_t ms) {
    (void)loop_for(rig, ms, NULL);
}

void rig_until(struct rig *rig, const bool *flag) {
    assert_true(loop_for(rig, WAIT_MS, flag));
}

/* ---- answers ---- */

struct answer {
    bool done;
    void *out;
    size_t size;
    fx_error err;
};

static void answer(struct answer *to, const void *result, const fx_error *err) {
    to->done = true;
    if (err) to->err = *err;
    if (result) memcpy(to->out, result, to->size);
}

#define ON_ANSWER(name, type)                                                                      \
    static void name(void *ctx, const struct type *result, const fx_error *err) {                  \
        answer(ctx, result, err);                                                                  \
    }
ON_ANSWER(on_submit, fx_submit_result)
ON_ANSWER(on_count, fx_count_result)
ON_ANSWER(on_write, fx_write_result)
ON_ANSWER(on_info, fx_gen_info)
ON_ANSWER(on_stats, fx_queue_stats)

static void on_beat(void *ctx, const fx_error *err) {
    answer(ctx, NULL, err);
}

/* Waits for the answer of a call that was sent. */
static void await(struct rig *rig, bool sent, struct answer *to) {
    if (!sent) print_error("not sent: %s\n", to->err.text);
    assert_true(sent);
    rig_until(rig, &to->done);
    if (to->err.code) print_error("failed: %s\n", to->err.text);
    assert_int_equal(to->err.code, FX_OK);
}

#define AWAIT(rig, result, call)                                                                   \
    struct answer to = {.out = &(result), .size = sizeof(result)};                                 \
    await(rig, call, &to)

/* ---- calls ---- */

struct fx_submit rig_submission(uint32_t n, uint64_t tenant) {
    return (struct fx_submit){.model = RIG_MODEL,
                              .tenant = tenant,
                              .weight = 1,
                              .id = rig_id(n),
                              .seed = 18446744073709551000u + n,
                              .prompt_tokens = 10,
                              .expected_tokens = 90,
                              .task = fx_span_str("task"),
                              .about = fx_span_str("about")};
}

struct fx_submit_result rig_submit_as(struct rig *rig, const struct fx_submit *submit) {
    struct fx_submit_result result = {0};
    AWAIT(rig, result, fx_queue_submit(rig->queue, submit, on_submit, &to, &to.err));
    return result;
}

struct fx_submit_result rig_submit(struct rig *rig, uint32_t n, uint64_t tenant) {
    struct fx_submit submit = rig_submission(n, tenant);
    return rig_submit_as(rig, &submit);
}

void rig_beat_as(struct rig *rig, const struct fx_worker_info *worker) {
    struct fx_beat beat = {RIG_MODEL, "org/tiny", *worker};
    struct answer to = {0};
    await(rig, fx_queue_beat(rig->queue, &beat, on_beat, &to, &to.err), &to);
}

void rig_beat(struct rig *rig, const char *worker, uint32_t slots) {
    struct fx_worker_info info = {.slots = slots, .slots_free = slots, .context_max = 512};
    (void)snprintf(info.worker, sizeof info.worker, "%s", worker);
    (void)snprintf(info.numerics_id, sizeof info.numerics_id, "exact/1 test");
    rig_beat_as(rig, &info);
}

struct fx_count_result rig_dispatch(struct rig *rig) {
    struct fx_count_result result = {0};
    AWAIT(rig, result, fx_queue_dispatch(rig->queue, RIG_MODEL, on_count, &to, &to.err));
    return result;
}

struct fx_count_result rig_reclaim(struct rig *rig) {
    struct fx_count_result result = {0};
    AWAIT(rig, result, fx_queue_reclaim(rig->queue, RIG_MODEL, on_count, &to, &to.err));
    return result;
}

struct pulled {
    struct answer to;
    struct rig_tasks tasks;
};

static void on_tasks(void *ctx, const struct fx_task *tasks, size_t count, const fx_error *err) {
    struct pulled *pulled = ctx;
    answer(&pulled->to, NULL, err);
    pulled->tasks.count = count;
    for (size_t i = 0; i < count; i++) {
        struct rig_task *out = &pulled->tasks.at[i];
        *out = (struct rig_task){.id = tasks[i].id,
                                 .epoch = tasks[i].epoch,
                                 .logged_count = tasks[i].logged_count,
                                 .cancelled = tasks[i].cancelled};
        for (size_t t = 0; t < tasks[i].logged_count && t < FX_TEST_COUNT(out->logged); t++)
            out->logged[t] = tasks[i].logged[t];
        (void)snprintf(out->task, sizeof out->task, "%.*s", (int)tasks[i].task.len,
                       (const char *)tasks[i].task.at);
        (void)snprintf(out->numerics, sizeof out->numerics, "%s", tasks[i].numerics_id);
    }
}

struct rig_tasks rig_pull(struct rig *rig, const char *worker, uint32_t count) {
    return rig_pull_as(rig, worker, "exact/1 test", count);
}

struct rig_tasks rig_pull_as(struct rig *rig, const char *worker, const char *numerics,
                             uint32_t count) {
    static struct pulled pulled;
    pulled = (struct pulled){0};
    struct fx_pull pull = {RIG_MODEL, worker, numerics, count, false};
    await(rig, fx_queue_pull(rig->queue, &pull, on_tasks, &pulled, &pulled.to.err), &pulled.to);
    return pulled.tasks;
}

struct fx_write_result rig_append(struct rig *rig, uint32_t n, uint32_t epoch, uint32_t first,
                                  const uint32_t *tokens, uint32_t count) {
    struct fx_write_result result = {0};
    struct fx_append append = {RIG_MODEL, rig_id(n), epoch, first, tokens, count, NULL, 0, NULL};
    AWAIT(rig, result, fx_queue_append(rig->queue, &append, on_write, &to, &to.err));
    return result;
}

struct fx_write_result rig_finish(struct rig *rig, uint32_t n, uint32_t epoch, uint32_t last,
                                  enum fx_finish reason) {
    struct fx_write_result result = {0};
    struct fx_gen_end end = {RIG_MODEL, rig_id(n), epoch, last, reason, "why", NULL};
    AWAIT(rig, result, fx_queue_finish(rig->queue, &end, on_write, &to, &to.err));
    return result;
}

struct fx_write_result rig_renew(struct rig *rig, uint32_t n, uint32_t epoch, const char *worker,
                                 bool give_back) {
    struct fx_write_result result = {0};
    struct fx_renew renew = {RIG_MODEL, rig_id(n), epoch, worker, give_back};
    AWAIT(rig, result, fx_queue_renew(rig->queue, &renew, on_write, &to, &to.err));
    return result;
}

struct fx_gen_info rig_cancel(struct rig *rig, uint32_t n) {
    struct fx_gen_info result = {0};
    fx_gen_id id = rig_id(n);
    AWAIT(rig, result, fx_queue_cancel(rig->queue, RIG_MODEL, &id, on_info, &to, &to.err));
    return result;
}

struct fx_gen_info rig_get(struct rig *rig, uint32_t n) {
    struct fx_gen_info result = {0};
    fx_gen_id id = rig_id(n);
    AWAIT(rig, result, fx_queue_get(rig->queue, RIG_MODEL, &id, on_info, &to, &to.err));
    return result;
}

struct fx_queue_stats rig_stats(struct rig *rig) {
    struct fx_queue_stats result = {0};
    AWAIT(rig, result, fx_queue_stats(rig->queue, RIG_MODEL, on_stats, &to, &to.err));
    return result;
}

static uint32_t log_tokens[RIG_TOKENS_MAX];
static char log_detail[FX_QUEUE_DETAIL_MAX + 1];

static void on_log(void *ctx, const struct fx_gen_tokens *tokens, const fx_error *err) {
    struct answer *to = ctx;
    struct fx_gen_tokens *out = to->out;
    answer(to, NULL, err);
    if (err) return;
    assert_true(out->count + tokens->count <= RIG_TOKENS_MAX);
    for (uint32_t i = 0; i < tokens->count; i++)
        log_tokens[out->count++] = tokens->tokens[i];
    out->finish = tokens->finish;
    (void)snprintf(log_detail, sizeof log_detail, "%s", tokens->detail);
}

struct fx_gen_tokens rig_log(struct rig *rig, uint32_t n) {
    struct fx_gen_tokens log = {.first = 1, .tokens = log_tokens, .detail = log_detail};
    fx_gen_id id = rig_id(n);
    uint32_t before;
    do {
        before = log.count;
        struct answer to = {.out = &log};
        await(rig, fx_queue_read_log(rig->queue, RIG_MODEL, &id, before, 100, on_log, &to, &to.err),
              &to);
    } while (!log.finish && log.count > before);
    return log;
}

void rig_running(struct rig *rig, uint32_t n) {
    rig_beat(rig, "w", 8);
    assert_int_equal(rig_submit(rig, n, 1).status, FX_QUEUE_OK);
    assert_int_equal(rig_dispatch(rig).count, 1);
    struct rig_tasks tasks = rig_pull(rig, "w", 1);
    assert_int_equal(tasks.count, 1);
    assert_int_equal(rig_number(&tasks.at[0].id), n);
}

long long rig_int(struct rig *rig, const char *fmt, ...) {
    char command[256];
    fx_error err = {0};
    redisReply *reply = NULL;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(command, sizeof command, fmt, args);
    va_end(args);
    bool ok = fx_redis_sync(rig->redis, WAIT_MS, &reply, &err, command);
    if (!ok) print_error("%s: %s\n", command, err.text);
    assert_true(ok);
    long long value = reply->type == REDIS_REPLY_INTEGER  ? reply->integer
                      : reply->type == REDIS_REPLY_STRING ? strtoll(reply->str, NULL, 10)
                                                          : -1;
    freeReplyObject(reply);
    return value;
}

void rig_expire(struct rig *rig, uint32_t n) {
    (void)rig_int(rig, "ZADD fx:{m%d}:leases XX 1 ab00000000000000%016x", RIG_MODEL, n);
}

long long rig_lag(struct rig *rig) {
    fx_error err = {0};
    redisReply *reply = NULL;
    long long lag = -2;
    assert_true(
        fx_redis_sync(rig->redis, WAIT_MS, &reply, &err, "XINFO GROUPS fx:{m%d}:tasks", RIG_MODEL));
    const redisReply *group = reply->element[0];
    for (size_t i = 0; i + 1 < group->elements; i += 2)
        if (strcmp(group->element[i]->str, "lag") == 0)
            lag = group->element[i + 1]->type == REDIS_REPLY_INTEGER
                      ? group->element[i + 1]->integer
                      : -1;
    freeReplyObject(reply);
    return lag;
}

/* ---- set-up ---- */

static struct rig rig_global;

static void client_open(struct rig *rig, fx_redis **redis, fx_queue **queue) {
    fx_error err = {0};
    struct fx_redis_opts opts = {
        .base = rig->base, .url = rig->server.url, .library = fx_queue_library()};
    assert_true(fx_redis_open(&opts, redis, &err));
    bool ready = fx_redis_wait_ready(*redis, WAIT_MS, &err);
    if (!ready) print_error("%s\n", err.text);
    assert_true(ready);
    struct fx_queue_opts queue_opts = {.redis = *redis,
                                       .lease_ms = 1500,
                                       .retain_s = 100,
                                       .model_max = 64,
                                       .tenant_max = 32,
                                       .silence_ms = 200};
    assert_true(fx_queue_open(&queue_opts, queue, &err));
}

void rig_connect(struct rig *rig) {
    client_open(rig, &rig->redis, &rig->queue);
    client_open(rig, &rig->redis_b, &rig->queue_b);
}

void rig_disconnect(struct rig *rig) {
    fx_queue_free(fx_take(rig->queue));
    fx_queue_free(fx_take(rig->queue_b));
    fx_redis_free(fx_take(rig->redis));
    fx_redis_free(fx_take(rig->redis_b));
}

void rig_flush(struct rig *rig) {
    fx_error err = {0};
    redisReply *reply = NULL;
    assert_true(fx_redis_sync(rig->redis, WAIT_MS, &reply, &err, "FLUSHALL"));
    freeReplyObject(reply);
}

void rig_start(struct rig *rig) {
    redis_fixture_start(&rig->server, NULL);
    rig->base = event_base_new();
    assert_non_null(rig->base);
}

void rig_stop(struct rig *rig) {
    event_base_free(rig->base);
    libevent_global_shutdown();
    redis_fixture_stop(&rig->server);
}

static int setup(void **state) {
    (void)state;
    rig_start(&rig_global);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rig_stop(&rig_global);
    return 0;
}

static int row_setup(void **state) {
    (void)state;
    rig_connect(&rig_global);
    rig_flush(&rig_global);
    return 0;
}

static int row_teardown(void **state) {
    (void)state;
    rig_disconnect(&rig_global);
    return 0;
}

static void run_row(void **state) {
    const struct rig_row *row = *state;
    row->run(&rig_global);
}

int rig_main(const char *group, const struct rig_row *rows, size_t count) {
    static struct CMUnitTest tests[FX_TEST_ROWS_MAX];
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){rows[i].name, run_row, row_setup, row_teardown,
                                       (void *)(uintptr_t)&rows[i]};
    return _cmocka_run_group_tests(group, tests, count, setup, teardown);
}
