#include "tests/bench/bench.h"
#include "engine/engine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Decode steps of the bundled model, int4, one thread: a step of `ref` and a step of `cpu` in turn,
 * so that both meet the same noise; the ratio is the median over the pairs. Processor time of the
 * thread, so that a busy machine spoils less. */

enum { PAIRS = 300, PROMPT = 32, BATCH_MAX = 32 };

struct pair {
    fx_engine *ref, *cpu;
};

static FX_MUST bool engine_open(const fx_model *model, const char *backend, fx_engine **out,
                                fx_error *err) {
    const struct fx_engine_opts opts = {
        .model = model,
        .backend = backend,
        .kv_dtype = "f32",
        .threads = 1,
        .kv_bytes = 64U << 20,
        .page_tokens = 64,
        .slots = BATCH_MAX,
        .rows_max = BATCH_MAX * PROMPT,
        .chunk_rows_max = PROMPT,
    };
    return fx_engine_open(&opts, out, err);
}

static FX_MUST bool fill(fx_engine *engine, uint32_t batch, fx_error *err) {
    uint32_t prompt[PROMPT], number;
    for (uint32_t i = 0; i < batch; i++) {
        for (uint32_t k = 0; k < PROMPT; k++)
            prompt[k] = (i * 31 + k * 7) % 256;
        const struct fx_sequence sequence = {
            .prompt = prompt, .prompt_count = PROMPT, .max_tokens = PAIRS + 2};
        if (!fx_engine_add(engine, &sequence, &number, err)) return false;
    }
    return true;
}

static double thread_us(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static double step_us(fx_engine *engine) {
    const struct fx_engine_result *results;
    size_t count;
    double begun_us = thread_us();
    fx_engine_step(engine, &results, &count);
    return thread_us() - begun_us;
}

static void empty(fx_engine *engine) {
    while (fx_engine_busy(engine))
        (void)step_us(engine);
}

/* Steps until every sequence decodes, then the pairs. */
static FX_MUST bool measure(const struct pair *engines, uint32_t batch, double *ratio,
                            fx_error *err) {
    static double ref_us[PAIRS], cpu_us[PAIRS], ratios[PAIRS];
    if (!fill(engines->ref, batch, err) || !fill(engines->cpu, batch, err)) return false;
    (void)step_us(engines->ref);
    (void)step_us(engines->cpu);
    for (uint32_t i = 0; i < PAIRS; i++) {
        ref_us[i] = step_us(engines->ref);
        cpu_us[i] = step_us(engines->cpu);
        ratios[i] = ref_us[i] / cpu_us[i];
    }
    empty(engines->ref);
    empty(engines->cpu);
    double ref = bench_median(ref_us, PAIRS), cpu = bench_median(cpu_us, PAIRS);
    *ratio = bench_median(ratios, PAIRS);
    (void)printf("batch %2u: cpu %8.1f us a step, %8.0f tokens/s; ref %8.1f us, %8.0f tokens/s; "
                 "cpu is %.1f times as fast\n",
                 batch, cpu, batch * 1e6 / cpu, ref, batch * 1e6 / ref, *ratio);
    return true;
}

static FX_MUST bool measure_all(const struct pair *engines, double ratio_min, fx_error *err) {
    static const uint32_t batches[] = {1, 8, 32};
    for (size_t i = 0; i < FX_COUNT(batches); i++) {
        double ratio;
        if (!measure(engines, batches[i], &ratio, err)) return false;
        if (ratio < ratio_min)
            return fx_fail(err, FX_FAILED_PRECONDITION, "batch %u: %.1f times, wanted %.1f",
                           batches[i], ratio, ratio_min);
    }
    return true;
}

static FX_MUST bool ratio_parse(int argc, char **argv, double *out, fx_error *err) {
    char *end = NULL;
    *out = 0;
    if (argc == 0) return true;
    if (argc == 2 && strcmp(argv[0], "--min") == 0) *out = strtod(argv[1], &end);
    if (!end || *end || end == argv[1])
        return fx_fail(err, FX_INVALID_ARGUMENT, "usage: fractal-bench decode [--min RATIO]");
    return true;
}

static FX_MUST bool run(int argc, char **argv, fx_error *err) {
    double ratio_min;
    fx_auto(fx_model) model = NULL;
    fx_auto(fx_engine) ref = NULL;
    fx_auto(fx_engine) cpu = NULL;
    if (!ratio_parse(argc, argv, &ratio_min, err)) return false;
    if (!fx_store_open_folder(FX_SOURCE_DIR "/models/fractal-tiny-moe", FX_MODEL_INT4, NULL, &model,
                              err) ||
        !engine_open(model, "ref", &ref, err) || !engine_open(model, "cpu", &cpu, err))
        return false;
    (void)printf("fractal-tiny-moe, int4, 1 thread, cpu = %s, medians of %d pairs of steps\n",
                 fx_engine_level(cpu), PAIRS);
    return measure_all(&(struct pair){ref, cpu}, ratio_min, err);
}

const struct bench bench_decode = {"decode", "decode steps of the bundled model, cpu against ref",
                                   run};
