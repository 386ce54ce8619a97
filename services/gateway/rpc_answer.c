/* What a gRPC client gets of a generation: pieces of text, put together while it does not read. */
#include <event2/buffer.h>
#include <string.h>
#include "common/base/heap.h"
#include "fractal/v1/inference.pb-c.h"
#include "services/gateway/rpc.h"

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

struct piece {
    char *text; /* NUL-terminated */
    Fractal__V1__FinishReason reason;
    Fractal__V1__Usage *usage;
};

static enum fx_send generate_send(struct gw_visit *visit, const struct piece *piece) {
    Fractal__V1__GenerateResponse message = FRACTAL__V1__GENERATE_RESPONSE__INIT;
    message.id = visit->answer.id;
    message.model = visit->model.name;
    message.created_s = visit->answer.created_s;
    message.text = piece->text;
    message.tokens = visit->tokens;
    message.finish_reason = piece->reason;
    message.usage = piece->usage;
    return fx_call_send(visit->rpc.call, &message);
}

static enum fx_send chat_send(struct gw_visit *visit, const struct piece *piece) {
    Fractal__V1__ChatResponse message = FRACTAL__V1__CHAT_RESPONSE__INIT;
    message.id = visit->answer.id;
    message.model = visit->model.name;
    message.created_s = visit->answer.created_s;
    message.content = piece->text;
    message.tokens = visit->tokens;
    message.finish_reason = piece->reason;
    message.usage = piece->usage;
    return fx_call_send(visit->rpc.call, &message);
}

/* Twice, for the write in flight may end between the first try and the wish. */
static bool piece_send(struct gw_visit *visit, const struct piece *piece) {
    enum fx_send (*send)(struct gw_visit *, const struct piece *) =
        visit->route->kind == GW_CHAT ? chat_send : generate_send;
    enum fx_send sent = send(visit, piece);
    if (sent == FX_SEND_BUSY) {
        visit->rpc.wants = true;
        sent = send(visit, piece);
    }
    if (sent == FX_SEND_GONE) gw_rpc_poke(visit);
    return sent == FX_SEND_OK;
}

/* The text that waits, NUL-terminated; a NUL in it becomes U+FFFD, for a C string can't hold it. */
static char *text_copy(struct evbuffer *waiting) {
    size_t len = evbuffer_get_length(waiting), nuls = 0;
    const uint8_t *from = len ? evbuffer_pullup(waiting, -1) : NULL;
    if (len && !from) return NULL;
    for (size_t i = 0; i < len; i++)
        nuls += from[i] == 0;
    fx_buf out = {fx_alloc(1, len + 2 * nuls + 1), 0, len + 2 * nuls};
    if (!out.at) return NULL;
    for (size_t i = 0; i < len; i++)
        fx_buf_put(&out, from[i] ? (fx_span){&from[i], 1} : fx_span_str(replacement));
    return (char *)out.at;
}

static bool text_send(struct gw_visit *visit) {
    struct gw_rpc *rpc = &visit->rpc;
    Fractal__V1__Usage usage = FRACTAL__V1__USAGE__INIT;
    fx_auto(char) text = text_copy(rpc->text);
    struct piece piece = {.text = text};
    if (!text) { /* no memory just now */
        gw_rpc_poke(visit);
        return false;
    }
    if (rpc->reason) {
        usage.prompt_tokens = visit->answer.prompt_tokens;
        usage.completion_tokens = visit->tokens;
        piece.usage = &usage;
        piece.reason = strcmp(rpc->reason, "stop") == 0
                           ? FRACTAL__V1__FINISH_REASON__FINISH_REASON_STOP
                           : FRACTAL__V1__FINISH_REASON__FINISH_REASON_LENGTH;
    }
    if (!piece_send(visit, &piece)) return false;
    (void)evbuffer_drain(rpc->text, evbuffer_get_length(rpc->text));
    return true;
}

void gw_rpc_pump(struct gw_visit *visit) {
    struct gw_rpc *rpc = &visit->rpc;
    if (!rpc->admitted) return;
    bool news = evbuffer_get_length(rpc->text) || rpc->reason || !rpc->begun;
    if (news && !text_send(visit)) return;
    rpc->begun = true;
    if (!rpc->reason && !rpc->failed) return;
    if (rpc->failed)
        gw_rpc_fail(visit, &rpc->problem);
    else
        gw_rpc_finish(visit);
    gw_visit_unref(visit); /* the call's */
}

/* -- the front -- */

static bool rpc_read(struct gw_visit *visit, struct gw_problem *problem) {
    const ProtobufCMessage *message = visit->rpc.message;
    enum gw_kind kind;
    json_t *json;
    if (message->descriptor == &fractal__v1__inference_service_list_models_request__descriptor)
        return true;
    visit->rpc.text = evbuffer_new();
    if (!visit->rpc.text)
        return gw_refuse(problem, GW_UNAVAILABLE, NULL, "no memory for the answer");
    return gw_rpc_json(message, &kind, &json, problem) &&
           gw_request_read(kind, json, &visit->request, problem);
}

static void rpc_fail(struct gw_visit *visit, const struct gw_problem *problem) {
    struct gw_rpc *rpc = &visit->rpc;
    if (!rpc->call || rpc->reason || rpc->failed) return;
    if (!rpc->admitted) {
        gw_visit_refuse(visit, problem);
        return;
    }
    rpc->failed = true;
    rpc->problem = *problem;
    gw_rpc_pump(visit);
}

static void rpc_begin(struct gw_visit *visit) {
    visit->rpc.admitted = true;
    gw_rpc_pump(visit);
}

/* The client does not read: what it left is not worth waiting for. */
static void slow_cut(struct gw_visit *visit) {
    struct gw_problem problem;
    gw_problem_set(&problem, GW_SLOW, NULL, "the client left %d bytes unread", GW_RPC_UNREAD_MAX);
    gw_visit_ref(visit);
    gw_rpc_fail(visit, &problem);
    gw_visit_gone(visit);
    gw_visit_unref(visit);
}

static void rpc_tokens(struct gw_choice *choice, fx_span text, const char *reason,
                       const struct gw_problem *problem) {
    struct gw_visit *visit = choice->visit; /* there is one choice */
    struct gw_rpc *rpc = &visit->rpc;
    if (!rpc->call) return;
    if (evbuffer_get_length(rpc->text) + text.len > GW_RPC_UNREAD_MAX ||
        evbuffer_add(rpc->text, text.at, text.len) != 0) {
        slow_cut(visit);
        return;
    }
    if (problem) {
        rpc_fail(visit, problem);
        return;
    }
    rpc->reason = reason;
    if (text.len || reason) gw_rpc_pump(visit);
}

const struct gw_front gw_rpc_front = {rpc_read, gw_rpc_fail, rpc_begin, rpc_tokens, rpc_fail};
