/* What the owner of a lease does to its generation: append, finish, renew. */
#include "common/queue/queue_internal.h"
#include <stdio.h>

enum {
    TOKEN_DIGITS = 10,
    APPEND_ARGS = 6,
    APPEND_WORDS = 12,
    APPEND_WORD_BYTES = FX_KEY_MAX + 32,
    WORD_BYTES_MAX = TOKEN_DIGITS + 1 + FX_LOGPROBS_TEXT_MAX,
    WORDS_BYTES_MAX = FX_QUEUE_APPEND_LOGPROBS_MAX * WORD_BYTES_MAX,
};
_Static_assert(FX_QUEUE_APPEND_MAX *TOKEN_DIGITS <= WORDS_BYTES_MAX, "room for bare tokens");

static bool result_read(const redisReply *reply, struct fx_write_result *out) {
    if (!fx_queue__is_array(reply, 3)) return false;
    out->status = (enum fx_queue_status)fx_queue__item(reply, 0);
    out->cancelled = fx_queue__item(reply, 1) != 0;
    out->last = (uint32_t)fx_queue__item(reply, 2);
    return true;
}

static void on_written(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    fx_queue_on_write done = call->done.write;
    void *ctx = call->ctx;
    struct fx_write_result result;
    fx_error odd;
    fx_queue__end(call);
    if (!err && !result_read(reply, &result)) {
        fx_queue__odd_reply("a write", &odd);
        err = &odd;
    }
    done(ctx, err ? NULL : &result, err);
}

static void on_appended(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    fx_queue_on_append done = call->done.append;
    void *ctx = call->ctx;
    size_t index = call->index;
    struct fx_write_result result;
    fx_error odd;
    fx_queue__end(call);
    if (!err && !result_read(reply, &result)) {
        fx_queue__odd_reply("append", &odd);
        err = &odd;
    }
    done(ctx, index, err ? NULL : &result, err);
}

static fx_span owner_of(const char *worker) {
    return fx_span_str(worker ? worker : "");
}

/* ---- append ---- */

/* A token as append takes it: "12", or "12/logprobs". */
static fx_span word_put(const struct fx_append *append, uint32_t index, fx_buf *words) {
    char digits[TOKEN_DIGITS + 1];
    size_t from = words->len;
    (void)snprintf(digits, sizeof digits, "%u", append->tokens[index]);
    fx_buf_put(words, fx_span_str(digits));
    if (append->logprobs_each) {
        fx_buf_put(words, fx_span_str("/"));
        fx_logprobs_write(append->logprobs + (size_t)index * append->logprobs_each,
                          append->logprobs_each, words);
    }
    return (fx_span){words->at + from, words->len - from};
}

static FX_MUST bool append_send(fx_queue_call *call, const struct fx_append *append,
                                fx_error *err) {
    uint8_t bytes[WORDS_BYTES_MAX];
    fx_buf words = {bytes, 0, sizeof bytes};
    struct fx_key keys[3], id, epoch, first, lease, hint;
    fx_span keys_in[] = {fx_key_gen(&keys[0], append->model, "gen", &append->id),
                         fx_key_gen(&keys[1], append->model, "log", &append->id),
                         fx_key_model(&keys[2], append->model, "leases")};
    fx_span args[APPEND_ARGS + FX_QUEUE_APPEND_MAX] = {
        fx_key_id(&id, &append->id),
        fx_key_number(&epoch, append->epoch),
        fx_key_number(&first, append->first),
        fx_key_number(&lease, call->queue->opts.lease_ms),
        fx_key_gen(&hint, append->model, "hint", &append->id),
        owner_of(append->worker)};
    for (uint32_t i = 0; i < append->count; i++)
        args[APPEND_ARGS + i] = word_put(append, i, &words);
    FX_ASSERT(fx_buf_fits(&words));
    struct fx_redis_fcall fcall = {"fx3_append", keys_in, FX_COUNT(keys_in), args,
                                   APPEND_ARGS + append->count};
    return fx_queue__fcall(call, &fcall, err);
}

