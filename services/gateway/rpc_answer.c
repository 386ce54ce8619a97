/* What a gRPC client gets of a generation: pieces of its choices, put together while it does not
 * read. */
#include <event2/buffer.h>
#include <string.h>
#include "common/base/heap.h"
#include "services/gateway/rejoin.h"
#include "services/gateway/rpc.h"
#include "services/gateway/rpc_logprobs.h"

/* -- a message -- */

struct piece {
    struct gw_choice *choice;
    char *text; /* NUL-terminated */
    struct gw_rpc_logprobs logprobs;
    Fractal__V1__FinishReason reason;
    Fractal__V1__Usage *usage;
    char after[GW_PLACES_MAX];
};

/* Of either message: they have the same fields, but for the text's name. */
#define PIECE_FILL(message, visit, piece)                                                          \
    do {                                                                                           \
        (message)->id = (visit)->answer.id;                                                        \
        (message)->model = (visit)->model.name;                                                    \
        (message)->created_s = (visit)->answer.created_s;                                          \
        (message)->tokens = (piece)->choice->had.after;                                            \
        (message)->choice = (piece)->choice->index;                                                \
        (message)->finish_reason = (piece)->reason;                                                \
        (message)->usage = (piece)->usage;                                                         \
        (message)->logprobs = (piece)->logprobs.at;                                                \
        (message)->n_logprobs = (piece)->logprobs.count;                                           \
        (message)->after = (piece)->after;                                                         \
    } while (0)

static enum fx_send piece_send(struct gw_visit *visit, struct piece *piece) {
    Fractal__V1__FollowResponse follow = FRACTAL__V1__FOLLOW_RESPONSE__INIT;
    Fractal__V1__ChatResponse chat = FRACTAL__V1__CHAT_RESPONSE__INIT;
    Fractal__V1__GenerateResponse generate = FRACTAL__V1__GENERATE_RESPONSE__INIT;
    const void *message = &follow;
    if (visit->shape == &gw_chat_shape) {
        PIECE_FILL(&chat, visit, piece);
        chat.content = piece->text;
        follow.piece_case = FRACTAL__V1__FOLLOW_RESPONSE__PIECE_CHAT;
        follow.chat = &chat;
        if (!visit->rejoin) message = &chat;
    } else {
        PIECE_FILL(&generate, visit, piece);
        generate.text = piece->text;
        follow.piece_case = FRACTAL__V1__FOLLOW_RESPONSE__PIECE_GENERATE;
        follow.generate = &generate;
        if (!visit->rejoin) message = &generate;
    }
    return fx_call_send(visit->rpc->call, message);
}

/* The first `len` bytes that wait, NUL-terminated. NULL: no memory. */
static char *text_copy(struct evbuffer *waiting, size_t len) {
    const uint8_t *from = len ? evbuffer_pullup(waiting, (ev_ssize_t)len) : NULL;
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
    return choice->reason || choice->parts.count;
}

/* All choices have ended and the client has each end. */
static bool has_ends(const struct gw_visit *visit) {
    for (uint32_t i = 0; i < visit->choice_count; i++)
        if (!visit->choices[i].had.end) return false;
    return !visit->choices_left;
}

/* Each in turn; NULL: nobody has any. The first message of a call needs none, nor does one with the
 * usage, for a client that came back with all ends. */
