#include "services/worker/engine_thread.h"
#include "tests/unit/engine/rig.h"
#include "tests/fx_test.h"
#include <poll.h>
#include <sched.h>
#include <unistd.h>

/* The worker's engine thread behind its rings: for each order to add exactly one end comes, after
 * its tokens in order, whatever is dropped meanwhile and however slowly the news are taken. */

enum { GENS = 6, CONTEXT = 256, ROUNDS = 12, WAIT_MS = 10000 };

struct bench {
    engine_thread *thread;
    struct gen gens[GENS];
    uint32_t ids[GENS][CONTEXT + 1];
    _Atomic uint64_t published;
};

static void publish(void *ctx, const struct fx_engine_stats *stats) {
    struct bench *bench = ctx;
    atomic_store(&bench->published, stats->steps + 1);
}

static struct fx_engine_opts engine_opts(const fx_model *model) {
    return (struct fx_engine_opts){
        .model = model,
        .backend = "cpu",
        .kv_dtype = "f32",
        .threads = 2,
        .kv_bytes = 4 << 20,
        .page_tokens = 16,
        .slots = GENS,
        .rows_max = 32,
        .chunk_rows_max = 16,
        .context_max = CONTEXT,
    };
}

static void gen_add(struct bench *bench, uint32_t number, uint32_t seed, uint32_t tokens) {
    struct gen *gen = &bench->gens[number];
    *gen = (struct gen){.used = true, .in_engine = true, .ids = bench->ids[number]};
    gen->prompt_count = 1 + seed % 30;
    for (uint32_t i = 0; i < gen->prompt_count; i++)
        gen->ids[i] = (seed + i * 7) % 256;
    gen->max_tokens = tokens;
    gen->sampling = (struct fx_sampling){.temperature = 0.8F, .seed = seed};
    engine_thread_order(bench->thread, (struct order){ORDER_ADD, gen});
}

static void news_wait(struct bench *bench) {
    struct pollfd wait = {engine_thread_fd(bench->thread), POLLIN, 0};
    uint64_t count;
    assert_int_equal(poll(&wait, 1, WAIT_MS), 1);
    assert_int_equal(read(wait.fd, &count, sizeof(count)), sizeof(count));
}

/* Takes all news that are there. */
static void news_take(struct bench *bench) {
    struct news news;
    while (engine_thread_news(bench->thread, &news)) {
        struct gen *gen = news.gen;
        assert_true(gen->in_engine);
        if (news.kind == NEWS_END) {
            gen->in_engine = false;
            continue;
        }
        assert_int_equal(news.number, gen->have + 1);
        gen_tokens(gen)[gen->have++] = news.token;
    }
}

static bool all_ended(const struct bench *bench) {
    for (uint32_t i = 0; i < GENS; i++)
        if (bench->gens[i].in_engine) return false;
    return true;
}

static void wait_for_all(struct bench *bench) {
    for (news_take(bench); !all_ended(bench); news_take(bench))
        news_wait(bench);
}

/* Lets the engine get on a little; how far is up to the machine. */
static void let_run(struct bench *bench) {
    struct pollfd wait = {engine_thread_fd(bench->thread), POLLIN, 0};
    uint64_t count;
    if (poll(&wait, 1, 20) == 1)
        assert_int_equal(read(wait.fd, &count, sizeof(count)), sizeof(count));
}

static void bench_open(struct bench *bench, const fx_model *model) {
    const struct engine_thread_opts opts = {engine_opts(model), publish, bench};
    fx_error err = {0};
    if (!engine_thread_open(&opts, &bench->thread, &err)) fail_msg("%s", err.text);
}

static void test_all_end(void **state) {
    (void)state;
    static struct bench bench;
    fx_auto(fx_model) model = rig_model("models/fractal-tiny-moe", FX_MODEL_INT4);
    bench_open(&bench, model);
    assert_int_equal(engine_thread_context_max(bench.thread), CONTEXT);
    for (uint32_t i = 0; i < GENS; i++)
        gen_add(&bench, i, i, 20 + i);
    wait_for_all(&bench);
    for (uint32_t i = 0; i < GENS; i++) {
        assert_int_equal(bench.gens[i].end, FX_ENGINE_LENGTH);
        assert_int_equal(bench.gens[i].have, 20 + i);
    }
    assert_true(atomic_load(&bench.published) > 20);
    assert_true(engine_thread_progress(bench.thread) > 0);
    engine_thread_free(bench.thread);
}

/* Drops at any moment, also of what has just ended by itself, and slots used again at once. */
static void test_drops(void **state) {
    (void)state;
    static struct bench bench;
    fx_auto(fx_model) model = rig_model("models/fractal-tiny-moe", FX_MODEL_INT4);
    bench_open(&bench, model);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < GENS; i++)
            gen_add(&bench, i, round * GENS + i, 1 + (round + i) % 9);
        for (uint32_t i = 0; i < round % 5; i++)
            let_run(&bench);
        for (uint32_t i = round % 2; i < GENS; i += 2)
            engine_thread_order(bench.thread, (struct order){ORDER_DROP, &bench.gens[i]});
        wait_for_all(&bench);
    }
    engine_thread_free(bench.thread);
}

static void test_refused_by_the_engine(void **state) {
    (void)state;
    static struct bench bench;
    fx_auto(fx_model) model = rig_model("models/fractal-tiny-moe", FX_MODEL_INT4);
    bench_open(&bench, model);
    gen_add(&bench, 0, 3, 0);
    wait_for_all(&bench);
    assert_int_equal(bench.gens[0].end, FX_ENGINE_FAILED);
    assert_non_null(strstr(bench.gens[0].detail, "max_tokens"));
    engine_thread_free(bench.thread);
    struct engine_thread_opts opts = {engine_opts(model), publish, &bench};
    fx_error err = {0};
    opts.engine.backend = "abacus";
    assert_false(engine_thread_open(&opts, &bench.thread, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    engine_thread_free(NULL);
}

/* Freed with everything under way, the news not taken. */
static void test_freed_while_it_runs(void **state) {
    (void)state;
    static struct bench bench;
    fx_auto(fx_model) model = rig_model("models/fractal-tiny-moe", FX_MODEL_INT4);
    bench_open(&bench, model);
    for (uint32_t i = 0; i < GENS; i++)
        gen_add(&bench, i, i, 200);
    let_run(&bench);
    let_run(&bench);
    engine_thread_free(bench.thread);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_end),
        cmocka_unit_test(test_drops),
        cmocka_unit_test(test_refused_by_the_engine),
        cmocka_unit_test(test_freed_while_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
