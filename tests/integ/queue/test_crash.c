/* Redis is killed and comes back: what it acknowledged is there, clients reconnect by themselves.
 */
#include "tests/integ/queue/rig.h"

static void ready(struct rig *rig) {
    fx_error err = {0};
    assert_true(fx_redis_wait_ready(rig->redis, 5000, &err));
    assert_true(fx_redis_wait_ready(rig->redis_b, 5000, &err));
}

static void crash(struct rig *rig) {
    redis_fixture_kill(&rig->server);
    for (int i = 0; i < 300 && (fx_redis_ready(rig->redis) || fx_redis_ready(rig->redis_b)); i++)
        rig_sleep(rig, 10);
    assert_false(fx_redis_ready(rig->redis));
    redis_fixture_restart(&rig->server, NULL);
    ready(rig);
}

static void nothing_acknowledged_is_missing(struct rig *rig) {
    static const uint32_t tokens[] = {11, 12, 13};
    rig_beat(rig, "w", 3);
    for (uint32_t n = 0; n < 6; n++)
        (void)rig_submit(rig, n, 5);
    assert_int_equal(rig_dispatch(rig).count, 3);
    assert_int_equal(rig_pull(rig, "w", 2).count, 2);
    (void)rig_append(rig, 0, 1, 1, tokens, 3);
    (void)rig_append(rig, 1, 1, 1, tokens, 2);
    (void)rig_finish(rig, 1, 1, 2, FX_FINISH_STOP);
    (void)rig_cancel(rig, 5);
    crash(rig);
    struct fx_queue_stats stats = rig_stats(rig);
    assert_int_equal(stats.backlog, 2);
    assert_int_equal(stats.waiting, 3);
    assert_int_equal(stats.running, 1);
    assert_int_equal(rig_log(rig, 0).count, 3);
    assert_int_equal(rig_log(rig, 1).finish, FX_FINISH_STOP);
    assert_int_equal(rig_get(rig, 5).state, FX_GEN_CANCELLED);
    assert_int_equal(rig_lag(rig), 1);
    assert_int_equal(rig_submit(rig, 3, 5).repeated, true);
    assert_int_equal(rig_append(rig, 0, 1, 4, tokens, 1).status, FX_QUEUE_OK);
    assert_int_equal(rig_number(&rig_pull(rig, "w", 3).at[0].id), 2);
}

struct load {
    struct rig *rig;
    uint32_t sent, acknowledged, failed;
    bool over;
    bool stored[4096];
};

static void on_submit(void *ctx, const struct fx_submit_result *result, const fx_error *err) {
    struct load *load = ctx;
    if (err) {
        assert_int_equal(err->code, FX_UNAVAILABLE);
        load->failed++;
    } else {
        load->stored[result->seed] = true;
        load->acknowledged++;
    }
    load->over = load->acknowledged + load->failed == load->sent;
}

/* Killed under load: each submission that was acknowledged is in the backlog afterwards. */
static void killed_under_load(struct rig *rig) {
    static struct load load;
    fx_queue *queue = NULL;
    fx_error err = {0};
    struct fx_queue_opts opts = {.redis = rig->redis, .model_max = 10000, .tenant_max = 10000};
    load = (struct load){.rig = rig};
    assert_true(fx_queue_open(&opts, &queue, &err));
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 50; i++) {
            struct fx_submit submit = rig_submission(load.sent, 5);
            submit.seed = load.sent;
            load.over = false;
            if (!fx_queue_submit(queue, &submit, on_submit, &load, &err)) break;
            load.sent++;
        }
        if (load.acknowledged > 300 && rig->server.pid) redis_fixture_kill(&rig->server);
        (void)event_base_loop(rig->base, EVLOOP_ONCE);
        if (!rig->server.pid && !fx_redis_ready(rig->redis)) break;
    }
    rig_until(rig, &load.over);
    assert_true(load.failed > 0);
    redis_fixture_restart(&rig->server, NULL);
    ready(rig);
    for (uint32_t n = 0; n < load.sent; n++)
        if (load.stored[n]) assert_int_equal(rig_get(rig, n).state, FX_GEN_QUEUED);
    assert_true(rig_stats(rig).backlog >= load.acknowledged);
    fx_queue_free(queue);
}

static void calls_in_flight_fail(struct rig *rig) {
    static struct load load;
    fx_error err = {0};
    load = (struct load){.rig = rig, .sent = 1};
    struct fx_submit submit = rig_submission(0, 5);
    submit.seed = 0;
    assert_true(fx_queue_submit(rig->queue, &submit, on_submit, &load, &err));
    redis_fixture_kill(&rig->server);
    rig_until(rig, &load.over);
    assert_int_equal(load.failed, 1);
    assert_false(fx_queue_submit(rig->queue, &submit, on_submit, &load, &err));
    assert_int_equal(err.code, FX_UNAVAILABLE);
    redis_fixture_restart(&rig->server, NULL);
    ready(rig);
    assert_int_equal(rig_submit(rig, 0, 5).status, FX_QUEUE_OK); /* repeated under the same id */
}

struct seen {
    uint32_t count;
    bool ended, enough;
};

static void on_tokens(void *ctx, const struct fx_gen_tokens *tokens) {
    struct seen *seen = ctx;
    assert_false(tokens->gone);
    assert_int_equal(tokens->first, seen->count + 1);
    seen->count += tokens->count;
    seen->ended = tokens->finish == FX_FINISH_STOP;
}

static void a_watch_goes_on(struct rig *rig) {
    static const uint32_t tokens[] = {1, 2, 3, 4, 5, 6};
    struct seen seen = {0};
    fx_error err = {0};
    fx_watch *watch = NULL;
    fx_gen_id id = rig_id(1);
    rig_running(rig, 1);
    assert_true(fx_queue_watch(rig->queue_b, RIG_MODEL, &id, 0, on_tokens, &seen, &watch, &err));
    (void)rig_append(rig, 1, 1, 1, tokens, 2);
    crash(rig);
    (void)rig_append(rig, 1, 1, 1, tokens, 6); /* the worker sends again what may be lost */
    (void)rig_finish(rig, 1, 1, 6, FX_FINISH_STOP);
    rig_until(rig, &seen.ended);
    assert_int_equal(seen.count, 6);
    fx_watch_free(watch);
}

/* Redis came back without its data: the functions are loaded again. */
static void functions_are_loaded_again(struct rig *rig) {
    redis_fixture_kill(&rig->server);
    rig_sleep(rig, 20);
    redis_fixture_wipe(&rig->server);
    redis_fixture_restart(&rig->server, NULL);
    ready(rig);
    assert_int_equal(rig_submit(rig, 1, 5).repeated, false);
}

static const struct rig_row rows[] = {
    {"nothing acknowledged is missing", nothing_acknowledged_is_missing},
    {"killed under load",               killed_under_load              },
    {"calls in flight fail",            calls_in_flight_fail           },
    {"a watch goes on",                 a_watch_goes_on                },
    {"functions are loaded again",      functions_are_loaded_again     },
};
RIG_MAIN(rows)
