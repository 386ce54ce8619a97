/* A generation as the scheduler gets it. */
#include "common/base/clock.h"
#include "fractal/v1/scheduler.pb-c.h"
#include "services/gateway/submit.h"

static FX_MUST bool biases_set(const struct gw_request *request, fx_arena *memory,
                               Fractal__V1__SamplingParams *out) {
    uint32_t count = request->bias_count;
    if (!count) return true;
    Fractal__V1__SamplingBias *at = fx_arena_array(memory, count, sizeof *at);
    out->logit_bias = fx_arena_array(memory, count, sizeof(void *));
    if (!at || !out->logit_bias) return false;
    for (uint32_t i = 0; i < count; i++) {
        fractal__v1__sampling_bias__init(&at[i]);
        at[i].id = request->bias[i].id;
        at[i].value = request->bias[i].value;
        out->logit_bias[i] = &at[i];
    }
    out->n_logit_bias = count;
    return true;
}

static void sampling_set(const struct gw_choice *first, Fractal__V1__SamplingParams *out) {
    const struct gw_request *request = &first->visit->request;
    fractal__v1__sampling_params__init(out);
    out->temperature = request->temperature;
    out->top_k = request->top_k;
    out->top_p = request->top_p;
    out->min_p = request->min_p;
    out->typical_p = request->typical_p;
    out->presence_penalty = request->presence;
    out->frequency_penalty = request->frequency;
    out->repetition_penalty = request->repetition;
    out->min_tokens = request->min_tokens;
    out->choice = first->index;
    if (!first->has_seed) return;
    out->seed_presence_case = FRACTAL__V1__SAMPLING_PARAMS__SEED_PRESENCE_SEED;
    out->seed = first->seed;
}

static bool is(float value, float wanted) {
    return value >= wanted && value <= wanted;
}

/* A task that asks for nothing new is one that older workers take too. */
static uint32_t schema_of(const struct gw_choice *first, uint32_t count) {
    const struct gw_request *request = &first->visit->request;
    bool old = is(request->typical_p, 1) && is(request->presence, 0) && is(request->frequency, 0) &&
               is(request->repetition, 1) && !request->min_tokens && !request->bias_count &&
               !request->stop_count && !request->logprobs && !first->index && count == 1;
    return old ? 1 : 2;
}

static void task_set(const struct gw_choice *first, uint32_t count,
                     Fractal__V1__GenerationTask *out) {
    struct gw_visit *visit = first->visit;
    fractal__v1__generation_task__init(out);
    out->schema = schema_of(first, count);
    out->tenant = visit->who.tenant;
    out->model = visit->model.number;
    out->model_name = visit->model.name;
    out->n_prompt_ids = visit->prompt.len;
    out->prompt_ids = visit->prompt.at;
    out->max_tokens = visit->max_tokens;
    out->n_stop_ids = visit->request.ignore_eos ? 0 : visit->model.eos_count;
    out->stop_ids = visit->model.eos_ids;
    out->n_stop = visit->request.stop_count;
    out->stop = visit->request.stop;
    out->logprobs = visit->request.logprobs;
    out->top_logprobs = visit->request.top_logprobs;
    out->choices = visit->choice_count;
    out->continues_prompt = visit->prompt.is_continued;
    out->submitted_ms = fx_wall_ms();
}

Fractal__V1__GenerationTask *gw_task(const struct gw_choice *first, uint32_t count,
                                     fx_arena *memory) {
    Fractal__V1__GenerationTask *task = fx_arena_alloc(memory, sizeof *task);
    Fractal__V1__SamplingParams *sampling = fx_arena_alloc(memory, sizeof *sampling);
    if (!task || !sampling) return NULL;
    task_set(first, count, task);
    sampling_set(first, sampling);
    task->sampling = sampling;
    return biases_set(&first->visit->request, memory, sampling) ? task : NULL;
}
