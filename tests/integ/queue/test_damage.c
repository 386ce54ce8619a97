/* Keys that are gone though others are there: the queue goes on with what is left. */
#include "tests/integ/queue/rig.h"

static void three_dispatched(struct rig *rig) {
    rig_beat(rig, "w", 8);
    for (uint32_t n = 1; n <= 3; n++)
        (void)rig_submit(rig, n, 5);
    assert_int_equal(rig_dispatch(rig).count, 3);
}

static void check_pull(struct rig *rig, uint32_t first, uint32_t count) {
    struct rig_tasks tasks = rig_pull(rig, "w", 8);
    assert_int_equal(tasks.count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(rig_number(&tasks.at[i].id), first + i);
    assert_int_equal(rig_lag(rig), 0);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(rig_finish(rig, first + i, 1, 0, FX_FINISH_STOP).status, FX_QUEUE_OK);
    assert_int_equal(rig_int(rig, "XLEN fx:{m7}:tasks"), 0);
    assert_int_equal(rig_stats(rig).waiting, 0);
}

/* Everything goes on as before afterwards. */
static void check_goes_on(struct rig *rig) {
    (void)rig_submit(rig, 9, 5);
    assert_int_equal(rig_dispatch(rig).count, 1);
    assert_int_equal(rig_lag(rig), 1);
    check_pull(rig, 9, 1);
}

static void the_stream(struct rig *rig) {
    three_dispatched(rig);
    assert_int_equal(rig_int(rig, "DEL fx:{m7}:tasks"), 1);
    check_pull(rig, 1, 3);
    check_goes_on(rig);
}

static void the_group(struct rig *rig) {
    three_dispatched(rig);
    assert_int_equal(rig_int(rig, "XGROUP DESTROY fx:{m7}:tasks w"), 1);
    check_pull(rig, 1, 3);
    check_goes_on(rig);
}

static void an_entry(struct rig *rig) {
    three_dispatched(rig);
    assert_int_equal(rig_int(rig, "XDEL fx:{m7}:tasks 2-0"), 1);
    check_pull(rig, 1, 3);
    check_goes_on(rig);
}

static void the_stream_with_tombstones(struct rig *rig) {
    three_dispatched(rig);
    assert_int_equal(rig_cancel(rig, 2).state, FX_GEN_CANCELLED);
    assert_int_equal(rig_int(rig, "DEL fx:{m7}:tasks"), 1);
    assert_int_equal(rig_cancel(rig, 1).state, FX_GEN_CANCELLED);
    check_pull(rig, 3, 1);
    check_goes_on(rig);
}

/* Delivered entries are gone with the stream; the leases are what counts. */
static void the_stream_while_running(struct rig *rig) {
    rig_running(rig, 1);
    assert_int_equal(rig_int(rig, "DEL fx:{m7}:tasks"), 1);
    rig_expire(rig, 1);
    assert_int_equal(rig_reclaim(rig).count, 1);
    assert_int_equal(rig_pull(rig, "w", 1).at[0].epoch, 2);
    assert_int_equal(rig_finish(rig, 1, 2, 0, FX_FINISH_STOP).status, FX_QUEUE_OK);
    check_goes_on(rig);
}

/* A dispatched task whose hash is lost is skipped; submitted again it is a new one. */
static void a_dispatched_hash(struct rig *rig) {
    three_dispatched(rig);
    assert_int_equal(rig_int(rig, "DEL fx:{m7}:gen:ab000000000000000000000000000001"), 1);
    check_pull(rig, 2, 2);
    assert_false(rig_submit(rig, 1, 5).repeated);
    assert_int_equal(rig_dispatch(rig).count, 1);
    check_pull(rig, 1, 1);
}

static void a_waiting_hash(struct rig *rig) {
    rig_beat(rig, "w", 8);
    for (uint32_t n = 1; n <= 3; n++)
        (void)rig_submit(rig, n, 5);
    assert_int_equal(rig_int(rig, "DEL fx:{m7}:gen:ab000000000000000000000000000001"), 1);
    assert_int_equal(rig_dispatch(rig).count, 2);
    assert_int_equal(rig_stats(rig).backlog, 0);
    check_pull(rig, 2, 2);
    check_goes_on(rig);
}

static void a_running_hash(struct rig *rig) {
    rig_running(rig, 1);
    assert_int_equal(rig_int(rig, "DEL fx:{m7}:gen:ab000000000000000000000000000001"), 1);
    rig_expire(rig, 1);
    assert_int_equal(rig_reclaim(rig).count, 0);
    assert_int_equal(rig_stats(rig).running, 0);
    check_goes_on(rig);
}

/* The retry cap: what was given up is told to the operator, in a bounded stream. */
static void dead_letters(struct rig *rig) {
    rig_running(rig, 1);
    for (uint32_t epoch = 1; epoch <= 3; epoch++) {
        rig_expire(rig, 1);
        assert_int_equal(rig_reclaim(rig).failed, epoch == 3);
        (void)rig_pull(rig, "w", 1);
    }
    fx_error err = {0};
    redisReply *reply = NULL;
    if (!fx_redis_sync(rig->redis, 3000, &reply, &err, "XRANGE fx:{m7}:dead - +"))
        fail_msg("%s", err.text);
    assert_int_equal(reply->elements, 1);
    const redisReply *fields = reply->element[0]->element[1];
    static const char *const want[] = {
        "g", "ab000000000000000000000000000001",    "t", "1", "e", "3", "n", "0",
        "d", "given up: 3 workers made no progress"};
    assert_int_equal(fields->elements, FX_TEST_COUNT(want));
    for (size_t i = 0; i < FX_TEST_COUNT(want); i++)
        assert_string_equal(fields->element[i]->str, want[i]);
    freeReplyObject(reply);
}

static void dead_letters_are_bounded(struct rig *rig) {
    for (int i = 0; i < 1000; i++)
        (void)rig_int(rig, "XADD fx:{m7}:dead %d-0 g x", i + 1);
    rig_running(rig, 1);
    for (uint32_t epoch = 1; epoch <= 3; epoch++) {
        rig_expire(rig, 1);
        (void)rig_reclaim(rig);
        (void)rig_pull(rig, "w", 1);
    }
    assert_int_equal(rig_int(rig, "XLEN fx:{m7}:dead"), 1000);
    assert_int_equal(rig_get(rig, 1).state, FX_GEN_FAILED);
}

static void lose_hash(struct rig *rig) {
    assert_int_equal(rig_int(rig, "DEL fx:{m7}:gen:ab000000000000000000000000000001"), 1);
    assert_false(rig_submit(rig, 1, 5).repeated);
}

/* Its gateway is quicker than those who would have skipped it: it is there once. */
static void a_waiting_hash_comes_back(struct rig *rig) {
    (void)rig_submit(rig, 1, 5);
    lose_hash(rig);
    assert_int_equal(rig_stats(rig).backlog, 1);
    rig_beat(rig, "w", 8);
    assert_int_equal(rig_dispatch(rig).count, 1);
    check_pull(rig, 1, 1);
}

static void a_dispatched_hash_comes_back(struct rig *rig) {
    three_dispatched(rig);
    lose_hash(rig);
    struct rig_tasks tasks = rig_pull(rig, "w", 8);
    assert_int_equal(tasks.count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(rig_number(&tasks.at[i].id), 2 + i);
        assert_int_equal(rig_finish(rig, 2 + i, 1, 0, FX_FINISH_STOP).status, FX_QUEUE_OK);
    }
    assert_int_equal(rig_get(rig, 1).state, FX_GEN_QUEUED);
    assert_int_equal(rig_dispatch(rig).count, 1);
    check_pull(rig, 1, 1);
    check_goes_on(rig);
}

static void a_running_hash_comes_back(struct rig *rig) {
    rig_running(rig, 1);
    lose_hash(rig);
    rig_expire(rig, 1);
    assert_int_equal(rig_reclaim(rig).count, 0);
    assert_int_equal(rig_stats(rig).running, 0);
    assert_int_equal(rig_get(rig, 1).state, FX_GEN_QUEUED);
    assert_int_equal(rig_dispatch(rig).count, 1);
    check_pull(rig, 1, 1);
    check_goes_on(rig);
}

static const struct rig_row rows[] = {
    {"the stream",                   the_stream                  },
    {"the group",                    the_group                   },
    {"an entry",                     an_entry                    },
    {"the stream with tombstones",   the_stream_with_tombstones  },
    {"the stream while running",     the_stream_while_running    },
    {"a dispatched hash",            a_dispatched_hash           },
    {"a waiting hash",               a_waiting_hash              },
    {"a running hash",               a_running_hash              },
    {"dead letters",                 dead_letters                },
    {"dead letters are bounded",     dead_letters_are_bounded    },
    {"a waiting hash comes back",    a_waiting_hash_comes_back   },
    {"a dispatched hash comes back", a_dispatched_hash_comes_back},
    {"a running hash comes back",    a_running_hash_comes_back   },
};
RIG_MAIN(rows)
