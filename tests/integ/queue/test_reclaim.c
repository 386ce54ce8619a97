#include "common/base/clock.h"
#include "tests/integ/queue/rig.h"

static void nothing_running(struct rig *rig) {
    assert_int_equal(rig_reclaim(rig).count, 0);
}

static void not_before_the_deadline(struct rig *rig) {
    rig_running(rig, 1);
    assert_int_equal(rig_reclaim(rig).count, 0);
    assert_int_equal(rig_get(rig, 1).state, FX_GEN_RUNNING);
}

/* By the clock of Redis, with nobody's help. */
static void expires_by_itself(struct rig *rig) {
    uint64_t start = fx_clock_ms();
    rig_running(rig, 1);
    while (rig_reclaim(rig).count == 0 && fx_clock_ms() - start < 20000)
        rig_sleep(rig, 20);
    assert_in_range(fx_clock_ms() - start, 1500, 19999);
    assert_int_equal(rig_get(rig, 1).epoch, 2);
}

static void queues_again_with_the_next_epoch(struct rig *rig) {
    rig_running(rig, 1);
    rig_expire(rig, 1);
    struct fx_count_result got = rig_reclaim(rig);
    assert_int_equal(got.count, 1);
    assert_int_equal(got.failed, 0);
    struct fx_gen_info info = rig_get(rig, 1);
    assert_int_equal(info.state, FX_GEN_DISPATCHED);
    assert_int_equal(info.epoch, 2);
    assert_int_equal(rig_stats(rig).running, 0);
    assert_int_equal(rig_lag(rig), 1);
    assert_int_equal(rig_int(rig, "XLEN fx:{m7}:tasks"), 1); /* the old entry is retired */
    assert_int_equal(rig_reclaim(rig).count, 0);
}

static void goes_ahead_of_the_backlog(struct rig *rig) {
    rig_beat(rig, "w", 1);
    for (uint32_t n = 1; n <= 5; n++)
        (void)rig_submit(rig, n, 5);
    (void)rig_dispatch(rig);
    assert_int_equal(rig_number(&rig_pull(rig, "w", 1).at[0].id), 1);
    rig_expire(rig, 1);
    assert_int_equal(rig_reclaim(rig).count, 1);
    assert_int_equal(rig_dispatch(rig).count, 0); /* it holds the only slot */
    assert_int_equal(rig_number(&rig_pull(rig, "w", 1).at[0].id), 1);
}

static void gives_up_without_progress(struct rig *rig) {
    rig_running(rig, 1);
    for (uint32_t epoch = 1; epoch <= 3; epoch++) {
        rig_expire(rig, 1);
        struct fx_count_result got = rig_reclaim(rig);
        assert_int_equal(got.count, 1);
        assert_int_equal(got.failed, epoch == 3);
        if (epoch < 3) assert_int_equal(rig_pull(rig, "w", 1).at[0].epoch, epoch + 1);
    }
    struct fx_gen_info info = rig_get(rig, 1);
    assert_int_equal(info.state, FX_GEN_FAILED);
    assert_int_equal(info.finish, FX_FINISH_ERROR);
    struct fx_gen_tokens log = rig_log(rig, 1);
    assert_int_equal(log.finish, FX_FINISH_ERROR);
    assert_string_equal(log.detail, "given up: 3 workers made no progress");
    assert_in_range(rig_int(rig, "TTL fx:{m7}:log:ab000000000000000000000000000001"), 95, 100);
    assert_int_equal(rig_stats(rig).waiting, 0);
    assert_int_equal(rig_lag(rig), 0);
}

static void progress_resets_the_cap(struct rig *rig) {
    static const uint32_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8};
    rig_running(rig, 1);
    for (uint32_t i = 0; i < 6; i++) {
        if (i % 2) (void)rig_append(rig, 1, i + 1, i / 2 + 1, &tokens[i / 2], 1);
        rig_expire(rig, 1);
        assert_int_equal(rig_reclaim(rig).failed, 0);
        assert_int_equal(rig_pull(rig, "w", 1).at[0].epoch, i + 2);
    }
    assert_int_equal(rig_log(rig, 1).count, 3);
}

