#include "common/base/clock.h"
#include "fractal/v1/scheduler.pb-c.h"
#include "services/gateway/visit.h"

enum { DEADLINE_MS = 5000 };

static void on_submitted(void *user, const struct fx_client_result *result) {
    struct gw_choice *choice = user;
    struct gw_visit *visit = choice->visit;
    const Fractal__V1__SubmitGenerationReply *reply = result->reply;
    choice->submitting = false;
    gw_generation_submitted(choice, result, result->code == FX_OK ? reply->seed : 0);
    gw_visit_unref(visit);
}

/* The biases as the task has them; `room` keeps them until it is packed. */
struct biases {
    Fractal__V1__SamplingBias at[GW_BIASES_MAX], *to[GW_BIASES_MAX];
};

static void biases_set(const struct gw_request *request, struct biases *room,
                       Fractal__V1__SamplingParams *out) {
    for (uint32_t i = 0; i < request->bias_count; i++) {
        fractal__v1__sampling_bias__init(&room->at[i]);
        room->at[i].id = request->bias[i].id;
        room->at[i].value = request->bias[i].value;
        room->to[i] = &room->at[i];
    }
    out->n_logit_bias = request->bias_count;
    out->logit_bias = room->to;
}

static Fractal__V1__SamplingParams sampling_of(const struct gw_choice *choice) {
    const struct gw_request *request = &choice->visit->request;
    Fractal__V1__SamplingParams sampling = FRACTAL__V1__SAMPLING_PARAMS__INIT;
    sampling.temperature = request->temperature;
    sampling.top_k = request->top_k;
    sampling.top_p = request->top_p;
    sampling.min_p = request->min_p;
    sampling.typical_p = request->typical_p;
    sampling.presence_penalty = request->presence;
    sampling.frequency_penalty = request->frequency;
    sampling.repetition_penalty = request->repetition;
    sampling.min_tokens = request->min_tokens;
    sampling.choice = choice->index;
    if (choice->has_seed) {
        sampling.seed_presence_case = FRACTAL__V1__SAMPLING_PARAMS__SEED_PRESENCE_SEED;
        sampling.seed = choice->seed;
    }
    return sampling;
}

static bool is(float value, float wanted) {
    return value >= wanted && value <= wanted;
}

/* A task that asks for nothing new is one that older workers take too. */
static uint32_t schema_of(const struct gw_choice *choice) {
    const struct gw_request *request = &choice->visit->request;
    bool old = is(request->typical_p, 1) && is(request->presence, 0) && is(request->frequency, 0) &&
               is(request->repetition, 1) && !request->min_tokens && !request->bias_count &&
               !request->stop_count && !request->logprobs && !choice->index;
    return old ? 1 : 2;
}

static Fractal__V1__GenerationTask task_of(struct gw_choice *choice,
                                           Fractal__V1__SamplingParams *sampling) {
    struct gw_visit *visit = choice->visit;
    Fractal__V1__GenerationTask task = FRACTAL__V1__GENERATION_TASK__INIT;
    task.schema = schema_of(choice);
    task.id = (ProtobufCBinaryData){FX_GEN_ID_BYTES, choice->id.bytes};
    task.tenant = visit->who.tenant;
    task.model = visit->model.number;
    task.model_name = visit->model.name;
    task.n_prompt_ids = visit->prompt.len;
    task.prompt_ids = visit->prompt.at;
    task.max_tokens = visit->max_tokens;
    task.n_stop_ids = visit->request.ignore_eos ? 0 : visit->model.eos_count;
    task.stop_ids = visit->model.eos_ids;
    task.n_stop = visit->request.stop_count;
    task.stop = visit->request.stop;
    task.logprobs = visit->request.logprobs;
    task.top_logprobs = visit->request.top_logprobs;
    task.choices = visit->choice_count;
    task.continues_prompt = visit->prompt.is_continued;
    task.sampling = sampling;
    task.submitted_ms = fx_wall_ms();
    return task;
}

void gw_submit(struct gw_choice *choice) {
    struct gw_visit *visit = choice->visit;
    Fractal__V1__SamplingParams sampling = sampling_of(choice);
    Fractal__V1__GenerationTask task = task_of(choice, &sampling);
    struct biases biases;
    biases_set(&visit->request, &biases, &sampling);
    Fractal__V1__SubmitGenerationRequest message = FRACTAL__V1__SUBMIT_GENERATION_REQUEST__INIT;
    message.task = &task;
    message.tenant_weight = visit->who.weight;
    struct fx_client_request request = {
        .method = "/fractal.v1.SchedulerService/SubmitGeneration",
        .message = &message,
        .reply = &fractal__v1__submit_generation_reply__descriptor,
        .deadline_ms = DEADLINE_MS,
        .trace = &visit->trace,
        .user = choice,
        .on_done = on_submitted,
    };
    fx_error err = {0};
    choice->submitting = true;
    gw_visit_ref(visit); /* the question's */
    if (fx_client_start(visit->gateway->scheduler, &request, NULL, &err)) return;
    struct fx_client_result result = {.code = err.code, .text = err.text};
    on_submitted(choice, &result);
}
