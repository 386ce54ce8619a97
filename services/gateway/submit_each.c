/* For a scheduler that knows SubmitGeneration only: the choices of a request one by one. Where one
 * is refused, those that are in are cancelled, and the request is refused. */
#include <stdio.h>
#include "common/base/heap.h"
#include "fractal/v1/scheduler.pb-c.h"
#include "services/gateway/submit.h"

enum { BUILD_BYTES = 128 * 1024 };

struct asking {
    struct gw_submission *submission;
    uint32_t left;
    struct one {
        struct asking *asking;
        enum fx_code code;
        uint64_t seed;
    } ones[GW_CHOICES_MAX];
    /* the first refusal */
    enum fx_code code;
    uint32_t retry_after_ms;
    char text[FX_CLIENT_TEXT_MAX];
};

static void cancel_admitted(const struct asking *asking) {
    const struct gw_choice *first = asking->submission->first;
    const struct gw_visit *visit = first->visit;
    for (uint32_t i = 0; i < asking->submission->count; i++)
        if (asking->ones[i].code == FX_OK || gw_submit_perhaps_done(asking->ones[i].code))
            gw_cancel(visit->gateway, visit->model.number, &first[i].id, &visit->trace);
}

static void end(struct asking *asking) {
    uint64_t seeds[GW_CHOICES_MAX];
    struct fx_client_result result = {
        .code = asking->code, .text = asking->text, .retry_after_ms = asking->retry_after_ms};
    for (uint32_t i = 0; i < asking->submission->count; i++)
        seeds[i] = asking->ones[i].seed;
    /* After a perhaps, whoever hears of it cancels them all. */
    if (result.code != FX_OK && !gw_submit_perhaps_done(result.code)) cancel_admitted(asking);
    gw_submission_end(asking->submission, &result, seeds);
    free(asking);
}

static void one_end(struct one *one, const struct fx_client_result *result) {
    struct asking *asking = one->asking;
    const Fractal__V1__SubmitGenerationReply *reply = result->reply;
    one->code = result->code;
    if (reply) {
        one->seed = reply->seed;
    } else if (asking->code == FX_OK) {
        asking->code = result->code;
        asking->retry_after_ms = result->retry_after_ms;
        (void)snprintf(asking->text, sizeof asking->text, "%s", result->text);
    }
    asking->left--;
}

static void on_one(void *user, const struct fx_client_result *result) {
    struct one *one = user;
    struct asking *asking = one->asking;
    one_end(one, result);
    if (!asking->left) end(asking);
}

static FX_MUST bool start(struct one *one, struct gw_choice *choice, fx_arena *memory,
                          fx_error *err) {
    Fractal__V1__SubmitGenerationRequest message = FRACTAL__V1__SUBMIT_GENERATION_REQUEST__INIT;
    struct fx_client_request request = {
        .method = "/fractal.v1.SchedulerService/SubmitGeneration",
        .message = &message,
        .reply = &fractal__v1__submit_generation_reply__descriptor,
        .deadline_ms = GW_SUBMIT_DEADLINE_MS,
        .trace = &choice->visit->trace,
        .user = one,
        .on_done = on_one,
    };
    message.task = gw_task(choice, 1, memory);
    message.tenant_weight = choice->visit->who.weight;
    if (!message.task) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a task");
    message.task->id = (ProtobufCBinaryData){FX_GEN_ID_BYTES, choice->id.bytes};
    gw_count(&choice->visit->gateway->metrics.submit_singles, 1);
    return fx_client_start(choice->visit->gateway->scheduler, &request, NULL, err);
}

static void start_all(struct asking *asking, void *memory) {
    struct gw_submission *submission = asking->submission;
    uint32_t count = submission->count;
    fx_arena arena;
    fx_arena_init(&arena, memory, BUILD_BYTES);
    asking->left = count;
    for (uint32_t i = 0; i < count; i++) {
        fx_error err = {0};
        asking->ones[i].asking = asking;
        if (!start(&asking->ones[i], &submission->first[i], &arena, &err))
            one_end(&asking->ones[i],
                    &(struct fx_client_result){.code = err.code, .text = err.text});
        fx_arena_reset(&arena);
    }
    fx_arena_done(&arena);
    if (!asking->left) end(asking); /* none was sent */
}

void gw_submit_each(struct gw_submission *submission) {
    struct fx_client_result full = {.code = FX_RESOURCE_EXHAUSTED, .text = "no memory"};
    struct asking *asking = fx_alloc(1, sizeof *asking);
    fx_auto(uint8_t) memory = fx_alloc(1, BUILD_BYTES);
    if (asking && memory) {
        asking->submission = submission;
        start_all(asking, memory);
        return;
    }
    free(asking);
    gw_submission_end(submission, &full, NULL);
}
