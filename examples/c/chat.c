/* One streamed answer over gRPC:
 *   fractal-example-chat ADDRESS[,ADDRESS...] KEY_FILE MODEL TEXT [TLS_FOLDER NAME]
 * TLS_FOLDER has ca.crt, tls.crt and tls.key, as a Secret of Kubernetes does; NAME is what the
 * gateway's certificate must carry. When the gateway that sends it dies, the rest comes from
 * another, or from the same one once it is back. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/heap.h"
#include "common/rpc/client.h"
#include "fractal/v1/inference.pb-c.h"

enum {
    DEADLINE_MS = 120000,
    PATIENCE_MS = 30000, /* without anything new */
    PAUSE_US = 250000,
    BEARER_MAX = 300,
    KEY_BYTES = 16,
    PLACE_MAX = 256,
};

struct answer {
    char id[PLACE_MAX], after[PLACE_MAX]; /* where the last response left us; "": none came */
    uint64_t heard_ms;
    uint32_t prompt_tokens, completion_tokens;
    double logprobs; /* the sum of all tokens' */
    size_t logprob_count;
};

/* Each message of the stream; false would cancel the call. */
static bool on_chat(void *user, const void *message) {
    const Fractal__V1__ChatResponse *piece = message;
    struct answer *answer = user;
    (void)fputs(piece->content, stdout);
    (void)fflush(stdout);
    (void)snprintf(answer->id, sizeof answer->id, "%s", piece->id);
    (void)snprintf(answer->after, sizeof answer->after, "%s", piece->after);
    answer->heard_ms = fx_clock_ms();
    for (size_t i = 0; i < piece->n_logprobs; i++)
        answer->logprobs += (double)piece->logprobs[i]->logprob;
    answer->logprob_count += piece->n_logprobs;
    if (piece->usage) {
        answer->prompt_tokens = piece->usage->prompt_tokens;
        answer->completion_tokens = piece->usage->completion_tokens;
    }
    return true;
}

static bool on_follow(void *user, const void *message) {
    return on_chat(user, ((const Fractal__V1__FollowResponse *)message)->chat);
}

static FX_MUST bool bearer_read(const char *path, char bearer[BEARER_MAX], fx_error *err) {
    int len = snprintf(bearer, BEARER_MAX, "Bearer ");
    fx_auto(FILE) file = fopen(path, "rbe");
    if (!file) return fx_fail_errno(err, "open '%s'", path);
    if (!fgets(bearer + len, BEARER_MAX - len, file))
        return fx_fail(err, FX_INVALID_ARGUMENT, "'%s' is empty", path);
    bearer[strcspn(bearer, "\r\n")] = '\0';
    return true;
}

/* Chat, and after a cut Follow, from whichever gateway is there. */
static FX_MUST bool stream(fx_client *client, struct fx_client_request *call, fx_error *err) {
    struct answer *answer = call->user;
    Fractal__V1__FollowRequest follow = FRACTAL__V1__FOLLOW_REQUEST__INIT;
    char id[PLACE_MAX], after[PLACE_MAX];
    follow.id = id;
    follow.after = after;
    while (!fx_client_stream_wait(client, call, err)) {
        bool is_cut = err->code == FX_UNAVAILABLE;
        if (!is_cut || fx_clock_ms() - answer->heard_ms > PATIENCE_MS) return false;
        (void)usleep(PAUSE_US);
        if (!*answer->id) continue; /* by its idempotency-key it is the same question */
        memcpy(id, answer->id, sizeof id);
        memcpy(after, answer->after, sizeof after);
        call->method = "/fractal.v1.InferenceService/Follow";
        call->message = &follow;
        call->reply = &fractal__v1__follow_response__descriptor;
        call->on_message = on_follow;
    }
    return true;
}

static FX_MUST bool client_open(char **arguments, fx_client **out, fx_error *err) {
    struct fx_client_opts opts = {.target = arguments[1]};
    char paths[3][PLACE_MAX];
    static const char *const names[] = {"ca.crt", "tls.crt", "tls.key"};
    if (!arguments[5]) return fx_client_open(&opts, out, err);
    for (int i = 0; i < 3; i++)
        (void)snprintf(paths[i], PLACE_MAX, "%s/%s", arguments[5], names[i]);
    opts.tls = (struct fx_tls){paths[0], paths[1], paths[2]};
    opts.tls_name = arguments[6];
    return fx_client_open(&opts, out, err);
}

static FX_MUST bool chat(char **arguments, fx_error *err) {
    fx_auto(fx_client) client = NULL;
    uint8_t key[KEY_BYTES];
    char bearer[BEARER_MAX], once[2 * KEY_BYTES + 1], role[] = "user";
    const struct fx_client_metadata metadata[] = {
        {"authorization",   bearer},
        {"idempotency-key", once  }
    };
    Fractal__V1__ChatRequest request = FRACTAL__V1__CHAT_REQUEST__INIT;
    Fractal__V1__ChatMessage message = FRACTAL__V1__CHAT_MESSAGE__INIT, *messages[] = {&message};
    Fractal__V1__SamplingOptions sampling = FRACTAL__V1__SAMPLING_OPTIONS__INIT;
    struct answer answer = {.heard_ms = fx_clock_ms()};
    struct fx_client_request call = {.method = "/fractal.v1.InferenceService/Chat",
                                     .message = &request,
                                     .reply = &fractal__v1__chat_response__descriptor,
                                     .deadline_ms = DEADLINE_MS,
                                     .metadata = metadata,
                                     .metadata_count = 2,
                                     .user = &answer,
                                     .on_message = on_chat};
    fx_random(key, sizeof key);
    fx_hex((fx_span){key, sizeof key}, once);
    request.model = arguments[3];
    request.max_tokens = 64;
    request.logprobs = 1;
    request.sampling = &sampling;
    request.messages = messages;
    request.n_messages = 1;
    sampling.temperature_presence_case =
        FRACTAL__V1__SAMPLING_OPTIONS__TEMPERATURE_PRESENCE_TEMPERATURE; /* and 0: greedy */
    message.role = role;
    message.content = arguments[4];
    if (!bearer_read(arguments[2], bearer, err) || !client_open(arguments, &client, err) ||
        !stream(client, &call, err))
        return false;
    printf("\n");
    (void)fprintf(stderr, "%u tokens asked, %u answered", answer.prompt_tokens,
                  answer.completion_tokens);
    if (answer.logprob_count)
        (void)fprintf(stderr, ", each %.0f%% likely",
                      100 * exp(answer.logprobs / (double)answer.logprob_count));
    (void)fprintf(stderr, "\n");
    return true;
}

int main(int argc, char **argv) {
    fx_error err = {0};
    if (argc != 5 && argc != 7) {
        (void)fprintf(stderr,
                      "usage: %s ADDRESS[,ADDRESS...] KEY_FILE MODEL TEXT [TLS_FOLDER NAME]\n",
                      argv[0]);
        return EXIT_FAILURE;
    }
    if (chat(argv, &err)) return EXIT_SUCCESS;
    (void)fprintf(stderr, "%s: %s\n", fx_code_name(err.code), err.text);
    return EXIT_FAILURE;
}
