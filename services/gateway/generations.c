/* /v1/generations/{id}: how an answer stands, its events from where a client is, its cancel. Any
 * gateway can tell: all of it is in the queue. */
#include "common/base/heap.h"
#include "common/http/json.h"
#include "services/gateway/rejoin.h"

/* -- what the queue knows -- */

static bool none(struct gw_problem *problem) {
    return gw_refuse(
        problem, GW_NO_GENERATION, "id",
        "there is no such generation: it is another tenant's, or it ended too long ago");
}

/* The answers to all questions are here. */
static void described(struct gw_visit *visit) {
    struct gw_rejoin *rejoin = visit->rejoin;
    if (!gw_visit_here(visit)) return;
    if (rejoin->failed)
        gw_visit_refuse(visit, &rejoin->problem);
    else
        rejoin->found(visit);
}

static void fail(struct gw_visit *visit, const fx_error *err) {
    struct gw_rejoin *rejoin = visit->rejoin;
    if (rejoin->failed) return;
    rejoin->failed = true;
    gw_problem_set(&rejoin->problem, GW_UNAVAILABLE, NULL, "the queue: %s", err->text);
}

/* One of the questions is answered: which choice is found by the order of the answers' arrival,
 * which is the order of the questions. `state` NULL: there is none, or `err` says why. */
static void told(struct gw_visit *visit, const struct gw_rejoin_state *state, const fx_error *err) {
    struct gw_rejoin *rejoin = visit->rejoin;
    if (err)
        fail(visit, err);
    else if (state)
        rejoin->states[visit->request.n - rejoin->asked] = *state;
    if (--rejoin->asked == 0) described(visit);
    gw_visit_unref(visit); /* the question's */
}

static void on_state(void *ctx, const struct fx_gen_about *about, const fx_error *err) {
    struct gw_rejoin_state state = {0};
    bool known = !err && about->status == FX_QUEUE_OK;
    if (known) state = (struct gw_rejoin_state){about->state, about->finish, about->tokens};
    told(ctx, known ? &state : NULL, err);
}

static bool describe_one(struct gw_visit *visit, const fx_gen_id *id, fx_error *err) {
    return fx_queue_describe(visit->gateway->queue, visit->rejoin->name.model, id, on_state, visit,
                             err);
}

static void ask_all(struct gw_visit *visit,
                    bool (*ask)(struct gw_visit *visit, const fx_gen_id *id, fx_error *err)) {
    fx_error err = {0};
    visit->rejoin->asked = visit->request.n;
    for (uint32_t i = 0; i < visit->request.n; i++) {
        fx_gen_id id = gw_choice_id(&visit->id, i);
        gw_visit_ref(visit); /* the question's */
        if (!ask(visit, &id, &err)) told(visit, NULL, &err);
    }
}

/* Choice 0 says how many there are, and whose. */
static void on_first(void *ctx, const struct fx_gen_about *about, const fx_error *err) {
    struct gw_visit *visit = ctx;
    struct gw_rejoin *rejoin = visit->rejoin;
    struct gw_problem *problem = &rejoin->problem;
    if (err)
        fail(visit, err);
    else if (about->status != FX_QUEUE_OK || about->tenant != visit->who.tenant || !about->task.len)
        rejoin->failed = !none(problem);
    else
        rejoin->failed = !gw_rejoin_read(visit, about, problem);
    if (rejoin->failed)
        described(visit);
    else if (gw_visit_here(visit))
        ask_all(visit, describe_one);
    gw_visit_unref(visit); /* the question's */
}

void gw_rejoin_describe(struct gw_visit *visit, void (*found)(struct gw_visit *visit)) {
    struct gw_problem problem;
    fx_error err = {0};
    struct gw_rejoin *rejoin = visit->rejoin = fx_alloc(1, sizeof *rejoin);
    if (!rejoin) {
        gw_problem_set(&problem, GW_UNAVAILABLE, NULL, "no memory");
        gw_visit_refuse(visit, &problem);
        return;
    }
    rejoin->found = found;
    visit->keeps = true; /* it looks on; who asked for the answer may leave it, or cancel it */
    if (!gw_public_id_read(fx_span_str(visit->name), &rejoin->name)) {
        (void)none(&problem);
        gw_visit_refuse(visit, &problem);
        return;
    }
    visit->id = rejoin->name.id;
    visit->shape = rejoin->name.shape;
    gw_visit_ref(visit); /* the question's */
    if (!fx_queue_describe(visit->gateway->queue, rejoin->name.model, &visit->id, on_first, visit,
                           &err))
        on_first(visit, NULL, &err);
}

/* -- its status -- */

static const char *state_name(enum fx_gen_state state) {
    switch (state) {
    case FX_GEN_FINISHED: return "finished";
    case FX_GEN_CANCELLED: return "cancelled";
    case FX_GEN_FAILED: return "failed";
    case FX_GEN_RUNNING: return "running";
    default: return "queued"; /* also one that was not submitted yet, or is being again */
    }
}

enum fx_gen_state gw_rejoin_state(const struct gw_visit *visit) {
    const struct gw_rejoin *rejoin = visit->rejoin;
    uint32_t finished = 0, begun = 0;
    for (uint32_t i = 0; i < visit->request.n; i++) {
        enum fx_gen_state state = rejoin->states[i].state;
        if (state == FX_GEN_FAILED || state == FX_GEN_CANCELLED) return state;
        finished += state == FX_GEN_FINISHED;
        begun += state == FX_GEN_RUNNING;
    }
    if (finished == visit->request.n) return FX_GEN_FINISHED;
    return begun || finished ? FX_GEN_RUNNING : FX_GEN_QUEUED;
}

