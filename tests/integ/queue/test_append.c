#include "tests/integ/queue/rig.h"

static const uint32_t tokens[] = {11, 12, 13, 14, 15};

static void check(struct fx_write_result got, enum fx_queue_status status, uint32_t last) {
    assert_string_equal(fx_queue_status_name(got.status), fx_queue_status_name(status));
    assert_int_equal(got.last, last);
}

static void check_log(struct rig *rig, const uint32_t *want, uint32_t count) {
    struct fx_gen_tokens log = rig_log(rig, 1);
    assert_int_equal(log.count, count);
    if (count) assert_memory_equal(log.tokens, want, count * sizeof *want);
}

static void in_order(struct rig *rig) {
    rig_running(rig, 1);
    check(rig_append(rig, 1, 1, 1, tokens, 1), FX_QUEUE_OK, 1);
    check(rig_append(rig, 1, 1, 2, tokens + 1, 3), FX_QUEUE_OK, 4);
    check_log(rig, tokens, 4);
    assert_int_equal(rig_get(rig, 1).tokens, 4);
}

static void wrong_epoch(struct rig *rig) {
    rig_running(rig, 1);
    check(rig_append(rig, 1, 2, 1, tokens, 1), FX_QUEUE_LEASE_LOST, 0);
    check(rig_append(rig, 1, 0, 1, tokens, 1), FX_QUEUE_LEASE_LOST, 0);
    check_log(rig, NULL, 0);
}

static void gap(struct rig *rig) {
    rig_running(rig, 1);
    check(rig_append(rig, 1, 1, 2, tokens, 1), FX_QUEUE_GAP, 0);
    (void)rig_append(rig, 1, 1, 1, tokens, 2);
    check(rig_append(rig, 1, 1, 4, tokens, 1), FX_QUEUE_GAP, 2);
    check_log(rig, tokens, 2);
}

static void equal_repeat(struct rig *rig) {
    rig_running(rig, 1);
    (void)rig_append(rig, 1, 1, 1, tokens, 3);
    check(rig_append(rig, 1, 1, 1, tokens, 3), FX_QUEUE_OK, 3);
    check(rig_append(rig, 1, 1, 2, tokens + 1, 1), FX_QUEUE_OK, 3);
    check_log(rig, tokens, 3);
}

static void repeat_and_more(struct rig *rig) {
    rig_running(rig, 1);
    (void)rig_append(rig, 1, 1, 1, tokens, 3);
    check(rig_append(rig, 1, 1, 2, tokens + 1, 4), FX_QUEUE_OK, 5);
    check_log(rig, tokens, 5);
}

static void different_repeat(struct rig *rig) {
    static const uint32_t other[] = {11, 99, 13, 14};
    rig_running(rig, 1);
    (void)rig_append(rig, 1, 1, 1, tokens, 3);
    check(rig_append(rig, 1, 1, 1, other, 4), FX_QUEUE_ABANDON, 3);
    check(rig_append(rig, 1, 1, 2, other + 1, 1), FX_QUEUE_ABANDON, 3);
    check_log(rig, tokens, 3);
}

static void unknown_id(struct rig *rig) {
    check(rig_append(rig, 9, 1, 1, tokens, 1), FX_QUEUE_NOT_FOUND, 0);
}

static void not_taken_yet(struct rig *rig) {
    rig_beat(rig, "w", 1);
    (void)rig_submit(rig, 1, 1);
    check(rig_append(rig, 1, 1, 1, tokens, 1), FX_QUEUE_LEASE_LOST, 0);
    (void)rig_dispatch(rig);
    check(rig_append(rig, 1, 1, 1, tokens, 1), FX_QUEUE_LEASE_LOST, 0);
}

static void after_the_finish(struct rig *rig) {
    rig_running(rig, 1);
    (void)rig_finish(rig, 1, 1, 0, FX_FINISH_STOP);
    check(rig_append(rig, 1, 1, 1, tokens, 1), FX_QUEUE_LEASE_LOST, 0);
}

static void after_a_cancel(struct rig *rig) {
    rig_running(rig, 1);
    (void)rig_append(rig, 1, 1, 1, tokens, 2);
    (void)rig_cancel(rig, 1);
    struct fx_write_result got = rig_append(rig, 1, 1, 3, tokens + 2, 1);
    check(got, FX_QUEUE_CANCELLED, 2);
    assert_true(got.cancelled);
    check_log(rig, tokens, 2);
}

static void renews_the_lease(struct rig *rig) {
    rig_running(rig, 1);
    for (uint32_t i = 0; i < 3; i++) {
        rig_expire(rig, 1);
        check(rig_append(rig, 1, 1, i + 1, tokens + i, 1), FX_QUEUE_OK, i + 1);
        assert_int_equal(rig_reclaim(rig).count, 0);
    }
    rig_expire(rig, 1);
    check(rig_append(rig, 1, 1, 1, tokens, 1), FX_QUEUE_OK, 3); /* a repeat is a sign of life */
    assert_int_equal(rig_reclaim(rig).count, 0);
    rig_expire(rig, 1);
    check(rig_append(rig, 1, 1, 9, tokens, 1), FX_QUEUE_GAP, 3); /* a refusal renews nothing */
    assert_int_equal(rig_reclaim(rig).count, 1);
}

