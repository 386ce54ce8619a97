/* The source as tenant service, slicer and scheduler. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/heap.h"
#include "fractal/v1/scheduler.pb-c.h"
#include "fractal/v1/slicer.pb-c.h"
#include "fractal/v1/tenant.pb-c.h"
#include "tests/bench/source_internal.h"

enum {
    CALLS = 256,
    ARENA_BYTES = 1 << 20, /* of SubmitGenerations */
    SUBMIT_BYTES = 512 * 1024,
    REQUEST_BYTES = 4096,
    GROUPS_MAX = 64,
    TOKENIZER_BYTES = 1 << 20,
    MODEL_NUMBER = 7,
    CONTEXT = 4096,
    VOCABULARY = 260,
    EOS = 257, /* of the bundled model's tokenizer, whose ids below 256 are bytes */
    PROMPT_MAX = 256,
};

/* -- tenant and slicer -- */

static void authenticate(fx_call *call, const void *message, void *context) {
    const Fractal__V1__AuthenticateRequest *request = message;
    Fractal__V1__AuthenticateReply reply = FRACTAL__V1__AUTHENTICATE_REPLY__INIT;
    Fractal__V1__Tenant tenant = FRACTAL__V1__TENANT__INIT;
    (void)context;
    if (strcmp(request->key, SOURCE_KEY) != 0) {
        fx_call_fail(call, FX_UNAUTHENTICATED, "no such key");
        return;
    }
    tenant.number = tenant.weight = 1;
    reply.key_id = (char *)(uintptr_t) "0123456789abcdef";
    reply.tenant = &tenant;
    fx_call_reply(call, &reply);
}

static void list_models(fx_call *call, const void *message, void *context) {
    Fractal__V1__ListModelsReply reply = FRACTAL__V1__LIST_MODELS_REPLY__INIT;
    Fractal__V1__Model model = FRACTAL__V1__MODEL__INIT, *models[] = {&model};
    uint32_t eos = EOS;
    (void)message, (void)context;
    model.name = (char *)(uintptr_t)SOURCE_MODEL;
    model.number = MODEL_NUMBER;
    model.context_max = CONTEXT;
    model.vocabulary = VOCABULARY;
    model.tokenizer_digest = (char *)(uintptr_t) "d1";
    model.eos_ids = &eos;
    model.n_eos_ids = 1;
    reply.models = models;
    reply.n_models = 1;
    fx_call_reply(call, &reply);
}

static void get_tokenizer(fx_call *call, const void *message, void *context) {
    struct source *source = context;
    Fractal__V1__GetTokenizerReply reply = FRACTAL__V1__GET_TOKENIZER_REPLY__INIT;
    (void)message;
    reply.tokenizer_json =
        (ProtobufCBinaryData){source->tokenizer_len, (uint8_t *)source->tokenizer};
    fx_call_reply(call, &reply);
}

/* -- scheduler: the loop's thread answers, as a real one's does when Redis has it -- */

struct job {
    struct source *source;
    fx_call *call;
    const void *message;
};

static void post(fx_call *call, const void *message, struct source *source,
                 void (*fn)(void *user)) {
    struct job *job = fx_arena_alloc(fx_call_arena(call), sizeof *job);
    if (job) {
        *job = (struct job){source, call, message};
        if (fx_loop_post(source->loop, fn, job)) return;
    }
    fx_call_trailer(call, "retry-after-ms", "100");
    fx_call_fail(call, FX_UNAVAILABLE, "too many submits at once");
}

/* The letters of a prompt; other tokens, such as a begin of sequence, are left out. */
static fx_span letters_of(const Fractal__V1__GenerationTask *task, uint8_t *room) {
    size_t len = 0;
    for (size_t i = 0; i < task->n_prompt_ids && len < PROMPT_MAX; i++)
        if (task->prompt_ids[i] < 256) room[len++] = (uint8_t)task->prompt_ids[i];
    return (fx_span){room, len};
}

static enum fx_code group_begin(struct source *source, const Fractal__V1__GenerationGroup *group) {
    uint8_t room[PROMPT_MAX];
    if (!group->task || group->n_choices != 1 || group->choices[0]->id.len != SOURCE_ID_BYTES)
        return FX_INVALID_ARGUMENT;
    source__begin(source, group->choices[0]->id.data, letters_of(group->task, room),
                  group->task->max_tokens);
    return FX_OK;
}

