/* Thirty-two streams at once: each says what the same request says alone, and the batch is full. */
#include <pthread.h>
#include <stdatomic.h>
#include "tests/e2e/suite.h"

enum { STREAMS = 32, TOKENS = 900, ATTEMPTS = 3, FREE_MS = 2000, LOOK_US = 20000 };

static const char *const openings[] = {"It was", "The whale", "My dear",  "Call me",
                                       "In the", "She had",   "There is", "A man"};

/* -- 32 requests -- */

struct one {
    const struct suite *suite;
    pthread_barrier_t *start;
    uint32_t number;
    bool seeded, ok;
    char *text;
    fx_error err;
};

/* "It was ", "It was very ", "It was very very ", ... */
static const char *prompt(uint32_t i, char out[64]) {
    size_t len = (size_t)snprintf(out, 64, "%s ", openings[i % FX_TEST_COUNT(openings)]);
    for (uint32_t n = 0; n < i / FX_TEST_COUNT(openings); n++)
        len += (size_t)snprintf(out + len, 64 - len, "very ");
    return out;
}

static json_t *fields(uint32_t i, bool seeded) {
    return seeded ? json_pack("{s:i, s:f, s:i}", "max_tokens", TOKENS, "temperature", 0.8, "seed",
                              1000 + (int)i)
                  : json_pack("{s:i}", "max_tokens", TOKENS);
}

static void *one_run(void *arg) {
    struct one *one = arg;
    char text[64];
    auto_stream stream = {0};
    (void)pthread_barrier_wait(one->start);
    one->ok = stream_open(&stream, one->suite, prompt(one->number, text),
                          fields(one->number, one->seeded), &one->err) &&
              stream_rest(&stream, &one->err);
    if (one->ok) one->text = strdup(stream.text.at);
    return NULL;
}

static void texts_free(char *texts[STREAMS]) {
    for (uint32_t i = 0; i < STREAMS; i++) {
        free(texts[i]);
        texts[i] = NULL;
    }
}

static void together(const struct suite *suite, bool seeded, char *texts[STREAMS]) {
    struct one ones[STREAMS];
    pthread_t threads[STREAMS];
    pthread_barrier_t start;
    texts_free(texts);
    assert_int_equal(pthread_barrier_init(&start, NULL, STREAMS), 0);
    for (uint32_t i = 0; i < STREAMS; i++) {
        ones[i] = (struct one){.suite = suite, .start = &start, .number = i, .seeded = seeded};
        assert_int_equal(pthread_create(&threads[i], NULL, one_run, &ones[i]), 0);
    }
    for (uint32_t i = 0; i < STREAMS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        texts[i] = ones[i].text;
    }
    assert_int_equal(pthread_barrier_destroy(&start), 0);
    for (uint32_t i = 0; i < STREAMS; i++)
        if (!ones[i].ok) fail_msg("stream %u: %s", i, ones[i].err.text);
}

/* -- the counters -- */

struct counters {
    double running, steps, tokens, weight_bytes;
    double dense_rows, dense_runs, expert_rows, expert_runs;
};

static bool counters_read(const struct service *worker, struct counters *out, fx_error *err) {
    auto_text text = NULL;
    struct counters now;
    const struct {
        const char *name;
        double *at;
    } all[] = {
        {"fx_worker_running",                 &now.running     },
        {"fx_worker_steps_total",             &now.steps       },
        {"fx_worker_tokens_decoded_total",    &now.tokens      },
        {"fx_worker_weight_bytes_read_total", &now.weight_bytes},
        {"fx_worker_dense_rows_total",        &now.dense_rows  },
        {"fx_worker_dense_matmuls_total",     &now.dense_runs  },
        {"fx_worker_expert_rows_total",       &now.expert_rows },
        {"fx_worker_expert_matmuls_total",    &now.expert_runs },
    };
    if (!service_metrics_try(worker, &text, err)) return false;
    for (size_t i = 0; i < FX_TEST_COUNT(all); i++)
        if (!metric_find(text, all[i].name, all[i].at))
            return fx_fail(err, FX_NOT_FOUND, "no metric %s", all[i].name);
    *out = now;
    return true;
}

static struct counters counters(const struct suite *suite) {
    struct counters now = {0};
    MUST(counters_read(&suite->workers[0], &now, &err));
    return now;
}

