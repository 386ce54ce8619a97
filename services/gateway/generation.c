/* The life of one generation: model, prompt, submit, watch, end. */
#include <event2/buffer.h>
#include <stdio.h>
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/heap.h"
#include "services/gateway/visit.h"

enum { RESUBMITS_MAX = 8 };

/* -- end -- */

/* Follows it no more. */
static void unwatch(struct gw_visit *visit) {
    fx_watch_free(visit->watch);
    visit->watch = NULL;
    if (!visit->listed) return;
    visit->listed = false;
    TAILQ_REMOVE(&visit->gateway->visits, visit, entry);
    visit->gateway->metrics.running--;
}

void gw_generation_done(struct gw_visit *visit) {
    unwatch(visit);
    gw_limits_end(&visit->hold);
    gw_request_done(&visit->request);
    gw_vocab_unref(visit->model.vocab);
    free(visit->prompt.at);
    fx_stops_free(visit->stops);
    if (visit->text) evbuffer_free(visit->text);
    if (visit->rpc.text) evbuffer_free(visit->rpc.text);
}

/* A submit under way is cancelled when it has been answered. */
void gw_generation_gone(struct gw_visit *visit) {
    bool running = visit->submitted;
    visit->submitted = false;
    unwatch(visit);
    if (running && !visit->submitting)
        gw_cancel(visit->gateway, visit->model.number, &visit->id, &visit->trace);
}

void gw_generation_fail(struct gw_visit *visit, const struct gw_problem *problem) {
    gw_visit_ref(visit); /* the answer may give the call's back */
    visit->front->fail(visit, problem);
    gw_generation_gone(visit);
    gw_visit_unref(visit);
}

/* -- watch -- */

static void resubmit(struct gw_visit *visit) {
    struct gw_problem problem;
    if (visit->submitting) return;
    if (++visit->resubmits > RESUBMITS_MAX) {
        gw_problem_set(&problem, GW_FAILED, NULL, "the generation was lost");
        gw_generation_fail(visit, &problem);
        return;
    }
    gw_count(&visit->gateway->metrics.resubmitted, 1);
    gw_submit(visit);
}

static void finish_count(struct gw_metrics *metrics, enum fx_finish finish) {
    gw_count(finish == FX_FINISH_STOP     ? &metrics->finished_stop
             : finish == FX_FINISH_LENGTH ? &metrics->finished_length
                                          : &metrics->finished_error,
             1);
}

/* What the rate limits are told: nothing before the first token. */
static void charge(struct gw_visit *visit, const struct fx_gen_tokens *tokens) {
    bool whole = tokens->finish == FX_FINISH_STOP || tokens->finish == FX_FINISH_LENGTH;
    if (!tokens->count && !whole) return;
    visit->hold.counts = true;
    visit->hold.used = visit->prompt.len + visit->tokens + tokens->count;
}

static void on_tokens(void *ctx, const struct fx_gen_tokens *tokens) {
    struct gw_visit *visit = ctx;
    struct gw_metrics *metrics = &visit->gateway->metrics;
    if (tokens->gone) {
        resubmit(visit);
        return;
    }
    if (tokens->count) {
        if (!visit->tokens)
            fx_histogram_add(&metrics->first_token, fx_clock_us() - visit->begun_us);
        visit->token_ms = fx_clock_ms();
        gw_count(&metrics->tokens, tokens->count);
    }
    charge(visit, tokens);
    if (tokens->finish != FX_FINISH_NONE) {
        visit->submitted = false; /* nothing is left to cancel */
        unwatch(visit);
        finish_count(metrics, tokens->finish);
        fx_histogram_add(&metrics->whole, fx_clock_us() - visit->begun_us);
    }
    gw_visit_ref(visit); /* the end of the answer gives the call's back */
    gw_answer_tokens(visit, tokens);
    gw_visit_unref(visit);
}

static void watch_begin(struct gw_visit *visit) {
    struct gateway *gateway = visit->gateway;
    struct gw_problem problem;
    fx_error err = {0};
    visit->token_ms = fx_clock_ms();
    visit->listed = true;
    TAILQ_INSERT_TAIL(&gateway->visits, visit, entry);
    gateway->metrics.running++;
    visit->front->begin(visit);
    if (fx_queue_watch(gateway->queue, visit->model.number, &visit->id, 0, on_tokens, visit,
                       &visit->watch, &err))
        return;
    gw_problem_set(&problem, GW_UNAVAILABLE, NULL, "the answer can't be followed: %s", err.text);
    gw_generation_fail(visit, &problem);
}

/* -- submit -- */

/* After these nobody knows whether the scheduler has it. */
static bool perhaps_done(enum fx_code code) {
    return code == FX_UNAVAILABLE || code == FX_DEADLINE_EXCEEDED || code == FX_CANCELLED ||
           code == FX_UNKNOWN || code == FX_INTERNAL;
}

static void submit_failed(struct gw_visit *visit, const struct fx_client_result *result) {
    struct gw_problem problem;
    if (visit->watch && perhaps_done(result->code)) return; /* the watch asks again */
    gw_problem_of_rpc(&problem, result->code, result->text, result->retry_after_ms, "scheduler");
    visit->submitted = perhaps_done(result->code);
    if (visit->watch)
        gw_generation_fail(visit, &problem);
    else {
        if (visit->submitted) gw_generation_gone(visit);
        gw_visit_refuse(visit, &problem);
    }
}

