#include "tests/integ/queue/rig.h"

struct seen {
    uint32_t tokens[RIG_TOKENS_MAX], count, events, gone;
    enum fx_finish finish;
    char detail[FX_QUEUE_DETAIL_MAX + 1];
    bool ended, lost;
    fx_watch *watch;
    bool free_at_first;
};

static void on_tokens(void *ctx, const struct fx_gen_tokens *tokens) {
    struct seen *seen = ctx;
    assert_false(seen->ended);
    seen->events++;
    if (tokens->gone) {
        seen->gone++;
        seen->lost = true;
        return;
    }
    assert_int_equal(tokens->first, seen->count + 1);
    for (uint32_t i = 0; i < tokens->count; i++)
        seen->tokens[seen->count++] = tokens->tokens[i];
    seen->finish = tokens->finish;
    seen->ended = tokens->finish != FX_FINISH_NONE;
    (void)snprintf(seen->detail, sizeof seen->detail, "%s", tokens->detail ? tokens->detail : "");
    if (seen->free_at_first) fx_watch_free(fx_take(seen->watch));
}

static void watch(struct rig *rig, uint32_t n, uint32_t after, struct seen *seen) {
    fx_error err = {0};
    fx_gen_id id = rig_id(n);
    seen->count = after;
    assert_true(
        fx_queue_watch(rig->queue_b, RIG_MODEL, &id, after, on_tokens, seen, &seen->watch, &err));
}

static void wait_for(struct rig *rig, const struct seen *seen, uint32_t count) {
    for (int i = 0; i < 300 && seen->count < count; i++)
        rig_sleep(rig, 10);
    assert_int_equal(seen->count, count);
}

static void append(struct rig *rig, uint32_t n, uint32_t first, uint32_t count) {
    static uint32_t tokens[FX_QUEUE_APPEND_MAX];
    for (uint32_t i = 0; i < count; i++)
        tokens[i] = 100 + first + i;
    assert_int_equal(rig_append(rig, n, 1, first, tokens, count).status, FX_QUEUE_OK);
}

static void check(const struct seen *seen, uint32_t from, uint32_t count) {
    assert_int_equal(seen->count, count);
    for (uint32_t i = from; i < count; i++)
        assert_int_equal(seen->tokens[i], 101 + i);
}

static void from_the_start(struct rig *rig) {
    struct seen seen = {0};
    rig_running(rig, 1);
    watch(rig, 1, 0, &seen);
    rig_sleep(rig, 30);
    for (uint32_t i = 1; i <= 20; i++)
        append(rig, 1, i, 1);
    (void)rig_finish(rig, 1, 1, 20, FX_FINISH_STOP);
    rig_until(rig, &seen.ended);
    check(&seen, 0, 20);
    assert_int_equal(seen.finish, FX_FINISH_STOP);
    assert_string_equal(seen.detail, "why");
    fx_watch_free(seen.watch);
}

static void after_the_fact(struct rig *rig) {
    struct seen seen = {0};
    rig_running(rig, 1);
    append(rig, 1, 1, 7);
    (void)rig_finish(rig, 1, 1, 7, FX_FINISH_LENGTH);
    watch(rig, 1, 0, &seen);
    rig_until(rig, &seen.ended);
    check(&seen, 0, 7);
    assert_int_equal(seen.finish, FX_FINISH_LENGTH);
    fx_watch_free(seen.watch);
}

static void from_the_middle(struct rig *rig) {
    struct seen seen = {0};
    rig_running(rig, 1);
    append(rig, 1, 1, 7);
    watch(rig, 1, 5, &seen);
    wait_for(rig, &seen, 7);
    check(&seen, 5, 7);
    append(rig, 1, 8, 2);
    (void)rig_finish(rig, 1, 1, 9, FX_FINISH_STOP);
    rig_until(rig, &seen.ended);
    check(&seen, 5, 9);
    fx_watch_free(seen.watch);
}

static void only_the_finish_is_missing(struct rig *rig) {
    struct seen seen = {0};
    rig_running(rig, 1);
    append(rig, 1, 1, 7);
    (void)rig_finish(rig, 1, 1, 7, FX_FINISH_STOP);
    watch(rig, 1, 7, &seen);
    rig_until(rig, &seen.ended);
    assert_int_equal(seen.events, 1);
    fx_watch_free(seen.watch);
}

