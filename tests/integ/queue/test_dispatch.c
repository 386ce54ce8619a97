#include "tests/integ/queue/rig.h"

static void nothing_without_workers(struct rig *rig) {
    (void)rig_submit(rig, 1, 5);
    assert_int_equal(rig_dispatch(rig).count, 0);
    assert_int_equal(rig_get(rig, 1).state, FX_GEN_QUEUED);
}

static void nothing_to_do(struct rig *rig) {
    rig_beat(rig, "w", 4);
    assert_int_equal(rig_dispatch(rig).count, 0);
}

static void never_over_free_slots(struct rig *rig) {
    rig_beat(rig, "a", 2);
    rig_beat(rig, "b", 3);
    for (uint32_t n = 0; n < 20; n++)
        (void)rig_submit(rig, n, 5);
    assert_int_equal(rig_dispatch(rig).count, 5);
    assert_int_equal(rig_dispatch(rig).count, 0);
    assert_int_equal(rig_stats(rig).slots_free, 0);
    assert_int_equal(rig_pull(rig, "a", 2).count, 2); /* taken ones still hold their slots */
    assert_int_equal(rig_dispatch(rig).count, 0);
    assert_int_equal(rig_finish(rig, 0, 1, 0, FX_FINISH_STOP).status, FX_QUEUE_OK);
    assert_int_equal(rig_dispatch(rig).count, 1);
    struct fx_queue_stats stats = rig_stats(rig);
    assert_int_equal(stats.running, 1);
    assert_int_equal(stats.backlog, 14);
    assert_int_equal(stats.waiting, 18);
    assert_int_equal(stats.workers, 2);
    assert_int_equal(stats.slots, 5);
}

static void a_leaving_worker_counts_no_slots(struct rig *rig) {
    struct fx_worker_info leaving = {.worker = "a", .slots = 4, .leaving = true};
    rig_beat_as(rig, &leaving);
    (void)rig_submit(rig, 1, 5);
    assert_int_equal(rig_dispatch(rig).count, 0);
    assert_int_equal(rig_stats(rig).workers, 0);
}

static void a_silent_worker_counts_no_slots(struct rig *rig) {
    rig_beat(rig, "a", 4);
    (void)rig_submit(rig, 1, 5);
    (void)rig_int(rig, "ZINCRBY fx:{m7}:alive -5001 a");
    assert_int_equal(rig_dispatch(rig).count, 0);
    rig_beat(rig, "a", 4);
    assert_int_equal(rig_dispatch(rig).count, 1);
}

static void first_come_first_served(struct rig *rig) {
    rig_beat(rig, "w", 16);
    for (uint32_t n = 0; n < 16; n++)
        (void)rig_submit(rig, n, 5);
    assert_int_equal(rig_dispatch(rig).count, 16);
    struct rig_tasks tasks = rig_pull(rig, "w", 16);
    for (uint32_t n = 0; n < 16; n++)
        assert_int_equal(rig_number(&tasks.at[n].id), n);
}

static void more_than_one_round(struct rig *rig) {
    rig_beat(rig, "w", 60);
    for (uint32_t n = 0; n < 60; n++)
        (void)rig_submit(rig, n, 1 + n / 30);
    assert_int_equal(rig_dispatch(rig).count, 60);
    assert_int_equal(rig_stats(rig).backlog, 0);
}

/* Serves one at a time and counts whose it was; every tenant always has a backlog. */
static void serve(struct rig *rig, uint32_t turns, uint32_t *next, const uint32_t *weights,
                  uint32_t *served, size_t tenants) {
    for (uint32_t turn = 0; turn < turns; turn++) {
        assert_int_equal(rig_dispatch(rig).count, 1);
        struct rig_tasks tasks = rig_pull(rig, "w", 1);
        assert_int_equal(tasks.count, 1);
        uint32_t n = rig_number(&tasks.at[0].id), tenant = n >> 16;
        served[tenant]++;
        assert_int_equal(rig_finish(rig, n, 1, 0, FX_FINISH_STOP).status, FX_QUEUE_OK);
        struct fx_submit more = rig_submission(tenant << 16 | (*next)++, tenant);
        more.weight = weights[tenant];
        more.prompt_tokens = 100;
        more.expected_tokens = 0; /* the guess is right: nothing to settle */
        (void)rig_submit_as(rig, &more);
        assert_true(tenant < tenants);
    }
}

static void seed_backlog(struct rig *rig, uint32_t tenant, uint32_t weight, uint32_t count,
                         uint32_t *next) {
    for (uint32_t i = 0; i < count; i++) {
        struct fx_submit submit = rig_submission(tenant << 16 | (*next)++, tenant);
        submit.weight = weight;
        submit.prompt_tokens = 100;
        submit.expected_tokens = 0;
        (void)rig_submit_as(rig, &submit);
    }
}

