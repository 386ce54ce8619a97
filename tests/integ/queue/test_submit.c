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
};
RIG_MAIN(rows)
