/* What a worker puts back when Redis has lost it: the generation as its owner left it, unless
 * another has it by now. Each row makes Redis forget something and tells what must come of it. */
#include "tests/integ/queue/rig.h"

static const uint32_t tokens[] = {11, 12, 13, 14, 15};
enum { COUNT = 5, TENANT = 1 };

static void on_write(void *ctx, const struct fx_write_result *result, const fx_error *err) {
    if (err) fail_msg("%s", err->text);
    *(struct fx_write_result *)ctx = *result;
}

static struct fx_write_result restore_as(struct rig *rig, uint32_t epoch, const char *worker) {
    struct fx_write_result result = {.status = (enum fx_queue_status)99};
    struct fx_submit submit = rig_submission(1, TENANT);
    const struct fx_restore restore = {
        .model = RIG_MODEL,
        .id = rig_id(1),
        .epoch = epoch,
        .worker = worker,
        .numerics_id = "exact/1",
        .terms = {.tenant = submit.tenant,
                  .seed = submit.seed,
                  .weight = 1,
                  .prompt_tokens = submit.prompt_tokens,
                  .expected_tokens = submit.expected_tokens,
                  .retain_s = 100},
        .task = submit.task,
        .about = submit.about,
    };
    assert_true(fx_queue_restore(rig->queue, &restore, on_write, &result, &(fx_error){0}));
    for (int i = 0; i < 300 && (int)result.status == 99; i++)
        rig_sleep(rig, 10);
    return result;
}

static struct fx_write_result restore(struct rig *rig) {
    return restore_as(rig, 1, "w");
}

/* Sends again what is missing and ends it, as a worker does. */
static void complete(struct rig *rig, uint32_t epoch, uint32_t last) {
    if (last < COUNT)
        assert_int_equal(rig_append(rig, 1, epoch, last + 1, tokens + last, COUNT - last).status,
                         FX_QUEUE_OK);
    assert_int_equal(rig_finish(rig, 1, epoch, COUNT, FX_FINISH_STOP).status, FX_QUEUE_OK);
    struct fx_gen_tokens log = rig_log(rig, 1);
    assert_int_equal(log.count, COUNT);
    assert_memory_equal(log.tokens, tokens, sizeof tokens);
    assert_int_equal(log.finish, FX_FINISH_STOP);
    assert_int_equal(rig_get(rig, 1).state, FX_GEN_FINISHED);
    assert_in_range(rig_int(rig, "TTL fx:{m7}:log:ab000000000000000000000000000001"), 95, 100);
}

/* Nothing waits, runs, or is owed. */
static void check_empty(struct rig *rig) {
    struct fx_queue_stats stats = rig_stats(rig);
    assert_int_equal(stats.waiting, 0);
    assert_int_equal(stats.running, 0);
    assert_int_equal(rig_int(rig, "EXISTS fx:{m7}:tenants fx:{m7}:debt fx:{m7}:wait:1"), 0);
    assert_int_equal(rig_pull(rig, "v", 4).count, 0);
}

static void all_was_lost(struct rig *rig) {
    struct fx_write_result got = restore(rig);
    assert_int_equal(got.status, FX_QUEUE_OK);
    assert_int_equal(got.last, 0);
    assert_int_equal(rig_get(rig, 1).state, FX_GEN_RUNNING);
    assert_int_equal(rig_stats(rig).running, 1);
    assert_true(rig_submit(rig, 1, TENANT).repeated); /* its gateway comes too */
    complete(rig, 1, 0);
    check_empty(rig);
}

static void submitted_only(struct rig *rig) {
    (void)rig_submit(rig, 1, TENANT);
    (void)rig_submit(rig, 2, TENANT);
    assert_int_equal(restore(rig).status, FX_QUEUE_OK);
    assert_int_equal(rig_stats(rig).backlog, 1);
    rig_beat(rig, "v", 4);
    assert_int_equal(rig_dispatch(rig).count, 1);
    assert_int_equal(rig_number(&rig_pull(rig, "v", 4).at[0].id), 2);
    complete(rig, 1, 0);
    assert_int_equal(rig_finish(rig, 2, 1, 0, FX_FINISH_STOP).status, FX_QUEUE_OK);
    check_empty(rig);
}

