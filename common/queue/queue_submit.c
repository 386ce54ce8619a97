/* submit, get, cancel. */
#include "common/queue/queue_internal.h"
#include "common/base/heap.h"

/* ---- submit ---- */

enum { RESULT_FIELDS = 4, GROUP_ARGS = 11, MEMBER_ARGS = 4, GROUP_KEYS = 4 };

static struct fx_submit_result result_read(const redisReply *reply, size_t index) {
    size_t at = 1 + index * RESULT_FIELDS;
    return (struct fx_submit_result){
        .status = (enum fx_queue_status)fx_queue__item(reply, 0),
        .repeated = fx_queue__item(reply, at) != 0,
        .seed = fx_queue__item(reply, at + 1),
        .state = (enum fx_gen_state)fx_queue__item(reply, at + 2),
        .cancelled = fx_queue__item(reply, at + 3) != 0,
    };
}

/* A refusal is a status alone. */
static bool is_result(const redisReply *reply, uint32_t count) {
    if (!fx_queue__is_array(reply, 1)) return false;
    bool ok = fx_queue__item(reply, 0) == FX_QUEUE_OK;
    return !ok || fx_queue__is_array(reply, 1 + (size_t)count * RESULT_FIELDS);
}

static void on_submitted(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    struct fx_submit_result results[FX_QUEUE_GROUP_MAX];
    fx_queue_on_submit done = call->done.submit;
    void *ctx = call->ctx;
    uint32_t count = call->count;
    fx_error odd;
    fx_queue__end(call);
    if (!err && !is_result(reply, count)) {
        fx_queue__odd_reply("submit", &odd);
        err = &odd;
    }
    for (uint32_t i = 0; !err && i < count; i++)
        results[i] = result_read(reply, i);
    done(ctx, err ? NULL : results, err);
}

/* The words of one call. */
struct words {
    struct fx_key names[GROUP_KEYS + FX_QUEUE_GROUP_MAX], tenant, numbers[7];
    struct fx_key ids[FX_QUEUE_GROUP_MAX], seeds[FX_QUEUE_GROUP_MAX];
    fx_span keys[GROUP_KEYS + FX_QUEUE_GROUP_MAX];
    fx_span args[GROUP_ARGS + MEMBER_ARGS * FX_QUEUE_GROUP_MAX];
    size_t key_count, arg_count;
};

static void group_words(const struct fx_queue_opts *opts, const struct fx_submit_group *group,
                        struct words *words) {
    uint32_t model = group->model;
    const fx_span keys[GROUP_KEYS] = {
        fx_key_text(&words->names[0], model, "wait", fx_key_number(&words->tenant, group->tenant)),
        fx_key_model(&words->names[1], model, "tenants"),
        fx_key_model(&words->names[2], model, "debt"),
        fx_key_model(&words->names[3], model, "meta"),
    };
    const fx_span args[GROUP_ARGS] = {
        words->tenant.span,
        fx_key_number(&words->numbers[0], group->weight ? group->weight : 1),
        fx_key_number(&words->numbers[1], group->prompt_tokens),
        fx_key_number(&words->numbers[2], group->expected_tokens),
        fx_key_number(&words->numbers[3], opts->model_max),
        fx_key_number(&words->numbers[4], opts->tenant_max),
        fx_span_str(FX_KEY_HINTS),
        fx_key_number(&words->numbers[5], model),
        fx_key_number(&words->numbers[6], opts->retain_s),
        group->task,
        group->about,
    };
    memcpy(words->keys, keys, sizeof keys);
    memcpy(words->args, args, sizeof args);
    words->key_count = GROUP_KEYS;
    words->arg_count = GROUP_ARGS;
}

static void member_words(const struct fx_submit_group *group, uint32_t index, struct words *words) {
    const struct fx_submit_member *member = &group->members[index];
    fx_span *args = &words->args[words->arg_count];
    words->keys[words->key_count] =
        fx_key_gen(&words->names[words->key_count], group->model, "gen", &member->id);
    args[0] = fx_key_id(&words->ids[index], &member->id);
    args[1] = fx_key_number(&words->seeds[index], member->seed);
    args[2] = member->task;
    args[3] = member->about;
    words->key_count++;
    words->arg_count += MEMBER_ARGS;
}