/* The frozen worker that wakes up: its lease went on, its appends are refused. */
static void after_a_reclaim(struct rig *rig) {
    rig_running(rig, 1);
    (void)rig_append(rig, 1, 1, 1, tokens, 2);
    rig_expire(rig, 1);
    assert_int_equal(rig_reclaim(rig).count, 1);
    check(rig_append(rig, 1, 1, 3, tokens + 2, 1), FX_QUEUE_LEASE_LOST, 2);
    assert_int_equal(rig_pull(rig, "v", 1).at[0].epoch, 2);
    check(rig_append(rig, 1, 1, 3, tokens + 2, 1), FX_QUEUE_LEASE_LOST, 2);
    check(rig_append(rig, 1, 2, 3, tokens + 2, 1), FX_QUEUE_OK, 3);
    check_log(rig, tokens, 3);
}

static void largest(struct rig *rig) {
    static uint32_t many[FX_QUEUE_APPEND_MAX];
    for (uint32_t i = 0; i < FX_QUEUE_APPEND_MAX; i++)
        many[i] = UINT32_MAX - i;
    rig_running(rig, 1);
    check(rig_append(rig, 1, 1, 1, many, FX_QUEUE_APPEND_MAX), FX_QUEUE_OK, FX_QUEUE_APPEND_MAX);
    check(rig_append(rig, 1, 1, 1, many, FX_QUEUE_APPEND_MAX), FX_QUEUE_OK, FX_QUEUE_APPEND_MAX);
    check_log(rig, many, FX_QUEUE_APPEND_MAX);
}

static void bad_arguments(struct rig *rig) {
    struct fx_append bad[] = {
        {RIG_MODEL, rig_id(1), 1, 0, tokens, 1,                       NULL, 0, NULL},
        {RIG_MODEL, rig_id(1), 1, 1, tokens, 0,                       NULL, 0, NULL},
        {RIG_MODEL, rig_id(1), 1, 1, tokens, FX_QUEUE_APPEND_MAX + 1, NULL, 0, NULL},
    };
    for (size_t i = 0; i < FX_TEST_COUNT(bad); i++) {
        fx_error err = {0};
        assert_false(fx_queue_append(rig->queue, &bad[i], NULL, NULL, &err));
        assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    }
}

struct many {
    struct fx_write_result result[8];
    uint32_t answers;
    bool done;
};

static void on_append(void *ctx, size_t index, const struct fx_write_result *result,
                      const fx_error *err) {
    struct many *many = ctx;
    assert_null(err);
    many->result[index] = *result;
    many->done = --many->answers == 0;
}

static void many_in_one_write(struct rig *rig) {
    struct many many = {.answers = 8};
    struct fx_append appends[8];
    fx_error err = {0};
    rig_beat(rig, "w", 8);
    for (uint32_t n = 0; n < 8; n++) {
        (void)rig_submit(rig, n, 1);
        appends[n] =
            (struct fx_append){RIG_MODEL, rig_id(n), 1, 1, tokens, 1 + n % 5, NULL, 0, NULL};
    }
    (void)rig_dispatch(rig);
    assert_int_equal(rig_pull(rig, "w", 8).count, 8);
    appends[3].epoch = 7;
    assert_true(fx_queue_append_many(rig->queue, appends, 8, on_append, &many, &err));
    rig_until(rig, &many.done);
    for (uint32_t n = 0; n < 8; n++) {
        if (n == 3)
            check(many.result[n], FX_QUEUE_LEASE_LOST, 0);
        else
            check(many.result[n], FX_QUEUE_OK, 1 + n % 5);
    }
}

static void many_is_all_or_nothing(struct rig *rig) {
    static struct fx_append appends[4097];
    fx_error err = {0};
    rig_running(rig, 1);
    for (size_t i = 0; i < FX_TEST_COUNT(appends); i++)
        appends[i] = (struct fx_append){RIG_MODEL, rig_id(1), 1, 1, tokens, 1, NULL, 0, NULL};
    assert_false(
        fx_queue_append_many(rig->queue, appends, FX_TEST_COUNT(appends), on_append, NULL, &err));
    assert_int_equal(err.code, FX_RESOURCE_EXHAUSTED);
    rig_sleep(rig, 50);
    check_log(rig, NULL, 0);
}

static const struct rig_row rows[] = {
    {"in order",               in_order              },
    {"wrong epoch",            wrong_epoch           },
    {"gap",                    gap                   },
    {"equal repeat",           equal_repeat          },
    {"repeat and more",        repeat_and_more       },
    {"different repeat",       different_repeat      },
    {"unknown id",             unknown_id            },
    {"not taken yet",          not_taken_yet         },
    {"after the finish",       after_the_finish      },
    {"after a cancel",         after_a_cancel        },
    {"renews the lease",       renews_the_lease      },
    {"after a reclaim",        after_a_reclaim       },
    {"largest",                largest               },
    {"bad arguments",          bad_arguments         },
    {"many in one write",      many_in_one_write     },
    {"many is all or nothing", many_is_all_or_nothing},
};
RIG_MAIN(rows)
