/* The life of one generation: model, prompt, submit, watch, end. */
#include <event2/buffer.h>
#include <stdio.h>
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/heap.h"
#include "services/gateway/rejoin.h"
#include "services/gateway/submit.h"

enum { RESUBMITS_MAX = 8 };

/* -- end -- */

void gw_choice_unwatch(struct gw_choice *choice) {
    fx_watch_free(choice->watch);
    choice->watch = NULL;
}

static void unlist(struct gw_visit *visit) {
    if (!visit->listed) return;
    visit->listed = false;
    gw_unread_end(visit);
    TAILQ_REMOVE(&visit->gateway->visits, visit, entry);
    visit->gateway->metrics.running -= visit->choices_left;
}

static void choice_done(struct gw_choice *choice) {
    gw_choice_unwatch(choice);
    fx_stops_free(choice->stops);
    gw_logprobs_done(&choice->logprobs);
    if (choice->text) evbuffer_free(choice->text);
    free(choice->parts.at);
}

void gw_generation_done(struct gw_visit *visit) {
    unlist(visit);
    gw_limits_end(&visit->hold);
    gw_request_done(&visit->request);
    gw_vocab_unref(visit->model.vocab);
    free(visit->prompt.at);
    for (uint32_t i = 0; visit->choices && i < visit->choice_count; i++)
        choice_done(&visit->choices[i]);
    free(visit->choices);
    free(visit->rejoin);
}

bool gw_generation_pending(const struct gw_visit *visit) {
    for (uint32_t i = 0; visit->choices && i < visit->choice_count; i++)
        if (visit->choices[i].submitted || visit->choices[i].submitting) return true;
    return false;
}

/* A submit under way is cancelled when it has been answered. */
static void choice_cancel(struct gw_choice *choice) {
    struct gw_visit *visit = choice->visit;
    bool running = choice->submitted;
    choice->submitted = false;
    gw_choice_unwatch(choice);
    if (running && !choice->submitting && !visit->keeps)
        gw_cancel(visit->gateway, visit->model.number, &choice->id, &visit->trace);
}

void gw_generation_gone(struct gw_visit *visit) {
    visit->given_up = true;
    unlist(visit);
    for (uint32_t i = 0; visit->choices && i < visit->choice_count; i++)
        choice_cancel(&visit->choices[i]);
}

void gw_generation_fail(struct gw_visit *visit, const struct gw_problem *problem) {
    gw_visit_ref(visit); /* the answer may give the call's back */
    visit->front->fail(visit, problem);
    gw_generation_gone(visit);
    gw_visit_unref(visit);
}

/* -- watch -- */