static FX_MUST bool submit_send(fx_queue_call *call, const struct fx_submit_group *group,
                                fx_error *err) {
    struct words words;
    group_words(&call->queue->opts, group, &words);
    for (uint32_t i = 0; i < group->count; i++)
        member_words(group, i, &words);
    return fx_queue__fcall(call,
                           &(struct fx_redis_fcall){"fx3_submit", words.keys, words.key_count,
                                                    words.args, words.arg_count},
                           err);
}

bool fx_queue_submit_group(fx_queue *queue, const struct fx_submit_group *group,
                           fx_queue_on_submit done, void *ctx, fx_error *err) {
    fx_queue_call *call;
    FX_ASSERT(group->count > 0 && group->count <= FX_QUEUE_GROUP_MAX);
    for (uint32_t i = 0; i < group->count; i++)
        if (group->task.len + group->members[i].task.len > FX_QUEUE_TASK_BYTES_MAX)
            return fx_fail(err, FX_INVALID_ARGUMENT, "a task of %zu bytes",
                           group->task.len + group->members[i].task.len);
    if (!fx_queue__call(queue, on_submitted, ctx, &call, err)) return false;
    call->done.submit = done;
    call->count = group->count;
    return fx_queue__sent(call, submit_send(call, group, err));
}

bool fx_queue_submit(fx_queue *queue, const struct fx_submit *submit, fx_queue_on_submit done,
                     void *ctx, fx_error *err) {
    const struct fx_submit_member member = {.id = submit->id, .seed = submit->seed};
    const struct fx_submit_group group = {.model = submit->model,
                                          .tenant = submit->tenant,
                                          .weight = submit->weight,
                                          .prompt_tokens = submit->prompt_tokens,
                                          .expected_tokens = submit->expected_tokens,
                                          .task = submit->task,
                                          .about = submit->about,
                                          .count = 1,
                                          .members = &member};
    return fx_queue_submit_group(queue, &group, done, ctx, err);
}

/* ---- get ---- */

enum {
    INFO_STATE,
    INFO_CANCEL,
    INFO_N,
    INFO_EPOCH,
    INFO_FINISH,
    INFO_TENANT,
    INFO_SEED,
    INFO_OWNER,
    INFO_FIELDS
};

/* Reads the fields, in the order above, from `first` on; `worker` holds the owner's text. */
static struct fx_gen_info info_read(const redisReply *reply, size_t first, char *worker) {
    fx_span owner = fx_queue__text(reply, first + INFO_OWNER);
    size_t len = owner.len < FX_QUEUE_WORKER_ID_MAX ? owner.len : FX_QUEUE_WORKER_ID_MAX;
    if (len) memcpy(worker, owner.at, len);
    worker[len] = 0;
    struct fx_gen_info info = {
        .status = FX_QUEUE_OK,
        .state = (enum fx_gen_state)fx_queue__item(reply, first + INFO_STATE),
        .cancelled = fx_queue__item(reply, first + INFO_CANCEL) != 0,
        .tokens = (uint32_t)fx_queue__item(reply, first + INFO_N),
        .epoch = (uint32_t)fx_queue__item(reply, first + INFO_EPOCH),
        .finish = (enum fx_finish)fx_queue__item(reply, first + INFO_FINISH),
        .tenant = fx_queue__item(reply, first + INFO_TENANT),
        .seed = fx_queue__item(reply, first + INFO_SEED),
        .worker = worker,
    };
    if (info.state == FX_GEN_UNKNOWN) info.status = FX_QUEUE_NOT_FOUND;
    return info;
}

static void info_end(fx_queue_call *call, const struct fx_gen_info *info, const fx_error *err) {
    fx_queue_on_info done = call->done.info;
    void *ctx = call->ctx;
    fx_queue__end(call);
    done(ctx, err ? NULL : info, err);
}

static void on_got(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    char worker[FX_QUEUE_WORKER_ID_MAX + 1];
    struct fx_gen_info info = info_read(reply, 0, worker);
    fx_error odd;
    if (!err && !fx_queue__is_array(reply, INFO_FIELDS)) {
        fx_queue__odd_reply("get", &odd);
        err = &odd;
    }
    info_end(call, &info, err);
}

