#include "tests/integ/worker/fleet.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/heap.h"
#include "common/model/store.h"
#include "engine/engine.h"
#include "fractal/v1/generation.pb-c.h"

enum { BOS = 256, TENANT = 1, SLICE_US = 2000, ANSWER_MS = 10000 };

struct fleet_ask fleet_ask(const char *text, uint32_t max_tokens, float temperature,
                           uint64_t seed) {
    struct fleet_ask ask = {.max_tokens = max_tokens, .temperature = temperature, .seed = seed};
    ask.prompt[ask.prompt_count++] = BOS;
    for (; *text; text++)
        ask.prompt[ask.prompt_count++] = (uint8_t)*text;
    fx_random(&ask.id, sizeof(ask.id));
    return ask;
}

void fleet_sleep(struct fleet *fleet, uint32_t ms) {
    const struct timeval slice = {ms / 1000, (ms % 1000) * 1000};
    (void)event_base_loopexit(fleet->base, &slice);
    (void)event_base_dispatch(fleet->base);
}

void fleet_until(struct fleet *fleet, bool (*done)(void *ctx), void *ctx, uint32_t ms) {
    const struct timeval slice = {0, SLICE_US};
    uint64_t deadline_ms = fx_clock_ms() + ms;
    while (!done(ctx)) {
        if (fx_clock_ms() > deadline_ms) fail_msg("nothing came in %u ms", ms);
        (void)event_base_loopexit(fleet->base, &slice);
        (void)event_base_loop(fleet->base, EVLOOP_ONCE);
    }
}

static void on_submit(void *ctx, const struct fx_submit_result *result, const fx_error *err) {
    struct fleet_ask *ask = ctx;
    if (err) fail_msg("submit: %s", err->text);
    assert_int_equal(result->status, FX_QUEUE_OK);
    ask->submitted = true;
}

static void token_take(struct fleet_ask *ask, uint32_t token, fx_span logprobs) {
    uint32_t each = 0;
    struct fx_logprob *own = ask->own[ask->count];
    ask->tokens[ask->count++] = token;
    if (!logprobs.len) return;
    own[0].id = token;
    assert_true(fx_logprobs_read(logprobs, own, &each));
    assert_int_equal(each, ask->logprobs);
    ask->with_logprobs++;
}

/* The watch promises tokens in order, without gap or repetition. */
static void on_tokens(void *ctx, const struct fx_gen_tokens *news) {
    struct fleet_ask *ask = ctx;
    if (news->count) assert_int_equal(news->first, ask->count + 1);
    for (uint32_t i = 0; i < news->count; i++)
        token_take(ask, news->tokens[i], news->logprobs[i]);
    ask->finish = news->finish;
    if (news->finish != FX_FINISH_NONE)
        (void)snprintf(ask->detail, sizeof ask->detail, "%s", news->detail);
}

static struct fx_sampling sampling_of(const struct fleet_ask *ask) {
    struct fx_sampling sampling = ask->more;
    sampling.temperature = ask->temperature;
    sampling.seed = ask->seed;
    return sampling;
}

static void params_fill(const struct fx_sampling *from, Fractal__V1__SamplingParams *out) {
    out->temperature = from->temperature;
    out->seed_presence_case = FRACTAL__V1__SAMPLING_PARAMS__SEED_PRESENCE_SEED;
    out->seed = from->seed;
    out->top_k = from->top_k;
    out->top_p = from->top_p;
    out->min_p = from->min_p;
    out->typical_p = from->typical_p;
    out->presence_penalty = from->presence;
    out->frequency_penalty = from->frequency;
    out->repetition_penalty = from->repetition;
    out->min_tokens = from->min_tokens;
    out->choice = from->choice;
}

enum { BIASES = 8 };

static size_t task_pack(const struct fleet_ask *ask, uint8_t *out) {
    Fractal__V1__GenerationTask task = FRACTAL__V1__GENERATION_TASK__INIT;
    Fractal__V1__SamplingParams params = FRACTAL__V1__SAMPLING_PARAMS__INIT;
    Fractal__V1__SamplingBias biases[BIASES], *to[BIASES];
    uint32_t stop = 257;
    struct fleet_ask copy = *ask;
    struct fx_sampling sampling = sampling_of(ask);
    params_fill(&sampling, &params);
    for (uint32_t i = 0; i < sampling.bias_count; i++) {
        fractal__v1__sampling_bias__init(&biases[i]);
        biases[i].id = sampling.bias[i].id;
        biases[i].value = sampling.bias[i].value;
        to[i] = &biases[i];
    }
    params.n_logit_bias = sampling.bias_count;
    params.logit_bias = to;
    task.schema = 2;
    task.id = (ProtobufCBinaryData){sizeof(copy.id), copy.id.bytes};
    task.tenant = TENANT;
    task.model = fx_model_number(FLEET_MODEL);
    task.n_prompt_ids = ask->prompt_count;
    task.prompt_ids = copy.prompt;
    task.max_tokens = ask->max_tokens;
    task.n_stop_ids = !ask->ignore_eos;
    task.stop_ids = &stop;
    task.n_stop = ask->stop_count;
    task.stop = (char **)(uintptr_t)copy.stop;
    task.logprobs = ask->logprobs > 0;
    task.top_logprobs = ask->logprobs ? ask->logprobs - 1 : 0;
    task.sampling = &params;
    return fractal__v1__generation_task__pack(&task, out);
}