static FX_MUST bool append_check(const struct fx_append *append, fx_error *err) {
    uint32_t most = append->logprobs_each ? FX_QUEUE_APPEND_LOGPROBS_MAX : FX_QUEUE_APPEND_MAX;
    FX_ASSERT(append->logprobs_each <= FX_LOGPROBS_MAX);
    if (append->first < 1 || append->count < 1 || append->count > most)
        return fx_fail(err, FX_INVALID_ARGUMENT, "append of %u tokens from %u", append->count,
                       append->first);
    return true;
}

bool fx_queue_append(fx_queue *queue, const struct fx_append *append, fx_queue_on_write done,
                     void *ctx, fx_error *err) {
    fx_queue_call *call;
    if (!append_check(append, err) || !fx_queue__call(queue, on_written, ctx, &call, err))
        return false;
    call->done.write = done;
    return fx_queue__sent(call, append_send(call, append, err));
}

static FX_MUST bool many_check(fx_queue *queue, const struct fx_append *appends, size_t count,
                               fx_error *err) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (!append_check(&appends[i], err)) return false;
        bytes += APPEND_WORDS * APPEND_WORD_BYTES + appends[i].count * (TOKEN_DIGITS + 32);
        if (appends[i].logprobs_each) bytes += (size_t)appends[i].count * FX_LOGPROBS_TEXT_MAX;
    }
    if (count > queue->opts.calls_max - queue->busy_count)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "%u queue calls in flight", queue->busy_count);
    return fx_redis_reserve(queue->opts.redis, count, bytes, err);
}

bool fx_queue_append_many(fx_queue *queue, const struct fx_append *appends, size_t count,
                          fx_queue_on_append done, void *ctx, fx_error *err) {
    if (!many_check(queue, appends, count, err)) return false;
    for (size_t i = 0; i < count; i++) {
        fx_queue_call *call;
        bool sent = fx_queue__call(queue, on_appended, ctx, &call, err);
        FX_ASSERT(sent); /* both were reserved by many_check */
        call->done.append = done;
        call->index = i;
        sent = append_send(call, &appends[i], err);
        FX_ASSERT(sent);
    }
    return true;
}

/* ---- finish ---- */

static FX_MUST bool finish_send(fx_queue_call *call, const struct fx_gen_end *end, fx_error *err) {
    static const char *const fixed[] = {"leases", "tasks", "ready", "tenants", "debt", "meta"};
    struct fx_key keys[8], id, hint, numbers[4];
    fx_span keys_in[8] = {fx_key_gen(&keys[0], end->model, "gen", &end->id),
                          fx_key_gen(&keys[1], end->model, "log", &end->id)};
    for (size_t i = 0; i < FX_COUNT(fixed); i++)
        keys_in[2 + i] = fx_key_model(&keys[2 + i], end->model, fixed[i]);
    fx_span detail = fx_span_str(end->detail ? end->detail : "");
    if (detail.len > FX_QUEUE_DETAIL_MAX) detail.len = FX_QUEUE_DETAIL_MAX;
    fx_span args[] = {
        fx_key_id(&id, &end->id),
        fx_key_number(&numbers[0], end->epoch),
        fx_key_number(&numbers[1], end->last),
        fx_key_number(&numbers[2], (uint64_t)end->reason),
        fx_key_gen(&hint, end->model, "hint", &end->id),
        fx_span_str(FX_KEY_HINTS),
        fx_key_number(&numbers[3], end->model),
        detail,
        owner_of(end->worker),
    };
    struct fx_redis_fcall fcall = {"fx3_finish", keys_in, FX_COUNT(keys_in), args, FX_COUNT(args)};
    return fx_queue__fcall(call, &fcall, err);
}

