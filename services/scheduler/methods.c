#include "services/scheduler/op.h"

enum { SUBMIT_MS = 10000 }; /* Redis, whose disk may stall, is waited for 7 s */

#define ROW(name, handler, type, ms, bytes)                                                        \
    {                                                                                              \
        "/fractal.v1.SchedulerService/" name, handler, &fractal__v1__##type##__descriptor,         \
            FX_RPC_UNARY, ms, bytes                                                                \
    }

const struct fx_method scheduler_methods[] = {
    ROW("SubmitGeneration", submit_generation, submit_generation_request, SUBMIT_MS,
        SCHEDULER_REQUEST_BYTES_MAX),
    ROW("SubmitGenerations", submit_generations, submit_generations_request, SUBMIT_MS,
        SCHEDULER_REQUEST_BYTES_MAX),
    ROW("CancelGeneration", cancel_generation, cancel_generation_request, 5000, 1024),
    ROW("GetGeneration", get_generation, get_generation_request, 5000, 1024),
    ROW("QueueStats", queue_stats, queue_stats_request, 5000, 1024),
    ROW("RegisterWorker", register_worker, register_worker_request, 5000,
        4096 + FX_QUEUE_FIGURES_MAX),
};
const size_t scheduler_method_count = FX_COUNT(scheduler_methods);
_Static_assert(FX_COUNT(scheduler_methods) <= FX_METHODS_MAX, "raise FX_METHODS_MAX");
