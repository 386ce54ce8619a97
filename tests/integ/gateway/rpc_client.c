#include "tests/integ/gateway/rpc_client.h"

const struct fx_client_metadata rpc_key[1] = {
    {"authorization", "Bearer " STAGE_KEY}
};

void rpc_open(struct stage *stage, struct rpc *rpc) {
    char target[32];
    struct fx_client_opts opts = {.target = target,
                                  .health_check_off = true,
                                  .message_bytes_max = 16 * 1024 * 1024,
                                  .arena_bytes = 1024 * 1024};
    *rpc = (struct rpc){.at = calloc(RPC_CHOICES, sizeof *rpc->at)};
    (void)snprintf(target, sizeof target, "127.0.0.1:%u", gw_process_rpc_port(stage->process));
    if (!fx_client_open(&opts, &rpc->client, &rpc->err)) fail_msg("%s", rpc->err.text);
}

void rpc_close(struct rpc *rpc) {
    fx_client_free(rpc->client);
    free(rpc->at);
}

struct piece {
    const char *id, *text, *after;
    uint32_t tokens, choice;
    int reason;
    const Fractal__V1__Usage *usage;
    Fractal__V1__TokenLogprob **logprobs;
    size_t logprob_count;
};

static void logprob_take(struct rpc_choice *choice, const Fractal__V1__TokenLogprob *from) {
    assert_in_range(choice->logprob_count, 0, RPC_LOGPROBS - 1);
    struct rpc_logprob *to = &choice->logprobs[choice->logprob_count++];
    to->token = from->token;
    to->value = from->logprob;
    to->raw_len = from->raw.len;
    assert_in_range(from->raw.len, 0, sizeof to->raw);
    if (from->raw.len) memcpy(to->raw, from->raw.data, from->raw.len);
    (void)snprintf(to->text, sizeof to->text, "%s", from->text);
    to->tops = (uint32_t)from->n_top;
    assert_in_range(from->n_top, 0, RPC_TOPS);
    for (size_t i = 0; i < from->n_top; i++) {
        to->top_tokens[i] = from->top[i]->token;
        to->top_values[i] = from->top[i]->logprob;
        if (i) assert_true(to->top_values[i] <= to->top_values[i - 1]);
    }
}

static bool piece_take(struct rpc *rpc, const struct piece *piece) {
    assert_in_range(piece->choice, 0, RPC_CHOICES - 1);
    struct rpc_choice *choice = &rpc->at[piece->choice];
    size_t len = strlen(choice->text);
    if (*rpc->id) assert_string_equal(rpc->id, piece->id);      /* the same in all */
    if (!rpc->messages++) assert_string_equal(piece->text, ""); /* admitted */
    assert_int_equal(rpc->usages, 0);                           /* nothing after the last */
    if (piece->reason || *piece->text || piece->logprob_count) assert_int_equal(choice->reason, 0);
    assert_true(piece->tokens >= choice->tokens);
    (void)snprintf(rpc->id, sizeof rpc->id, "%s", piece->id);
    (void)snprintf(rpc->after, sizeof rpc->after, "%s", piece->after);
    (void)snprintf(choice->text + len, sizeof choice->text - len, "%s", piece->text);
    choice->messages++;
    choice->tokens = piece->tokens;
    if (piece->reason) choice->reason = piece->reason;
    for (size_t i = 0; i < piece->logprob_count; i++)
        logprob_take(choice, piece->logprobs[i]);
    if (piece->usage) {
        rpc->usages++;
        rpc->prompt_tokens = piece->usage->prompt_tokens;
        rpc->completion_tokens = piece->usage->completion_tokens;
    }
    if ((*piece->text || piece->logprob_count) && rpc->pause) {
        rpc->pause(rpc->pause_ctx);
        rpc->pause = NULL;
    }
    return !rpc->leave_after || rpc->messages < rpc->leave_after;
}

static bool on_chat(void *user, const void *message) {
    const Fractal__V1__ChatResponse *from = message;
    const struct piece piece = {from->id,     from->content,  from->after,
                                from->tokens, from->choice,   (int)from->finish_reason,
                                from->usage,  from->logprobs, from->n_logprobs};
    return piece_take(user, &piece);
}

