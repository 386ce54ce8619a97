/* Follow, GetGeneration and CancelGeneration: /v1/generations/{id} over gRPC. */
#include <stdio.h>
#include "fractal/v1/inference.pb-c.h"
#include "services/gateway/rejoin.h"
#include "services/gateway/rpc.h"

/* An id that does not fit is nobody's, and so is its beginning. */
static void find(struct gw_visit *visit, const char *id, void (*found)(struct gw_visit *visit)) {
    (void)snprintf(visit->name, sizeof visit->name, "%s", id);
    gw_rejoin_describe(visit, found);
}

/* -- its text -- */

static void follow_found(struct gw_visit *visit) {
    const Fractal__V1__FollowRequest *request = visit->rpc->message;
    struct gw_problem problem;
    fx_span after = fx_span_str(request->after);
    if (!after.len || gw_places_read(after, visit->rejoin->had, visit->request.n)) {
        gw_rejoin_follow(visit);
        return;
    }
    gw_problem_set(&problem, GW_BAD_VALUE, "after",
                   "must be `after` of a response of this answer, or a number of tokens for each "
                   "of its %u choices, parted by commas",
                   visit->request.n);
    gw_visit_refuse(visit, &problem);
}

void gw_rpc_serve_follow(struct gw_visit *visit) {
    find(visit, ((const Fractal__V1__FollowRequest *)visit->rpc->message)->id, follow_found);
}

/* -- its status -- */

static Fractal__V1__GenerationState state_of(enum fx_gen_state state) {
    switch (state) {
    case FX_GEN_FINISHED: return FRACTAL__V1__GENERATION_STATE__GENERATION_STATE_FINISHED;
    case FX_GEN_CANCELLED: return FRACTAL__V1__GENERATION_STATE__GENERATION_STATE_CANCELLED;
    case FX_GEN_FAILED: return FRACTAL__V1__GENERATION_STATE__GENERATION_STATE_FAILED;
    case FX_GEN_RUNNING: return FRACTAL__V1__GENERATION_STATE__GENERATION_STATE_RUNNING;
    default: return FRACTAL__V1__GENERATION_STATE__GENERATION_STATE_QUEUED;
    }
}

static Fractal__V1__FinishReason finish_of(enum fx_finish finish) {
    switch (finish) {
    case FX_FINISH_STOP: return FRACTAL__V1__FINISH_REASON__FINISH_REASON_STOP;
    case FX_FINISH_LENGTH: return FRACTAL__V1__FINISH_REASON__FINISH_REASON_LENGTH;
    default: return FRACTAL__V1__FINISH_REASON__FINISH_REASON_UNSPECIFIED;
    }
}

static void choice_fill(Fractal__V1__ChoiceStatus *choice, const struct gw_rejoin_state *state) {
    fractal__v1__choice_status__init(choice);
    choice->state = state_of(state->state);
    choice->tokens = state->tokens;
    choice->finish_reason = finish_of(state->finish);
}

/* Either response: they have the same field. */
static void reply(struct gw_visit *visit, Fractal__V1__AnswerStatus *status) {
    const ProtobufCMessage *request = visit->rpc->message;
    Fractal__V1__InferenceServiceGetGenerationResponse got =
        FRACTAL__V1__INFERENCE_SERVICE_GET_GENERATION_RESPONSE__INIT;
    Fractal__V1__InferenceServiceCancelGenerationResponse cancelled =
        FRACTAL__V1__INFERENCE_SERVICE_CANCEL_GENERATION_RESPONSE__INIT;
    got.status = cancelled.status = status;
    if (request->descriptor ==
        &fractal__v1__inference_service_cancel_generation_request__descriptor)
        gw_rpc_reply(visit, &cancelled);
    else
        gw_rpc_reply(visit, &got);
    gw_visit_unref(visit); /* the call's */
}

void gw_rpc_status_reply(struct gw_visit *visit) {
    struct gw_rejoin *rejoin = visit->rejoin;
    Fractal__V1__AnswerStatus status = FRACTAL__V1__ANSWER_STATUS__INIT;
    Fractal__V1__ChoiceStatus choices[GW_CHOICES_MAX], *at[GW_CHOICES_MAX];
    for (uint32_t i = 0; i < visit->request.n; i++) {
        at[i] = &choices[i];
        choice_fill(at[i], &rejoin->states[i]);
    }
    status.id = visit->name;
    status.model = rejoin->model;
    status.created_s = rejoin->created_s;
    status.state = state_of(gw_rejoin_state(visit));
    status.prompt_tokens = visit->prompt.len;
    status.choices = at;
    status.n_choices = visit->request.n;
    reply(visit, &status);
}

void gw_rpc_serve_get(struct gw_visit *visit) {
    find(visit,
         ((const Fractal__V1__InferenceServiceGetGenerationRequest *)visit->rpc->message)->id,
         gw_rpc_status_reply);
}

/* -- its cancel -- */

void gw_rpc_serve_cancel(struct gw_visit *visit) {
    const Fractal__V1__InferenceServiceCancelGenerationRequest *request = visit->rpc->message;
    (void)snprintf(visit->name, sizeof visit->name, "%s", request->id);
    gw_serve_cancel(visit);
}