static void resubmit(struct gw_choice *choice) {
    struct gw_visit *visit = choice->visit;
    struct gw_problem problem;
    if (choice->submitting) return;
    if (choice->resubmits >= RESUBMITS_MAX) {
        gw_problem_set(&problem, GW_FAILED, NULL, "the generation was lost");
        gw_generation_fail(visit, &problem);
        return;
    }
    if (visit->prompt.at)
        gw_submit(choice, 1);
    else
        choice
            ->resubmits++; /* an ended one, without its prompt: its worker still may log it again */
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

static void choice_end(struct gw_choice *choice, enum fx_finish finish) {
    struct gw_visit *visit = choice->visit;
    struct gw_metrics *metrics = &visit->gateway->metrics;
    choice->submitted = false; /* nothing is left to cancel */
    choice->ended = true;
    gw_choice_unwatch(choice);
    finish_count(metrics, finish);
    metrics->running--;
    if (--visit->choices_left) return;
    unlist(visit);
    if (visit->rejoin) return;
    fx_histogram_add(&metrics->whole, fx_clock_us() - visit->begun_us);
}

static void on_tokens(void *ctx, const struct fx_gen_tokens *tokens) {
    struct gw_choice *choice = ctx;
    struct gw_visit *visit = choice->visit;
    struct gw_metrics *metrics = &visit->gateway->metrics;
    if (tokens->gone) {
        resubmit(choice);
        return;
    }
    if (tokens->count) {
        if (!visit->tokens && !visit->rejoin)
            fx_histogram_add(&metrics->first_token, fx_clock_us() - visit->begun_us);
        visit->token_ms = fx_clock_ms();
        gw_count(&metrics->tokens, tokens->count);
    }
    charge(visit, tokens);
    if (tokens->finish != FX_FINISH_NONE) choice_end(choice, tokens->finish);
    gw_visit_ref(visit); /* the end of the answer gives the call's back */
    gw_answer_tokens(choice, tokens);
    gw_unread_check(visit);
    gw_visit_unref(visit);
}

bool gw_choice_watch(struct gw_choice *choice, fx_error *err) {
    struct gw_visit *visit = choice->visit;
    return fx_queue_watch(visit->gateway->queue, visit->model.number, &choice->id, choice->tokens,
                          on_tokens, choice, &choice->watch, err);
}

void gw_generation_watch(struct gw_visit *visit) {
    struct gateway *gateway = visit->gateway;
    struct gw_problem problem;
    fx_error err = {0};
    visit->token_ms = fx_clock_ms();
    visit->listed = true;
    visit->choices_left = visit->choice_count;
    TAILQ_INSERT_TAIL(&gateway->visits, visit, entry);
    gateway->metrics.running += visit->choices_left;
    visit->front->begin(visit);
    for (uint32_t i = 0; i < visit->choice_count && !visit->given_up; i++) {
        if (gw_choice_watch(&visit->choices[i], &err)) continue;
        gw_problem_set(&problem, GW_UNAVAILABLE, NULL, "the answer can't be followed: %s",
                       err.text);
        gw_generation_fail(visit, &problem);
        return;
    }
}

/* -- submit -- */

static void submit_failed(struct gw_choice *first, uint32_t count,
                          const struct fx_client_result *result) {
    struct gw_visit *visit = first->visit;
    struct gw_problem problem;
    bool perhaps = gw_submit_perhaps_done(result->code);
    if (visit->has_begun && (perhaps || result->code == FX_RESOURCE_EXHAUSTED))
        return; /* the watch asks again */
    gw_problem_of_rpc(&problem, result->code, result->text, result->retry_after_ms, "scheduler");
    if (problem.reason == GW_TOO_LONG)
        (void)snprintf(problem.param, sizeof problem.param, "%s",
                       visit->request.kind == GW_CHAT ? "messages" : "prompt");
    for (uint32_t i = 0; i < count; i++)
        first[i].submitted = perhaps;
    if (visit->has_begun) {
        gw_generation_fail(visit, &problem);
        return;
    }
    gw_generation_gone(visit);
    gw_visit_refuse(visit, &problem);
}

/* The client left meanwhile. */
static void submitted_late(struct gw_choice *first, uint32_t count, enum fx_code code) {
    for (uint32_t i = 0; i < count; i++) {
        first[i].submitted = code == FX_OK || gw_submit_perhaps_done(code);
        choice_cancel(&first[i]);
    }
}

static void submitted_again(struct gw_choice *choice) {
    choice->resubmits++;
    gw_count(&choice->visit->gateway->metrics.resubmitted, 1);
}

void gw_generation_submitted(struct gw_choice *first, uint32_t count,
                             const struct fx_client_result *result, const uint64_t *seeds) {
    struct gw_visit *visit = first->visit;
    struct gw_metrics *metrics = &visit->gateway->metrics;
    if (!gw_visit_here(visit) || visit->given_up) {
        submitted_late(first, count, result->code);
        return;
    }
    if (first->ended) return; /* it was submitted again, and is alone */
    if (result->code != FX_OK) {
        submit_failed(first, count, result);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        first[i].submitted = first[i].has_seed = true;
        first[i].seed = seeds[i]; /* should it be submitted again, it is the same generation */
    }
    if (visit->has_begun) {
        submitted_again(first);
        return;
    }
    visit->has_begun = true;
    gw_count(&metrics->generations, count);
    gw_count(&metrics->prompt_tokens, visit->prompt.len);
    gw_generation_watch(visit);
}

static void submit_all(struct gw_visit *visit) {
    gw_submit(visit->choices, visit->choice_count);
}

/* -- model and prompt -- */

void gw_answer_set(struct gw_visit *visit, uint64_t created_s) {
    const struct gw_public_id name = {visit->shape, visit->model.number, visit->id};
    struct gw_answer *answer = &visit->answer;
    gw_public_id_write(&name, answer->id);
    answer->created_s = created_s;
    answer->model = visit->model.name;
    answer->include_usage = visit->request.stream && visit->request.include_usage;
    answer->prompt_tokens = visit->prompt.len;
}

static FX_MUST bool stops_open(struct gw_choice *choice, struct gw_problem *problem) {
    const struct gw_request *request = &choice->visit->request;
    fx_span strings[GW_STOPS_MAX];
    fx_error err = {0};
    for (uint32_t i = 0; i < request->stop_count; i++)
        strings[i] = fx_span_str(request->stop[i]);
    if (!request->stop_count || fx_stops_new(strings, request->stop_count, &choice->stops, &err))
        return true;
    return gw_refuse(problem, GW_UNAVAILABLE, NULL, "%s", err.text);
}

static FX_MUST bool choice_open(struct gw_choice *choice, struct gw_problem *problem) {
    struct gw_visit *visit = choice->visit;
    const fx_tokenizer *tokenizer = visit->model.vocab->tokenizer;
    choice->id = gw_choice_id(&visit->id, choice->index);
    (visit->prompt.is_continued ? fx_detok_init_middle : fx_detok_init)(&choice->detok, tokenizer);
    if (visit->request.logprobs)
        choice->logprobs =
            (struct gw_logprobs){.tokenizer = tokenizer, .each = 1 + visit->request.top_logprobs};
    if (!stops_open(choice, problem)) return false;
    if (visit->request.stream) return true;
    choice->text = evbuffer_new();
    return choice->text || gw_refuse(problem, GW_UNAVAILABLE, NULL, "no memory for the answer");
}

/* One seed for all choices: with their index it decides what each draws. */
bool gw_choices_open(struct gw_visit *visit, struct gw_problem *problem) {
    uint32_t count = visit->request.n;
    uint64_t seed = visit->request.seed;
    bool has_seed = visit->request.has_seed || count > 1;
    visit->choices = fx_alloc(count, sizeof *visit->choices);
    if (!visit->choices)
        return gw_refuse(problem, GW_UNAVAILABLE, NULL, "no memory for the answer");
    visit->choice_count = count;
    if (!visit->request.has_seed) fx_random(&seed, sizeof seed);
    for (uint32_t i = 0; i < count; i++) {
        struct gw_choice *choice = &visit->choices[i];
        *choice = (struct gw_choice){
            .visit = visit, .index = i, .has_seed = has_seed, .seed = has_seed ? seed : 0};
        if (!choice_open(choice, problem)) return false;
    }
    return true;
}

void gw_generation_set_id(struct gw_visit *visit, const fx_gen_id *id) {
    visit->id = gw_choice_id(id, 0);
    for (uint32_t i = 0; i < visit->choice_count; i++)
        visit->choices[i].id = gw_choice_id(id, i);
    gw_answer_set(visit, fx_wall_ms() / 1000);
}

static void draw_id(struct gw_visit *visit) {
    fx_gen_id id;
    fx_random(id.bytes, sizeof id.bytes);
    gw_generation_set_id(visit, &id);
}

/* The ceiling of each choice: the context's, the request's, and what the limits leave them. */
static uint32_t ceiling_of(const struct gw_visit *visit) {
    const struct gw_request *request = &visit->request;
    uint32_t room = visit->model.context_max - visit->prompt.len;
    uint32_t wanted =
        request->max_tokens && request->max_tokens < room ? request->max_tokens : room;
    uint32_t all = gw_limits_ceiling(&visit->who, visit->prompt.len, wanted * request->n);
    return all < request->n ? 1 : all / request->n;
}

static FX_MUST bool prepare(struct gw_visit *visit, struct gw_problem *problem) {
    const struct gw_request *request = &visit->request;
    const struct gw_vocab *vocab = visit->model.vocab;
    if (!fx_redis_ready(visit->gateway->redis))
        return gw_refuse(problem, GW_UNAVAILABLE, NULL, "the queue is away");
    if (!gw_request_check_ids(request, fx_tokenizer_vocabulary(vocab->tokenizer), problem) ||
        !gw_prompt_build(request, vocab, visit->model.context_max, &visit->prompt, problem))
        return false;
    visit->max_tokens = ceiling_of(visit);
    draw_id(visit);
    return gw_choices_open(visit, problem);
}

static void on_taken(void *ctx, const struct gw_limit_state *state,
                     const struct gw_problem *problem) {
    struct gw_visit *visit = ctx;
    visit->looked = true;
    visit->limits = *state;
    visit->once.attached = !visit->hold.limits;
    if (problem)
        gw_visit_refuse(visit, problem);
    else if (gw_visit_here(visit))
        submit_all(visit);
    gw_visit_unref(visit); /* the question's */
}

void gw_generation_attach(struct gw_visit *visit) {
    visit->once.attached = true;
    submit_all(visit);
}

void gw_generation_admit(struct gw_visit *visit) {
    if (!gw_limited(&visit->who)) {
        submit_all(visit);
        return;
    }
    gw_visit_ref(visit); /* the question's */
    gw_limits_take(visit->gateway->limits, &visit->hold, &visit->who, &visit->choices[0].id,
                   visit->prompt.len + visit->max_tokens * visit->choice_count, on_taken, visit);
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
    if (visit->once.asked)
        gw_once_claim(visit);
    else
        gw_generation_admit(visit);
}

void gw_serve_generation(struct gw_visit *visit) {
    visit->shape = visit->route->shape;
    (void)snprintf(visit->name, sizeof visit->name, "%s", visit->request.model);
    gw_visit_want_model(visit, visit->name, on_model);
}
