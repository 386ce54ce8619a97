#pragma once
#include "services/gateway/process.h"
#include "services/gateway/visit.h"

/** The public gRPC API, fractal.v1.InferenceService: the second front of the gateway. Each call is
 *  given to a loop in turn, which checks its key before its message is read; then its handler hands
 *  it to the same loop, which owns it from then on. A visit is as over HTTP. */

enum {
    GW_RPC_CALLS_MAX = 256,                   /* at once */
    GW_RPC_UNREAD_MAX = 1024 * 1024,          /* bytes of an answer a client may leave unread */
    GW_RPC_LOGPROB_BYTES = 24,                /* of them, what a log probability counts for */
    GW_RPC_LOGPROBS_MAX = 128,                /* tokens with them in one message */
    GW_RPC_REPLY_BYTES_MAX = 4 * 1024 * 1024, /* a message of ours; what clients take by default */
    GW_RPC_INBOX = 4 * GW_RPC_CALLS_MAX, /* jobs: for each call one to begin and one to go on */
};

/** Serves once the loops run. @err as fx_server_open */
FX_MUST bool gw_rpc_open(struct gw_process *process, fx_error *err);

/* rpc_request.c */
/** The request's fields under their HTTP names. @pre its strings are text (fx_pb_check_text)
 *  @own caller */
FX_MUST bool gw_rpc_json(const ProtobufCMessage *message, enum gw_kind *kind, json_t **out,
                         struct gw_problem *problem);
/* rpc_errors.c */
enum fx_code gw_rpc_code(const struct gw_problem *problem);
enum { GW_RPC_STATUS_MAX = 4096 };
/** Packs the google.rpc.Status of it; its length. */
size_t gw_rpc_status(const struct gw_problem *problem, uint8_t out[GW_RPC_STATUS_MAX]);
/** The trailers of an error. */
void gw_rpc_details(fx_call *call, const struct gw_problem *problem);
/* rpc_answer.c */
/** Sends what is there, if the client takes it. */
void gw_rpc_pump(struct gw_visit *visit);
/* rpc_parts.c */
/** A message to come, and where its client is then. */
struct gw_rpc_part {
    uint32_t tokens;   /* of the choice: what it is followed from after a cut */
    uint32_t logprobs; /* at most GW_RPC_LOGPROBS_MAX */
    size_t text;       /* bytes of choice->text */
};
/** `text`, and the log probabilities that came with it, at most GW_RPC_LOGPROBS_MAX. False: no
 *  memory. */
FX_MUST bool gw_rpc_part_add(struct gw_choice *choice, fx_span text);
/** The first was sent. @pre there is one */
void gw_rpc_part_drop(struct gw_choice *choice);
/* rpc_generations.c */
void gw_rpc_serve_follow(struct gw_visit *visit);
void gw_rpc_serve_get(struct gw_visit *visit);
void gw_rpc_serve_cancel(struct gw_visit *visit);
/** Answers with an AnswerStatus. */
void gw_rpc_status_reply(struct gw_visit *visit);
/* rpc_routes.c */
void gw_rpc_serve_models(struct gw_visit *visit);
void gw_rpc_serve_count(struct gw_visit *visit);

/* rpc.c: the end of a call, once. The call's reference stays the caller's. */
void gw_rpc_reply(struct gw_visit *visit, const void *message);
void gw_rpc_finish(struct gw_visit *visit);
void gw_rpc_fail(struct gw_visit *visit, const struct gw_problem *problem);
/** At once, whatever waits to be read. */
void gw_rpc_cut(struct gw_visit *visit, const struct gw_problem *problem);
/** Has the loop look at the call again soon. @thread any */
void gw_rpc_poke(struct gw_visit *visit);
