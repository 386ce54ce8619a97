/* A worker's side of dispatch: pull, and the hints that something is to be pulled or stopped. */
#include "common/queue/queue_internal.h"
#include <stdio.h>
#include "common/base/heap.h"

enum {
    SPARE_IDS = 8, /* candidates beyond the count: others pull at the same time */
    ROUNDS_MAX = 8,
    PULL_KEYS = 6,
    PULL_ARGS = 5,
    NUMERICS_MS = 15000, /* at most the 60 s that a silent worker is remembered */
};

struct pull {
    char worker[FX_QUEUE_WORKER_ID_MAX + 1], numerics[FX_QUEUE_NAME_MAX + 1];
    uint32_t count;
    bool inexact;
};

static void tasks_end(fx_queue_call *call, const struct fx_task *tasks, size_t count,
                      const fx_error *err) {
    fx_queue_on_tasks done = call->done.tasks;
    void *ctx = call->ctx;
    fx_queue__end(call);
    done(ctx, err ? NULL : tasks, count, err);
}

/* Tokens of all tasks, one allocation: a task of L bytes of digits has at most L/2 + 1. */
static size_t tokens_max(const redisReply *tasks) {
    size_t total = 0;
    for (size_t i = 0; i < tasks->elements; i++)
        total += fx_queue__text(tasks->element[i], 3).len / 2 + 1;
    return total;
}

/* tenant weight prompt expected seed retain about. */
static void terms_read(const redisReply *reply, struct fx_task *out) {
    out->terms = (struct fx_task_terms){
        .tenant = fx_queue__item(reply, 0),
        .weight = (uint32_t)fx_queue__item(reply, 1),
        .prompt_tokens = (uint32_t)fx_queue__item(reply, 2),
        .expected_tokens = (uint32_t)fx_queue__item(reply, 3),
        .seed = fx_queue__item(reply, 4),
        .retain_s = (uint32_t)fx_queue__item(reply, 5),
    };
    out->about = fx_queue__text(reply, 6);
}

/* id epoch task logged numerics cancel terms; `room` is moved past the tokens used. */
static FX_MUST bool task_read(const redisReply *reply, uint32_t **room, char *numerics,
                              struct fx_task *out, fx_error *err) {
    fx_span logged = fx_queue__text(reply, 3), name = fx_queue__text(reply, 4);
    uint32_t count = 0, max = (uint32_t)(logged.len / 2 + 1);
    if (!fx_queue__is_array(reply, 7) || !fx_queue__id(fx_queue__text(reply, 0), &out->id) ||
        max > FX_QUEUE_PREFIX_MAX || !fx_queue__tokens(logged, *room, NULL, max, &count)) {
        fx_queue__odd_reply("pull", err);
        return false;
    }
    (void)snprintf(numerics, FX_QUEUE_NAME_MAX + 1, "%.*s", (int)name.len,
                   name.len ? (const char *)name.at : "");
    out->epoch = (uint32_t)fx_queue__item(reply, 1);
    out->task = fx_queue__text(reply, 2);
    out->logged = *room;
    out->logged_count = count;
    out->numerics_id = numerics;
    out->cancelled = fx_queue__item(reply, 5) != 0;
    terms_read(reply->element[6], out);
    *room += count;
    return true;
}

