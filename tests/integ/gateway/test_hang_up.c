/* The client leaves: while queued, before the first token, while tokens come; streamed or not.
 * Within 200 ms nothing of it runs or waits. */
#include "tests/integ/gateway/stage.h"

#define CHAT(more)                                                                                 \
    "{\"model\":\"" STAGE_MODEL "\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]" more "}"
enum { GOAL_MS = 200 };

static const struct row {
    const char *name, *body;
    unsigned slots; /* 0: it stays queued */
    struct stage_script script;
    const char *until; /* read this far before leaving */
} rows[] = {
    {"queued, stream",  CHAT(",\"stream\":true"), 0, {NULL, 0, 0, 20, 1, 0, NULL},    "assistant"},
    {"queued, whole",   CHAT(""),                 0, {NULL, 0, 0, 20, 1, 0, NULL},    NULL       },
    {"prefill, stream", CHAT(",\"stream\":true"), 4, {NULL, 0, 5000, 20, 1, 0, NULL}, "assistant"},
    {"prefill, whole",  CHAT(""),                 4, {NULL, 0, 5000, 20, 1, 0, NULL}, NULL       },
    {"decode, stream",  CHAT(",\"stream\":true"), 4, {NULL, 0, 0, 20, 1, 0, NULL},    "\"n\":3"  },
    {"decode, whole",   CHAT(""),                 4, {NULL, 0, 0, 20, 1, 0, NULL},    NULL       },
};

static void on_stats(void *ctx, const struct fx_queue_stats *stats, const fx_error *err) {
    *(atomic_int *)ctx = err ? 1000 : (int)(stats->waiting + stats->running);
}

struct asking {
    struct stage *stage;
    atomic_int *left;
};

static void ask_on_loop(void *user) {
    struct asking *asking = user;
    (void)!fx_queue_stats(asking->stage->queue, STAGE_NUMBER, on_stats, asking->left,
                          &(fx_error){0});
}

/* How long until Redis holds nothing of it. */
static uint64_t time_until_empty(struct stage *stage) {
    uint64_t begun_ms = fx_clock_ms();
    atomic_int left = -1;
    struct asking asking = {stage, &left};
    while (fx_clock_ms() - begun_ms < 5000) {
        left = -1;
        (void)!fx_loop_call(stage->loop, ask_on_loop, &asking);
        for (int i = 0; i < 1000 && left < 0; i++)
            usleep(500);
        if (left == 0) break;
    }
    return fx_clock_ms() - begun_ms;
}

static void test_row(void **state) {
    struct stage *stage = *state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        const struct row *row = &rows[i];
        bool closed;
        int submitted = stage->submitted, cancelled = stage->cancelled;
        stage->slots = row->slots;
        stage_say(stage, row->script);
        int fd = stage_connect(stage);
        stage_post(fd, "/v1/chat/completions", row->body);
        assert_true(stage_wait(&stage->submitted, submitted + 1));
        if (row->slots) assert_true(stage_wait(&stage->running, 1));
        if (row->until)
            free(wire_read(fd, row->until, &closed));
        else
            usleep(80000);
        close(fd);
        uint64_t took_ms = time_until_empty(stage);
        print_message("- %s: free after %llu ms\n", row->name, (unsigned long long)took_ms);
        assert_true(took_ms <= GOAL_MS);
        assert_true(stage_wait(&stage->running, 0));
        assert_true(stage_wait(&stage->cancelled, cancelled + 1));
        assert_int_equal(stage->gateway->metrics.running, 0);
    }
}

/* Leaving right behind the request, in whatever phase that happens to be. */
static void test_at_once(void **state) {
    struct stage *stage = *state;
    stage_say(stage, (struct stage_script){NULL, 0, 0, 10, 1, 0, NULL});
    for (unsigned i = 0; i < 60; i++) {
        int fd = stage_connect(stage);
        stage_post(fd, "/v1/chat/completions", i % 2 ? CHAT("") : CHAT(",\"stream\":true"));
        usleep(i * 150);
        close(fd);
    }
    assert_true(time_until_empty(stage) < 5000); /* however many at once: nothing stays */
    assert_true(stage_wait(&stage->running, 0));
    assert_int_equal(stage->gateway->metrics.running, 0);
}

/* The scheduler does not answer: Redis is told without it. */
static void test_without_scheduler(void **state) {
    struct stage *stage = *state;
    bool closed;
    stage_say(stage, (struct stage_script){NULL, 0, 0, 20, 1, 0, NULL});
    int fd = stage_connect(stage);
    stage_post(fd, "/v1/chat/completions", CHAT(",\"stream\":true"));
    free(wire_read(fd, "\"n\":2", &closed));
    fx_error err = {0};
    assert_true(fx_server_stop(stage->server, 0, &err));
    close(fd);
    assert_true(time_until_empty(stage) <= 4000);
    assert_true(stage_wait(&stage->running, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_row, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_at_once, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_without_scheduler, stage_setup, stage_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
