#include "tests/integ/queue/rig.h"

static void stores(struct rig *rig) {
    struct fx_submit_result got = rig_submit(rig, 1, 5);
    assert_int_equal(got.status, FX_QUEUE_OK);
    assert_false(got.repeated);
    assert_int_equal(got.state, FX_GEN_QUEUED);
    assert_true(got.seed == 18446744073709551001u);
    struct fx_gen_info info = rig_get(rig, 1);
    assert_int_equal(info.status, FX_QUEUE_OK);
    assert_int_equal(info.state, FX_GEN_QUEUED);
    assert_int_equal(info.tenant, 5);
    assert_int_equal(info.epoch, 1);
    assert_int_equal(info.tokens, 0);
    assert_int_equal(rig_stats(rig).backlog, 1);
    assert_int_equal(rig_int(rig, "TTL fx:{m7}:gen:ab000000000000000000000000000001"), -1);
}

static void repeat_returns_the_stored_seed(struct rig *rig) {
    (void)rig_submit(rig, 1, 5);
    struct fx_submit again = rig_submission(1, 5);
    again.seed = 3;
    struct fx_submit_result got = rig_submit_as(rig, &again);
    assert_int_equal(got.status, FX_QUEUE_OK);
    assert_true(got.repeated);
    assert_true(got.seed == 18446744073709551001u);
    assert_int_equal(rig_stats(rig).backlog, 1);
}

static void repeat_tells_the_state(struct rig *rig) {
    rig_running(rig, 1);
    assert_int_equal(rig_submit(rig, 1, 1).state, FX_GEN_RUNNING);
    (void)rig_cancel(rig, 1);
    assert_true(rig_submit(rig, 1, 1).cancelled);
    (void)rig_finish(rig, 1, 1, 0, FX_FINISH_CANCELLED);
    assert_int_equal(rig_submit(rig, 1, 1).state, FX_GEN_CANCELLED);
    assert_int_equal(rig_stats(rig).waiting, 0);
}

static void id_of_another_tenant(struct rig *rig) {
    (void)rig_submit(rig, 1, 5);
    assert_int_equal(rig_submit(rig, 1, 6).status, FX_QUEUE_TAKEN);
    assert_int_equal(rig_stats(rig).backlog, 1);
}

static void tenant_full(struct rig *rig) {
    for (uint32_t n = 0; n < 32; n++)
        assert_int_equal(rig_submit(rig, n, 5).status, FX_QUEUE_OK);
    assert_int_equal(rig_submit(rig, 32, 5).status, FX_QUEUE_TENANT_FULL);
    assert_int_equal(rig_get(rig, 32).status, FX_QUEUE_NOT_FOUND);
    assert_int_equal(rig_submit(rig, 7, 5).status, FX_QUEUE_OK); /* a repeat is not one more */
    assert_int_equal(rig_submit(rig, 33, 6).status, FX_QUEUE_OK);
    (void)rig_cancel(rig, 3);
    assert_int_equal(rig_submit(rig, 32, 5).status, FX_QUEUE_OK);
}

static void model_full(struct rig *rig) {
    for (uint32_t n = 0; n < 64; n++)
        assert_int_equal(rig_submit(rig, n, 1 + n % 4).status, FX_QUEUE_OK);
    assert_int_equal(rig_submit(rig, 64, 9).status, FX_QUEUE_MODEL_FULL);
    rig_beat(rig, "w", 1);
    assert_int_equal(rig_dispatch(rig).count, 1);
    assert_int_equal(rig_submit(rig, 64, 9).status, FX_QUEUE_OK);
}

static void models_share_nothing(struct rig *rig) {
    struct fx_submit other = rig_submission(1, 5);
    other.model = RIG_MODEL + 1;
    (void)rig_submit(rig, 1, 5);
    assert_false(rig_submit_as(rig, &other).repeated);
    assert_int_equal(rig_stats(rig).backlog, 1);
    assert_int_equal(rig_int(rig, "ZCARD fx:{m8}:wait:5"), 1);
    assert_int_equal(rig_int(rig, "ZCARD fx:{m7}:wait:5"), 1);
}

