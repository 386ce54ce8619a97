/* CancelGeneration and GetGeneration. */
#include "services/scheduler/op.h"

static bool found(struct op *op, const struct fx_gen_info *info, const fx_error *err) {
    if (err)
        op_fail(op, err);
    else if (info->status == FX_QUEUE_NOT_FOUND)
        op_refuse(op, FX_NOT_FOUND, 0, "no such generation");
    return !err && info->status != FX_QUEUE_NOT_FOUND;
}

static void on_cancelled(void *ctx, const struct fx_gen_info *info, const fx_error *err) {
    struct op *op = ctx;
    Fractal__V1__CancelGenerationReply reply = FRACTAL__V1__CANCEL_GENERATION_REPLY__INIT;
    if (!found(op, info, err)) return;
    op->app->cancelled++;
    reply.state = (Fractal__V1__GenerationState)info->state;
    fx_call_reply(op->call, &reply);
}

static void cancel_start(struct op *op) {
    fx_error err;
    if (!fx_queue_cancel(op->app->queue, op->model, &op->id, on_cancelled, op, &err))
        op_fail(op, &err);
}

static void on_got(void *ctx, const struct fx_gen_info *info, const fx_error *err) {
    struct op *op = ctx;
    Fractal__V1__Generation reply = FRACTAL__V1__GENERATION__INIT;
    if (!found(op, info, err)) return;
    reply.state = (Fractal__V1__GenerationState)info->state;
    reply.tokens = info->tokens;
    reply.epoch = info->epoch;
    reply.finish_reason = (Fractal__V1__FinishReason)info->finish;
    reply.worker = fx_arena_copy(fx_call_arena(op->call), fx_span_str(info->worker));
    if (!reply.worker)
        op_refuse(op, FX_RESOURCE_EXHAUSTED, 0, "the answer does not fit");
    else
        fx_call_reply(op->call, &reply);
}

static void get_start(struct op *op) {
    fx_error err;
    if (!fx_queue_get(op->app->queue, op->model, &op->id, on_got, op, &err)) op_fail(op, &err);
}

static void begin(fx_call *call, const void *request, void *app, ProtobufCBinaryData id,
                  uint32_t model, void (*start)(struct op *op)) {
    fx_error err = {0};
    struct op *op = op_new(call, request, app);
    if (!op) return;
    op->model = model;
    if (id_read(id, &op->id, &err))
        op_post(op, start);
    else
        op_fail(op, &err);
}

void cancel_generation(fx_call *call, const void *request, void *app) {
    const Fractal__V1__CancelGenerationRequest *cancel = request;
    begin(call, request, app, cancel->id, cancel->model, cancel_start);
}

void get_generation(fx_call *call, const void *request, void *app) {
    const Fractal__V1__GetGenerationRequest *get = request;
    begin(call, request, app, get->id, get->model, get_start);
}