bool fx_queue_finish(fx_queue *queue, const struct fx_gen_end *end, fx_queue_on_write done,
                     void *ctx, fx_error *err) {
    fx_queue_call *call;
    if (end->reason <= FX_FINISH_NONE || end->reason > FX_FINISH_ERROR)
        return fx_fail(err, FX_INVALID_ARGUMENT, "finish reason %d", (int)end->reason);
    if (!fx_queue__call(queue, on_written, ctx, &call, err)) return false;
    call->done.write = done;
    return fx_queue__sent(call, finish_send(call, end, err));
}

/* ---- renew ---- */

static FX_MUST bool renew_send(fx_queue_call *call, const struct fx_renew *renew, fx_error *err) {
    struct fx_key keys[2], id, epoch, lease, model;
    fx_span keys_in[] = {fx_key_gen(&keys[0], renew->model, "gen", &renew->id),
                         fx_key_model(&keys[1], renew->model, "leases")};
    fx_span args[] = {
        fx_key_id(&id, &renew->id),
        fx_key_number(&epoch, renew->epoch),
        fx_span_str(renew->worker),
        fx_key_number(&lease, renew->give_back ? 0 : call->queue->opts.lease_ms),
        fx_span_str(FX_KEY_HINTS),
        fx_key_number(&model, renew->model),
    };
    struct fx_redis_fcall fcall = {"fx3_renew", keys_in, FX_COUNT(keys_in), args, FX_COUNT(args)};
    return fx_queue__fcall(call, &fcall, err);
}

bool fx_queue_renew(fx_queue *queue, const struct fx_renew *renew, fx_queue_on_write done,
                    void *ctx, fx_error *err) {
    fx_queue_call *call;
    if (!fx_queue__call(queue, on_written, ctx, &call, err)) return false;
    call->done.write = done;
    return fx_queue__sent(call, renew_send(call, renew, err));
}

/* ---- restore ---- */

static FX_MUST bool restore_send(fx_queue_call *call, const struct fx_restore *restore,
                                 fx_error *err) {
    static const char *const fixed[] = {"leases", "tasks", "ready", "tenants", "debt", "meta"};
    const struct fx_task_terms *terms = &restore->terms;
    struct fx_key keys[9], id, tenant, numbers[7];
    fx_span keys_in[9] = {fx_key_gen(&keys[0], restore->model, "gen", &restore->id),
                          fx_key_gen(&keys[1], restore->model, "log", &restore->id)};
    for (size_t i = 0; i < FX_COUNT(fixed); i++)
        keys_in[2 + i] = fx_key_model(&keys[2 + i], restore->model, fixed[i]);
    keys_in[8] =
        fx_key_text(&keys[8], restore->model, "wait", fx_key_number(&tenant, terms->tenant));
    fx_span args[] = {
        fx_key_id(&id, &restore->id),
        fx_key_number(&numbers[0], restore->epoch),
        fx_span_str(restore->worker),
        fx_span_str(restore->numerics_id),
        fx_key_number(&numbers[1], call->queue->opts.lease_ms),
        tenant.span,
        fx_key_number(&numbers[2], terms->weight),
        fx_key_number(&numbers[3], terms->prompt_tokens),
        fx_key_number(&numbers[4], terms->expected_tokens),
        fx_key_number(&numbers[5], terms->seed),
        fx_key_number(&numbers[6], terms->retain_s),
        restore->task,
        restore->about,
    };
    struct fx_redis_fcall fcall = {"fx3_restore", keys_in, FX_COUNT(keys_in), args, FX_COUNT(args)};
    return fx_queue__fcall(call, &fcall, err);
}

bool fx_queue_restore(fx_queue *queue, const struct fx_restore *restore, fx_queue_on_write done,
                      void *ctx, fx_error *err) {
    fx_queue_call *call;
    if (!fx_queue__call(queue, on_written, ctx, &call, err)) return false;
    call->done.write = done;
    return fx_queue__sent(call, restore_send(call, restore, err));
}
