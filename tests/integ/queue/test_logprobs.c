/* Log probabilities on their way through the log: by hint, by reading, beside tokens without. */
#include "tests/integ/queue/rig.h"

enum { EACH = 3, TOKENS = 4 };
static const uint32_t tokens[TOKENS] = {5, 6, 7, 8};
static const struct fx_logprob logprobs[TOKENS * EACH] = {
    {5,               -0.5F  },
    {5,               -0.5F  },
    {9,               -1.25F },
    {6,               -3     },
    {1,               -0.1F  },
    {6,               -3     },
    {7,               -9999  },
    {2,               0      },
    {3,               -9999  },
    {8,               -1e-30F},
    {8,               -1e-30F},
    {FX_LOGPROB_NONE, -9999  },
};

struct seen {
    uint32_t count;
    bool bare[TOKENS + 1];
    struct fx_logprob logprobs[TOKENS + 1][FX_LOGPROBS_MAX];
    uint32_t each[TOKENS + 1];
};

static void on_tokens(void *ctx, const struct fx_gen_tokens *news) {
    struct seen *seen = ctx;
    for (uint32_t i = 0; i < news->count; i++, seen->count++) {
        assert_non_null(news->logprobs);
        seen->bare[seen->count] = news->logprobs[i].len == 0;
        if (news->logprobs[i].len)
            assert_true(fx_logprobs_read(news->logprobs[i], seen->logprobs[seen->count],
                                         &seen->each[seen->count]));
    }
}

static fx_watch *watch(struct rig *rig, struct seen *seen) {
    fx_watch *watch = NULL;
    fx_gen_id id = rig_id(1);
    assert_true(
        fx_queue_watch(rig->queue_b, RIG_MODEL, &id, 0, on_tokens, seen, &watch, &(fx_error){0}));
    return watch;
}

static void on_write(void *ctx, const struct fx_write_result *result, const fx_error *err) {
    assert_null(err);
    *(int *)ctx = (int)result->status;
}

static void append(struct rig *rig, uint32_t first, uint32_t count) {
    const struct fx_append append = {RIG_MODEL,
                                     rig_id(1),
                                     1,
                                     first,
                                     tokens + first - 1,
                                     count,
                                     logprobs + (size_t)(first - 1) * EACH,
                                     EACH,
                                     NULL};
    int status = -1;
    assert_true(fx_queue_append(rig->queue, &append, on_write, &status, &(fx_error){0}));
    for (int i = 0; i < 300 && status < 0; i++)
        rig_sleep(rig, 10);
    assert_int_equal(status, FX_QUEUE_OK);
}

static void check(struct rig *rig, const struct seen *seen) {
    for (int i = 0; i < 300 && seen->count < TOKENS + 1; i++)
        rig_sleep(rig, 10);
    assert_int_equal(seen->count, TOKENS + 1);
    assert_true(seen->bare[TOKENS]);
    for (uint32_t i = 0; i < TOKENS; i++) {
        assert_false(seen->bare[i]);
        assert_int_equal(seen->each[i], i == TOKENS - 1 ? EACH - 1 : EACH);
        assert_memory_equal(&seen->logprobs[i][0].value, &logprobs[(size_t)i * EACH].value,
                            sizeof(float));
        assert_memory_equal(seen->logprobs[i] + 1, logprobs + (size_t)i * EACH + 1,
                            (seen->each[i] - 1) * sizeof *logprobs);
    }
}

static void both_ways(struct rig *rig) {
    struct seen hinted = {0}, read = {0};
    const uint32_t bare = 9;
    rig_running(rig, 1);
    fx_watch *first = watch(rig, &hinted);
    rig_sleep(rig, 100);
    append(rig, 1, 1);
    append(rig, 2, 3);
    append(rig, 1, 4); /* a repetition is compared by its tokens */
    assert_int_equal(rig_append(rig, 1, 1, 5, &bare, 1).status, FX_QUEUE_OK);
    check(rig, &hinted);
    fx_watch *second = watch(rig, &read);
    check(rig, &read);
    fx_watch_free(first);
    fx_watch_free(second);
    struct fx_gen_tokens log = rig_log(rig, 1);
    assert_int_equal(log.count, TOKENS + 1);
    assert_memory_equal(log.tokens, tokens, sizeof tokens);
}

/* The next owner gets the tokens, bare. */
static void pulled(struct rig *rig) {
    rig_running(rig, 1);
    append(rig, 1, TOKENS);
    rig_expire(rig, 1);
    assert_int_equal(rig_reclaim(rig).count, 1);
    struct rig_tasks tasks = rig_pull(rig, "w", 1);
    assert_int_equal(tasks.count, 1);
    assert_int_equal(tasks.at[0].logged_count, TOKENS);
    assert_memory_equal(tasks.at[0].logged, tokens, sizeof tokens);
}

static void too_many(struct rig *rig) {
    static uint32_t many[FX_QUEUE_APPEND_LOGPROBS_MAX + 1];
    static struct fx_logprob all[FX_QUEUE_APPEND_LOGPROBS_MAX + 1][FX_LOGPROBS_MAX];
    int status = -1;
    rig_running(rig, 1);
    for (uint32_t i = 0; i < FX_QUEUE_APPEND_LOGPROBS_MAX; i++)
        for (uint32_t j = 0; j < FX_LOGPROBS_MAX; j++)
            all[i][j] = (struct fx_logprob){UINT32_MAX - 1, -1};
    struct fx_append append = {
        RIG_MODEL, rig_id(1),       1,   1, many, FX_QUEUE_APPEND_LOGPROBS_MAX,
        all[0],    FX_LOGPROBS_MAX, NULL};
    assert_true(fx_queue_append(rig->queue, &append, on_write, &status, &(fx_error){0}));
    for (int i = 0; i < 300 && status < 0; i++)
        rig_sleep(rig, 10);
    assert_int_equal(status, FX_QUEUE_OK);
    append.count++;
    fx_error err = {0};
    assert_false(fx_queue_append(rig->queue, &append, on_write, &status, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
}

static const struct rig_row rows[] = {
    {"by hint and by reading", both_ways},
    {"pulled",                 pulled   },
    {"too many",               too_many },
};
RIG_MAIN(rows)
