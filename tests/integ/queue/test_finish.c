#include "tests/integ/queue/rig.h"

static const uint32_t tokens[] = {11, 12, 13};

static void check(struct fx_write_result got, enum fx_queue_status status) {
    assert_string_equal(fx_queue_status_name(got.status), fx_queue_status_name(status));
}

static void writes_the_record(struct rig *rig) {
    rig_running(rig, 1);
    (void)rig_append(rig, 1, 1, 1, tokens, 3);
    check(rig_finish(rig, 1, 1, 3, FX_FINISH_LENGTH), FX_QUEUE_OK);
    struct fx_gen_tokens log = rig_log(rig, 1);
    assert_int_equal(log.count, 3);
    assert_int_equal(log.finish, FX_FINISH_LENGTH);
    assert_string_equal(log.detail, "why");
    struct fx_gen_info info = rig_get(rig, 1);
    assert_int_equal(info.state, FX_GEN_FINISHED);
    assert_int_equal(info.finish, FX_FINISH_LENGTH);
    assert_int_equal(info.tokens, 3);
}

static void without_a_token(struct rig *rig) {
    rig_running(rig, 1);
    check(rig_finish(rig, 1, 1, 0, FX_FINISH_STOP), FX_QUEUE_OK);
    assert_int_equal(rig_log(rig, 1).finish, FX_FINISH_STOP);
}

static void each_reason_has_its_state(struct rig *rig) {
    static const enum fx_gen_state want[] = {FX_GEN_UNKNOWN, FX_GEN_FINISHED, FX_GEN_FINISHED,
                                             FX_GEN_CANCELLED, FX_GEN_FAILED};
    for (uint32_t reason = FX_FINISH_STOP; reason <= FX_FINISH_ERROR; reason++) {
        rig_running(rig, reason);
        check(rig_finish(rig, reason, 1, 0, (enum fx_finish)reason), FX_QUEUE_OK);
        assert_int_equal(rig_get(rig, reason).state, want[reason]);
    }
}

static void frees_slot_and_entry(struct rig *rig) {
    rig_running(rig, 1);
    (void)rig_finish(rig, 1, 1, 0, FX_FINISH_STOP);
    struct fx_queue_stats stats = rig_stats(rig);
    assert_int_equal(stats.running, 0);
    assert_int_equal(stats.slots_free, 8);
    assert_int_equal(rig_int(rig, "XLEN fx:{m7}:tasks"), 0);
    assert_int_equal(rig_lag(rig), 0);
}

static void sets_the_expiry(struct rig *rig) {
    rig_running(rig, 1);
    (void)rig_append(rig, 1, 1, 1, tokens, 3);
    assert_int_equal(rig_int(rig, "TTL fx:{m7}:log:ab000000000000000000000000000001"), -1);
    (void)rig_finish(rig, 1, 1, 3, FX_FINISH_STOP);
    assert_in_range(rig_int(rig, "TTL fx:{m7}:log:ab000000000000000000000000000001"), 95, 100);
    assert_in_range(rig_int(rig, "TTL fx:{m7}:gen:ab000000000000000000000000000001"), 95, 100);
    assert_int_equal(rig_int(rig, "HEXISTS fx:{m7}:gen:ab000000000000000000000000000001 task"), 0);
}

static void twice(struct rig *rig) {
    rig_running(rig, 1);
    check(rig_finish(rig, 1, 1, 0, FX_FINISH_STOP), FX_QUEUE_OK);
    check(rig_finish(rig, 1, 1, 0, FX_FINISH_STOP), FX_QUEUE_OK);
    check(rig_finish(rig, 1, 1, 0, FX_FINISH_ERROR), FX_QUEUE_OK); /* stays as it ended */
    assert_int_equal(rig_get(rig, 1).state, FX_GEN_FINISHED);
    assert_int_equal(rig_int(rig, "XLEN fx:{m7}:log:ab000000000000000000000000000001"), 1);
}

static void wrong_epoch(struct rig *rig) {
    rig_running(rig, 1);
    check(rig_finish(rig, 1, 2, 0, FX_FINISH_STOP), FX_QUEUE_LEASE_LOST);
    check(rig_finish(rig, 1, 1, 0, FX_FINISH_STOP), FX_QUEUE_OK);
    check(rig_finish(rig, 1, 2, 0, FX_FINISH_STOP), FX_QUEUE_LEASE_LOST);
}

static void after_a_reclaim(struct rig *rig) {
    rig_running(rig, 1);
    rig_expire(rig, 1);
    (void)rig_reclaim(rig);
    check(rig_finish(rig, 1, 1, 0, FX_FINISH_STOP), FX_QUEUE_LEASE_LOST);
    (void)rig_pull(rig, "v", 1);
    check(rig_finish(rig, 1, 1, 0, FX_FINISH_STOP), FX_QUEUE_LEASE_LOST);
    check(rig_finish(rig, 1, 2, 0, FX_FINISH_STOP), FX_QUEUE_OK);
}