static void longer_than_a_page(struct rig *rig) {
    static struct seen seen;
    seen = (struct seen){0};
    rig_running(rig, 1);
    append(rig, 1, 1, 1024);
    append(rig, 1, 1025, 500);
    watch(rig, 1, 0, &seen);
    (void)rig_finish(rig, 1, 1, 1524, FX_FINISH_STOP);
    rig_until(rig, &seen.ended);
    check(&seen, 0, 1524);
    fx_watch_free(seen.watch);
}

/* A hint that never comes: the log is read after silence. */
static void silence(struct rig *rig) {
    struct seen seen = {0};
    rig_running(rig, 1);
    watch(rig, 1, 0, &seen);
    rig_sleep(rig, 30);
    append(rig, 1, 1, 2);
    wait_for(rig, &seen, 2);
    check(&seen, 0, 2);
    (void)rig_int(rig, "XADD fx:{m7}:log:ab000000000000000000000000000001 3-0 t 103");
    wait_for(rig, &seen, 3);
    check(&seen, 0, 3);
    assert_int_equal(seen.gone, 0);
    fx_watch_free(seen.watch);
}

/* A hint is lost and a later one comes: the gap is read, nothing is told twice. */
static void gap_in_the_hints(struct rig *rig) {
    struct seen seen = {0};
    rig_running(rig, 1);
    watch(rig, 1, 0, &seen);
    rig_sleep(rig, 30);
    append(rig, 1, 1, 4);
    wait_for(rig, &seen, 4);
    check(&seen, 0, 4);
    (void)rig_int(rig, "XADD fx:{m7}:log:ab000000000000000000000000000001 5-0 t 105");
    (void)rig_int(rig, "HSET fx:{m7}:gen:ab000000000000000000000000000001 n 5");
    append(rig, 1, 6, 1);
    wait_for(rig, &seen, 6);
    check(&seen, 0, 6);
    fx_watch_free(seen.watch);
}

static void false_hints(struct rig *rig) {
    static const char *const bad[] = {"x", "1", "1 0", "1 0 7x", "99999999999 0 1", "1 0 101 102"};
    struct seen seen = {0};
    rig_running(rig, 1);
    watch(rig, 1, 0, &seen);
    rig_sleep(rig, 30);
    append(rig, 1, 1, 2);
    rig_sleep(rig, 20);
    for (size_t i = 0; i < FX_TEST_COUNT(bad); i++) {
        redisReply *reply = NULL;
        fx_error err = {0};
        assert_true(fx_redis_sync(rig->redis, 1000, &reply, &err, "PUBLISH %s %s",
                                  "fx:{m7}:hint:ab000000000000000000000000000001", bad[i]));
        freeReplyObject(reply);
    }
    wait_for(rig, &seen, 2);
    check(&seen, 0, 2);
    append(rig, 1, 3, 1);
    wait_for(rig, &seen, 3);
    check(&seen, 0, 3);
    fx_watch_free(seen.watch);
}

static void lost_by_redis(struct rig *rig) {
    struct seen seen = {0};
    rig_running(rig, 1);
    watch(rig, 1, 0, &seen);
    rig_sleep(rig, 30);
    assert_int_equal(seen.gone, 0);
    (void)rig_int(rig, "DEL fx:{m7}:gen:ab000000000000000000000000000001");
    rig_until(rig, &seen.lost);
    fx_watch_free(seen.watch);
}

static void freed_inside_its_callback(struct rig *rig) {
    struct seen seen = {.free_at_first = true};
    rig_running(rig, 1);
    append(rig, 1, 1, 3);
    watch(rig, 1, 0, &seen);
    wait_for(rig, &seen, 3);
    assert_int_equal(seen.events, 1);
    struct seen hinted = {.free_at_first = true};
    watch(rig, 1, 3, &hinted);
    rig_sleep(rig, 30);
    append(rig, 1, 4, 1);
    append(rig, 1, 5, 1);
    wait_for(rig, &hinted, 4);
    rig_sleep(rig, 20); /* nothing more comes */
    assert_int_equal(hinted.events, 1);
}