static void choice_put(const struct gw_rejoin_state *state, uint32_t index, fx_buf *out) {
    fx_json_put(out, "{\"index\":");
    fx_json_put_u64(out, index);
    fx_json_put(out, ",\"status\":");
    fx_json_put_text(out, state_name(state->state));
    fx_json_put(out, ",\"tokens\":");
    fx_json_put_u64(out, state->tokens);
    fx_json_put(out, ",\"finish_reason\":");
    fx_json_put_text(out, state->finish == FX_FINISH_STOP     ? "stop"
                          : state->finish == FX_FINISH_LENGTH ? "length"
                                                              : NULL);
    fx_json_put(out, "}");
}

void gw_status_open(const struct gw_visit *visit, fx_buf *out) {
    fx_json_put(out, "{\"id\":");
    fx_json_put_text(out, visit->name);
    fx_json_put(out, ",\"object\":\"generation\",\"created\":");
    fx_json_put_u64(out, visit->rejoin->created_s);
    fx_json_put(out, ",\"model\":");
    fx_json_put_text(out, visit->rejoin->model);
    fx_json_put(out, ",\"status\":");
    fx_json_put_text(out, state_name(gw_rejoin_state(visit)));
    fx_json_put(out, ",\"prompt_tokens\":");
    fx_json_put_u64(out, visit->prompt.len);
    fx_json_put(out, ",\"choices\":[");
    for (uint32_t i = 0; i < visit->request.n; i++) {
        if (i) fx_json_put(out, ",");
        choice_put(&visit->rejoin->states[i], i, out);
    }
    fx_json_put(out, "],\"response\":");
}

void gw_status_close(fx_buf *out) {
    fx_json_put(out, "}");
}

void gw_status_reply(struct gw_visit *visit) {
    uint8_t json[8 * 1024]; /* names and the numbers of 16 choices fit */
    fx_buf out = {json, 0, sizeof json};
    gw_status_open(visit, &out);
    fx_json_put(&out, "null");
    gw_status_close(&out);
    FX_ASSERT(fx_buf_fits(&out));
    gw_visit_reply(visit, (fx_span){json, out.len});
}

/* -- its text -- */

static void on_model(void *ctx, const struct gw_model *model) {
    struct gw_visit *visit = ctx;
    struct gw_problem problem = {0};
    visit->model = *model;
    gw_vocab_ref(visit->model.vocab);
    if (!gw_choices_open(visit, &problem)) {
        gw_visit_refuse(visit, &problem);
        return;
    }
    for (uint32_t i = 0; i < visit->choice_count; i++)
        visit->choices[i].had = visit->rejoin->had[i];
    visit->has_begun = true;
    gw_answer_set(visit, visit->rejoin->created_s);
    gw_generation_watch(visit);
}

void gw_rejoin_follow(struct gw_visit *visit) {
    gw_visit_want_model(visit, visit->rejoin->model, on_model);
}

/* The answer is in the status of one that finished. */
static void status_found(struct gw_visit *visit) {
    if (gw_rejoin_state(visit) == FX_GEN_FINISHED)
        gw_rejoin_follow(visit);
    else
        gw_status_reply(visit);
}

void gw_serve_status(struct gw_visit *visit) {
    gw_rejoin_describe(visit, status_found);
}

/* -- its events -- */

/* Last-Event-ID is newer than the URL: an EventSource that reconnects sends both. */
static FX_MUST bool places_find(struct gw_visit *visit, struct gw_problem *problem) {
    fx_span header = fx_http_header(visit->http, "last-event-id");
    fx_span text = header.len ? header : fx_http_query(visit->http, "after");
    if (!text.len || gw_places_read(text, visit->rejoin->had, visit->request.n)) return true;
    return gw_refuse(problem, GW_BAD_VALUE, header.len ? "last-event-id" : "after",
                     "must be the `id` of an event of this answer, or a number of tokens for each "
                     "of its %u choices, parted by commas",
                     visit->request.n);
}

static void events_found(struct gw_visit *visit) {
    struct gw_problem problem;
    if (!places_find(visit, &problem)) {
        gw_visit_refuse(visit, &problem);
        return;
    }
    if (visit->http->method == FX_HTTP_HEAD) {
        gw_visit_stream_head(visit);
        return;
    }
    visit->request.stream = true;
    visit->request.include_usage =
        fx_span_eq_str(fx_http_query(visit->http, "include_usage"), "true");
    gw_rejoin_follow(visit);
}

void gw_serve_events(struct gw_visit *visit) {
    struct gw_problem problem;
    if (visit->http->http_1_0) {
        gw_problem_set(&problem, GW_OLD_HTTP, NULL, "a stream needs HTTP/1.1");
        gw_visit_refuse(visit, &problem);
        return;
    }
    gw_rejoin_describe(visit, events_found);
}

/* -- its cancel -- */

static void on_cancelled(void *ctx, const struct fx_gen_info *info, const fx_error *err) {
    struct gw_rejoin_state state = {0};
    bool known = !err && info->status == FX_QUEUE_OK;
    if (known) state = (struct gw_rejoin_state){info->state, info->finish, info->tokens};
    told(ctx, known ? &state : NULL, err);
}

static bool cancel_one(struct gw_visit *visit, const fx_gen_id *id, fx_error *err) {
    return fx_queue_cancel(visit->gateway->queue, visit->rejoin->name.model, id, on_cancelled,
                           visit, err);
}

/* Those that run stay so until their worker has stopped: the reply says how they stand now. */
static void cancel_found(struct gw_visit *visit) {
    visit->rejoin->found = visit->front->status;
    gw_count(&visit->gateway->metrics.cancelled, 1);
    ask_all(visit, cancel_one);
}

void gw_serve_cancel(struct gw_visit *visit) {
    gw_rejoin_describe(visit, cancel_found);
}
