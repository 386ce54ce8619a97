#include "common/base/clock.h"
#include "tests/integ/queue/rig.h"

static void delivers_and_leases(struct rig *rig) {
    rig_beat(rig, "w", 8);
    (void)rig_submit(rig, 1, 5);
    (void)rig_dispatch(rig);
    struct rig_tasks tasks = rig_pull(rig, "w", 4);
    assert_int_equal(tasks.count, 1);
    assert_int_equal(rig_number(&tasks.at[0].id), 1);
    assert_int_equal(tasks.at[0].epoch, 1);
    assert_string_equal(tasks.at[0].task, "task");
    assert_int_equal(tasks.at[0].logged_count, 0);
    assert_string_equal(tasks.at[0].numerics, "");
    assert_false(tasks.at[0].cancelled);
    assert_int_equal(rig_get(rig, 1).state, FX_GEN_RUNNING);
    assert_int_equal(rig_stats(rig).running, 1);
    assert_int_equal(rig_lag(rig), 0);
    assert_int_equal(rig_pull(rig, "w", 4).count, 0);
}

static void nothing_there(struct rig *rig) {
    assert_int_equal(rig_pull(rig, "w", 4).count, 0);
}

static void at_most_the_count(struct rig *rig) {
    rig_beat(rig, "w", 8);
    for (uint32_t n = 0; n < 5; n++)
        (void)rig_submit(rig, n, 5);
    (void)rig_dispatch(rig);
    assert_int_equal(rig_pull(rig, "w", 2).count, 2);
    assert_int_equal(rig_lag(rig), 3);
    assert_int_equal(rig_pull(rig, "v", 64).count, 3);
}

static void brings_logged_tokens_and_numerics(struct rig *rig) {
    static const uint32_t tokens[] = {4, 4294967295u, 0};
    rig_running(rig, 1);
    (void)rig_append(rig, 1, 1, 1, tokens, 3);
    rig_expire(rig, 1);
    assert_int_equal(rig_reclaim(rig).count, 1);
    struct rig_tasks tasks = rig_pull(rig, "v", 1);
    assert_int_equal(tasks.count, 1);
    assert_int_equal(tasks.at[0].epoch, 2);
    assert_int_equal(tasks.at[0].logged_count, 3);
    assert_memory_equal(tasks.at[0].logged, tokens, sizeof tokens);
    assert_string_equal(tasks.at[0].numerics, "exact/1 test");
}

/* Generations 1..count, with a token each by "exact/1 test", dispatched again. */
static void reclaimed(struct rig *rig, uint32_t count) {
    static const uint32_t token = 4;
    for (uint32_t n = 1; n <= count; n++) {
        rig_running(rig, n);
        (void)rig_append(rig, n, 1, 1, &token, 1);
    }
    for (uint32_t n = 1; n <= count; n++)
        rig_expire(rig, n);
    assert_int_equal(rig_reclaim(rig).count, count);
}

static void other_numerics_pass_it_on(struct rig *rig) {
    reclaimed(rig, 2);
    (void)rig_submit(rig, 3, 5);
    (void)rig_dispatch(rig);
    struct rig_tasks tasks = rig_pull_as(rig, "v", "exact/2", 8);
    assert_int_equal(tasks.count, 1); /* the fresh one is anybody's */
    assert_int_equal(rig_number(&tasks.at[0].id), 3);
    assert_int_equal(rig_pull_as(rig, "v", "exact/2", 8).count, 0);
    assert_int_equal(rig_lag(rig), 2);
    assert_int_equal(rig_stats(rig).waiting, 2);
    tasks = rig_pull(rig, "w", 8);
    assert_int_equal(tasks.count, 2);
    assert_int_equal(rig_number(&tasks.at[0].id), 1);
    assert_int_equal(tasks.at[0].epoch, 2);
    assert_int_equal(rig_lag(rig), 0);
    (void)rig_finish(rig, 1, 2, 1, FX_FINISH_STOP);
    (void)rig_finish(rig, 2, 2, 1, FX_FINISH_STOP);
    (void)rig_finish(rig, 3, 1, 0, FX_FINISH_STOP);
    assert_int_equal(rig_int(rig, "XLEN fx:{m7}:tasks"), 0);
}

static void other_numerics_when_nobody_else(struct rig *rig) {
    reclaimed(rig, 1);
    struct fx_worker_info leaving = {.worker = "w", .slots = 8, .leaving = true};
    (void)snprintf(leaving.numerics_id, sizeof leaving.numerics_id, "exact/1 test");
    rig_beat_as(rig, &leaving);
    struct rig_tasks tasks = rig_pull_as(rig, "v", "exact/2", 8);
    assert_int_equal(tasks.count, 1);
    assert_string_equal(tasks.at[0].numerics, "exact/1 test"); /* it decides */
}

