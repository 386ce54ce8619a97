/* One streamed answer over gRPC: fractal-example-chat ADDRESS KEY_FILE MODEL TEXT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/heap.h"
#include "common/rpc/client.h"
#include "fractal/v1/inference.pb-c.h"

enum { DEADLINE_MS = 120000, BEARER_MAX = 300 };

struct answer {
    uint32_t prompt_tokens, completion_tokens;
    double logprobs; /* the sum of all tokens' */
    size_t logprob_count;
};

/* Each message of the stream; false would cancel the generation. */
static bool on_message(void *user, const void *message) {
    const Fractal__V1__ChatResponse *piece = message;
    struct answer *answer = user;
    (void)fputs(piece->content, stdout);
    (void)fflush(stdout);
    for (size_t i = 0; i < piece->n_logprobs; i++)
        answer->logprobs += (double)piece->logprobs[i]->logprob;
    answer->logprob_count += piece->n_logprobs;
    if (piece->usage) {
        answer->prompt_tokens = piece->usage->prompt_tokens;
        answer->completion_tokens = piece->usage->completion_tokens;
    }
    return true;
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

static FX_MUST bool chat(char **arguments, fx_error *err) {
    fx_auto(fx_client) client = NULL;
    struct fx_client_opts opts = {.target = arguments[1]};
    char bearer[BEARER_MAX];
    struct fx_client_metadata key = {"authorization", bearer};
    Fractal__V1__ChatRequest request = FRACTAL__V1__CHAT_REQUEST__INIT;
    Fractal__V1__ChatMessage message = FRACTAL__V1__CHAT_MESSAGE__INIT, *messages[] = {&message};
    struct answer answer = {0};
    struct fx_client_request call = {.method = "/fractal.v1.InferenceService/Chat",
                                     .message = &request,
                                     .reply = &fractal__v1__chat_response__descriptor,
                                     .deadline_ms = DEADLINE_MS,
                                     .metadata = &key,
                                     .metadata_count = 1,
                                     .user = &answer,
                                     .on_message = on_message};
    char role[] = "user";
    request.model = arguments[3];
    request.max_tokens = 64;
    request.logprobs = 1;
    request.messages = messages;
    request.n_messages = 1;
    message.role = role;
    message.content = arguments[4];
    if (!bearer_read(arguments[2], bearer, err) || !fx_client_open(&opts, &client, err) ||
        !fx_client_stream_wait(client, &call, err))
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
    if (argc != 5) {
        (void)fprintf(stderr, "usage: %s ADDRESS KEY_FILE MODEL TEXT\n", argv[0]);
        return EXIT_FAILURE;
    }
    if (chat(argv, &err)) return EXIT_SUCCESS;
    (void)fprintf(stderr, "%s: %s\n", fx_code_name(err.code), err.text);
    return EXIT_FAILURE;
}
