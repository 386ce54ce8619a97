#include "tests/integ/queue/rig.h"

static const uint32_t tokens[] = {11, 12, 13};

static void check_ended(struct rig *rig, uint32_t n, uint32_t logged) {
    struct fx_gen_info info = rig_get(rig, n);
    assert_int_equal(info.state, FX_GEN_CANCELLED);
    assert_int_equal(info.finish, FX_FINISH_CANCELLED);
    struct fx_gen_tokens log = rig_log(rig, n);
    assert_int_equal(log.count, logged);
    assert_int_equal(log.finish, FX_FINISH_CANCELLED);
    assert_in_range(rig_int(rig, "TTL fx:{m7}:gen:ab0000000000000000000000000000%02x", n), 95, 100);
}

static void waiting(struct rig *rig) {
    (void)rig_submit(rig, 1, 5);
    (void)rig_submit(rig, 2, 5);
    struct fx_gen_info got = rig_cancel(rig, 1);
    assert_int_equal(got.status, FX_QUEUE_OK);
    assert_int_equal(got.state, FX_GEN_CANCELLED);
    assert_true(got.cancelled);
    check_ended(rig, 1, 0);
    assert_int_equal(rig_stats(rig).backlog, 1);
    rig_beat(rig, "w", 4);
    assert_int_equal(rig_dispatch(rig).count, 1);
    assert_int_equal(rig_number(&rig_pull(rig, "w", 4).at[0].id), 2);
}

static void the_last_waiting_of_its_tenant(struct rig *rig) {
    (void)rig_submit(rig, 1, 5);
    (void)rig_cancel(rig, 1);
    assert_int_equal(rig_int(rig, "EXISTS fx:{m7}:wait:5 fx:{m7}:tenants"), 0);
    rig_beat(rig, "w", 4);
    assert_int_equal(rig_dispatch(rig).count, 0);
    (void)rig_submit(rig, 2, 5);
    assert_int_equal(rig_dispatch(rig).count, 1);
}

static void dispatched(struct rig *rig) {
    rig_beat(rig, "w", 2);
    for (uint32_t n = 1; n <= 3; n++)
        (void)rig_submit(rig, n, 5);
    assert_int_equal(rig_dispatch(rig).count, 2);
    assert_int_equal(rig_cancel(rig, 2).state, FX_GEN_CANCELLED); /* behind 1: a tombstone */
    check_ended(rig, 2, 0);
    assert_int_equal(rig_stats(rig).slots_free, 1);
    assert_int_equal(rig_dispatch(rig).count, 1); /* its slot is free */
    struct rig_tasks tasks = rig_pull(rig, "w", 4);
    assert_int_equal(tasks.count, 2);
    assert_int_equal(rig_number(&tasks.at[0].id), 1);
    assert_int_equal(rig_number(&tasks.at[1].id), 3);
    assert_int_equal(rig_lag(rig), 0);
}

static void the_only_dispatched(struct rig *rig) {
    rig_beat(rig, "w", 2);
    (void)rig_submit(rig, 1, 5);
    (void)rig_dispatch(rig);
    assert_int_equal(rig_lag(rig), 1);
    (void)rig_cancel(rig, 1);
    assert_int_equal(rig_lag(rig), 0); /* an autoscaler sees no work */
    assert_int_equal(rig_int(rig, "XLEN fx:{m7}:tasks"), 0);
    assert_int_equal(rig_pull(rig, "w", 1).count, 0);
}

static void delivered(struct rig *rig) {
    rig_running(rig, 1);
    struct fx_gen_info got = rig_cancel(rig, 1);
    assert_int_equal(got.state, FX_GEN_RUNNING);
    assert_int_equal(got.epoch, 1); /* unchanged: its worker finishes it */
    assert_true(got.cancelled);
    assert_true(rig_get(rig, 1).cancelled);
    assert_int_equal(rig_finish(rig, 1, 1, 0, FX_FINISH_CANCELLED).status, FX_QUEUE_OK);
    check_ended(rig, 1, 0);
}

