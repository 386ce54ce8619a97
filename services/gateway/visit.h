#pragma once
#include "common/base/hash.h"
#include "common/base/stops.h"
#include "common/model/detok.h"
#include "common/rpc/server.h"
#include "services/gateway/gateway.h"
#include "services/gateway/limits.h"
#include "services/gateway/prompt.h"
#include "services/gateway/public_id.h"
#include "services/gateway/request.h"
#include "services/gateway/shapes.h"

struct gw_choice;
struct gw_listener;
struct gw_rejoin;
struct gw_route;
struct gw_visit;

/** How a client is spoken to: HTTP (gw_http_front) or gRPC (gw_rpc_front). The generation itself
 *  is the same. */
struct gw_front {
    /** The request, into visit->request; called with a key that is valid. */
    bool (*read)(struct gw_visit *visit, struct gw_problem *problem);
    /** Ends the call with an error before anything was sent. */
    void (*refuse)(struct gw_visit *visit, const struct gw_problem *problem);
    /** The generation was admitted. */
    void (*begin)(struct gw_visit *visit);
    /** More of a choice, perhaps none; with `reason` it ends, and with the last of them the answer
     *  (choices_left is 0), as it does with `problem`. */
    void (*tokens)(struct gw_choice *choice, fx_span text, const char *reason,
                   const struct gw_problem *problem);
    /** Ends the call with an error, whatever was sent. */
    void (*fail)(struct gw_visit *visit, const struct gw_problem *problem);
    /** Answers with how a generation stands; see rejoin.h. */
    void (*status)(struct gw_visit *visit);
    uint32_t logprobs_max; /* in one call of `tokens`; 0: any number */
};
extern const struct gw_front gw_http_front, gw_rpc_front;

/** A gRPC client's part of a visit: see rpc.c. */
struct gw_rpc {
    fx_call *call; /* NULL: answered, or the client left */
    const void *message;
    atomic_bool poked, wants; /* a job of ours waits in the loop's inbox; a write was put off */
    bool held;                /* that job has a reference */
    bool admitted, begun;     /* something may be sent; was sent */
    uint32_t turn;            /* the choice that may send next */
    bool told_usage;
    bool failed; /* the call fails when all is sent */
    struct gw_problem problem;
};

/** What a client has of a choice. */
struct gw_place {
    uint32_t after; /* tokens */
    bool end;       /* and its finish */
};

/** What waits of a choice for a gRPC client to read, in messages to come: see rpc_parts.c. */
struct gw_rpc_parts {
    struct gw_rpc_part *at; /* owned */
    uint32_t count, cap;
};

/** A question to the schedulers: choices of one visit that are admitted together. It lives in the
 *  first of them. */
struct gw_submission {
    TAILQ_ENTRY(gw_submission) entry; /* while it waits to be sent */
    struct gw_choice *first;
    uint32_t count;
};

/** One of the answers to a request: a generation of its own. */
struct gw_choice {
    struct gw_visit *visit;
    uint32_t index, resubmits;
    fx_gen_id id;
    struct gw_place had;             /* what the client has: not sent again */
    struct gw_submission submission; /* while `submitting` */
    bool submitted, submitting, has_seed, ended;
    uint64_t seed;
    fx_watch *watch;
    struct fx_detok detok;
    fx_stops *stops;             /* NULL: none */
    bool stopped;                /* one was met */
    uint32_t tokens, characters; /* received so far; of its text */
    struct gw_logprobs logprobs; /* not sent yet */
    struct evbuffer *text;       /* likewise; NULL: of events, which are sent at once */
    struct gw_rpc_parts parts;   /* of `text` and `logprobs`; gRPC */
    const char *reason;          /* NULL: it runs, or that was sent */
};

/** What a request with an Idempotency-Key is known by. */
struct gw_once {
    bool asked;
    bool attached; /* to an answer that another request began, and is charged for */
    uint8_t key[FX_SHA256_BYTES], body[FX_SHA256_BYTES];
};

/** One request from its head to the end of its answer. Lives until its call has ended and no
 *  question of its is under way. @thread the loop's */
struct gw_visit {
    TAILQ_ENTRY(gw_visit) entry; /* of gateway->visits, while `listed` */
    bool listed;
    uint32_t refs;
    struct gateway *gateway;
    const struct gw_route *route;
    const struct gw_front *front;
    struct gw_rpc *rpc;                 /* behind the visit; NULL: an HTTP client */
    fx_http_call *call;                 /* NULL: answered, or the client left, or gRPC */
    const struct fx_http_request *http; /* while there is a call that has not begun */
    fx_trace trace;
    uint64_t begun_us;
    struct gw_identity who;
    bool looked; /* `limits` says what Redis had to say */
    struct gw_limit_state limits;
    struct gw_hold hold;
    struct gw_listener *listener;     /* not NULL: gets telemetry; see telemetry.h */
    char name[GW_MODEL_NAME_MAX + 1]; /* of the model asked for, or what else the path names */

