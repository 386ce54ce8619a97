/* The scheduler's table of models, on a real Redis. */
#include "services/scheduler/app.h"
#include "tests/integ/queue/rig.h"

static struct scheduler_app app;

static void app_start(struct rig *rig) {
    app = (struct scheduler_app){.queue = rig->queue, .redis = rig->redis, .redis_ready = true};
    assert_int_equal(pthread_mutex_init(&app.lock, NULL), 0);
}

/* Refreshes and waits until all answers are here. */
static void refresh(struct rig *rig) {
    models_refresh(&app);
    for (int i = 0; i < 300 && (app.listing || fx_redis_inflight(rig->redis)); i++)
        rig_sleep(rig, 5);
    assert_int_equal(fx_redis_inflight(rig->redis), 0);
}

static void found_by_their_worker(struct rig *rig) {
    app_start(rig);
    refresh(rig);
    assert_null(model_find(&app, RIG_MODEL));
    rig_beat(rig, "w", 3);
    refresh(rig);
    const struct model *model = model_find(&app, RIG_MODEL);
    assert_non_null(model);
    assert_string_equal(model->name, "org/tiny");
    assert_int_equal(model->stats.slots, 3);
    assert_true(model_is_fresh(model));
    assert_true(app.shown[model - app.models].used);
}

static void forgotten_when_idle(struct rig *rig) {
    app_start(rig);
    rig_beat(rig, "w", 3);
    refresh(rig);
    struct model *model = model_find(&app, RIG_MODEL);
    assert_non_null(model);
    model->busy_ms -= FORGET_MS; /* but its worker lives */
    refresh(rig);
    assert_true(model->used);
    (void)rig_int(rig, "DEL fx:{m7}:alive");
    refresh(rig);
    assert_true(model->used); /* idle for a moment only */
    model->busy_ms -= FORGET_MS;
    refresh(rig);
    assert_false(model->used);
    assert_false(app.shown[model - app.models].used);
    assert_int_equal(rig_int(rig, "HLEN fx:models"), 0);
    rig_beat(rig, "w", 3);
    refresh(rig);
    assert_non_null(model_find(&app, RIG_MODEL));
}

static void kept_while_work_waits(struct rig *rig) {
    app_start(rig);
    rig_beat(rig, "w", 0);
    (void)rig_submit(rig, 1, 5);
    refresh(rig);
    struct model *model = model_find(&app, RIG_MODEL);
    (void)rig_int(rig, "DEL fx:{m7}:alive");
    model->busy_ms -= FORGET_MS;
    refresh(rig);
    assert_true(model->used);
}

static void a_full_table(struct rig *rig) {
    app_start(rig);
    for (uint32_t n = 1; n <= FX_QUEUE_MODELS_MAX; n++)
        assert_non_null(model_add(&app, n, "x"));
    assert_null(model_add(&app, 1000, "x"));
    assert_non_null(model_add(&app, 5, "y"));
    assert_string_equal(model_find(&app, 5)->name, "y");
    app.models[9].used = false;
    assert_non_null(model_add(&app, 1000, "x"));
}

static void dispatch_asks_again(struct rig *rig) {
    app_start(rig);
    rig_beat(rig, "w", 30);
    (void)rig_submit(rig, 1, 5);
    struct model *model = model_add(&app, RIG_MODEL, "org/tiny");
    model_dispatch(model);
    (void)rig_submit(rig, 2, 5); /* perhaps too late for the one in flight */
    work_hint(&app, RIG_MODEL);
    for (int i = 0; i < 300 && app.dispatched < 2; i++)
        rig_sleep(rig, 5);
    assert_int_equal(app.dispatched, 2);
}

static const struct rig_row rows[] = {
    {"found by their worker", found_by_their_worker},
    {"forgotten when idle",   forgotten_when_idle  },
    {"kept while work waits", kept_while_work_waits},
    {"a full table",          a_full_table         },
    {"dispatch asks again",   dispatch_asks_again  },
};
RIG_MAIN(rows)
