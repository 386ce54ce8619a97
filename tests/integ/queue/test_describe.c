/* What those who come back for an answer are told of its generation. */
#include "tests/integ/queue/rig.h"

struct described {
    bool done;
    struct fx_gen_about about;
    char task[64];
};

static void on_about(void *ctx, const struct fx_gen_about *about, const fx_error *err) {
    struct described *to = ctx;
    assert_null(err);
    to->about = *about;
    assert_in_range(about->task.len, 0, sizeof to->task - 1);
    if (about->task.len) memcpy(to->task, about->task.at, about->task.len);
    to->done = true;
}

static struct described describe(struct rig *rig, uint32_t n) {
    struct described to = {0};
    fx_gen_id id = rig_id(n);
    fx_error err = {0};
    assert_true(fx_queue_describe(rig->queue, RIG_MODEL, &id, on_about, &to, &err));
    rig_until(rig, &to.done);
    return to;
}

static void submit(struct rig *rig) {
    struct fx_submit submission = rig_submission(1, 5);
    assert_int_equal(rig_submit_as(rig, &submission).status, FX_QUEUE_OK);
}

static void a_waiting_one_has_its_task(struct rig *rig) {
    submit(rig);
    struct described got = describe(rig, 1);
    assert_int_equal(got.about.status, FX_QUEUE_OK);
    assert_int_equal(got.about.state, FX_GEN_QUEUED);
    assert_int_equal(got.about.tenant, 5);
    assert_int_equal(got.about.prompt_tokens, 10);
    assert_int_equal(got.about.finish, FX_FINISH_NONE);
    assert_string_equal(got.task, "task");
}

/* Of three tokens. */
static void run_to_its_end(struct rig *rig) {
    const uint32_t tokens[] = {4, 5, 6};
    rig_beat(rig, "w", 8);
    (void)rig_dispatch(rig);
    assert_int_equal(rig_pull(rig, "w", 1).count, 1);
    (void)rig_append(rig, 1, 1, 1, tokens, 3);
    assert_int_equal(describe(rig, 1).about.tokens, 3);
    (void)rig_finish(rig, 1, 1, 3, FX_FINISH_LENGTH);
}

static void an_ended_one_has_what_stays_of_it(struct rig *rig) {
    submit(rig);
    run_to_its_end(rig);
    struct described got = describe(rig, 1);
    assert_int_equal(got.about.state, FX_GEN_FINISHED);
    assert_int_equal(got.about.finish, FX_FINISH_LENGTH);
    assert_int_equal(got.about.tokens, 3);
    assert_string_equal(got.task, "about");
    assert_in_range(rig_int(rig, "TTL fx:{m7}:gen:ab000000000000000000000000000001"), 90, 100);
}

static void one_of_fx2_keeps_its_task(struct rig *rig) {
    submit(rig);
    assert_int_equal(rig_int(rig, "HDEL fx:{m7}:gen:ab000000000000000000000000000001 about"), 1);
    run_to_its_end(rig);
    assert_string_equal(describe(rig, 1).task, "task");
}

static void a_cancelled_one_says_so(struct rig *rig) {
    submit(rig);
    (void)rig_cancel(rig, 1);
    struct described got = describe(rig, 1);
    assert_int_equal(got.about.state, FX_GEN_CANCELLED);
    assert_true(got.about.cancelled);
    assert_string_equal(got.task, "about");
}

static void an_unknown_one_is_not_found(struct rig *rig) {
    assert_int_equal(describe(rig, 9).about.status, FX_QUEUE_NOT_FOUND);
}

static const struct rig_row rows[] = {
    {"a waiting one has its task",        a_waiting_one_has_its_task       },
    {"an ended one has what stays of it", an_ended_one_has_what_stays_of_it},
    {"one of fx2 keeps its task",         one_of_fx2_keeps_its_task        },
    {"a cancelled one says so",           a_cancelled_one_says_so          },
    {"an unknown one is not found",       an_unknown_one_is_not_found      },
};
RIG_MAIN(rows)