static bool on_generate(void *user, const void *message) {
    const Fractal__V1__GenerateResponse *from = message;
    const struct piece piece = {from->id,     from->text,     from->after,
                                from->tokens, from->choice,   (int)from->finish_reason,
                                from->usage,  from->logprobs, from->n_logprobs};
    return piece_take(user, &piece);
}

static bool on_follow(void *user, const void *message) {
    const Fractal__V1__FollowResponse *from = message;
    if (from->piece_case == FRACTAL__V1__FOLLOW_RESPONSE__PIECE_CHAT)
        return on_chat(user, from->chat);
    assert_int_equal(from->piece_case, FRACTAL__V1__FOLLOW_RESPONSE__PIECE_GENERATE);
    return on_generate(user, from->generate);
}

static const struct method {
    const ProtobufCMessageDescriptor *request, *reply;
    const char *name;
    bool (*on_message)(void *user, const void *message);
} methods[] = {
    {&fractal__v1__chat_request__descriptor,     &fractal__v1__chat_response__descriptor,
     "/fractal.v1.InferenceService/Chat",     on_chat    },
    {&fractal__v1__generate_request__descriptor, &fractal__v1__generate_response__descriptor,
     "/fractal.v1.InferenceService/Generate", on_generate},
    {&fractal__v1__follow_request__descriptor,   &fractal__v1__follow_response__descriptor,
     "/fractal.v1.InferenceService/Follow",   on_follow  },
};

static const struct method *method_of(const ProtobufCMessage *message) {
    for (size_t i = 0; i < FX_TEST_COUNT(methods); i++)
        if (methods[i].request == message->descriptor) return &methods[i];
    fail_msg("no stream takes a %s", message->descriptor->name);
    return NULL;
}

bool rpc_stream(struct rpc *rpc, const void *message, uint32_t deadline_ms) {
    const struct method *method = method_of(message);
    const struct fx_client_metadata metadata[] = {
        rpc_key[0], {"idempotency-key", rpc->once}
    };
    struct fx_client_request request = {
        .method = method->name,
        .message = message,
        .reply = method->reply,
        .deadline_ms = deadline_ms,
        .metadata = metadata,
        .metadata_count = rpc->once ? 2 : 1,
        .wait_for_ready = true,
        .user = rpc,
        .on_message = method->on_message,
    };
    return fx_client_stream_wait(rpc->client, &request, &rpc->err);
}

bool rpc_follow(struct rpc *rpc) {
    Fractal__V1__FollowRequest request = FRACTAL__V1__FOLLOW_REQUEST__INIT;
    char id[sizeof rpc->id], after[sizeof rpc->after];
    (void)snprintf(id, sizeof id, "%s", rpc->id);
    (void)snprintf(after, sizeof after, "%s", rpc->after);
    request.id = id;
    request.after = after;
    rpc->messages = rpc->leave_after = 0;
    rpc->err = (fx_error){0};
    return rpc_stream(rpc, &request, RPC_LONG_MS);
}

void rpc_unary(struct rpc *rpc, const char *method, const void *message,
               const struct fx_client_metadata *metadata, void *reply,
               const ProtobufCMessageDescriptor *type) {
    static uint8_t memory[65536];
    fx_arena arena;
    fx_arena_init(&arena, memory, sizeof memory);
    rpc->err = (fx_error){0};
    struct fx_client_request request = {.method = method,
                                        .message = message,
                                        .reply = type,
                                        .deadline_ms = RPC_LONG_MS,
                                        .metadata = metadata,
                                        .metadata_count = metadata ? 1 : 0,
                                        .arena = &arena};
    (void)!fx_client_call_wait(rpc->client, &request, reply, &rpc->err);
    fx_arena_done(&arena);
}

void rpc_chat_make(struct rpc_chat *chat) {
    fractal__v1__chat_request__init(&chat->request);
    fractal__v1__chat_message__init(&chat->message);
    fractal__v1__sampling_options__init(&chat->sampling);
    chat->message.role = "user";
    chat->message.content = "hi";
    chat->messages[0] = &chat->message;
    chat->request.model = STAGE_MODEL;
    chat->request.messages = chat->messages;
    chat->request.n_messages = 1;
    chat->request.sampling = &chat->sampling;
}