static void tasks_read(fx_queue_call *call, const redisReply *list) {
    struct fx_task tasks[FX_QUEUE_PULL_MAX];
    fx_error err;
    size_t count = list->elements < FX_QUEUE_PULL_MAX ? list->elements : FX_QUEUE_PULL_MAX;
    fx_auto(void) memory = fx_alloc(tokens_max(list), sizeof(uint32_t));
    fx_auto(char) names = fx_alloc(count, FX_QUEUE_NAME_MAX + 1);
    uint32_t *room = memory;
    if (!memory || !names) {
        fx_error_set(&err, FX_RESOURCE_EXHAUSTED, "no memory for %zu tasks", count);
        tasks_end(call, NULL, 0, &err);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (!task_read(list->element[i], &room, names + i * (FX_QUEUE_NAME_MAX + 1), &tasks[i],
                       &err)) {
            tasks_end(call, NULL, 0, &err);
            return;
        }
    tasks_end(call, tasks, count, NULL);
}

static FX_MUST bool ready_read(fx_queue_call *call, fx_error *err);

/* Others may have taken the candidates: then there is more, and nothing for us. */
static void pulled_none(fx_queue_call *call, bool more) {
    fx_error err;
    if (!more || ++call->rounds >= ROUNDS_MAX)
        tasks_end(call, NULL, 0, NULL);
    else if (!ready_read(call, &err))
        tasks_end(call, NULL, 0, &err);
}

static void on_pulled(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    fx_error odd;
    const redisReply *list = fx_queue__is_array(reply, 2) ? reply->element[1] : NULL;
    if (!err && !list) {
        fx_queue__odd_reply("pull", &odd);
        err = &odd;
    }
    if (err || !list)
        tasks_end(call, NULL, 0, err);
    else if (fx_queue__is_array(list, 1))
        tasks_read(call, list);
    else
        pulled_none(call, fx_queue__item(reply, 0) != 0);
}

struct pull_words {
    fx_span keys[PULL_KEYS + 2 * (FX_QUEUE_PULL_MAX + SPARE_IDS)];
    fx_span args[PULL_ARGS + FX_QUEUE_PULL_MAX + SPARE_IDS];
    struct fx_key fixed[PULL_KEYS], wait, gen[FX_QUEUE_PULL_MAX + SPARE_IDS];
    struct fx_key log[FX_QUEUE_PULL_MAX + SPARE_IDS], count, lease;
};

static size_t words_fill(struct pull_words *out, fx_queue_call *call, const redisReply *ids) {
    static const char *const fixed[] = {"tasks", "ready", "leases", "meta", "alive", "workers"};
    _Static_assert(FX_COUNT(fixed) == PULL_KEYS, "one name a key");
    const struct pull *pull = call->scratch;
    size_t n = 0;
    for (; n < FX_COUNT(fixed); n++)
        out->keys[n] = fx_key_model(&out->fixed[n], call->model, fixed[n]);
    out->args[0] = fx_span_str(pull->worker);
    out->args[1] = fx_span_str(pull->numerics);
    out->args[2] = fx_key_number(&out->count, pull->count);
    out->args[3] = fx_key_number(&out->lease, call->queue->opts.lease_ms);
    out->args[4] = fx_key_number(&out->wait, pull->inexact ? FX_QUEUE_ALIVE_MS : NUMERICS_MS);
    size_t count = 0;
    for (; count < ids->elements && count < FX_QUEUE_PULL_MAX + SPARE_IDS; count++) {
        fx_span id = fx_queue__text(ids, count);
        out->keys[PULL_KEYS + 2 * count] = fx_key_text(&out->gen[count], call->model, "gen", id);
        out->keys[PULL_KEYS + 1 + 2 * count] =
            fx_key_text(&out->log[count], call->model, "log", id);
        out->args[PULL_ARGS + count] = id;
    }
    return count;
}

static void on_ready(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    struct pull_words words;
    fx_error failed;
    if (err || !fx_queue__is_array(reply, 1)) {
        tasks_end(call, NULL, 0, err);
        return;
    }
    size_t count = words_fill(&words, call, reply);
    struct fx_redis_fcall fcall = {"fx3_pull", words.keys, PULL_KEYS + 2 * count, words.args,
                                   PULL_ARGS + count};
    call->step = on_pulled;
    if (!fx_queue__fcall(call, &fcall, &failed)) tasks_end(call, NULL, 0, &failed);
}

bool ready_read(fx_queue_call *call, fx_error *err) {
    const struct pull *pull = call->scratch;
    struct fx_key ready, last;
    fx_span words[] = {fx_span_str("ZRANGE"), fx_key_model(&ready, call->model, "ready"),
                       fx_span_str("0"), fx_key_number(&last, pull->count + SPARE_IDS - 1)};
    call->step = on_ready;
    return fx_queue__command(call, words, FX_COUNT(words), err);
}

static FX_MUST bool pull_copy(fx_queue_call *call, const struct fx_pull *pull, fx_error *err) {
    if (pull->count < 1 || pull->count > FX_QUEUE_PULL_MAX || !pull->worker[0] ||
        strlen(pull->worker) > FX_QUEUE_WORKER_ID_MAX ||
        strlen(pull->numerics_id) > FX_QUEUE_NAME_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "pull: count, worker or numerics_id");
    struct pull *copy = call->scratch = fx_alloc(1, sizeof *copy);
    if (!copy) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a pull");
    copy->count = pull->count;
    copy->inexact = pull->inexact;
    (void)snprintf(copy->worker, sizeof copy->worker, "%s", pull->worker);
    (void)snprintf(copy->numerics, sizeof copy->numerics, "%s", pull->numerics_id);
    return true;
}

bool fx_queue_pull(fx_queue *queue, const struct fx_pull *pull, fx_queue_on_tasks done, void *ctx,
                   fx_error *err) {
    fx_queue_call *call;
    if (!fx_queue__call(queue, on_ready, ctx, &call, err)) return false;
    call->done.tasks = done;
    call->model = pull->model;
    return fx_queue__sent(call, pull_copy(call, pull, err) && ready_read(call, err));
}

/* ---- hints ---- */

struct fx_work {
    fx_redis_sub *sub;
    fx_queue_on_work on_work;
    void *ctx;
};

static void on_work(void *ctx, enum fx_redis_event event, fx_span payload) {
    struct fx_work *work = ctx;
    fx_gen_id id;
    if (event == FX_REDIS_LOST) return;
    if (event == FX_REDIS_SUBSCRIBED || fx_span_eq_str(payload, "t"))
        work->on_work(work->ctx, FX_WORK_TASKS, NULL);
    else if (payload.len > 2 && payload.at[0] == 'c' &&
             fx_queue__id((fx_span){payload.at + 2, payload.len - 2}, &id))
        work->on_work(work->ctx, FX_WORK_CANCEL, &id);
}

bool fx_queue_wait_tasks(fx_queue *queue, uint32_t model, fx_queue_on_work callback, void *ctx,
                         fx_work **out, fx_error *err) {
    struct fx_key channel;
    fx_auto(fx_work) work = fx_alloc(1, sizeof *work);
    if (!work) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for hints");
    work->on_work = callback;
    work->ctx = ctx;
    if (!fx_redis_subscribe(queue->opts.redis, fx_key_model(&channel, model, FX_KEY_WORK), on_work,
                            work, &work->sub, err))
        return false;
    *out = fx_take(work);
    return true;
}

void fx_work_free(fx_work *work) {
    if (!work) return;
    fx_redis_unsubscribe(work->sub);
    free(work);
}