    /* a generation's: see generation.c */
    struct gw_request request;
    struct gw_models_waiter waiter;
    struct gw_model model; /* a copy; its vocab is a reference of ours */
    const struct gw_shape *shape;
    struct gw_answer answer;
    struct gw_prompt prompt;
    fx_gen_id id;             /* of choice 0; see gw_choice_id */
    struct gw_rejoin *rejoin; /* not NULL: came back for an answer; see rejoin.h */
    struct gw_once once;
    bool keeps;                /* goes on when the client leaves: it may come back */
    bool alone;                /* the client left, and it is followed to its end: see alone.c */
    uint32_t max_tokens;       /* of each choice */
    struct gw_choice *choices; /* [choice_count]; NULL: no generation yet */
    uint32_t choice_count;
    bool has_begun;        /* all of them are admitted */
    uint32_t choices_left; /* that have not ended */
    bool given_up;         /* the client left, or was told of an error */
    uint32_t tokens;       /* of all choices, received so far */
    uint64_t token_ms;     /* when the last came */
    uint64_t paused_ms;    /* since when it waits for its client to read; 0: it does not */
    uint64_t workers_ms;   /* when it was last asked whether a worker is left; see stall.c */
};

/** What is served at a path. */
struct gw_route {
    const char
        *path[4]; /* segments; "*": any, the visit's name. The rest is the name if has_name */
    size_t path_len;
    bool has_name;
    bool by_ticket; /* ?ticket= will do instead of a key */
    enum fx_http_method method;
    enum gw_kind kind; /* 0: no body is read */
    const struct gw_shape *shape;
    /** Authenticated; answers the call now or later. */
    void (*serve)(struct gw_visit *visit);
};

/** Is anybody there to be answered, or does it go on without? */
static inline bool gw_visit_here(const struct gw_visit *visit) {
    return visit->call || (visit->rpc && visit->rpc->call) || visit->alone;
}
/* visit.c */
void gw_visit_ref(struct gw_visit *visit);
void gw_visit_unref(struct gw_visit *visit);
/** Answers with an error and gives the call's reference back, at once or when the rate limits have
 *  been looked at for its headers. Does nothing without a call. */
void gw_visit_refuse(struct gw_visit *visit, const struct gw_problem *problem);
/** What stands in every answer's head: the rate limits, and how long it took until here. */
struct gw_headers {
    struct gw_limit_headers limits;
    char ms[24];
    struct fx_http_header at[GW_LIMIT_HEADERS + 1];
    size_t count;
};
void gw_visit_headers(const struct gw_visit *visit, struct gw_headers *out);
/** Answers 200 with JSON and gives the call's reference back. */
void gw_visit_reply(struct gw_visit *visit, fx_span json);
/** The same of JSON that `write` writes of `what`: once to measure, then for good. */
void gw_visit_reply_written(struct gw_visit *visit, void (*write)(const void *what, fx_buf *out),
                            const void *what);
/** Answers the HEAD of what a GET streams, as gw_visit_reply. */
void gw_visit_stream_head(struct gw_visit *visit);
/** Calls `found` with the model, now or later, or refuses. `name` lives as long as the visit. */
void gw_visit_want_model(struct gw_visit *visit, const char *name,
                         void (*found)(void *ctx, const struct gw_model *model));
/** Ends the open stream and gives the call's reference back. */
void gw_visit_stream_end(struct gw_visit *visit);

/** Asks whose key it is, then reads the request and serves the route. */
void gw_visit_begin(struct gw_visit *visit, fx_span key);
/** As gw_visit_begin, when that is known. */
void gw_visit_known(struct gw_visit *visit, const struct gw_identity *who);
/** The same where only the key's SHA-256 is known. */
void gw_visit_begin_digest(struct gw_visit *visit, const uint8_t digest[FX_SHA256_BYTES]);
/** The client left; its call is gone from the visit. Gives the call's reference back. */
void gw_visit_gone(struct gw_visit *visit);

