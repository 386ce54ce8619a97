#include "tests/integ/queue/rig.h"

static void empty(struct rig *rig) {
    struct fx_queue_stats stats = rig_stats(rig);
    assert_int_equal(stats.model, RIG_MODEL);
    assert_int_equal(stats.waiting + stats.running + stats.workers + stats.slots, 0);
}

static void adds_up_workers(struct rig *rig) {
    struct fx_worker_info small = {.worker = "a", .slots = 2, .slots_free = 1, .context_max = 128};
    struct fx_worker_info large = {.worker = "b", .slots = 3, .slots_free = 3, .context_max = 999};
    struct fx_worker_info gone = {.worker = "c", .slots = 9, .leaving = true, .context_max = 5000};
    rig_beat_as(rig, &small);
    rig_beat_as(rig, &large);
    rig_beat_as(rig, &gone);
    struct fx_queue_stats stats = rig_stats(rig);
    assert_int_equal(stats.workers, 2);
    assert_int_equal(stats.slots, 5);
    assert_int_equal(stats.context_max, 999);
    assert_int_equal(stats.live_count, 3);
}

static void a_worker_may_grow(struct rig *rig) {
    rig_beat(rig, "w", 2);
    rig_beat(rig, "w", 5);
    assert_int_equal(rig_stats(rig).slots, 5);
    assert_int_equal(rig_stats(rig).workers, 1);
}

static void the_dead_are_forgotten(struct rig *rig) {
    rig_beat(rig, "w", 2);
    (void)rig_int(rig, "ZINCRBY fx:{m7}:alive -60001 w");
    rig_beat(rig, "v", 2);
    assert_int_equal(rig_int(rig, "HLEN fx:{m7}:workers"), 1);
    assert_int_equal(rig_int(rig, "ZCARD fx:{m7}:alive"), 1);
}

struct beats {
    fx_error err;
    bool done;
};

static void on_beat(void *ctx, const fx_error *err) {
    struct beats *beats = ctx;
    if (err) beats->err = *err;
    beats->done = true;
}

static void too_many_workers(struct rig *rig) {
    struct beats beats = {0};
    fx_error err = {0};
    for (unsigned i = 0; i < FX_QUEUE_WORKERS_MAX; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "w%u", i);
        rig_beat(rig, name, 1);
    }
    struct fx_beat more = {
        RIG_MODEL, "org/tiny", {.worker = "more", .slots = 1}
    };
    assert_true(fx_queue_beat(rig->queue, &more, on_beat, &beats, &err));
    rig_until(rig, &beats.done);
    assert_int_equal(beats.err.code, FX_RESOURCE_EXHAUSTED);
    rig_beat(rig, "w7", 1); /* a known one is welcome */
    assert_int_equal(rig_stats(rig).workers, FX_QUEUE_WORKERS_MAX);
}

static void bad_beats(struct rig *rig) {
    struct fx_beat bad[] = {
        {RIG_MODEL, "m", {.worker = "", .slots = 1}                  },
        {RIG_MODEL, "",  {.worker = "w", .slots = 1}                 },
        {RIG_MODEL, "m", {.worker = "w", .slots = 1, .slots_free = 2}},
        {RIG_MODEL, "m", {.worker = "w", .slots = 4097}              },
    };
    for (size_t i = 0; i < FX_TEST_COUNT(bad); i++) {
        fx_error err = {0};
        assert_false(fx_queue_beat(rig->queue, &bad[i], on_beat, NULL, &err));
        assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    }
}

static void on_models(void *ctx, const struct fx_queue_model *models, size_t count,
                      const fx_error *err) {
    assert_null(err);
    assert_int_equal(count, 1);
    assert_int_equal(models[0].number, RIG_MODEL);
    assert_string_equal(models[0].name, "org/tiny");
    *(bool *)ctx = true;
}