static void submit_on_loop(void *user) {
    struct job *job = user;
    const Fractal__V1__SubmitGenerationsRequest *request = job->message;
    Fractal__V1__SubmitGenerationsReply reply = FRACTAL__V1__SUBMIT_GENERATIONS_REPLY__INIT;
    Fractal__V1__GroupResult results[GROUPS_MAX], *to[GROUPS_MAX];
    uint64_t seed = 99;
    if (request->n_groups > GROUPS_MAX) {
        fx_call_fail(job->call, FX_INVALID_ARGUMENT, "more than %d groups", GROUPS_MAX);
        return;
    }
    for (size_t i = 0; i < request->n_groups; i++) {
        to[i] = &results[i];
        fractal__v1__group_result__init(to[i]);
        to[i]->code = group_begin(job->source, request->groups[i]);
        to[i]->seeds = &seed;
        to[i]->n_seeds = 1;
    }
    reply.results = to;
    reply.n_results = request->n_groups;
    fx_call_reply(job->call, &reply);
}

static void submit(fx_call *call, const void *message, void *context) {
    post(call, message, context, submit_on_loop);
}

static void cancel_on_loop(void *user) {
    struct job *job = user;
    const Fractal__V1__CancelGenerationRequest *request = job->message;
    Fractal__V1__CancelGenerationReply reply = FRACTAL__V1__CANCEL_GENERATION_REPLY__INIT;
    if (request->id.len == SOURCE_ID_BYTES) source__cancel(job->source, request->id.data);
    reply.state = FRACTAL__V1__GENERATION_STATE__GENERATION_STATE_CANCELLED;
    fx_call_reply(job->call, &reply);
}

static void cancel(fx_call *call, const void *message, void *context) {
    post(call, message, context, cancel_on_loop);
}

static const struct fx_method methods[] = {
    {"/fractal.v1.TenantService/Authenticate",         authenticate,
     &fractal__v1__authenticate_request__descriptor,       FX_RPC_UNARY, 0, REQUEST_BYTES},
    {"/fractal.v1.SlicerService/ListModels",           list_models,
     &fractal__v1__list_models_request__descriptor,        FX_RPC_UNARY, 0, REQUEST_BYTES},
    {"/fractal.v1.SlicerService/GetTokenizer",         get_tokenizer,
     &fractal__v1__get_tokenizer_request__descriptor,      FX_RPC_UNARY, 0, REQUEST_BYTES},
    {"/fractal.v1.SchedulerService/SubmitGenerations", submit,
     &fractal__v1__submit_generations_request__descriptor, FX_RPC_UNARY, 0, SUBMIT_BYTES },
    {"/fractal.v1.SchedulerService/CancelGeneration",  cancel,
     &fractal__v1__cancel_generation_request__descriptor,  FX_RPC_UNARY, 0, REQUEST_BYTES},
};

static FX_MUST bool tokenizer_read(struct source *source, fx_error *err) {
    const char *path = FX_SOURCE_DIR "/models/fractal-tiny-moe/tokenizer.json";
    fx_auto(FILE) file = fopen(path, "rbe");
    if (!file) return fx_fail_errno(err, "open '%s'", path);
    source->tokenizer = fx_alloc(1, TOKENIZER_BYTES);
    if (!source->tokenizer) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a tokenizer");
    source->tokenizer_len = fread(source->tokenizer, 1, TOKENIZER_BYTES, file);
    return source->tokenizer_len > 0 || fx_fail(err, FX_DATA_LOSS, "'%s' is empty", path);
}

bool source__serve(struct source *source, fx_error *err) {
    struct fx_server_opts opts = {.address = "127.0.0.1:0",
                                  .calls_max = CALLS,
                                  .arena_bytes = ARENA_BYTES,
                                  .context = source};
    if (!tokenizer_read(source, err) ||
        !fx_server_open(&opts, methods, FX_COUNT(methods), &source->server, err))
        return false;
    fx_server_set_serving(source->server, true);
    return true;
}
