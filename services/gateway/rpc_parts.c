/* What waits of a choice, in the messages it will make: with each the client is at a token. */
#include <event2/buffer.h>
#include "common/base/heap.h"
#include "services/gateway/rpc.h"

enum { PARTS_MIN = 4 };

static uint32_t logprobs_in(const struct gw_rpc_parts *parts) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < parts->count; i++)
        count += parts->at[i].logprobs;
    return count;
}

/* One more, empty. NULL: no memory. */
static struct gw_rpc_part *part_open(struct gw_rpc_parts *parts) {
    if (parts->count == parts->cap) {
        uint32_t cap = parts->cap ? 2 * parts->cap : PARTS_MIN;
        struct gw_rpc_part *at = fx_realloc(parts->at, cap, sizeof *at);
        if (!at) return NULL;
        parts->at = at;
        parts->cap = cap;
    }
    FX_ASSERT(parts->at);
    struct gw_rpc_part *part = &parts->at[parts->count++];
    *part = (struct gw_rpc_part){0};
    return part;
}

bool gw_rpc_part_add(struct gw_choice *choice, fx_span text) {
    struct gw_rpc_parts *parts = &choice->parts;
    struct gw_rpc_part *part = parts->count ? &parts->at[parts->count - 1] : NULL;
    uint32_t logprobs = choice->logprobs.count - logprobs_in(parts);
    if (evbuffer_add(choice->text, text.at, text.len) != 0) return false;
    if (!part && !text.len && !logprobs) return true;
    if (!part || part->logprobs + logprobs > GW_RPC_LOGPROBS_MAX) part = part_open(parts);
    if (!part) return false;
    part->tokens = choice->tokens;
    part->logprobs += logprobs;
    part->text += text.len;
    return true;
}

void gw_rpc_part_drop(struct gw_choice *choice) {
    struct gw_rpc_parts *parts = &choice->parts;
    const struct gw_rpc_part first = parts->at[0];
    (void)evbuffer_drain(choice->text, first.text);
    gw_logprobs_drop(&choice->logprobs, first.logprobs);
    memmove(parts->at, parts->at + 1, --parts->count * sizeof *parts->at);
}