static bool is_submitted(void *ctx) {
    return ((struct fleet_ask *)ctx)->submitted;
}

static void submit_send(struct fleet *fleet, struct fleet_ask *ask) {
    uint8_t task[8 * FLEET_TOKENS_MAX];
    fx_error err = {0};
    const struct fx_submit submit = {
        .model = fleet->model,
        .tenant = TENANT,
        .id = ask->id,
        .seed = ask->seed,
        .prompt_tokens = ask->prompt_count,
        .expected_tokens = ask->max_tokens,
        .task = {task, task_pack(ask, task)},
    };
    if (!fx_queue_submit(fleet->queue, &submit, on_submit, ask, &err)) fail_msg("%s", err.text);
}

void fleet_submit_all(struct fleet *fleet, struct fleet_ask *asks, size_t count) {
    fx_error err = {0};
    for (size_t i = 0; i < count; i++)
        submit_send(fleet, &asks[i]);
    for (size_t i = 0; i < count; i++) {
        fleet_until(fleet, is_submitted, &asks[i], ANSWER_MS);
        if (!fx_queue_watch(fleet->queue, fleet->model, &asks[i].id, 0, on_tokens, &asks[i],
                            &asks[i].watch, &err))
            fail_msg("%s", err.text);
    }
}

void fleet_submit(struct fleet *fleet, struct fleet_ask *ask) {
    fleet_submit_all(fleet, ask, 1);
}

static bool has_ended(void *ctx) {
    return ((struct fleet_ask *)ctx)->finish != FX_FINISH_NONE;
}

void fleet_wait(struct fleet *fleet, struct fleet_ask *ask, uint32_t ms) {
    fleet_until(fleet, has_ended, ask, ms);
    fx_watch_free(fx_take(ask->watch));
}

struct count {
    const struct fleet_ask *ask;
    uint32_t count;
};

static bool has_count(void *ctx) {
    const struct count *wanted = ctx;
    return wanted->ask->count >= wanted->count;
}

void fleet_wait_tokens(struct fleet *fleet, struct fleet_ask *ask, uint32_t count) {
    fleet_until(fleet, has_count, &(struct count){ask, count}, ANSWER_MS);
}

static void on_cancel(void *ctx, const struct fx_gen_info *info, const fx_error *err) {
    bool *answered = ctx;
    if (err) fail_msg("cancel: %s", err->text);
    assert_true(info->cancelled);
    *answered = true;
}

static bool is_true(void *ctx) {
    return *(bool *)ctx;
}

void fleet_cancel(struct fleet *fleet, const struct fleet_ask *ask) {
    bool answered = false;
    fx_error err = {0};
    if (!fx_queue_cancel(fleet->queue, fleet->model, &ask->id, on_cancel, &answered, &err))
        fail_msg("%s", err.text);
    fleet_until(fleet, is_true, &answered, ANSWER_MS);
}

void fleet_expect(struct fleet *fleet, const struct fleet_ask *ask) {
    fx_auto(fx_model) model = NULL;
    fx_auto(fx_engine) engine = NULL;
    fx_error err = {0};
    uint32_t stop = 257, number, made = 0;
    if (!fx_store_open(fleet->store, FLEET_MODEL, &model, &err)) fail_msg("%s", err.text);
    const struct fx_engine_opts opts = {.model = model,
                                        .backend = "cpu",
                                        .kv_dtype = "f32",
                                        .threads = 1,
                                        .kv_bytes = 8 << 20,
                                        .page_tokens = 16,
                                        .slots = 1,
                                        .rows_max = 32,
                                        .chunk_rows_max = 32};
    const struct fx_sequence sequence = {
        .prompt = ask->prompt,
        .prompt_count = ask->prompt_count,
        .stops = &stop,
        .stop_count = !ask->ignore_eos,
        .max_tokens = ask->max_tokens,
        .sampling = sampling_of(ask),
        .logprobs = ask->logprobs,
    };
    if (!fx_engine_open(&opts, &engine, &err) || !fx_engine_add(engine, &sequence, &number, &err))
        fail_msg("%s", err.text);
    while (fx_engine_busy(engine)) {
        const struct fx_engine_result *results;
        size_t count;
        fx_engine_step(engine, &results, &count);
        if (!count) continue;
        assert_true(made < ask->count);
        assert_int_equal(results[0].token, ask->tokens[made]);
        if (ask->logprobs)
            assert_memory_equal(results[0].logprobs, ask->own[made],
                                ask->logprobs * sizeof(struct fx_logprob));
        made++;
        if (results[0].end != FX_ENGINE_RUNS)
            assert_int_equal(ask->finish,
                             results[0].end == FX_ENGINE_STOP ? FX_FINISH_STOP : FX_FINISH_LENGTH);
    }
    assert_int_equal(made, ask->count);
}
