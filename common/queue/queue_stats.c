/* Heartbeats, statistics, the list of models, a scheduler's hints. */
#include "common/queue/queue_internal.h"
#include <stdio.h>
#include "common/base/heap.h"

/* ---- beat ---- */

enum { RECORD_MAX = 64 + FX_QUEUE_NAME_MAX };

static void on_beat(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    fx_queue_on_beat done = call->done.beat;
    void *ctx = call->ctx;
    (void)reply;
    if (!err && call->owed) return; /* HSET, then fx3_beat */
    fx_queue__end(call);
    done(ctx, err);
}

static FX_MUST bool beat_check(const struct fx_beat *beat, fx_error *err) {
    const struct fx_worker_info *worker = &beat->worker;
    if (!worker->worker[0] || strlen(worker->worker) > FX_QUEUE_WORKER_ID_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "worker: its id has 1 to %d bytes",
                       FX_QUEUE_WORKER_ID_MAX);
    if (!beat->model_name[0] || strlen(beat->model_name) > FX_QUEUE_NAME_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "model_name has 1 to %d bytes", FX_QUEUE_NAME_MAX);
    if (worker->slots > 4096 || worker->slots_free > worker->slots)
        return fx_fail(err, FX_INVALID_ARGUMENT, "slots: 0 <= slots_free <= slots <= 4096");
    if (worker->figures.len > FX_QUEUE_FIGURES_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "figures: more than %d bytes",
                       FX_QUEUE_FIGURES_MAX);
    return true;
}

static FX_MUST bool beat_send(fx_queue_call *call, const struct fx_beat *beat, fx_error *err) {
    const struct fx_worker_info *worker = &beat->worker;
    char record[RECORD_MAX];
    struct fx_key alive, workers, figures, model;
    (void)snprintf(record, sizeof record, "%u %u %u %d %s", worker->slots, worker->slots_free,
                   worker->context_max, worker->leaving ? 1 : 0, worker->numerics_id);
    fx_span number = fx_key_number(&model, beat->model);
    fx_span keys[] = {fx_key_model(&alive, beat->model, "alive"),
                      fx_key_model(&workers, beat->model, "workers"),
                      fx_key_model(&figures, beat->model, "figures")};
    fx_span args[] = {fx_span_str(worker->worker), fx_span_str(record), fx_span_str(FX_KEY_HINTS),
                      number, worker->figures};
    fx_span name[] = {fx_span_str("HSET"), fx_span_str(FX_KEY_MODELS), number,
                      fx_span_str(beat->model_name)};
    if (!fx_redis_reserve(call->queue->opts.redis, 2, 2048 + worker->figures.len, err))
        return false;
    if (!fx_queue__command(call, name, FX_COUNT(name), err)) return false;
    bool sent = fx_queue__fcall(
        call, &(struct fx_redis_fcall){"fx3_beat", keys, FX_COUNT(keys), args, FX_COUNT(args)},
        err);
    FX_ASSERT(sent); /* room was reserved */
    return true;
}

bool fx_queue_beat(fx_queue *queue, const struct fx_beat *beat, fx_queue_on_beat done, void *ctx,
                   fx_error *err) {
    fx_queue_call *call;
    if (!beat_check(beat, err) || !fx_queue__call(queue, on_beat, ctx, &call, err)) return false;
    call->done.beat = done;
    return fx_queue__sent(call, beat_send(call, beat, err));
}

bool fx_queue_forget(fx_queue *queue, uint32_t model, fx_queue_on_beat done, void *ctx,
                     fx_error *err) {
    fx_queue_call *call;
    struct fx_key number;
    fx_span words[] = {fx_span_str("HDEL"), fx_span_str(FX_KEY_MODELS),
                       fx_key_number(&number, model)};
    if (!fx_queue__call(queue, on_beat, ctx, &call, err)) return false;
    call->done.beat = done;
    return fx_queue__sent(call, fx_queue__command(call, words, FX_COUNT(words), err));
}

/* ---- stats ---- */

/* "slots free context leaving numerics" */
static void record_read(fx_span record, struct fx_worker_info *out) {
    char text[RECORD_MAX];
    unsigned slots = 0, slots_free = 0, context = 0, leaving = 1;
    size_t len = record.len < sizeof text - 1 ? record.len : sizeof text - 1;
    if (len) memcpy(text, record.at, len);
    text[len] = 0;
    int at = 0;
    if (sscanf(text, "%u %u %u %u %n", &slots, &slots_free, &context, &leaving, &at) != 4) at = 0;
    *out = (struct fx_worker_info){
        .slots = slots, .slots_free = slots_free, .context_max = context, .leaving = leaving != 0};
    (void)snprintf(out->numerics_id, sizeof out->numerics_id, "%.*s", FX_QUEUE_NAME_MAX, text + at);
}

static void worker_add(struct fx_queue_stats *stats, const struct fx_worker_info *worker) {
    if (worker->leaving) return;
    stats->workers++;
    stats->slots += worker->slots;
    if (worker->context_max > stats->context_max) stats->context_max = worker->context_max;
}