/* Equal repeats are no progress: the same token again and again must not keep it alive. */
static void repeats_are_no_progress(struct rig *rig) {
    static const uint32_t token = 4;
    rig_running(rig, 1);
    (void)rig_append(rig, 1, 1, 1, &token, 1);
    for (uint32_t epoch = 1; epoch <= 4; epoch++) {
        rig_expire(rig, 1);
        assert_int_equal(rig_reclaim(rig).failed, epoch == 4);
        if (epoch == 4) break;
        (void)rig_pull(rig, "w", 1);
        (void)rig_append(rig, 1, epoch + 1, 1, &token, 1);
    }
    assert_int_equal(rig_get(rig, 1).state, FX_GEN_FAILED);
    assert_int_equal(rig_log(rig, 1).count, 1);
}

static void giving_back_is_blameless(struct rig *rig) {
    rig_running(rig, 1);
    for (uint32_t epoch = 1; epoch <= 6; epoch++) {
        assert_int_equal(rig_renew(rig, 1, epoch, "w", true).status, FX_QUEUE_OK);
        assert_int_equal(rig_reclaim(rig).failed, 0);
        assert_int_equal(rig_pull(rig, "w", 1).at[0].epoch, epoch + 1);
    }
    rig_expire(rig, 1); /* from here on silent: the flag is gone with the delivery */
    assert_int_equal(rig_reclaim(rig).failed, 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(rig_pull(rig, "w", 1).count, 1);
        rig_expire(rig, 1);
        assert_int_equal(rig_reclaim(rig).failed, i == 1);
    }
}

/* Nobody left who could go on with it. */
static void giving_back_for_wrong_numerics(struct rig *rig) {
    static const uint32_t token = 4;
    rig_running(rig, 1);
    (void)rig_append(rig, 1, 1, 1, &token, 1);
    rig_expire(rig, 1);
    (void)rig_reclaim(rig);
    (void)rig_int(rig, "DEL fx:{m7}:alive");
    for (uint32_t epoch = 2; epoch <= 4; epoch++) {
        assert_int_equal(rig_pull_as(rig, "v", "exact/2", 1).at[0].epoch, epoch);
        assert_int_equal(rig_renew(rig, 1, epoch, "v", true).status, FX_QUEUE_OK);
        assert_int_equal(rig_reclaim(rig).failed, epoch == 4);
    }
    assert_int_equal(rig_get(rig, 1).state, FX_GEN_FAILED);
}

static void finishes_a_cancelled_one(struct rig *rig) {
    rig_running(rig, 1);
    (void)rig_cancel(rig, 1);
    rig_expire(rig, 1);
    struct fx_count_result got = rig_reclaim(rig);
    assert_int_equal(got.count, 1);
    assert_int_equal(got.failed, 1);
    assert_int_equal(rig_get(rig, 1).state, FX_GEN_CANCELLED);
    assert_int_equal(rig_log(rig, 1).finish, FX_FINISH_CANCELLED);
}

struct race {
    uint32_t answers, count;
    bool done;
};

static void on_count(void *ctx, const struct fx_count_result *result, const fx_error *err) {
    struct race *race = ctx;
    assert_null(err);
    race->count += result->count;
    race->done = --race->answers == 0;
}