static void in_decode(struct rig *rig) {
    rig_running(rig, 1);
    (void)rig_append(rig, 1, 1, 1, tokens, 2);
    (void)rig_cancel(rig, 1);
    assert_int_equal(rig_append(rig, 1, 1, 3, tokens + 2, 1).status, FX_QUEUE_CANCELLED);
    assert_int_equal(rig_finish(rig, 1, 1, 3, FX_FINISH_CANCELLED).status, FX_QUEUE_OK);
    check_ended(rig, 1, 2);
    assert_int_equal(rig_stats(rig).running, 0);
}

static void twice(struct rig *rig) {
    (void)rig_submit(rig, 1, 5);
    (void)rig_cancel(rig, 1);
    struct fx_gen_info got = rig_cancel(rig, 1);
    assert_int_equal(got.status, FX_QUEUE_OK);
    assert_int_equal(got.state, FX_GEN_CANCELLED);
    assert_int_equal(rig_int(rig, "XLEN fx:{m7}:log:ab000000000000000000000000000001"), 1);
    rig_running(rig, 2);
    (void)rig_cancel(rig, 2);
    assert_int_equal(rig_cancel(rig, 2).state, FX_GEN_RUNNING);
}

static void finished_stays(struct rig *rig) {
    rig_running(rig, 1);
    (void)rig_append(rig, 1, 1, 1, tokens, 1);
    (void)rig_finish(rig, 1, 1, 1, FX_FINISH_STOP);
    struct fx_gen_info got = rig_cancel(rig, 1);
    assert_int_equal(got.status, FX_QUEUE_OK);
    assert_int_equal(got.state, FX_GEN_FINISHED);
    assert_false(got.cancelled);
    assert_int_equal(rig_log(rig, 1).finish, FX_FINISH_STOP);
}

static void unknown_id(struct rig *rig) {
    assert_int_equal(rig_cancel(rig, 9).status, FX_QUEUE_NOT_FOUND);
}

static void taken_with_the_cancel_pending(struct rig *rig) {
    rig_running(rig, 1);
    (void)rig_append(rig, 1, 1, 1, tokens, 1);
    rig_expire(rig, 1);
    (void)rig_reclaim(rig); /* DISPATCHED again, with a logged token */
    assert_int_equal(rig_cancel(rig, 1).state, FX_GEN_CANCELLED);
    check_ended(rig, 1, 1);
    assert_int_equal(rig_pull(rig, "v", 1).count, 0);
}

/* ---- races on two connections ---- */

struct answers {
    uint32_t left;
    struct fx_gen_info info;
    struct fx_write_result write;
    uint32_t counted;
    bool done;
};

static void answered(struct answers *answers, const fx_error *err) {
    assert_null(err);
    answers->done = --answers->left == 0;
}

static void on_info(void *ctx, const struct fx_gen_info *info, const fx_error *err) {
    answered(ctx, err);
    ((struct answers *)ctx)->info = *info;
}

static void on_write(void *ctx, const struct fx_write_result *result, const fx_error *err) {
    answered(ctx, err);
    ((struct answers *)ctx)->write = *result;
}

static void on_count(void *ctx, const struct fx_count_result *result, const fx_error *err) {
    answered(ctx, err);
    ((struct answers *)ctx)->counted = result->count;
}