static void on_no_models(void *ctx, const struct fx_queue_model *models, size_t count,
                         const fx_error *err) {
    assert_null(err);
    assert_non_null(models);
    assert_int_equal(count, 0);
    *(bool *)ctx = true;
}

static void forgets_models(struct rig *rig) {
    struct beats beats = {0};
    bool done = false;
    fx_error err = {0};
    rig_beat(rig, "w", 1);
    assert_true(fx_queue_forget(rig->queue, RIG_MODEL, on_beat, &beats, &err));
    rig_until(rig, &beats.done);
    assert_true(fx_queue_models(rig->queue, on_no_models, &done, &err));
    rig_until(rig, &done);
    rig_beat(rig, "w", 1);
    done = false;
    assert_true(fx_queue_models(rig->queue, on_models, &done, &err));
    rig_until(rig, &done);
}

static void lists_models(struct rig *rig) {
    bool done = false;
    fx_error err = {0};
    rig_beat(rig, "w", 1);
    assert_true(fx_queue_models(rig->queue, on_models, &done, &err));
    rig_until(rig, &done);
}

static void on_live(void *ctx, const struct fx_queue_stats *stats, const fx_error *err) {
    assert_null(err);
    assert_int_equal(stats->live_count, 1);
    assert_string_equal(stats->live[0].worker, "w");
    assert_string_equal(stats->live[0].numerics_id, "exact/1 test");
    assert_int_equal(stats->live[0].slots, 3);
    assert_int_equal(stats->live[0].slots_free, 3);
    assert_int_equal(stats->live[0].context_max, 512);
    *(bool *)ctx = true;
}

static void tells_each_worker(struct rig *rig) {
    bool done = false;
    fx_error err = {0};
    rig_beat(rig, "w", 3);
    assert_true(fx_queue_stats(rig->queue, RIG_MODEL, on_live, &done, &err));
    rig_until(rig, &done);
}

struct seen {
    char figures[64];
    size_t len;
    bool done;
};

static void on_figures(void *ctx, const struct fx_queue_stats *stats, const fx_error *err) {
    struct seen *seen = ctx;
    assert_null(err);
    assert_int_equal(stats->live_count, 1);
    assert_string_equal(stats->live[0].numerics_id, "n");
    seen->len = stats->live[0].figures.len;
    assert_true(seen->len < sizeof seen->figures);
    if (seen->len) memcpy(seen->figures, stats->live[0].figures.at, seen->len);
    seen->done = true;
}

/* What a read finds after a beat with these figures. */
static struct seen beat_and_read(struct rig *rig, fx_span figures, bool ask) {
    struct seen seen = {0};
    fx_error err = {0};
    struct fx_worker_info worker = {
        .worker = "w", .slots = 1, .numerics_id = "n", .figures = figures};
    rig_beat_as(rig, &worker);
    assert_true(
        (ask ? fx_queue_figures : fx_queue_stats)(rig->queue, RIG_MODEL, on_figures, &seen, &err));
    rig_until(rig, &seen.done);
    return seen;
}

static void keeps_figures(struct rig *rig) {
    fx_span first = {(const uint8_t *)"\0 1\xff", 4}, second = fx_span_str("2");
    struct seen seen = beat_and_read(rig, first, true);
    assert_int_equal(seen.len, 4);
    assert_memory_equal(seen.figures, first.at, 4);
    assert_int_equal(beat_and_read(rig, first, false).len, 0); /* not asked for */
    seen = beat_and_read(rig, second, true);
    assert_int_equal(seen.len, 1);
    assert_memory_equal(seen.figures, "2", 1);
    assert_int_equal(beat_and_read(rig, (fx_span){NULL, 0}, true).len, 0); /* an old build's beat */
    assert_int_equal(rig_int(rig, "EXISTS fx:{m7}:figures"), 0);
}