static void task_too_large(struct rig *rig) {
    struct fx_submit submit = rig_submission(1, 5);
    fx_error err = {0};
    submit.task.len = FX_QUEUE_TASK_BYTES_MAX + 1u;
    assert_false(fx_queue_submit(rig->queue, &submit, NULL, NULL, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
}

/* ---- groups ---- */

struct group {
    bool done;
    uint32_t count;
    struct fx_submit_result results[FX_QUEUE_GROUP_MAX];
};

static void on_group(void *ctx, const struct fx_submit_result *results, const fx_error *err) {
    struct group *group = ctx;
    if (err) fail_msg("%s", err->text);
    for (uint32_t i = 0; i < group->count; i++)
        group->results[i] = results[i];
    group->done = true;
}

/* Submits the generations `from`..`from` + count - 1 together. */
static struct group submit_group(struct rig *rig, uint32_t from, uint32_t count, uint64_t tenant) {
    struct fx_submit_member members[FX_QUEUE_GROUP_MAX];
    struct group group = {.count = count};
    char own[FX_QUEUE_GROUP_MAX][8];
    fx_error err = {0};
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(own[i], sizeof own[i], "-%u", from + i);
        members[i] = (struct fx_submit_member){rig_id(from + i), 1000 + i, fx_span_str(own[i]),
                                               fx_span_str(own[i])};
    }
    const struct fx_submit_group submit = {.model = RIG_MODEL,
                                           .tenant = tenant,
                                           .prompt_tokens = 10,
                                           .expected_tokens = 90,
                                           .task = fx_span_str("task"),
                                           .about = fx_span_str("about"),
                                           .count = count,
                                           .members = members};
    assert_true(fx_queue_submit_group(rig->queue, &submit, on_group, &group, &err));
    rig_until(rig, &group.done);
    return group;
}

static void group_is_admitted(struct rig *rig) {
    struct group group = submit_group(rig, 1, FX_QUEUE_GROUP_MAX, 5);
    for (uint32_t i = 0; i < group.count; i++) {
        assert_int_equal(group.results[i].status, FX_QUEUE_OK);
        assert_false(group.results[i].repeated);
        assert_int_equal(group.results[i].seed, 1000 + i);
        assert_int_equal(group.results[i].state, FX_GEN_QUEUED);
    }
    assert_int_equal(rig_stats(rig).backlog, FX_QUEUE_GROUP_MAX);
    rig_beat(rig, "w", 8);
    assert_int_equal(rig_dispatch(rig).count, 8);
    struct rig_tasks tasks = rig_pull(rig, "w", 8);
    for (uint32_t i = 0; i < 8; i++) { /* in order, each what all have and its own */
        char want[16];
        (void)snprintf(want, sizeof want, "task-%u", 1 + i);
        assert_int_equal(rig_number(&tasks.at[i].id), 1 + i);
        assert_string_equal(tasks.at[i].task, want);
    }
}

static void group_is_refused_whole(struct rig *rig) {
    for (uint32_t n = 0; n < 30; n++)
        assert_int_equal(rig_submit(rig, n, 5).status, FX_QUEUE_OK);
    assert_int_equal(submit_group(rig, 30, 3, 5).results[0].status, FX_QUEUE_TENANT_FULL);
    for (uint32_t n = 30; n < 33; n++)
        assert_int_equal(rig_get(rig, n).status, FX_QUEUE_NOT_FOUND);
    assert_int_equal(rig_stats(rig).backlog, 30);
    assert_int_equal(submit_group(rig, 30, 2, 5).results[1].status, FX_QUEUE_OK); /* fits */
    for (uint32_t n = 100; n < 130; n++)
        assert_int_equal(rig_submit(rig, n, 6 + n % 2).status, FX_QUEUE_OK);
    assert_int_equal(submit_group(rig, 200, 3, 9).results[2].status, FX_QUEUE_MODEL_FULL);
    assert_int_equal(rig_stats(rig).backlog, 62);
    assert_int_equal(submit_group(rig, 200, 2, 9).results[0].status, FX_QUEUE_OK);
}

static void group_again(struct rig *rig) {
    for (uint32_t n = 0; n < 30; n++)
        assert_int_equal(rig_submit(rig, n, 5).status, FX_QUEUE_OK);
    (void)submit_group(rig, 40, 2, 5);
    struct group again = submit_group(rig, 40, 2, 5); /* full, but none of them is one more */
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(again.results[i].status, FX_QUEUE_OK);
        assert_true(again.results[i].repeated);
        assert_int_equal(again.results[i].seed, 1000 + i);
    }
    assert_int_equal(rig_stats(rig).backlog, 32);
    assert_int_equal(submit_group(rig, 41, 2, 5).results[0].status, FX_QUEUE_TENANT_FULL);
}

/* Redis lost one of two: the other stays as it is. */
static void group_partly_there(struct rig *rig) {
    (void)submit_group(rig, 1, 2, 5);
    assert_int_equal(rig_int(rig, "DEL fx:{m7}:gen:ab000000000000000000000000000002"), 1);
    assert_int_equal(rig_int(rig, "ZREM fx:{m7}:wait:5 ab000000000000000000000000000002"), 1);
    struct group again = submit_group(rig, 1, 2, 5);
    assert_int_equal(again.results[1].status, FX_QUEUE_OK);
    assert_true(again.results[0].repeated);
    assert_false(again.results[1].repeated);
    assert_int_equal(rig_get(rig, 2).state, FX_GEN_QUEUED);
}

static void group_with_a_taken_id(struct rig *rig) {
    (void)rig_submit(rig, 2, 6);
    assert_int_equal(submit_group(rig, 1, 2, 5).results[0].status, FX_QUEUE_TAKEN);
    assert_int_equal(rig_get(rig, 1).status, FX_QUEUE_NOT_FOUND);
    assert_int_equal(rig_get(rig, 2).tenant, 6);
}

static void on_hint(void *ctx, uint32_t model) {
    bool *heard = ctx;
    heard[model == RIG_MODEL] = true; /* [0]: subscribed */
}

static void hints_the_schedulers(struct rig *rig) {
    bool heard[2] = {false, false};
    fx_error err = {0};
    fx_queue_hints *hints = NULL;
    assert_true(fx_queue_hints_open(rig->queue, on_hint, heard, &hints, &err));
    rig_until(rig, &heard[0]);
    assert_false(heard[1]);
    (void)rig_submit(rig, 1, 5);
    rig_until(rig, &heard[1]);
    fx_queue_hints_free(hints);
}

static const struct rig_row rows[] = {
    {"stores",                         stores                        },
    {"repeat returns the stored seed", repeat_returns_the_stored_seed},
    {"repeat tells the state",         repeat_tells_the_state        },
    {"id of another tenant",           id_of_another_tenant          },
    {"tenant full",                    tenant_full                   },
    {"model full",                     model_full                    },
    {"models share nothing",           models_share_nothing          },
    {"task too large",                 task_too_large                },
    {"hints the schedulers",           hints_the_schedulers          },
    {"group: admitted",                group_is_admitted             },
    {"group: refused whole",           group_is_refused_whole        },
    {"group: again",                   group_again                   },
    {"group: partly there",            group_partly_there            },
    {"group: a taken id",              group_with_a_taken_id         },
};
RIG_MAIN(rows)
