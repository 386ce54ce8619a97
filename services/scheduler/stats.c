/* QueueStats: one model, or every model that has a worker or a queue. */
#include "services/scheduler/op.h"

static FX_MUST bool row_fill(struct op *op, const struct fx_queue_stats *stats) {
    const struct model *model = model_find(op->app, stats->model);
    Fractal__V1__ModelQueue *row = fx_arena_alloc(fx_call_arena(op->call), sizeof *row);
    if (!row) return false;
    fractal__v1__model_queue__init(row);
    row->model = stats->model;
    row->model_name = fx_arena_copy(fx_call_arena(op->call), fx_span_str(model ? model->name : ""));
    row->waiting = stats->waiting;
    row->running = stats->running;
    row->workers = stats->workers;
    row->slots_free = stats->slots_free;
    op->reply.queues[op->reply.n_queues++] = row;
    return row->model_name != NULL;
}

static bool worth_telling(const struct op *op, const struct fx_queue_stats *stats) {
    return op->model || stats->workers || stats->waiting || stats->running;
}

static void stats_end(struct op *op) {
    if (op->failed)
        op_refuse(op, FX_UNAVAILABLE, 1000, "Redis did not answer");
    else
        fx_call_reply(op->call, &op->reply);
}

static void on_stats(void *ctx, const struct fx_queue_stats *stats, const fx_error *err) {
    struct op *op = ctx;
    if (err || (worth_telling(op, stats) && !row_fill(op, stats))) op->failed = true;
    if (--op->left == 0) stats_end(op);
}

static void ask(struct op *op, uint32_t model) {
    fx_error err;
    if (fx_queue_stats(op->app->queue, model, on_stats, op, &err))
        op->left++;
    else
        op->failed = true;
}

static void stats_start(struct op *op) {
    fractal__v1__queue_stats_reply__init(&op->reply);
    op->reply.queues = op_alloc(op, FX_QUEUE_MODELS_MAX, sizeof(Fractal__V1__ModelQueue *));
    if (!op->reply.queues) return;
    op->left = 1; /* for this function: the answers come later */
    if (op->model) ask(op, op->model);
    for (uint32_t i = 0; !op->model && i < FX_QUEUE_MODELS_MAX; i++)
        if (op->app->models[i].used) ask(op, op->app->models[i].number);
    if (--op->left == 0) stats_end(op);
}

void queue_stats(fx_call *call, const void *request, void *app) {
    const Fractal__V1__QueueStatsRequest *stats = request;
    struct op *op = op_new(call, request, app);
    if (!op) return;
    op->model = stats->model;
    op_post(op, stats_start);
}
