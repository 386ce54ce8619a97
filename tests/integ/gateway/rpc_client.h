#pragma once
/* A client of the public gRPC API that checks what holds of every answer. */
#include "fractal/v1/inference.pb-c.h"
#include "tests/integ/gateway/stage.h"

enum {
    RPC_TEXT_MAX = 4096,
    RPC_CHOICES = 16,
    RPC_LOGPROBS = 512,
    RPC_TOPS = 20,
    RPC_LONG_MS = 20000,
    RPC_AFTER_MAX = 256,
};

struct rpc_logprob {
    uint32_t token, tops, top_tokens[RPC_TOPS];
    float value, top_values[RPC_TOPS];
    char text[16];
    uint8_t raw[16];
    size_t raw_len;
};

/* What came of one choice. */
struct rpc_choice {
    char text[RPC_TEXT_MAX];
    uint32_t tokens, messages;
    int reason; /* nothing may come after it */
    struct rpc_logprob logprobs[RPC_LOGPROBS];
    uint32_t logprob_count;
};

struct rpc {
    fx_client *client;
    struct rpc_choice *at;             /* [RPC_CHOICES] */
    char id[64], after[RPC_AFTER_MAX]; /* of the last response */
    size_t messages;
    uint32_t prompt_tokens, completion_tokens, usages;
    size_t leave_after; /* messages; 0: never */
    const char *once;   /* an idempotency-key; NULL: none */
    /* In the first message that has text or log probabilities; NULL: nothing */
    void (*pause)(void *ctx);
    void *pause_ctx;
    fx_error err;
};

void rpc_open(struct stage *stage, struct rpc *rpc);
void rpc_close(struct rpc *rpc);
/** A Chat, a Generate or a Follow, by the message's type. False: rpc->err. */
bool rpc_stream(struct rpc *rpc, const void *message, uint32_t deadline_ms);
/** Goes on with rpc->id from rpc->after on; what comes is added to what there is. */
bool rpc_follow(struct rpc *rpc);
/** A unary call; `metadata` NULL: without a key. The reply is valid until the next. */
void rpc_unary(struct rpc *rpc, const char *method, const void *message,
               const struct fx_client_metadata *metadata, void *reply,
               const ProtobufCMessageDescriptor *type);
extern const struct fx_client_metadata rpc_key[1];

/* A chat of one message, owned by the caller's stack. */
struct rpc_chat {
    Fractal__V1__ChatRequest request;
    Fractal__V1__ChatMessage message, *messages[1];
    Fractal__V1__SamplingOptions sampling;
};
void rpc_chat_make(struct rpc_chat *chat);
