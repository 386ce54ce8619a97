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

/* -- stop strings -- */

static fx_tokenizer *tokenizer_read(void) {
    static uint8_t bytes[1 << 20];
    FILE *file = fopen(FX_SOURCE_DIR "/models/fractal-tiny-moe/tokenizer.json", "rbe");
    assert_non_null(file);
    size_t len = fread(bytes, 1, sizeof(bytes), file);
    (void)fclose(file);
    fx_tokenizer *tokenizer = NULL;
    const struct fx_tokenizer_files files = {
        {bytes, len},
        {NULL,  0  }
    };
    fx_error err = {0};
    if (!fx_tokenizer_new(&files, &tokenizer, &err)) fail_msg("%s", err.text);
    return tokenizer;
}

enum { STOP_TOKENS = 40, STOP_FROM = 12, STOP_LEN = 3 };

/* A greedy generation that goes on behind `logged` of `tokens`; stop NULL: without. */
static struct gen *gen_run(struct bench *bench, const fx_tokenizer *tokenizer, char *stop,
                           const uint32_t *tokens, uint32_t logged) {
    struct gen *gen = &bench->gens[0];
    *gen = (struct gen){.used = true, .in_engine = true, .ids = bench->ids[0]};
    gen->prompt_count = 4;
    memcpy(gen->ids, (const uint32_t[]){256, 'T', 'h', 'e'}, 4 * sizeof(*gen->ids));
    gen->max_tokens = STOP_TOKENS;
    gen->logged = gen->have = logged;
    if (logged) memcpy(gen_tokens(gen), tokens, logged * sizeof(*tokens));
    if (stop) assert_true(gen_stop_init(&gen->stop, tokenizer, &stop, 1, false, &(fx_error){0}));
    engine_thread_order(bench->thread, (struct order){ORDER_ADD, gen});
    wait_for_all(bench);
    gen_free(gen);
    return gen;
}

/* Where the first `stop` of a text of one byte a token ends. */
static uint32_t stop_end(const uint32_t *tokens, const char *stop) {
    for (uint32_t at = 0; at + STOP_LEN <= STOP_TOKENS; at++) {
        uint32_t same = 0;
        while (same < STOP_LEN && tokens[at + same] == (uint8_t)stop[same])
            same++;
        if (same == STOP_LEN) return at + STOP_LEN;
    }
    fail_msg("not there");
    return 0;
}

/* It ends with the token that completes a stop string, wherever an earlier worker got to; also when
 * that one had logged it already. */
static void test_stops(void **state) {
    (void)state;
    static struct bench bench;
    uint32_t tokens[STOP_TOKENS];
    char stop[STOP_LEN + 1] = {0};
    fx_auto(fx_tokenizer) tokenizer = tokenizer_read();
    fx_auto(fx_model) model = rig_model("models/fractal-tiny-moe", FX_MODEL_INT4);
    bench_open(&bench, model);
    struct gen *gen = gen_run(&bench, tokenizer, NULL, NULL, 0);
    assert_int_equal(gen->have, STOP_TOKENS);
    memcpy(tokens, gen_tokens(gen), sizeof(tokens));
    for (uint32_t i = 0; i < STOP_LEN; i++) {
        assert_in_range(tokens[STOP_FROM + i], 1, 127);
        stop[i] = (char)tokens[STOP_FROM + i];
    }
    uint32_t end = stop_end(tokens, stop);
    for (uint32_t logged = 0; logged <= end; logged++) {
        gen = gen_run(&bench, tokenizer, stop, tokens, logged);
        assert_int_equal(gen->end, FX_ENGINE_STOP);
        assert_int_equal(gen->have, end);
        assert_memory_equal(gen_tokens(gen), tokens, end * sizeof(*tokens));
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
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_refused_by_the_engine),
        cmocka_unit_test(test_freed_while_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