static void freed_while_reading(struct rig *rig) {
    rig_running(rig, 1);
    append(rig, 1, 1, 3);
    for (uint32_t turns = 0; turns < 8; turns++) {
        struct seen seen = {0};
        watch(rig, 1, 0, &seen);
        for (uint32_t i = 0; i < turns; i++)
            (void)event_base_loop(rig->base, EVLOOP_ONCE);
        fx_watch_free(seen.watch);
        uint32_t events = seen.events;
        rig_sleep(rig, 20);
        assert_int_equal(seen.events, events);
    }
}

static void two_on_one_generation(struct rig *rig) {
    struct seen a = {0}, b = {0};
    rig_running(rig, 1);
    watch(rig, 1, 0, &a);
    rig_sleep(rig, 20);
    append(rig, 1, 1, 2);
    watch(rig, 1, 0, &b);
    append(rig, 1, 3, 2);
    fx_watch_free(a.watch);
    uint32_t told = a.count;
    (void)rig_finish(rig, 1, 1, 4, FX_FINISH_STOP);
    rig_until(rig, &b.ended);
    check(&b, 0, 4);
    assert_int_equal(a.count, told);
    fx_watch_free(b.watch);
}

static void a_cancel_is_told(struct rig *rig) {
    struct seen seen = {0};
    (void)rig_submit(rig, 1, 5);
    watch(rig, 1, 0, &seen);
    rig_sleep(rig, 30);
    (void)rig_cancel(rig, 1);
    rig_until(rig, &seen.ended);
    assert_int_equal(seen.finish, FX_FINISH_CANCELLED);
    fx_watch_free(seen.watch);
}

/* Redis lost tokens that were told, and the generation ended before it had them again. */
static void the_end_is_behind(struct rig *rig) {
    struct seen seen = {0};
    rig_running(rig, 1);
    watch(rig, 1, 0, &seen);
    append(rig, 1, 1, 5);
    wait_for(rig, &seen, 5);
    (void)rig_int(rig, "DEL fx:{m7}:log:ab000000000000000000000000000001");
    (void)rig_int(rig, "XADD fx:{m7}:log:ab000000000000000000000000000001 3-1 f 4 d x");
    (void)rig_int(rig, "HSET fx:{m7}:gen:ab000000000000000000000000000001 state 6 n 3 finish 4");
    rig_until(rig, &seen.ended);
    check(&seen, 0, 5);
    assert_int_equal(seen.finish, FX_FINISH_ERROR);
    assert_string_equal(seen.detail, "Redis lost what it had logged");
    assert_int_equal(seen.gone, 0);
    fx_watch_free(seen.watch);
}

static void the_log_is_lost_but_all_was_told(struct rig *rig) {
    struct seen seen = {0};
    rig_running(rig, 1);
    watch(rig, 1, 0, &seen);
    append(rig, 1, 1, 5);
    wait_for(rig, &seen, 5);
    (void)rig_int(rig, "DEL fx:{m7}:log:ab000000000000000000000000000001");
    (void)rig_int(rig, "HSET fx:{m7}:gen:ab000000000000000000000000000001 state 4 n 5 finish 1");
    rig_until(rig, &seen.ended);
    check(&seen, 0, 5);
    assert_int_equal(seen.finish, FX_FINISH_STOP);
    fx_watch_free(seen.watch);
}

static const struct rig_row rows[] = {
    {"from the start",                    from_the_start                  },
    {"after the fact",                    after_the_fact                  },
    {"from the middle",                   from_the_middle                 },
    {"only the finish is missing",        only_the_finish_is_missing      },
    {"longer than a page",                longer_than_a_page              },
    {"silence",                           silence                         },
    {"gap in the hints",                  gap_in_the_hints                },
    {"false hints",                       false_hints                     },
    {"lost by Redis",                     lost_by_redis                   },
    {"freed inside its callback",         freed_inside_its_callback       },
    {"freed while reading",               freed_while_reading             },
    {"two on one generation",             two_on_one_generation           },
    {"a cancel is told",                  a_cancel_is_told                },
    {"the end is behind",                 the_end_is_behind               },
    {"the log is lost, but all was told", the_log_is_lost_but_all_was_told},
};
RIG_MAIN(rows)