static FX_MUST bool get_send(fx_queue_call *call, fx_error *err) {
    static const char *const fields[] = {"state",  "cancel", "n",    "epoch",
                                         "finish", "tenant", "seed", "owner"};
    _Static_assert(FX_COUNT(fields) == INFO_FIELDS, "one name a field");
    struct fx_key gen;
    fx_span words[2 + INFO_FIELDS] = {fx_span_str("HMGET"),
                                      fx_key_gen(&gen, call->model, "gen", &call->id)};
    for (size_t i = 0; i < INFO_FIELDS; i++)
        words[2 + i] = fx_span_str(fields[i]);
    return fx_queue__command(call, words, FX_COUNT(words), err);
}

static FX_MUST bool info_start(fx_queue *queue, uint32_t model, const fx_gen_id *id,
                               fx_queue_step step, fx_queue_on_info done, void *ctx,
                               fx_error *err) {
    fx_queue_call *call;
    if (!fx_queue__call(queue, step, ctx, &call, err)) return false;
    call->done.info = done;
    call->model = model;
    call->id = *id;
    return fx_queue__sent(call, get_send(call, err));
}

bool fx_queue_get(fx_queue *queue, uint32_t model, const fx_gen_id *id, fx_queue_on_info done,
                  void *ctx, fx_error *err) {
    return info_start(queue, model, id, on_got, done, ctx, err);
}

/* ---- cancel: the tenant is read first, its backlog is one of the keys ---- */

/* The reply of fx3_cancel: status state cancel n epoch finish tenant seed owner. */
static void on_cancelled(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    char worker[FX_QUEUE_WORKER_ID_MAX + 1];
    fx_error odd;
    if (!err && !fx_queue__is_array(reply, 1)) {
        fx_queue__odd_reply("cancel", &odd);
        err = &odd;
    }
    struct fx_gen_info info = info_read(reply, 1, worker);
    info_end(call, &info, err);
}

static FX_MUST bool cancel_send(fx_queue_call *call, uint64_t tenant_number, fx_error *err) {
    uint32_t model = call->model;
    struct fx_key tenant, id, hint, control, number, keys[9];
    fx_span keys_in[] = {
        fx_key_gen(&keys[0], model, "gen", &call->id),
        fx_key_gen(&keys[1], model, "log", &call->id),
        fx_key_text(&keys[2], model, "wait", fx_key_number(&tenant, tenant_number)),
        fx_key_model(&keys[3], model, "tenants"),
        fx_key_model(&keys[4], model, "debt"),
        fx_key_model(&keys[5], model, "meta"),
        fx_key_model(&keys[6], model, "tasks"),
        fx_key_model(&keys[7], model, "ready"),
        fx_key_model(&keys[8], model, "leases"),
    };
    fx_span args[] = {
        fx_key_id(&id, &call->id),
        fx_key_gen(&hint, model, "hint", &call->id),
        fx_span_str(FX_KEY_HINTS),
        fx_key_number(&number, model),
        fx_key_model(&control, model, FX_KEY_WORK),
        tenant.span,
    };
    return fx_queue__fcall(
        call,
        &(struct fx_redis_fcall){"fx3_cancel", keys_in, FX_COUNT(keys_in), args, FX_COUNT(args)},
        err);
}

static void on_cancel_read(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    char worker[FX_QUEUE_WORKER_ID_MAX + 1];
    struct fx_gen_info info = info_read(reply, 0, worker);
    fx_error failed;
    if (err || info.status == FX_QUEUE_NOT_FOUND) {
        info_end(call, &info, err);
        return;
    }
    call->step = on_cancelled;
    if (!cancel_send(call, info.tenant, &failed)) info_end(call, NULL, &failed);
}

bool fx_queue_cancel(fx_queue *queue, uint32_t model, const fx_gen_id *id, fx_queue_on_info done,
                     void *ctx, fx_error *err) {
    return info_start(queue, model, id, on_cancel_read, done, ctx, err);
}