static void stats_read(const redisReply *reply, struct fx_worker_info *live,
                       struct fx_queue_stats *stats) {
    uint64_t ready = fx_queue__item(reply, 1);
    stats->backlog = fx_queue__item(reply, 0);
    stats->waiting = stats->backlog + ready;
    stats->running = fx_queue__item(reply, 2);
    for (size_t i = 3; i + 2 < reply->elements && stats->live_count < FX_QUEUE_WORKERS_MAX;
         i += 3) {
        struct fx_worker_info *worker = &live[stats->live_count++];
        fx_span id = fx_queue__text(reply, i);
        record_read(fx_queue__text(reply, i + 1), worker);
        worker->figures = fx_queue__text(reply, i + 2);
        (void)snprintf(worker->worker, sizeof worker->worker, "%.*s", (int)id.len,
                       (const char *)id.at);
        worker_add(stats, worker);
    }
    uint64_t used = stats->running + ready;
    stats->slots_free = used < stats->slots ? stats->slots - (uint32_t)used : 0;
    stats->live = live;
}

static void on_stats(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    fx_queue_on_stats done = call->done.stats;
    void *ctx = call->ctx;
    fx_auto(void) live = fx_take(call->scratch);
    struct fx_queue_stats stats = {.model = call->model};
    fx_error odd;
    fx_queue__end(call);
    if (!err && !fx_queue__is_array(reply, 3)) {
        fx_queue__odd_reply("stats", &odd);
        err = &odd;
    }
    if (!err) stats_read(reply, live, &stats);
    done(ctx, err ? NULL : &stats, err);
}

static FX_MUST bool stats_ask(fx_queue *queue, uint32_t model, bool figures, fx_queue_on_stats done,
                              void *ctx, fx_error *err) {
    fx_queue_call *call;
    static const char *const names[] = {"alive", "workers", "leases", "ready", "meta", "figures"};
    struct fx_key key[FX_COUNT(names)], alive;
    fx_span keys[FX_COUNT(names)];
    fx_span args[] = {fx_key_number(&alive, FX_QUEUE_ALIVE_MS), fx_span_str(figures ? "1" : "0")};
    if (!fx_queue__call(queue, on_stats, ctx, &call, err)) return false;
    call->done.stats = done;
    call->model = model;
    call->scratch = fx_alloc(FX_QUEUE_WORKERS_MAX, sizeof(struct fx_worker_info));
    if (!call->scratch)
        return fx_queue__sent(call, fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for stats"));
    for (size_t i = 0; i < FX_COUNT(names); i++)
        keys[i] = fx_key_model(&key[i], model, names[i]);
    struct fx_redis_fcall fcall = {"fx3_stats", keys, FX_COUNT(keys), args, FX_COUNT(args)};
    return fx_queue__sent(call, fx_queue__fcall(call, &fcall, err));
}

bool fx_queue_stats(fx_queue *queue, uint32_t model, fx_queue_on_stats done, void *ctx,
                    fx_error *err) {
    return stats_ask(queue, model, false, done, ctx, err);
}

bool fx_queue_figures(fx_queue *queue, uint32_t model, fx_queue_on_stats done, void *ctx,
                      fx_error *err) {
    return stats_ask(queue, model, true, done, ctx, err);
}

/* ---- models ---- */

static void on_models(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    fx_queue_on_models done = call->done.models;
    void *ctx = call->ctx;
    struct fx_queue_model models[FX_QUEUE_MODELS_MAX];
    size_t count = 0;
    fx_queue__end(call);
    if (!err)
        for (size_t i = 0; fx_queue__is_array(reply, i + 2) && count < FX_QUEUE_MODELS_MAX; i += 2)
            if (fx_queue__text(reply, i + 1).len) /* else the number of nothing */
                models[count++] = (struct fx_queue_model){(uint32_t)fx_queue__item(reply, i),
                                                          reply->element[i + 1]->str};
    done(ctx, err ? NULL : models, count, err);
}

bool fx_queue_models(fx_queue *queue, fx_queue_on_models done, void *ctx, fx_error *err) {
    fx_queue_call *call;
    fx_span words[] = {fx_span_str("HGETALL"), fx_span_str(FX_KEY_MODELS)};
    if (!fx_queue__call(queue, on_models, ctx, &call, err)) return false;
    call->done.models = done;
    return fx_queue__sent(call, fx_queue__command(call, words, FX_COUNT(words), err));
}

/* ---- a scheduler's hints ---- */

struct fx_queue_hints {
    fx_redis_sub *sub;
    fx_queue_on_hint on_hint;
    void *ctx;
};

static void on_hint(void *ctx, enum fx_redis_event event, fx_span payload) {
    struct fx_queue_hints *hints = ctx;
    uint32_t model = 0, count = 0;
    if (event == FX_REDIS_LOST) return;
    if (event == FX_REDIS_MESSAGE && !fx_queue__tokens(payload, &model, NULL, 1, &count)) return;
    hints->on_hint(hints->ctx, model);
}

bool fx_queue_hints_open(fx_queue *queue, fx_queue_on_hint callback, void *ctx,
                         fx_queue_hints **out, fx_error *err) {
    fx_auto(fx_queue_hints) hints = fx_alloc(1, sizeof *hints);
    if (!hints) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for hints");
    hints->on_hint = callback;
    hints->ctx = ctx;
    if (!fx_redis_subscribe(queue->opts.redis, fx_span_str(FX_KEY_HINTS), on_hint, hints,
                            &hints->sub, err))
        return false;
    *out = fx_take(hints);
    return true;
}

void fx_queue_hints_free(fx_queue_hints *hints) {
    if (!hints) return;
    fx_redis_unsubscribe(hints->sub);
    free(hints);
}
