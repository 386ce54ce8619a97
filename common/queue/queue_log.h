#pragma once
/* Reading a page of a log: private to common/queue/queue_{log,watch}.c. */
#include "common/queue/queue_internal.h"

/** A page and what it points to. */
struct fx_log_page {
    struct fx_gen_tokens tokens;
    uint32_t token[FX_QUEUE_APPEND_MAX];
    fx_span logprobs[FX_QUEUE_APPEND_MAX]; /* in the reply or the hint */
    char detail[FX_QUEUE_DETAIL_MAX + 1];
};
/** Sends XRANGE for what follows token `after`; the call's step gets the reply. */
FX_MUST bool fx_queue__log_send(fx_queue_call *call, uint32_t after, uint32_t max, fx_error *err);
/** False when the entries are not `after` + 1, + 2 ... and then perhaps a finish record. */
FX_MUST bool fx_queue__log_read(const redisReply *reply, uint32_t after, struct fx_log_page *page);