static void two_schedulers(struct rig *rig) {
    struct race race = {.answers = 6};
    fx_error err = {0};
    rig_beat(rig, "w", 16);
    for (uint32_t n = 0; n < 16; n++)
        (void)rig_submit(rig, n, 5);
    (void)rig_dispatch(rig);
    assert_int_equal(rig_pull(rig, "w", 16).count, 16);
    for (uint32_t n = 0; n < 16; n++)
        rig_expire(rig, n);
    for (int i = 0; i < 3; i++) {
        assert_true(fx_queue_reclaim(rig->queue, RIG_MODEL, on_count, &race, &err));
        assert_true(fx_queue_reclaim(rig->queue_b, RIG_MODEL, on_count, &race, &err));
    }
    rig_until(rig, &race.done);
    assert_int_equal(race.count, 16);
    assert_int_equal(rig_lag(rig), 16);
    struct rig_tasks tasks = rig_pull(rig, "v", 20);
    assert_int_equal(tasks.count, 16);
    for (size_t i = 0; i < tasks.count; i++)
        assert_int_equal(tasks.at[i].epoch, 2);
}

static void more_than_one_page(struct rig *rig) {
    rig_beat(rig, "w", 40);
    for (uint32_t n = 0; n < 40; n++)
        (void)rig_submit(rig, n, 1 + n / 20);
    (void)rig_dispatch(rig);
    assert_int_equal(rig_pull(rig, "w", 40).count, 40);
    for (uint32_t n = 0; n < 40; n++)
        rig_expire(rig, n);
    struct fx_count_result got = rig_reclaim(rig);
    assert_int_equal(got.count, 32);
    assert_true(got.more);
    got = rig_reclaim(rig);
    assert_int_equal(got.count, 8);
    assert_false(got.more);
}

/* Two appends race a reclaim on another connection: whatever comes first, the log has one writer.
 */
struct writes {
    struct fx_write_result result;
    bool done;
};

static void on_write(void *ctx, const struct fx_write_result *result, const fx_error *err) {
    struct writes *writes = ctx;
    assert_null(err);
    writes->result = *result;
    writes->done = true;
}

static void races_an_append(struct rig *rig) {
    static const uint32_t token = 9;
    for (uint32_t n = 1; n <= 20; n++) {
        struct race race = {.answers = 1};
        struct writes writes = {0};
        fx_error err = {0};
        struct fx_append append = {RIG_MODEL, rig_id(n), 1, 1, &token, 1, NULL, 0, NULL};
        rig_running(rig, n);
        rig_expire(rig, n);
        assert_true(fx_queue_reclaim(rig->queue_b, RIG_MODEL, on_count, &race, &err));
        assert_true(fx_queue_append(rig->queue, &append, on_write, &writes, &err));
        rig_until(rig, &race.done);
        rig_until(rig, &writes.done);
        bool reclaimed = rig_get(rig, n).epoch == 2;
        if (writes.result.status == FX_QUEUE_LEASE_LOST)
            assert_true(reclaimed);
        else
            assert_int_equal(writes.result.status, FX_QUEUE_OK);
        assert_int_equal(rig_log(rig, n).count, writes.result.status == FX_QUEUE_OK);
        (void)rig_cancel(rig, n);
        (void)rig_finish(rig, n, 1, 0, FX_FINISH_CANCELLED);
    }
}

static const struct rig_row rows[] = {
    {"nothing running",                  nothing_running                 },
    {"not before the deadline",          not_before_the_deadline         },
    {"expires by itself",                expires_by_itself               },
    {"queues again with the next epoch", queues_again_with_the_next_epoch},
    {"goes ahead of the backlog",        goes_ahead_of_the_backlog       },
    {"gives up without progress",        gives_up_without_progress       },
    {"progress resets the cap",          progress_resets_the_cap         },
    {"repeats are no progress",          repeats_are_no_progress         },
    {"giving back is blameless",         giving_back_is_blameless        },
    {"giving back for wrong numerics",   giving_back_for_wrong_numerics  },
    {"finishes a cancelled one",         finishes_a_cancelled_one        },
    {"two schedulers",                   two_schedulers                  },
    {"more than one page",               more_than_one_page              },
    {"races an append",                  races_an_append                 },
};
RIG_MAIN(rows)