/** The server's admit callback: a body is read only where it is wanted and comes with a key. */
bool gw_routes_admit(void *gateway, fx_http_call *call, const struct fx_http_request *request);
/** The server's request callback. */
void gw_routes_serve(void *gateway, fx_http_call *call, const struct fx_http_request *request);

/* model_routes.c */
void gw_serve_models(struct gw_visit *visit);
void gw_serve_model(struct gw_visit *visit);
/* once.c: a request with an Idempotency-Key. */
/** `key.at` NULL: it has none. `body`: what the same request has again. */
FX_MUST bool gw_once_read(struct gw_visit *visit, fx_span key, fx_span body,
                          struct gw_problem *problem);
/** Finds out whether it came before, then admits it, attaches to what it began, or refuses. */
void gw_once_claim(struct gw_visit *visit);
/* alone.c */
/** The client left. True: what it began is followed to its end without one, and keeps the call's
 *  reference until then. */
bool gw_alone_begin(struct gw_visit *visit);
/* token_routes.c */
void gw_serve_tokenize(struct gw_visit *visit);
void gw_serve_detokenize(struct gw_visit *visit);
/* generations.c: an answer by its id, its events from where the client is, its cancel. */
void gw_serve_status(struct gw_visit *visit);
void gw_serve_events(struct gw_visit *visit);
void gw_serve_cancel(struct gw_visit *visit);
void gw_status_reply(struct gw_visit *visit);
/** What an ended answer stands in: all of its status but the brace that closes it. */
void gw_status_open(const struct gw_visit *visit, fx_buf *out);
void gw_status_close(fx_buf *out);
/* generation.c */
void gw_serve_generation(struct gw_visit *visit);
/** Opens visit->request.n choices with the ids that follow from visit->id. */
FX_MUST bool gw_choices_open(struct gw_visit *visit, struct gw_problem *problem);
/** Another id for it than was drawn; before it is submitted. */
void gw_generation_set_id(struct gw_visit *visit, const fx_gen_id *id);
/** Takes what the rate limits ask for and submits it. */
void gw_generation_admit(struct gw_visit *visit);
/** Submits what the queue has already: its log is followed from the beginning. */
void gw_generation_attach(struct gw_visit *visit);
/** The head of its answer. */
void gw_answer_set(struct gw_visit *visit, uint64_t created_s);
/** Begins the answer and follows the logs of its choices; all are admitted. */
void gw_generation_watch(struct gw_visit *visit);
/** Follows the log of a choice from where it is; or no more. */
FX_MUST bool gw_choice_watch(struct gw_choice *choice, fx_error *err);
void gw_choice_unwatch(struct gw_choice *choice);
/** Does a scheduler have it, or may it? */
bool gw_generation_pending(const struct gw_visit *visit);
/** The client left, in whatever phase: all of it is cancelled. */
void gw_generation_gone(struct gw_visit *visit);
/** Gives it up from our side: an error for the client, a cancel for the scheduler. */
void gw_generation_fail(struct gw_visit *visit, const struct gw_problem *problem);
/** Frees what it holds. */
void gw_generation_done(struct gw_visit *visit);
/* stall.c */
/** Gives up what got no token for too long, and sooner where no worker is left. */
void gw_stalls_end(struct gateway *gateway);
/* cancel.c: tells the scheduler, or Redis itself when no scheduler answers. */
void gw_cancel(struct gateway *gateway, uint32_t model, const fx_gen_id *id, const fx_trace *trace);
/* submit.c: hands choices first..first+count-1 to a scheduler; gw_generation_submitted is told:
 * they were all admitted, or none. `seeds` [count] with OK. */
void gw_submit(struct gw_choice *first, uint32_t count);
void gw_generation_submitted(struct gw_choice *first, uint32_t count,
                             const struct fx_client_result *result, const uint64_t *seeds);
/* routes.c, for gw_http_front */
bool gw_http_read(struct gw_visit *visit, struct gw_problem *problem);
void gw_http_refuse(struct gw_visit *visit, const struct gw_problem *problem);
/* unread.c: a client that reads slower than its answer comes. */
/** More was written: perhaps the answer has to wait. */
void gw_unread_check(struct gw_visit *visit);
/** The client took all: the answer goes on. */
void gw_unread_taken(void *visit);
/** Cuts clients that an answer has waited for too long. */
void gw_unread_tick(struct gateway *gateway);
/** The visit ends, paused or not. */
void gw_unread_end(struct gw_visit *visit);
/* answer.c: what the client sees of tokens. */
/** Tokens as they come; with a finish the answer ends. */
void gw_answer_tokens(struct gw_choice *choice, const struct fx_gen_tokens *tokens);