static void dispatched_only(struct rig *rig) {
    (void)rig_submit(rig, 1, TENANT);
    rig_beat(rig, "v", 4);
    assert_int_equal(rig_dispatch(rig).count, 1);
    assert_int_equal(restore(rig).status, FX_QUEUE_OK);
    assert_int_equal(rig_lag(rig), 0);
    assert_int_equal(rig_pull(rig, "v", 4).count, 0);
    complete(rig, 1, 0);
    check_empty(rig);
}

static void tokens_lost(struct rig *rig) {
    rig_running(rig, 1);
    assert_int_equal(rig_append(rig, 1, 1, 1, tokens, 2).last, 2);
    assert_int_equal(restore(rig).last, 2);
    complete(rig, 1, 2);
    check_empty(rig);
}

/* The reclaim and the delivery of epoch 2 were lost: epoch 1's owner is known as such. */
static void an_earlier_owner_is_known(struct rig *rig) {
    rig_running(rig, 1);
    assert_int_equal(rig_append(rig, 1, 1, 1, tokens, 1).last, 1);
    assert_int_equal(restore_as(rig, 2, "v").status, FX_QUEUE_OK);
    assert_int_equal(rig_append(rig, 1, 1, 2, tokens + 1, 1).status, FX_QUEUE_LEASE_LOST);
    complete(rig, 2, 1);
    check_empty(rig);
}

/* Another has been given the same epoch: it goes on, whoever had it before the loss. */
static void another_has_the_epoch(struct rig *rig) {
    rig_running(rig, 1);
    assert_int_equal(restore_as(rig, 1, "v").status, FX_QUEUE_LEASE_LOST);
    const struct fx_append append = {RIG_MODEL, rig_id(1), 1, 1, tokens, 1, NULL, 0, "v"};
    struct fx_write_result result = {.status = (enum fx_queue_status)99};
    assert_true(fx_queue_append(rig->queue, &append, on_write, &result, &(fx_error){0}));
    for (int i = 0; i < 300 && (int)result.status == 99; i++)
        rig_sleep(rig, 10);
    assert_int_equal(result.status, FX_QUEUE_LEASE_LOST);
    complete(rig, 1, 0);
}

static void a_later_epoch(struct rig *rig) {
    rig_running(rig, 1);
    rig_expire(rig, 1);
    assert_int_equal(rig_reclaim(rig).count, 1);
    assert_int_equal(restore(rig).status, FX_QUEUE_LEASE_LOST);
    assert_int_equal(rig_get(rig, 1).epoch, 2);
}

static void ended(struct rig *rig) {
    rig_running(rig, 1);
    assert_int_equal(rig_append(rig, 1, 1, 1, tokens, COUNT).last, COUNT);
    assert_int_equal(rig_finish(rig, 1, 1, COUNT, FX_FINISH_STOP).status, FX_QUEUE_OK);
    assert_int_equal(restore(rig).status, FX_QUEUE_LEASE_LOST);
    check_empty(rig);
}

static void cancelled_meanwhile(struct rig *rig) {
    rig_running(rig, 1);
    (void)rig_cancel(rig, 1);
    struct fx_write_result got = restore(rig);
    assert_int_equal(got.status, FX_QUEUE_OK);
    assert_true(got.cancelled);
}

static void another_tenants_id(struct rig *rig) {
    (void)rig_submit(rig, 1, TENANT + 1);
    assert_int_equal(restore(rig).status, FX_QUEUE_LEASE_LOST);
    assert_int_equal(rig_get(rig, 1).state, FX_GEN_QUEUED);
}

static const struct rig_row rows[] = {
    {"all was lost",              all_was_lost             },
    {"submitted only",            submitted_only           },
    {"dispatched only",           dispatched_only          },
    {"tokens lost",               tokens_lost              },
    {"an earlier owner is known", an_earlier_owner_is_known},
    {"another has the epoch",     another_has_the_epoch    },
    {"a later epoch",             a_later_epoch            },
    {"ended",                     ended                    },
    {"cancelled meanwhile",       cancelled_meanwhile      },
    {"another tenant's id",       another_tenants_id       },
};
RIG_MAIN(rows)