static struct gw_choice *next_choice(struct gw_visit *visit) {
    struct gw_rpc *rpc = visit->rpc;
    if (!rpc->begun) return &visit->choices[0];
    for (uint32_t i = 0; i < visit->choice_count; i++) {
        struct gw_choice *choice = &visit->choices[(rpc->turn + i) % visit->choice_count];
        if (has_news(choice)) return choice;
    }
    bool lacks_usage = !rpc->failed && !rpc->told_usage && has_ends(visit);
    return lacks_usage ? &visit->choices[0] : NULL;
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

/* Where the client is with this message: the choice's end comes with its last part. */
static void piece_place(struct piece *piece) {
    struct gw_choice *choice = piece->choice;
    const struct gw_rpc_parts *parts = &choice->parts;
    uint32_t tokens = parts->count ? parts->at[0].tokens : choice->tokens;
    fx_buf after = {(uint8_t *)piece->after, 0, sizeof piece->after - 1};
    if (choice->reason && parts->count <= 1) piece->reason = reason_of(choice);
    if (choice->had.after < tokens) choice->had.after = tokens;
    choice->had.end |= piece->reason != 0;
    gw_places_write(choice->visit, &after);
    FX_ASSERT(fx_buf_fits(&after));
}

/* The first part of what waits. */
static FX_MUST bool piece_make(struct gw_choice *choice, struct piece *piece,
                               Fractal__V1__Usage *usage) {
    struct gw_visit *visit = choice->visit;
    struct gw_rpc_part part = {0};
    if (choice->parts.count) part = choice->parts.at[0];
    *piece = (struct piece){.choice = choice, .text = text_copy(choice->text, part.text)};
    if (!piece->text || !gw_rpc_logprobs_make(&choice->logprobs, part.logprobs, &piece->logprobs))
        return false;
    piece_place(piece);
    if (!has_ends(visit)) return true;
    usage->prompt_tokens = visit->answer.prompt_tokens;
    usage->completion_tokens = visit->tokens;
    piece->usage = usage;
    return true;
}

static void piece_sent(const struct piece *piece) {
    struct gw_choice *choice = piece->choice;
    struct gw_rpc *rpc = choice->visit->rpc;
    if (choice->parts.count) gw_rpc_part_drop(choice);
    if (piece->reason) choice->reason = NULL;
    rpc->begun = true;
    rpc->told_usage = piece->usage != NULL;
    rpc->turn = choice->index + 1;
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
    const struct gw_place had = choice->had;
    enum fx_send sent = FX_SEND_GONE; /* or no memory just now: the loop is to look again */
    if (is_busy(visit->rpc)) return false;
    if (piece_make(choice, &piece, &usage)) sent = piece_send(visit, &piece);
    if (sent == FX_SEND_OK) piece_sent(&piece);
    piece_done(&piece);
    if (sent == FX_SEND_OK) return true;
    choice->had = had;
    gw_rpc_poke(visit);
    return false;
}

void gw_rpc_pump(struct gw_visit *visit) {
    struct gw_rpc *rpc = visit->rpc;
    struct gw_choice *choice;
    if (!rpc->admitted) return;
    while ((choice = next_choice(visit)))
        if (!choice_send(choice)) return;
    if (!rpc->failed && !has_ends(visit)) return;
    if (rpc->failed)
        gw_rpc_fail(visit, &rpc->problem);
    else
        gw_rpc_finish(visit);
    gw_visit_unref(visit); /* the call's */
}

/* -- the front -- */

/* The same request is the same bytes, whoever packed it; of the other method it is another. */
static FX_MUST bool once_read(struct gw_visit *visit, struct gw_problem *problem) {
    const ProtobufCMessage *message = visit->rpc->message;
    fx_span key = fx_call_metadata(visit->rpc->call, "idempotency-key");
    if (!key.at) return true;
    size_t len = 1 + protobuf_c_message_get_packed_size(message);
    fx_auto(uint8_t) body = fx_alloc(1, len);
    if (!body) return gw_refuse(problem, GW_UNAVAILABLE, NULL, "no memory for the request");
    body[0] = (uint8_t)visit->route->kind;
    (void)protobuf_c_message_pack(message, body + 1);
    return gw_once_read(visit, key, (fx_span){body, len}, problem);
}

static bool rpc_read(struct gw_visit *visit, struct gw_problem *problem) {
    enum gw_kind kind;
    json_t *json;
    if (!visit->route->kind) return true;
    if (visit->route->shape && !once_read(visit, problem)) return false;
    return gw_rpc_json(visit->rpc->message, &kind, &json, problem) &&
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
    bool has_it = reason && choice->had.end; /* the finish, and the text that comes with it */
    if (!visit->rpc->call) return;
    if (has_it) {
        text.len = 0;
        gw_logprobs_clear(&choice->logprobs);
    }
    bool fits = gw_rpc_part_add(choice, text) && unread(visit) <= GW_RPC_UNREAD_MAX;
    if (!fits && !problem) { /* with one it ends anyway */
        slow_cut(visit);
        return;
    }
    if (!choice->parts.count) gw_place_move(choice, false);
    if (!has_it) choice->reason = reason;
    if (problem)
        rpc_fail(visit, problem);
    else if (has_it || has_news(choice))
        gw_rpc_pump(visit);
}

const struct gw_front gw_rpc_front = {.read = rpc_read,
                                      .refuse = gw_rpc_fail,
                                      .begin = rpc_begin,
                                      .tokens = rpc_tokens,
                                      .fail = rpc_fail,
                                      .status = gw_rpc_status_reply,
                                      .logprobs_max = GW_RPC_LOGPROBS_MAX};