static void the_deads_figures_go(struct rig *rig) {
    (void)beat_and_read(rig, fx_span_str("1"), true);
    (void)rig_int(rig, "ZINCRBY fx:{m7}:alive -60001 w");
    rig_beat(rig, "v", 2);
    assert_int_equal(rig_int(rig, "HLEN fx:{m7}:figures"), 0);
}

/* fx2_beat, of an old scheduler, forgets a worker and not its figures. */
static void figures_without_a_worker_go(struct rig *rig) {
    (void)beat_and_read(rig, fx_span_str("1"), true);
    (void)rig_int(rig, "HSET fx:{m7}:figures v old");
    (void)beat_and_read(rig, fx_span_str("2"), true);
    assert_int_equal(rig_int(rig, "HLEN fx:{m7}:figures"), 1);
    assert_int_equal(rig_int(rig, "HEXISTS fx:{m7}:figures w"), 1);
}

static void too_many_figures(struct rig *rig) {
    static uint8_t bytes[FX_QUEUE_FIGURES_MAX + 1];
    fx_error err = {0};
    struct fx_beat beat = {
        RIG_MODEL, "m", {.worker = "w", .slots = 1, .figures = {bytes, sizeof bytes}}
    };
    assert_false(fx_queue_beat(rig->queue, &beat, on_beat, NULL, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
}

static uint32_t freed_cancelled;

static void on_freed(void *ctx, const struct fx_queue_stats *stats, const fx_error *err) {
    (void)ctx;
    assert_null(stats);
    assert_int_equal(err->code, FX_CANCELLED);
    freed_cancelled++;
}

static void on_freed_count(void *ctx, const struct fx_count_result *result, const fx_error *err) {
    on_freed(ctx, NULL, err);
    assert_null(result);
}

static void freed_with_calls_in_flight(struct rig *rig) {
    fx_error err = {0};
    freed_cancelled = 0;
    for (int i = 0; i < 5; i++) {
        assert_true(fx_queue_stats(rig->queue, RIG_MODEL, on_freed, NULL, &err));
        assert_true(fx_queue_dispatch(rig->queue, RIG_MODEL, on_freed_count, NULL, &err));
    }
    fx_queue_free(fx_take(rig->queue));
    assert_int_equal(freed_cancelled, 10);
    rig_sleep(rig, 50); /* the replies still come, to nobody */
}

static void too_many_calls(struct rig *rig) {
    fx_error err = {0};
    fx_queue *small = NULL;
    struct fx_queue_opts opts = {.redis = rig->redis, .calls_max = 2};
    freed_cancelled = 0;
    assert_true(fx_queue_open(&opts, &small, &err));
    assert_true(fx_queue_stats(small, RIG_MODEL, on_freed, NULL, &err));
    assert_true(fx_queue_stats(small, RIG_MODEL, on_freed, NULL, &err));
    assert_false(fx_queue_stats(small, RIG_MODEL, on_freed, NULL, &err));
    assert_int_equal(err.code, FX_RESOURCE_EXHAUSTED);
    fx_queue_free(small);
    assert_int_equal(freed_cancelled, 2);
    rig_sleep(rig, 20);
}

static const struct rig_row rows[] = {
    {"empty",                       empty                      },
    {"adds up workers",             adds_up_workers            },
    {"a worker may grow",           a_worker_may_grow          },
    {"the dead are forgotten",      the_dead_are_forgotten     },
    {"too many workers",            too_many_workers           },
    {"bad beats",                   bad_beats                  },
    {"forgets models",              forgets_models             },
    {"lists models",                lists_models               },
    {"tells each worker",           tells_each_worker          },
    {"keeps figures",               keeps_figures              },
    {"the dead's figures go",       the_deads_figures_go       },
    {"figures without a worker go", figures_without_a_worker_go},
    {"too many figures",            too_many_figures           },
    {"freed with calls in flight",  freed_with_calls_in_flight },
    {"too many calls",              too_many_calls             },
};
RIG_MAIN(rows)