static void unknown_id(struct rig *rig) {
    check(rig_finish(rig, 9, 1, 0, FX_FINISH_STOP), FX_QUEUE_NOT_FOUND);
}

/* A finish behind an append that was lost must not cut the text short. */
static void gap(struct rig *rig) {
    rig_running(rig, 1);
    (void)rig_append(rig, 1, 1, 1, tokens, 1);
    check(rig_finish(rig, 1, 1, 3, FX_FINISH_STOP), FX_QUEUE_GAP);
    assert_int_equal(rig_get(rig, 1).state, FX_GEN_RUNNING);
    (void)rig_append(rig, 1, 1, 2, tokens + 1, 2);
    check(rig_finish(rig, 1, 1, 3, FX_FINISH_STOP), FX_QUEUE_OK);
}

static void cancelled_ignores_the_count(struct rig *rig) {
    rig_running(rig, 1);
    (void)rig_append(rig, 1, 1, 1, tokens, 1);
    check(rig_finish(rig, 1, 1, 3, FX_FINISH_CANCELLED), FX_QUEUE_OK);
    struct fx_gen_tokens log = rig_log(rig, 1);
    assert_int_equal(log.count, 1);
    assert_int_equal(log.finish, FX_FINISH_CANCELLED);
}

static void out_of_order_keeps_lag(struct rig *rig) {
    rig_beat(rig, "w", 6);
    for (uint32_t n = 0; n < 10; n++)
        (void)rig_submit(rig, n, 5);
    assert_int_equal(rig_dispatch(rig).count, 6);
    assert_int_equal(rig_pull(rig, "w", 4).count, 4);
    assert_int_equal(rig_lag(rig), 2);
    for (uint32_t n = 3; n > 0; n--) { /* 3 2 1: the oldest stays */
        (void)rig_finish(rig, n, 1, 0, FX_FINISH_STOP);
        assert_int_equal(rig_lag(rig), 2);
    }
    assert_int_equal(rig_dispatch(rig).count, 3);
    assert_int_equal(rig_lag(rig), 5);
    (void)rig_cancel(rig, 9); /* waiting: never in the stream */
    assert_int_equal(rig_lag(rig), 5);
    (void)rig_cancel(rig, 4); /* next in line */
    assert_int_equal(rig_lag(rig), 4);
    (void)rig_finish(rig, 0, 1, 0, FX_FINISH_STOP);
    assert_int_equal(rig_lag(rig), 4);
    assert_int_equal(rig_int(rig, "XLEN fx:{m7}:tasks"), 4); /* trimmed up to the oldest live */
    assert_int_equal(rig_pull(rig, "w", 8).count, 4);
    assert_int_equal(rig_lag(rig), 0);
}

struct hinted {
    uint32_t count;
    bool subscribed, freed;
};

static void on_hint(void *ctx, uint32_t model) {
    struct hinted *hinted = ctx;
    if (model == RIG_MODEL) hinted->count++;
    hinted->subscribed = true;
    hinted->freed = hinted->count == 1;
}

/* A slot came free: the next task need not wait for a tick. */
static void hints_the_schedulers(struct rig *rig) {
    struct hinted hinted = {0};
    fx_error err = {0};
    fx_auto(fx_queue_hints) hints = NULL;
    rig_running(rig, 1);
    assert_true(fx_queue_hints_open(rig->queue, on_hint, &hinted, &hints, &err));
    rig_until(rig, &hinted.subscribed);
    assert_int_equal(hinted.count, 0);
    (void)rig_finish(rig, 1, 1, 0, FX_FINISH_STOP);
    rig_until(rig, &hinted.freed);
}

static void bad_reason(struct rig *rig) {
    for (int reason = -1; reason <= 5; reason += 1) {
        if (reason >= FX_FINISH_STOP && reason <= FX_FINISH_ERROR) continue;
        fx_error err = {0};
        struct fx_gen_end end = {.reason = (enum fx_finish)reason};
        assert_false(fx_queue_finish(rig->queue, &end, NULL, NULL, &err));
        assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    }
}

static const struct rig_row rows[] = {
    {"writes the record",           writes_the_record          },
    {"without a token",             without_a_token            },
    {"each reason has its state",   each_reason_has_its_state  },
    {"frees slot and entry",        frees_slot_and_entry       },
    {"sets the expiry",             sets_the_expiry            },
    {"twice",                       twice                      },
    {"wrong epoch",                 wrong_epoch                },
    {"after a reclaim",             after_a_reclaim            },
    {"unknown id",                  unknown_id                 },
    {"gap",                         gap                        },
    {"cancelled ignores the count", cancelled_ignores_the_count},
    {"out of order keeps lag",      out_of_order_keeps_lag     },
    {"hints the schedulers",        hints_the_schedulers       },
    {"bad reason",                  bad_reason                 },
};
RIG_MAIN(rows)