static void races_a_finish(struct rig *rig) {
    for (uint32_t n = 1; n <= 20; n++) {
        struct answers answers = {.left = 2};
        fx_error err = {0};
        fx_gen_id id = rig_id(n);
        struct fx_gen_end end = {RIG_MODEL, id, 1, 0, FX_FINISH_STOP, NULL, NULL};
        rig_running(rig, n);
        if (n % 2)
            assert_true(fx_queue_cancel(rig->queue_b, RIG_MODEL, &id, on_info, &answers, &err));
        assert_true(fx_queue_finish(rig->queue, &end, on_write, &answers, &err));
        if (!(n % 2))
            assert_true(fx_queue_cancel(rig->queue_b, RIG_MODEL, &id, on_info, &answers, &err));
        rig_until(rig, &answers.done);
        assert_int_equal(answers.write.status, FX_QUEUE_OK);
        assert_int_equal(rig_get(rig, n).state, FX_GEN_FINISHED);
        assert_true(answers.info.state == FX_GEN_RUNNING || answers.info.state == FX_GEN_FINISHED);
        assert_int_equal(rig_int(rig, "XLEN fx:{m7}:log:ab0000000000000000000000000000%02x", n), 1);
    }
    assert_int_equal(rig_stats(rig).running, 0);
}

static void races_a_reclaim(struct rig *rig) {
    for (uint32_t n = 1; n <= 20; n++) {
        struct answers answers = {.left = 2};
        fx_error err = {0};
        fx_gen_id id = rig_id(n);
        rig_running(rig, n);
        rig_expire(rig, n);
        assert_true(fx_queue_reclaim(rig->queue_b, RIG_MODEL, on_count, &answers, &err));
        assert_true(fx_queue_cancel(rig->queue, RIG_MODEL, &id, on_info, &answers, &err));
        rig_until(rig, &answers.done);
        assert_int_equal(answers.counted, 1);
        assert_int_equal(rig_get(rig, n).state, FX_GEN_CANCELLED);
        check_ended(rig, n, 0);
        assert_int_equal(rig_pull(rig, "v", 1).count, 0);
        assert_int_equal(rig_lag(rig), 0);
    }
}

static void races_a_pull(struct rig *rig) {
    for (uint32_t n = 1; n <= 20; n++) {
        struct answers answers = {.left = 1};
        fx_error err = {0};
        fx_gen_id id = rig_id(n);
        rig_beat(rig, "w", 8);
        (void)rig_submit(rig, n, 5);
        (void)rig_dispatch(rig);
        assert_true(fx_queue_cancel(rig->queue_b, RIG_MODEL, &id, on_info, &answers, &err));
        struct rig_tasks tasks = rig_pull(rig, "w", 1);
        rig_until(rig, &answers.done);
        enum fx_gen_state state = rig_get(rig, n).state;
        assert_int_equal(state, tasks.count ? FX_GEN_RUNNING : FX_GEN_CANCELLED);
        assert_true(rig_get(rig, n).cancelled);
        if (tasks.count) (void)rig_finish(rig, n, 1, 0, FX_FINISH_CANCELLED);
        check_ended(rig, n, 0);
    }
}

/* What a tenant cancelled before it ran is not charged. */
static void refunds(struct rig *rig) {
    rig_beat(rig, "w", 2);
    (void)rig_submit(rig, 1, 5);
    (void)rig_submit(rig, 2, 6);
    (void)rig_dispatch(rig);
    (void)rig_cancel(rig, 1);
    assert_int_equal(rig_int(rig, "ZSCORE fx:{m7}:debt 5"), -1);
    assert_int_equal(rig_int(rig, "ZSCORE fx:{m7}:debt 6"), 100);
}

static const struct rig_row rows[] = {
    {"waiting",                        waiting                       },
    {"the last waiting of its tenant", the_last_waiting_of_its_tenant},
    {"dispatched",                     dispatched                    },
    {"the only dispatched",            the_only_dispatched           },
    {"delivered",                      delivered                     },
    {"in decode",                      in_decode                     },
    {"twice",                          twice                         },
    {"finished stays",                 finished_stays                },
    {"unknown id",                     unknown_id                    },
    {"taken with the cancel pending",  taken_with_the_cancel_pending },
    {"races a finish",                 races_a_finish                },
    {"races a reclaim",                races_a_reclaim               },
    {"races a pull",                   races_a_pull                  },
    {"refunds",                        refunds                       },
};
RIG_MAIN(rows)
