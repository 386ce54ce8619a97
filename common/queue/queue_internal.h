#pragma once
/* Private to common/queue/queue*.c. */
#include <event2/event.h>
#include "common/queue/queue.h"
#include "common/queue/queue_keys.h"

typedef struct fx_queue_call fx_queue_call;
/** What a call does with a reply: sends its next command or ends. `err` as in fx_redis_done; also
 *  called with CANCELLED by fx_queue_free(), replies still owed. */
typedef void (*fx_queue_step)(fx_queue_call *call, const redisReply *reply, const fx_error *err);

/** A call in flight, from a pool. */
struct fx_queue_call {
    fx_queue *queue;
    fx_queue_call *next;
    fx_queue_step step; /* NULL: ended, waits for replies still owed */
    bool busy;
    uint32_t owed; /* replies */
    union {
        fx_queue_on_submit submit;
        fx_queue_on_info info;
        fx_queue_on_about about;
        fx_queue_on_count count;
        fx_queue_on_stats stats;
        fx_queue_on_models models;
        fx_queue_on_log log;
        fx_queue_on_beat beat;
        fx_queue_on_tasks tasks;
        fx_queue_on_write write;
        fx_queue_on_append append;
    } done;
    void *ctx;
    uint32_t model, count, rounds;
    fx_gen_id id;
    size_t index;
    void *scratch; /* of the call's kind; freed at its end */
};

struct fx_queue {
    struct fx_queue_opts opts;
    fx_queue_call *calls, *idle;
    uint32_t begun; /* calls[begun..] were never used: untouched memory costs nothing */
    uint32_t busy_count;
    bool closing;
    fx_watch *watches; /* a list */
    struct event *tick;
};

enum { FX_QUEUE_ALIVE_MS = 5000 };

/** A call from the pool, its step set. @err RESOURCE_EXHAUSTED */
FX_MUST bool fx_queue__call(fx_queue *queue, fx_queue_step step, void *ctx, fx_queue_call **out,
                            fx_error *err);
/** Gives the call back; its owner has copied what the user's callback needs. */
void fx_queue__end(fx_queue_call *call);
FX_MUST bool fx_queue__fcall(fx_queue_call *call, const struct fx_redis_fcall *fcall,
                             fx_error *err);
FX_MUST bool fx_queue__command(fx_queue_call *call, const fx_span *words, size_t count,
                               fx_error *err);
/** A first command that failed: the call goes back, false goes on to the caller. */
bool fx_queue__sent(fx_queue_call *call, bool sent);

/* Reading replies; false or 0 for anything of another shape. */
bool fx_queue__is_array(const redisReply *reply, size_t elements_min);
uint64_t fx_queue__number(const redisReply *reply); /* integer, or digits */
fx_span fx_queue__text(const redisReply *reply, size_t index);
uint64_t fx_queue__item(const redisReply *reply, size_t index);
bool fx_queue__id(fx_span hex, fx_gen_id *out);
void fx_queue__odd_reply(const char *what, fx_error *err);
/** "12 5 77" to numbers; false when malformed or more than `max`. `logprobs` [max] not NULL: each
 *  may be "12/logprobs", and gets what is behind the stroke. */
FX_MUST bool fx_queue__tokens(fx_span text, uint32_t *out, fx_span *logprobs, uint32_t max,
                              uint32_t *count);

void fx_queue__watch_tick(fx_queue *queue);