void gw_generation_submitted(struct gw_visit *visit, const struct fx_client_result *result,
                             uint64_t seed) {
    struct gw_metrics *metrics = &visit->gateway->metrics;
    if (!gw_visit_here(visit)) { /* the client left meanwhile */
        visit->submitted = result->code == FX_OK || perhaps_done(result->code);
        gw_generation_gone(visit);
        return;
    }
    if (result->code != FX_OK) {
        submit_failed(visit, result);
        return;
    }
    visit->submitted = visit->has_seed = true;
    visit->seed = seed; /* should it be submitted again, it is the same generation */
    if (visit->watch) return;
    gw_count(&metrics->generations, 1);
    gw_count(&metrics->prompt_tokens, visit->prompt.len);
    watch_begin(visit);
}

/* -- model and prompt -- */

static void answer_set(struct gw_visit *visit) {
    char hex[2 * FX_GEN_ID_BYTES + 1];
    struct gw_answer *answer = &visit->answer;
    fx_random(visit->id.bytes, sizeof visit->id.bytes);
    fx_hex((fx_span){visit->id.bytes, sizeof visit->id.bytes}, hex);
    (void)snprintf(answer->id, sizeof answer->id, "%s%s", visit->shape->id_prefix, hex);
    answer->created_s = fx_wall_ms() / 1000;
    answer->model = visit->model.name;
    answer->include_usage = visit->request.stream && visit->request.include_usage;
    answer->prompt_tokens = visit->prompt.len;
}

static FX_MUST bool stops_open(struct gw_visit *visit, struct gw_problem *problem) {
    const struct gw_request *request = &visit->request;
    fx_span strings[GW_STOPS_MAX];
    fx_error err = {0};
    for (uint32_t i = 0; i < request->stop_count; i++)
        strings[i] = fx_span_str(request->stop[i]);
    if (!request->stop_count || fx_stops_new(strings, request->stop_count, &visit->stops, &err))
        return true;
    return gw_refuse(problem, GW_UNAVAILABLE, NULL, "%s", err.text);
}

static FX_MUST bool prepare(struct gw_visit *visit, struct gw_problem *problem) {
    const struct gw_request *request = &visit->request;
    uint32_t context = visit->model.context_max;
    if (!fx_redis_ready(visit->gateway->redis))
        return gw_refuse(problem, GW_UNAVAILABLE, NULL, "the queue is away");
    if (!stops_open(visit, problem) ||
        !gw_request_check_ids(request, fx_tokenizer_vocabulary(visit->model.vocab->tokenizer),
                              problem) ||
        !gw_prompt_build(request, visit->model.vocab, context, &visit->prompt, problem))
        return false;
    uint32_t room = context - visit->prompt.len;
    visit->max_tokens =
        request->max_tokens && request->max_tokens < room ? request->max_tokens : room;
    visit->max_tokens = gw_limits_ceiling(&visit->who, visit->prompt.len, visit->max_tokens);
    visit->has_seed = request->has_seed;
    visit->seed = request->seed;
    if (request->stream) return true;
    visit->text = evbuffer_new();
    if (visit->text) return true;
    return gw_refuse(problem, GW_UNAVAILABLE, NULL, "no memory for the answer");
}

static void on_taken(void *ctx, const struct gw_limit_state *state,
                     const struct gw_problem *problem) {
    struct gw_visit *visit = ctx;
    visit->looked = true;
    visit->limits = *state;
    if (problem)
        gw_visit_refuse(visit, problem);
    else if (gw_visit_here(visit))
        gw_submit(visit);
    gw_visit_unref(visit); /* the question's */
}

static void admit(struct gw_visit *visit) {
    if (!gw_limited(&visit->who)) {
        gw_submit(visit);
        return;
    }
    gw_visit_ref(visit); /* the question's */
    gw_limits_take(visit->gateway->limits, &visit->hold, &visit->who, &visit->id,
                   visit->prompt.len + visit->max_tokens, on_taken, visit);
}

static void on_model(void *ctx, const struct gw_model *model) {
    struct gw_visit *visit = ctx;
    struct gw_problem problem = {0};
    visit->model = *model;
    gw_vocab_ref(visit->model.vocab);
    if (!prepare(visit, &problem)) {
        gw_visit_refuse(visit, &problem);
        return;
    }
    gw_request_drop_json(&visit->request);
    answer_set(visit);
    fx_detok_init(&visit->detok, visit->model.vocab->tokenizer);
    admit(visit);
}

static void on_no_model(void *ctx, const struct gw_problem *problem) {
    gw_visit_refuse(ctx, problem);
}

void gw_serve_generation(struct gw_visit *visit) {
    visit->shape = visit->route->shape;
    (void)snprintf(visit->name, sizeof visit->name, "%s", visit->request.model);
    visit->waiter = (struct gw_models_waiter){
        .name = visit->name, .ctx = visit, .found = on_model, .refused = on_no_model};
    gw_models_want(visit->gateway->models, &visit->waiter);
}