/* Its worker died a while ago: it may come back, for so long. */
static void other_numerics_wait_for_the_dead(struct rig *rig) {
    reclaimed(rig, 1);
    uint64_t now_ms = fx_wall_ms();
    (void)rig_int(rig, "ZADD fx:{m7}:alive %llu w", (unsigned long long)now_ms - 12000);
    assert_int_equal(rig_pull_as(rig, "v", "exact/2", 8).count, 0);
    (void)rig_int(rig, "ZADD fx:{m7}:alive %llu w", (unsigned long long)now_ms - 16000);
    assert_int_equal(rig_pull_as(rig, "v", "exact/2", 8).count, 1);
}

static void skips_cancelled_ones(struct rig *rig) {
    rig_beat(rig, "w", 8);
    for (uint32_t n = 0; n < 6; n++)
        (void)rig_submit(rig, n, 5);
    (void)rig_dispatch(rig);
    (void)rig_cancel(rig, 1);
    (void)rig_cancel(rig, 4);
    struct rig_tasks tasks = rig_pull(rig, "w", 8);
    assert_int_equal(tasks.count, 4);
    assert_int_equal(rig_number(&tasks.at[1].id), 2);
    assert_int_equal(rig_number(&tasks.at[3].id), 5);
    assert_int_equal(rig_lag(rig), 0);
}

struct both {
    uint32_t answers, seen[64];
    bool done;
};

static void on_tasks(void *ctx, const struct fx_task *tasks, size_t count, const fx_error *err) {
    struct both *both = ctx;
    assert_null(err);
    for (size_t i = 0; i < count; i++)
        both->seen[rig_number(&tasks[i].id)]++;
    both->done = --both->answers == 0;
}

static void two_workers_share(struct rig *rig) {
    fx_error err = {0};
    struct both both = {.answers = 4};
    rig_beat(rig, "w", 40);
    for (uint32_t n = 0; n < 32; n++)
        (void)rig_submit(rig, n, 5);
    (void)rig_dispatch(rig);
    for (int i = 0; i < 2; i++) {
        struct fx_pull a = {RIG_MODEL, "a", "", 9, false}, b = {RIG_MODEL, "b", "", 9, false};
        assert_true(fx_queue_pull(rig->queue, &a, on_tasks, &both, &err));
        assert_true(fx_queue_pull(rig->queue_b, &b, on_tasks, &both, &err));
    }
    rig_until(rig, &both.done);
    uint32_t total = 0;
    for (size_t n = 0; n < 32; n++) {
        assert_true(both.seen[n] <= 1);
        total += both.seen[n];
    }
    assert_int_equal(total, rig_stats(rig).running);
    assert_true(total >= 18);
}

static void bad_arguments(struct rig *rig) {
    const struct fx_pull bad[] = {
        {RIG_MODEL, "w", "", 0,                     false},
        {RIG_MODEL, "w", "", FX_QUEUE_PULL_MAX + 1, false},
        {RIG_MODEL, "",  "", 1,                     false},
    };
    for (size_t i = 0; i < FX_TEST_COUNT(bad); i++) {
        fx_error err = {0};
        assert_false(fx_queue_pull(rig->queue, &bad[i], on_tasks, NULL, &err));
        assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    }
}

struct heard {
    uint32_t tasks, cancels;
    bool subscribed, woken, stopped;
};

static void on_work(void *ctx, enum fx_work_event event, const fx_gen_id *id) {
    struct heard *heard = ctx;
    if (event == FX_WORK_TASKS) {
        heard->tasks++;
        heard->subscribed = true;
        heard->woken = heard->tasks >= 2;
    } else {
        heard->cancels++;
        heard->stopped = rig_number(id) == 1;
    }
}

static void hints_workers(struct rig *rig) {
    struct heard heard = {0};
    fx_work *work = NULL;
    fx_error err = {0};
    assert_true(fx_queue_wait_tasks(rig->queue, RIG_MODEL, on_work, &heard, &work, &err));
    rig_until(rig, &heard.subscribed);
    assert_int_equal(heard.tasks, 1); /* subscribed: pull once */
    rig_beat(rig, "w", 8);
    (void)rig_submit(rig, 1, 5);
    (void)rig_dispatch(rig);
    rig_until(rig, &heard.woken);
    (void)rig_pull(rig, "w", 1);
    (void)rig_cancel(rig, 1);
    rig_until(rig, &heard.stopped);
    fx_work_free(work);
}

static const struct rig_row rows[] = {
    {"delivers and leases",               delivers_and_leases              },
    {"nothing there",                     nothing_there                    },
    {"at most the count",                 at_most_the_count                },
    {"brings logged tokens and numerics", brings_logged_tokens_and_numerics},
    {"other numerics pass it on",         other_numerics_pass_it_on        },
    {"other numerics wait for the dead",  other_numerics_wait_for_the_dead },
    {"other numerics when nobody else",   other_numerics_when_nobody_else  },
    {"skips cancelled ones",              skips_cancelled_ones             },
    {"two workers share",                 two_workers_share                },
    {"bad arguments",                     bad_arguments                    },
    {"hints workers",                     hints_workers                    },
};
RIG_MAIN(rows)
