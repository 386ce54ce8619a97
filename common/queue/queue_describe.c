/* What is stored of a generation besides its log. */
#include "common/queue/queue_internal.h"

enum { TENANT, STATE, PROMPT, N, FINISH, CANCEL, TASK, ABOUT, FIELDS };

static struct fx_gen_about about_read(const redisReply *reply) {
    fx_span task = fx_queue__text(reply, TASK);
    struct fx_gen_about about = {
        .state = (enum fx_gen_state)fx_queue__item(reply, STATE),
        .tenant = fx_queue__item(reply, TENANT),
        .prompt_tokens = (uint32_t)fx_queue__item(reply, PROMPT),
        .tokens = (uint32_t)fx_queue__item(reply, N),
        .finish = (enum fx_finish)fx_queue__item(reply, FINISH),
        .cancelled = fx_queue__item(reply, CANCEL) != 0,
        .task = task.len ? task : fx_queue__text(reply, ABOUT),
    };
    if (about.state == FX_GEN_UNKNOWN) about.status = FX_QUEUE_NOT_FOUND;
    return about;
}

static void on_described(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    fx_queue_on_about done = call->done.about;
    void *ctx = call->ctx;
    fx_error odd;
    fx_queue__end(call);
    if (!err && !fx_queue__is_array(reply, FIELDS)) {
        fx_queue__odd_reply("describe", &odd);
        err = &odd;
    }
    struct fx_gen_about about = about_read(reply);
    done(ctx, err ? NULL : &about, err);
}

static FX_MUST bool describe_send(fx_queue_call *call, fx_error *err) {
    static const char *const fields[] = {"tenant", "state",  "prompt", "n",
                                         "finish", "cancel", "task",   "about"};
    _Static_assert(FX_COUNT(fields) == FIELDS, "one name a field");
    struct fx_key gen;
    fx_span words[2 + FIELDS] = {fx_span_str("HMGET"),
                                 fx_key_gen(&gen, call->model, "gen", &call->id)};
    for (size_t i = 0; i < FIELDS; i++)
        words[2 + i] = fx_span_str(fields[i]);
    return fx_queue__command(call, words, FX_COUNT(words), err);
}

bool fx_queue_describe(fx_queue *queue, uint32_t model, const fx_gen_id *id, fx_queue_on_about done,
                       void *ctx, fx_error *err) {
    fx_queue_call *call;
    if (!fx_queue__call(queue, on_described, ctx, &call, err)) return false;
    call->done.about = done;
    call->model = model;
    call->id = *id;
    return fx_queue__sent(call, describe_send(call, err));
}