static void fair_by_weight(struct rig *rig) {
    static const uint32_t weights[] = {0, 1, 2, 4};
    uint32_t served[4] = {0}, next = 1;
    rig_beat(rig, "w", 1);
    for (uint32_t tenant = 1; tenant <= 3; tenant++)
        seed_backlog(rig, tenant, weights[tenant], 8, &next);
    serve(rig, 140, &next, weights, served, 4);
    assert_in_range(served[1], 19, 21);
    assert_in_range(served[2], 39, 41);
    assert_in_range(served[3], 79, 81);
}

static void idleness_earns_nothing(struct rig *rig) {
    static const uint32_t weights[] = {0, 1, 1};
    uint32_t served[3] = {0}, next = 1;
    rig_beat(rig, "w", 1);
    seed_backlog(rig, 1, 1, 4, &next);
    serve(rig, 50, &next, weights, served, 3); /* tenant 2 sleeps */
    seed_backlog(rig, 2, 1, 4, &next);
    memset(served, 0, sizeof served);
    serve(rig, 20, &next, weights, served, 3);
    assert_in_range(served[1], 9, 11);
    assert_in_range(served[2], 9, 11);
}

/* Tenant 1's generations cost ten times what was guessed: it gets a tenth of the turns. */
static void settled_by_real_cost(struct rig *rig) {
    static uint32_t tokens[90];
    uint32_t served[3] = {0}, next = 1;
    rig_beat(rig, "w", 1);
    for (uint32_t turn = 0; turn < 55; turn++) {
        for (uint32_t tenant = 1; tenant <= 2 && turn == 0; tenant++)
            for (uint32_t i = 0; i < 4; i++) {
                struct fx_submit submit = rig_submission(tenant << 16 | next++, tenant);
                submit.expected_tokens = 0;
                (void)rig_submit_as(rig, &submit);
            }
        assert_int_equal(rig_dispatch(rig).count, 1);
        struct rig_tasks tasks = rig_pull(rig, "w", 1);
        uint32_t n = rig_number(&tasks.at[0].id), tenant = n >> 16;
        uint32_t made = tenant == 1 ? 90 : 0;
        served[tenant]++;
        if (made) (void)rig_append(rig, n, 1, 1, tokens, made);
        assert_int_equal(rig_finish(rig, n, 1, made, FX_FINISH_STOP).status, FX_QUEUE_OK);
        struct fx_submit more = rig_submission(tenant << 16 | next++, tenant);
        more.expected_tokens = 0;
        (void)rig_submit_as(rig, &more);
    }
    assert_in_range(served[1], 4, 6);
    assert_in_range(served[2], 49, 51);
}

static void debts_end_with_the_work(struct rig *rig) {
    rig_running(rig, 1);
    assert_int_equal(rig_int(rig, "ZCARD fx:{m7}:debt"), 1);
    (void)rig_finish(rig, 1, 1, 0, FX_FINISH_STOP);
    assert_int_equal(rig_int(rig, "ZCARD fx:{m7}:debt"), 0);
    assert_int_equal(rig_int(rig, "HEXISTS fx:{m7}:meta v"), 0);
}

/* Tenant 1 has plenty waiting, and costs less than was guessed: its tag goes back behind those it
 * was served at. Then there is one slot. */
static void hog(struct rig *rig, uint32_t turns) {
    rig_beat(rig, "w", 3);
    for (uint32_t n = 0; n < 30; n++)
        (void)rig_submit(rig, n, 1);
    for (uint32_t turn = 0; turn < turns; turn++) {
        assert_int_equal(rig_dispatch(rig).count, 3);
        struct rig_tasks tasks = rig_pull(rig, "w", 3);
        assert_int_equal(tasks.count, 3);
        for (size_t i = 0; i < 3; i++)
            (void)rig_finish(rig, rig_number(&tasks.at[i].id), 1, 0, FX_FINISH_STOP);
    }
    rig_beat(rig, "w", 1);
}

/* The next that is dispatched; one slot is free. It ends without a token. */
static uint32_t next_of(struct rig *rig) {
    assert_int_equal(rig_dispatch(rig).count, 1);
    struct rig_tasks tasks = rig_pull(rig, "w", 1);
    assert_int_equal(tasks.count, 1);
    uint32_t n = rig_number(&tasks.at[0].id);
    (void)rig_finish(rig, n, 1, 0, FX_FINISH_STOP);
    return n;
}

