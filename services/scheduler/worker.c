/* RegisterWorker: heartbeats. */
#include <stdio.h>
#include "common/base/hash.h"
#include "common/model/store.h"
#include "services/scheduler/op.h"

enum { WORKER_ID_BYTES = 16 };

static void on_beat(void *ctx, const fx_error *err) {
    struct op *op = ctx;
    Fractal__V1__RegisterWorkerReply reply = FRACTAL__V1__REGISTER_WORKER_REPLY__INIT;
    const Fractal__V1__RegisterWorkerRequest *request = op->request;
    if (err) {
        op_fail(op, err);
        return;
    }
    (void)model_add(op->app, op->model, request->model_name);
    fx_call_reply(op->call, &reply);
}

static void beat_start(struct op *op) {
    const Fractal__V1__RegisterWorkerRequest *request = op->request;
    fx_error err;
    struct fx_beat beat = {
        .model = op->model,
        .model_name = request->model_name,
        .worker = {.slots = request->slots,
                   .slots_free = request->slots_free,
                   .context_max = request->context_max,
                   .leaving = request->leaving,
                   .figures = {request->figures.data, request->figures.len}}
    };
    (void)snprintf(beat.worker.worker, sizeof beat.worker.worker, "%s", request->worker);
    (void)snprintf(beat.worker.numerics_id, sizeof beat.worker.numerics_id, "%s",
                   request->numerics_id);
    if (!fx_queue_beat(op->app->queue, &beat, on_beat, op, &err)) op_fail(op, &err);
}

static FX_MUST bool check(const Fractal__V1__RegisterWorkerRequest *request, fx_error *err) {
    uint8_t id[WORKER_ID_BYTES];
    if (!fx_unhex(fx_span_str(request->worker), id, sizeof id) ||
        strlen(request->worker) != 2 * sizeof id)
        return fx_fail(err, FX_INVALID_ARGUMENT, "worker: not 32 hex digits");
    if (!request->model_name[0] || strlen(request->model_name) > FX_QUEUE_NAME_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "model_name: 1 to %d bytes", FX_QUEUE_NAME_MAX);
    if (fx_model_number(request->model_name) != request->model)
        return fx_fail(err, FX_INVALID_ARGUMENT, "model: not the number of model_name");
    if (strlen(request->numerics_id) > FX_QUEUE_NAME_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "numerics_id: more than %d bytes",
                       FX_QUEUE_NAME_MAX);
    return true;
}

void register_worker(fx_call *call, const void *request, void *app) {
    const Fractal__V1__RegisterWorkerRequest *beat = request;
    fx_error err = {0};
    struct op *op = op_new(call, request, app);
    if (!op) return;
    op->model = beat->model;
    if (check(beat, &err))
        op_post(op, beat_start);
    else
        op_fail(op, &err);
}
