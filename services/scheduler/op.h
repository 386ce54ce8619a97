#pragma once
#include "fractal/v1/scheduler.pb-c.h"
#include "services/scheduler/app.h"

enum { OP_RETRY_AFTER_MS = 1000 };

/** One call on its way over the loop to Redis and back; lives in the call's arena. */
struct op {
    struct scheduler_app *app;
    fx_call *call;
    const void *request;
    void (*start)(struct op *op);
    void *user; /* of the method */
    fx_gen_id id;
    uint32_t model;
    /* QueueStats over all models */
    Fractal__V1__QueueStatsReply reply;
    uint32_t left;
    bool failed;
};

/** Hands the call to the loop's thread, or ends it. `op` was made by op_new. */
struct op *op_new(fx_call *call, const void *request, void *app);
void op_post(struct op *op, void (*start)(struct op *op));
/** Ends the call; UNAVAILABLE and RESOURCE_EXHAUSTED carry retry-after-ms. */
void op_fail(struct op *op, const fx_error *err);
void op_refuse(struct op *op, enum fx_code code, uint32_t retry_after_ms, const char *fmt, ...)
    FX_PRINTF(4, 5);
void *op_alloc(struct op *op, size_t count, size_t size);
/** An id of exactly 16 bytes. @err INVALID_ARGUMENT */
FX_MUST bool id_read(ProtobufCBinaryData bytes, fx_gen_id *out, fx_error *err);

/* The handlers of scheduler_methods. */
fx_handler submit_generation, submit_generations, cancel_generation, get_generation, queue_stats,
    register_worker;