static double dense(const struct counters *from, const struct counters *to) {
    return (to->dense_rows - from->dense_rows) / (to->dense_runs - from->dense_runs);
}

static double expert(const struct counters *from, const struct counters *to) {
    return (to->expert_rows - from->expert_rows) / (to->expert_runs - from->expert_runs);
}

static double bytes_a_token(const struct counters *from, const struct counters *to) {
    return (to->weight_bytes - from->weight_bytes) / (to->tokens - from->tokens);
}

/* The counters when all streams were first and last seen in the batch together. */
struct watch {
    const struct suite *suite;
    pthread_t thread;
    atomic_bool ended;
    uint32_t seen;
    struct counters first, last;
    bool broken;
    fx_error err;
};

static void *watch_run(void *arg) {
    struct watch *watch = arg;
    for (; !watch->ended && !watch->broken; (void)usleep(LOOK_US)) {
        struct counters now;
        watch->broken = !counters_read(&watch->suite->workers[0], &now, &watch->err);
        if (watch->broken || now.running < STREAMS) continue;
        if (!watch->seen++) watch->first = now;
        watch->last = now;
    }
    return NULL;
}

/* All streams at once. A busy machine may start the last when the first has ended: again. */
static void watched(const struct suite *suite, bool seeded, char *texts[STREAMS],
                    struct watch *watch) {
    for (int i = 0; i < ATTEMPTS; i++) {
        *watch = (struct watch){.suite = suite};
        assert_int_equal(pthread_create(&watch->thread, NULL, watch_run, watch), 0);
        together(suite, seeded, texts);
        watch->ended = true;
        assert_int_equal(pthread_join(watch->thread, NULL), 0);
        if (watch->broken) fail_msg("%s", watch->err.text);
        if (watch->seen > 1) return;
    }
    fail_msg("the streams never ran all at once");
}

/* -- the tests -- */

/* More than half of them differ from all before. */
static void assert_differ(char *const texts[STREAMS]) {
    uint32_t different = 0;
    for (uint32_t i = 0; i < STREAMS; i++) {
        bool is_new = true;
        for (uint32_t k = 0; k < i; k++)
            is_new &= strcmp(texts[i], texts[k]) != 0;
        different += is_new;
    }
    assert_true(different > STREAMS / 2);
}

static void check(struct suite *suite, bool seeded) {
    static char *alone[STREAMS], *texts[STREAMS];
    static struct watch watch;
    char text[64];
    struct counters start = counters(suite);
    texts_free(alone);
    for (uint32_t i = 0; i < STREAMS; i++)
        alone[i] = suite_complete(suite, prompt(i, text), fields(i, seeded));
    struct counters middle = counters(suite);
    watched(suite, seeded, texts, &watch);
    struct counters end = counters(suite);
    for (uint32_t i = 0; i < STREAMS; i++)
        if (strcmp(texts[i], alone[i]) != 0)
            fail_msg("'%s': '%s' is not '%s'", prompt(i, text), texts[i], alone[i]);
    const struct counters *first = &watch.first, *last = &watch.last;
    double saved = bytes_a_token(&start, &middle) / bytes_a_token(first, last);
    print_message("%.1f rows a dense matmul and %.1f an active expert over %.0f steps with all "
                  "streams (%.1f and %.1f with start and end); weight bytes a token fall by %.1f\n",
                  dense(first, last), expert(first, last), last->steps - first->steps,
                  dense(&middle, &end), expert(&middle, &end), saved);
    assert_true(last->steps - first->steps >= TOKENS / 4.0); /* long enough to tell */
    assert_true(dense(first, last) >= 24 && expert(first, last) >= 6);
    assert_true(saved >= 4);
    WAIT_FOR(worker_is_free(&suite->workers[0]), FREE_MS, "slots or KV blocks stay taken");
    assert_differ(alone);
    texts_free(alone);
    texts_free(texts);
}

static void greedy(void **state) {
    check(*state, false);
}

static void seeded(void **state) {
    check(*state, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(greedy), cmocka_unit_test(seeded)};
    return suite_main("batch", tests, FX_TEST_COUNT(tests),
                      &(struct suite_opts){.worker_env = WORDS("FX_SLOTS_MAX=32")});
}
