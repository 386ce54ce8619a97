/* What a gRPC client gets of a generation: pieces of its choices, put together while it does not
 * read. */
#include <event2/buffer.h>
#include <string.h>
#include "common/base/heap.h"
#include "services/gateway/rpc.h"
#include "services/gateway/rpc_logprobs.h"

enum { LOGPROBS_MAX = 128 /* tokens with them in one message */ };

/* -- a message -- */

struct piece {
    struct gw_choice *choice;
    char *text; /* NUL-terminated */
    struct gw_rpc_logprobs logprobs;
    Fractal__V1__FinishReason reason;
    Fractal__V1__Usage *usage;
};

/* Of either message: they have the same fields, but for the text's name. */
#define PIECE_FILL(message, visit, piece)                                                          \
    do {                                                                                           \
        (message)->id = (visit)->answer.id;                                                        \
        (message)->model = (visit)->model.name;                                                    \
        (message)->created_s = (visit)->answer.created_s;                                          \
        (message)->tokens = (piece)->choice->tokens;                                               \
        (message)->choice = (piece)->choice->index;                                                \
        (message)->finish_reason = (piece)->reason;                                                \
        (message)->usage = (piece)->usage;                                                         \
        (message)->logprobs = (piece)->logprobs.at;                                                \
        (message)->n_logprobs = (piece)->logprobs.count;                                           \
    } while (0)

static enum fx_send piece_send(struct gw_visit *visit, const struct piece *piece) {
    if (visit->route->kind == GW_CHAT) {
        Fractal__V1__ChatResponse message = FRACTAL__V1__CHAT_RESPONSE__INIT;
        PIECE_FILL(&message, visit, piece);
        message.content = piece->text;
        return fx_call_send(visit->rpc->call, &message);
    }
    Fractal__V1__GenerateResponse message = FRACTAL__V1__GENERATE_RESPONSE__INIT;
    PIECE_FILL(&message, visit, piece);
    message.text = piece->text;
    return fx_call_send(visit->rpc->call, &message);
}

/* The text that waits, NUL-terminated. NULL: no memory. */
static char *text_copy(struct evbuffer *waiting) {
    size_t len = evbuffer_get_length(waiting);
    const uint8_t *from = len ? evbuffer_pullup(waiting, -1) : NULL;
    char *out = len && !from ? NULL : fx_alloc(1, gw_rpc_text_room(len));
    if (out) gw_rpc_text((fx_span){from, len}, out);
    return out;
}

static Fractal__V1__FinishReason reason_of(const struct gw_choice *choice) {
    return strcmp(choice->reason, "stop") == 0 ? FRACTAL__V1__FINISH_REASON__FINISH_REASON_STOP
                                               : FRACTAL__V1__FINISH_REASON__FINISH_REASON_LENGTH;
}

/* -- what waits -- */

static bool has_news(const struct gw_choice *choice) {
    return choice->reason || choice->logprobs.count || evbuffer_get_length(choice->text);
}

static uint32_t news_count(const struct gw_visit *visit) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < visit->choice_count; i++)
        count += has_news(&visit->choices[i]);
    return count;
}

/* Each in turn; NULL: nobody has any. The first message of a call needs none. */
static struct gw_choice *next_choice(struct gw_visit *visit) {
    struct gw_rpc *rpc = visit->rpc;
    if (!rpc->begun) return &visit->choices[0];
    for (uint32_t i = 0; i < visit->choice_count; i++) {
        struct gw_choice *choice = &visit->choices[(rpc->turn + i) % visit->choice_count];
        if (has_news(choice)) return choice;
    }
    return NULL;
}

static size_t unread(const struct gw_visit *visit) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < visit->choice_count; i++) {
        const struct gw_choice *choice = &visit->choices[i];
        size_t logprobs = (size_t)choice->logprobs.count * choice->logprobs.each;
        bytes += evbuffer_get_length(choice->text) + logprobs * GW_RPC_LOGPROB_BYTES;
    }
    return bytes;
}

/* -- sending -- */

/* All text of the choice, and as many log probabilities as fit: its end comes with the last. */
static FX_MUST bool piece_make(struct gw_choice *choice, struct piece *piece,
                               Fractal__V1__Usage *usage) {
    struct gw_visit *visit = choice->visit;
    uint32_t waiting = choice->logprobs.count;
    uint32_t count = waiting < LOGPROBS_MAX ? waiting : LOGPROBS_MAX;
    *piece = (struct piece){.choice = choice, .text = text_copy(choice->text)};
    if (!piece->text || !gw_rpc_logprobs_make(&choice->logprobs, count, &piece->logprobs))
        return false;
    if (!choice->reason || count < waiting) return true;
    piece->reason = reason_of(choice);
    if (visit->choices_left || news_count(visit) > 1) return true;
    usage->prompt_tokens = visit->answer.prompt_tokens;
    usage->completion_tokens = visit->tokens;
    piece->usage = usage;
    return true;
}

