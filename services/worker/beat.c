#include "services/worker/io_internal.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/rpc/pb.h"
#include "fractal/v1/scheduler.pb-c.h"

enum { BEAT_DEADLINE_MS = 2000 };

/* Once: why the scheduler does not know us. */
static void log_refusal(worker_io *io, const struct fx_client_result *result) {
    bool told = io->refused;
    io->refused = result->code != FX_OK;
    if (told || !io->refused) return;
    fx_log(FX_LOG_WARN, FX_EVENT("not_registered"), FX_KS("code", fx_code_name(result->code)),
           FX_KS("reason", result->text));
}

static void on_beat(void *user, const struct fx_client_result *result) {
    worker_io *io = user;
    io->beating = false;
    log_refusal(io, result);
    status_set(io->opts.status, STATUS_REGISTERED, result->code == FX_OK);
}

/* The scheduler knows that no more is to be dispatched to us, or can't be told. */
static void on_leave(void *user, const struct fx_client_result *result) {
    worker_io *io = user;
    (void)result;
    status_set(io->opts.status, STATUS_LEFT, 1);
}

void io_beat(worker_io *io) {
    if (io->beating) return;
    Fractal__V1__RegisterWorkerRequest message = FRACTAL__V1__REGISTER_WORKER_REQUEST__INIT;
    message.worker = fx_pb_text(io->opts.worker);
    message.model = io->model;
    message.model_name = fx_pb_text(io->opts.model->name);
    message.slots = io->slots;
    message.slots_free = io->slots - io->used;
    message.numerics_id = io->numerics_id;
    message.leaving = io->draining;
    message.context_max = io->context_max;
    fx_span figures =
        worker_figures_pack(&io->figures, io->opts.status, fx_clock_ms(), io->figures_bytes);
    message.figures = (ProtobufCBinaryData){figures.len, io->figures_bytes};
    const struct fx_client_request request = {
        .method = "/fractal.v1.SchedulerService/RegisterWorker",
        .message = &message,
        .reply = &fractal__v1__register_worker_reply__descriptor,
        .deadline_ms = BEAT_DEADLINE_MS,
        .user = io,
        .on_done = io->draining ? on_leave : on_beat,
    };
    fx_error err = {0};
    io->beat_ms = fx_clock_ms();
    io->beating = fx_client_start(io->scheduler, &request, NULL, &err);
    if (!io->beating) status_set(io->opts.status, STATUS_REGISTERED, 0);
}
