#include "tests/integ/queue/rig.h"

static void check(struct fx_write_result got, enum fx_queue_status status) {
    assert_string_equal(fx_queue_status_name(got.status), fx_queue_status_name(status));
}

static void keeps_the_lease(struct rig *rig) {
    rig_running(rig, 1);
    for (int i = 0; i < 4; i++) {
        rig_expire(rig, 1);
        check(rig_renew(rig, 1, 1, "w", false), FX_QUEUE_OK);
        assert_int_equal(rig_reclaim(rig).count, 0);
    }
    rig_expire(rig, 1);
    assert_int_equal(rig_reclaim(rig).count, 1);
}

static void wrong_owner(struct rig *rig) {
    rig_running(rig, 1);
    check(rig_renew(rig, 1, 1, "v", false), FX_QUEUE_LEASE_LOST);
}

static void wrong_epoch(struct rig *rig) {
    rig_running(rig, 1);
    check(rig_renew(rig, 1, 2, "w", false), FX_QUEUE_LEASE_LOST);
}

static void unknown_id(struct rig *rig) {
    check(rig_renew(rig, 9, 1, "w", false), FX_QUEUE_NOT_FOUND);
}

static void expired_but_not_reclaimed(struct rig *rig) {
    rig_running(rig, 1);
    rig_expire(rig, 1);
    check(rig_renew(rig, 1, 1, "w", false), FX_QUEUE_OK);
    assert_int_equal(rig_reclaim(rig).count, 0);
}

static void after_a_reclaim(struct rig *rig) {
    rig_running(rig, 1);
    rig_expire(rig, 1);
    (void)rig_reclaim(rig);
    check(rig_renew(rig, 1, 1, "w", false), FX_QUEUE_LEASE_LOST);
    (void)rig_pull(rig, "w", 1); /* the same worker, another epoch */
    check(rig_renew(rig, 1, 1, "w", false), FX_QUEUE_LEASE_LOST);
    check(rig_renew(rig, 1, 2, "w", false), FX_QUEUE_OK);
}

static void after_the_finish(struct rig *rig) {
    rig_running(rig, 1);
    (void)rig_finish(rig, 1, 1, 0, FX_FINISH_STOP);
    check(rig_renew(rig, 1, 1, "w", false), FX_QUEUE_LEASE_LOST);
    assert_int_equal(rig_stats(rig).running, 0);
}

static void tells_of_a_cancel(struct rig *rig) {
    rig_running(rig, 1);
    assert_false(rig_renew(rig, 1, 1, "w", false).cancelled);
    (void)rig_cancel(rig, 1);
    struct fx_write_result got = rig_renew(rig, 1, 1, "w", false);
    check(got, FX_QUEUE_OK);
    assert_true(got.cancelled);
}

static void gives_back(struct rig *rig) {
    static const uint32_t token = 5;
    rig_running(rig, 1);
    (void)rig_append(rig, 1, 1, 1, &token, 1);
    check(rig_renew(rig, 1, 1, "w", true), FX_QUEUE_OK);
    assert_int_equal(rig_reclaim(rig).count, 1);
    struct rig_tasks tasks = rig_pull(rig, "v", 1);
    assert_int_equal(tasks.at[0].epoch, 2);
    assert_int_equal(tasks.at[0].logged_count, 1);
}

static const struct rig_row rows[] = {
    {"keeps the lease",           keeps_the_lease          },
    {"wrong owner",               wrong_owner              },
    {"wrong epoch",               wrong_epoch              },
    {"unknown id",                unknown_id               },
    {"expired but not reclaimed", expired_but_not_reclaimed},
    {"after a reclaim",           after_a_reclaim          },
    {"after the finish",          after_the_finish         },
    {"tells of a cancel",         tells_of_a_cancel        },
    {"gives back",                gives_back               },
};
RIG_MAIN(rows)