static void piece_sent(const struct piece *piece) {
    struct gw_choice *choice = piece->choice;
    (void)evbuffer_drain(choice->text, evbuffer_get_length(choice->text));
    gw_logprobs_drop(&choice->logprobs, (uint32_t)piece->logprobs.count);
    if (piece->reason) choice->reason = NULL;
    choice->visit->rpc->begun = true;
    choice->visit->rpc->turn = choice->index + 1;
}

static void piece_done(struct piece *piece) {
    free(piece->text);
    gw_rpc_logprobs_done(&piece->logprobs);
}

/* Asked twice, for the write in flight may end between the first time and the wish. */
static bool is_busy(struct gw_rpc *rpc) {
    if (!fx_call_busy(rpc->call)) return false;
    rpc->wants = true;
    return fx_call_busy(rpc->call);
}

static bool choice_send(struct gw_choice *choice) {
    struct gw_visit *visit = choice->visit;
    Fractal__V1__Usage usage = FRACTAL__V1__USAGE__INIT;
    struct piece piece;
    enum fx_send sent = FX_SEND_GONE; /* or no memory just now: the loop is to look again */
    if (is_busy(visit->rpc)) return false;
    if (piece_make(choice, &piece, &usage)) sent = piece_send(visit, &piece);
    if (sent == FX_SEND_OK) piece_sent(&piece);
    piece_done(&piece);
    if (sent != FX_SEND_OK) gw_rpc_poke(visit);
    return sent == FX_SEND_OK;
}

void gw_rpc_pump(struct gw_visit *visit) {
    struct gw_rpc *rpc = visit->rpc;
    struct gw_choice *choice;
    if (!rpc->admitted) return;
    while ((choice = next_choice(visit)))
        if (!choice_send(choice)) return;
    if (visit->choices_left && !rpc->failed) return;
    if (rpc->failed)
        gw_rpc_fail(visit, &rpc->problem);
    else
        gw_rpc_finish(visit);
    gw_visit_unref(visit); /* the call's */
}

/* -- the front -- */

static bool rpc_read(struct gw_visit *visit, struct gw_problem *problem) {
    const ProtobufCMessage *message = visit->rpc->message;
    enum gw_kind kind;
    json_t *json;
    if (message->descriptor == &fractal__v1__inference_service_list_models_request__descriptor)
        return true;
    return gw_rpc_json(message, &kind, &json, problem) &&
           gw_request_read(kind, json, &visit->request, problem);
}

static void rpc_fail(struct gw_visit *visit, const struct gw_problem *problem) {
    struct gw_rpc *rpc = visit->rpc;
    if (!rpc->call || rpc->failed) return;
    if (!rpc->admitted) {
        gw_visit_refuse(visit, problem);
        return;
    }
    rpc->failed = true;
    rpc->problem = *problem;
    gw_rpc_pump(visit);
}

static void rpc_begin(struct gw_visit *visit) {
    visit->rpc->admitted = true;
    gw_rpc_pump(visit);
}

/* The client does not read: what it left is not worth waiting for. */
static void slow_cut(struct gw_visit *visit) {
    struct gw_problem problem;
    gw_problem_set(&problem, GW_SLOW, NULL, "the client left %d bytes unread", GW_RPC_UNREAD_MAX);
    gw_visit_ref(visit);
    gw_rpc_cut(visit, &problem);
    gw_visit_gone(visit);
    gw_visit_unref(visit);
}

static void rpc_tokens(struct gw_choice *choice, fx_span text, const char *reason,
                       const struct gw_problem *problem) {
    struct gw_visit *visit = choice->visit;
    if (!visit->rpc->call) return;
    if (evbuffer_add(choice->text, text.at, text.len) != 0 || unread(visit) > GW_RPC_UNREAD_MAX) {
        slow_cut(visit);
        return;
    }
    choice->reason = reason;
    if (problem)
        rpc_fail(visit, problem);
    else if (has_news(choice))
        gw_rpc_pump(visit);
}

const struct gw_front gw_rpc_front = {rpc_read, gw_rpc_fail, rpc_begin, rpc_tokens, rpc_fail};