static void who_begins_to_wait_is_next(struct rig *rig) {
    for (uint32_t turns = 1; turns <= 8; turns++) {
        rig_flush(rig);
        hog(rig, turns);
        for (uint32_t tenant = 9; tenant >= 2; tenant--) /* by no order but that of submission */
            (void)rig_submit(rig, 100 - tenant, tenant);
        for (uint32_t tenant = 9; tenant >= 2; tenant--)
            assert_int_equal(next_of(rig), 100 - tenant);
        assert_in_range(next_of(rig), 0, 29);
    }
    assert_int_equal(rig_int(rig, "HEXISTS fx:{m7}:meta from:2"), 0);
    assert_int_equal(rig_int(rig, "HEXISTS fx:{m7}:meta from:1"), 1);
}

static void submit_cost(struct rig *rig, uint32_t n, uint64_t tenant, uint32_t prompt,
                        uint32_t guessed) {
    struct fx_submit submit = rig_submission(n, tenant);
    submit.prompt_tokens = prompt;
    submit.expected_tokens = guessed;
    (void)rig_submit_as(rig, &submit);
}

/* A refund of what was charged before a tenant was idle is no credit for that time. */
static void a_refund_is_no_credit(struct rig *rig) {
    rig_beat(rig, "w", 2);
    submit_cost(rig, 1, 2, 10, 490);
    assert_int_equal(rig_dispatch(rig).count, 1);
    assert_int_equal(rig_pull(rig, "w", 1).count, 1);
    for (uint32_t n = 10; n < 40; n++)
        submit_cost(rig, n, 1, 50, 0);
    for (uint32_t n = 10; n < 30; n++)
        assert_int_equal(next_of(rig), n);
    for (uint32_t n = 50; n < 60; n++)
        submit_cost(rig, n, 2, 50, 0);
    (void)rig_dispatch(rig);                        /* one of tenant 2, who is next */
    (void)rig_finish(rig, 1, 1, 0, FX_FINISH_STOP); /* 490 back */
    (void)rig_finish(rig, rig_number(&rig_pull(rig, "w", 1).at[0].id), 1, 0, FX_FINISH_STOP);
    uint32_t served = 0;
    for (uint32_t turn = 0; turn < 8; turn++) {
        (void)rig_dispatch(rig);
        struct rig_tasks tasks = rig_pull(rig, "w", 1);
        assert_int_equal(tasks.count, 1);
        uint32_t n = rig_number(&tasks.at[0].id);
        served += n >= 50;
        (void)rig_finish(rig, n, 1, 0, FX_FINISH_STOP);
    }
    assert_in_range(served, 3, 5);
}

struct race {
    uint32_t answers, moved;
    bool done;
};

static void on_race(void *ctx, const struct fx_count_result *result, const fx_error *err) {
    struct race *race = ctx;
    assert_null(err);
    race->moved += result->count;
    race->done = --race->answers == 0;
}

static void two_schedulers(struct rig *rig) {
    fx_error err = {0};
    struct race race = {.answers = 8};
    rig_beat(rig, "w", 20);
    for (uint32_t n = 0; n < 30; n++)
        (void)rig_submit(rig, n, 1 + n % 3);
    for (int i = 0; i < 4; i++) {
        assert_true(fx_queue_dispatch(rig->queue, RIG_MODEL, on_race, &race, &err));
        assert_true(fx_queue_dispatch(rig->queue_b, RIG_MODEL, on_race, &race, &err));
    }
    rig_until(rig, &race.done);
    assert_int_equal(race.moved, 20);
    assert_int_equal(rig_lag(rig), 20);
    assert_int_equal(rig_int(rig, "ZCARD fx:{m7}:ready"), 20);
    struct rig_tasks tasks = rig_pull(rig, "w", 30);
    assert_int_equal(tasks.count, 20);
    for (size_t i = 0; i < tasks.count; i++)
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(rig_number(&tasks.at[i].id), rig_number(&tasks.at[j].id));
}

static const struct rig_row rows[] = {
    {"nothing without workers",          nothing_without_workers         },
    {"nothing to do",                    nothing_to_do                   },
    {"never over free slots",            never_over_free_slots           },
    {"a leaving worker counts no slots", a_leaving_worker_counts_no_slots},
    {"a silent worker counts no slots",  a_silent_worker_counts_no_slots },
    {"first come, first served",         first_come_first_served         },
    {"more than one round",              more_than_one_round             },
    {"fair by weight 1:2:4",             fair_by_weight                  },
    {"idleness earns nothing",           idleness_earns_nothing          },
    {"settled by real cost",             settled_by_real_cost            },
    {"debts end with the work",          debts_end_with_the_work         },
    {"who begins to wait is next",       who_begins_to_wait_is_next      },
    {"a refund is no credit",            a_refund_is_no_credit           },
    {"two schedulers",                   two_schedulers                  },
};
RIG_MAIN(rows)
