#include "services/gateway/rejoin.h"
#include <stdio.h>
#include "common/base/heap.h"
#include "common/http/json.h"
#include "common/rpc/pb.h"
#include "fractal/v1/generation.pb-c.h"

/* Unpacked, a task is at most so many times its packed bytes, and this. */
enum { GROWTH = 8, ARENA_BYTES = 32 * 1024, PLACE_DIGITS = 10 };

typedef Fractal__V1__GenerationTask task_type;

/* -- the task -- */

static FX_MUST bool biases_copy(struct gw_request *request,
                                const Fractal__V1__SamplingParams *sampling) {
    if (!sampling->n_logit_bias) return true;
    request->bias = fx_alloc(sampling->n_logit_bias, sizeof *request->bias);
    if (!request->bias) return false;
    for (size_t i = 0; i < sampling->n_logit_bias; i++)
        request->bias[request->bias_count++] =
            (struct gw_bias){sampling->logit_bias[i]->id, sampling->logit_bias[i]->value};
    return true;
}

static FX_MUST bool stops_copy(struct gw_request *request, const task_type *task) {
    for (size_t i = 0; i < task->n_stop && i < GW_STOPS_MAX; i++) {
        request->stop[i] = fx_strdup(task->stop[i]);
        if (!request->stop[i]) return false;
        request->stop_count++;
    }
    return true;
}

static FX_MUST bool prompt_copy(struct gw_prompt *prompt, const task_type *task) {
    prompt->is_continued = task->continues_prompt;
    if (!task->n_prompt_ids) return true;
    prompt->at = fx_alloc(task->n_prompt_ids, sizeof *prompt->at);
    if (prompt->at) memcpy(prompt->at, task->prompt_ids, task->n_prompt_ids * sizeof *prompt->at);
    return prompt->at != NULL;
}

static void sampling_copy(struct gw_request *request, const task_type *task) {
    const Fractal__V1__SamplingParams *sampling = task->sampling;
    request->temperature = sampling->temperature;
    request->top_k = sampling->top_k;
    request->top_p = sampling->top_p;
    request->min_p = sampling->min_p;
    request->typical_p = sampling->typical_p;
    request->presence = sampling->presence_penalty;
    request->frequency = sampling->frequency_penalty;
    request->repetition = sampling->repetition_penalty;
    request->min_tokens = sampling->min_tokens;
    request->has_seed = true; /* the scheduler's, where the request had none */
    request->seed = sampling->seed;
}

static uint32_t choices_of(const task_type *task) {
    return task->choices < 1 ? 1 : task->choices > GW_CHOICES_MAX ? GW_CHOICES_MAX : task->choices;
}

static FX_MUST bool task_copy(struct gw_visit *visit, const task_type *task) {
    struct gw_request *request = &visit->request;
    struct gw_rejoin *rejoin = visit->rejoin;
    (void)snprintf(rejoin->model, sizeof rejoin->model, "%s", task->model_name);
    sampling_copy(request, task);
    request->ignore_eos = task->n_stop_ids == 0;
    request->logprobs = task->logprobs;
    request->top_logprobs = task->top_logprobs;
    request->n = choices_of(task);
    visit->max_tokens = task->max_tokens;
    rejoin->created_s = task->submitted_ms / 1000;
    return stops_copy(request, task) && biases_copy(request, task->sampling) &&
           prompt_copy(&visit->prompt, task);
}

bool gw_rejoin_read(struct gw_visit *visit, const struct fx_gen_about *about,
                    struct gw_problem *problem) {
    size_t size = about->task.len * GROWTH + ARENA_BYTES;
    fx_auto(uint8_t) bytes = fx_alloc(1, size);
    fx_arena arena;
    task_type *task;
    fx_error err = {0};
    if (!bytes) return gw_refuse(problem, GW_UNAVAILABLE, NULL, "no memory");
    fx_arena_init(&arena, bytes, size);
    bool ok =
        fx_pb_unpack(&fractal__v1__generation_task__descriptor, about->task, &arena, &task, &err);
    if (!ok || !task->sampling)
        ok = gw_refuse(problem, GW_INTERNAL, NULL, "the generation can't be read");
    else if (!task_copy(visit, task))
        ok = gw_refuse(problem, GW_UNAVAILABLE, NULL, "no memory");
    visit->prompt.len = about->prompt_tokens;
    fx_arena_done(&arena);
    return ok;
}

/* -- places -- */

static FX_MUST bool place_read(fx_span *text, struct gw_place *out) {
    uint64_t n = 0;
    size_t digits = 0;
    for (; digits < text->len && text->at[digits] >= '0' && text->at[digits] <= '9'; digits++)
        n = digits < PLACE_DIGITS ? 10 * n + (text->at[digits] - '0') : UINT64_MAX;
    if (!digits || n > UINT32_MAX) return false;
    bool end = digits < text->len && text->at[digits] == 'e';
    *out = (struct gw_place){(uint32_t)n, end};
    *text = (fx_span){text->at + digits + end, text->len - digits - end};
    return true;
}

/* In a URL a page may have escaped it. */
static bool comma_cut(fx_span *text) {
    static const char *const commas[] = {",", "%2C", "%2c"};
    for (size_t i = 0; i < FX_COUNT(commas); i++) {
        size_t len = strlen(commas[i]);
        if (text->len < len || memcmp(text->at, commas[i], len) != 0) continue;
        *text = (fx_span){text->at + len, text->len - len};
        return true;
    }
    return false;
}

bool gw_places_read(fx_span text, struct gw_place *out, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (i && !comma_cut(&text)) return false;
        if (!place_read(&text, &out[i])) return false;
        if (!i && !text.len && !out->after && !out->end) break; /* 0 is the beginning of all */
    }
    return text.len == 0;
}

void gw_place_move(struct gw_choice *choice, bool end) {
    if (choice->had.after < choice->tokens) choice->had.after = choice->tokens;
    choice->had.end |= end;
}

void gw_places_write(const struct gw_visit *visit, fx_buf *out) {
    for (uint32_t i = 0; i < visit->choice_count; i++) {
        const struct gw_place *had = &visit->choices[i].had;
        if (i) fx_json_put(out, ",");
        fx_json_put_u64(out, had->after);
        if (had->end) fx_json_put(out, "e");
    }
}
