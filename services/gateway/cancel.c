#include "common/base/heap.h"
#include "common/base/log.h"
#include "fractal/v1/scheduler.pb-c.h"
#include "services/gateway/visit.h"

enum { DEADLINE_MS = 2000 };

struct cancelling {
    struct gateway *gateway;
    uint32_t model;
    fx_gen_id id;
};

static void on_cancelled(void *ctx, const struct fx_gen_info *info, const fx_error *err) {
    (void)ctx, (void)info, (void)err; /* both ways failed: the lease or the retention ends it */
}

static void by_redis(struct gateway *gateway, uint32_t model, const fx_gen_id *id) {
    fx_error err = {0};
    if (!fx_queue_cancel(gateway->queue, model, id, on_cancelled, NULL, &err))
        fx_log(FX_LOG_WARN, FX_EVENT("cancel_failed"), FX_KS("error", err.text));
}

static void on_done(void *user, const struct fx_client_result *result) {
    struct cancelling *cancelling = user;
    if (result->code != FX_OK && result->code != FX_NOT_FOUND)
        by_redis(cancelling->gateway, cancelling->model, &cancelling->id);
    free(cancelling);
}

static FX_MUST bool by_scheduler(struct cancelling *cancelling, const fx_trace *trace) {
    Fractal__V1__CancelGenerationRequest message = FRACTAL__V1__CANCEL_GENERATION_REQUEST__INIT;
    message.id = (ProtobufCBinaryData){FX_GEN_ID_BYTES, cancelling->id.bytes};
    message.model = cancelling->model;
    struct fx_client_request request = {
        .method = "/fractal.v1.SchedulerService/CancelGeneration",
        .message = &message,
        .reply = &fractal__v1__cancel_generation_reply__descriptor,
        .deadline_ms = DEADLINE_MS,
        .trace = trace,
        .user = cancelling,
        .on_done = on_done,
    };
    return fx_client_start(cancelling->gateway->scheduler, &request, NULL, &(fx_error){0});
}

void gw_cancel(struct gateway *gateway, uint32_t model, const fx_gen_id *id,
               const fx_trace *trace) {
    struct cancelling *cancelling = fx_alloc(1, sizeof *cancelling);
    gw_count(&gateway->metrics.cancelled, 1);
    if (cancelling) {
        *cancelling = (struct cancelling){gateway, model, *id};
        if (by_scheduler(cancelling, trace)) return;
    }
    free(cancelling);
    by_redis(gateway, model, id);
}
