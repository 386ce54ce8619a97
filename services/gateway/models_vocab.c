#include <stdio.h>
#include <string.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "fractal/v1/slicer.pb-c.h"
#include "services/gateway/models_internal.h"

static struct gw_vocab_slot *slot_find(struct gw_models *models, const char *digest) {
    for (size_t i = 0; i < models->vocab_count; i++)
        if (strcmp(models->vocabs[i].digest, digest) == 0) return &models->vocabs[i];
    return NULL;
}

static bool digest_used(const struct gw_models *models, const char *digest) {
    for (size_t i = 0; i < models->count; i++)
        if (strcmp(models->list[i].digest, digest) == 0) return true;
    return false;
}

static void unused_drop(struct gw_models *models) {
    for (size_t i = models->vocab_count; i-- > 0;) {
        if (digest_used(models, models->vocabs[i].digest)) continue;
        gw_vocab_unref(models->vocabs[i].vocab);
        models->vocabs[i] = models->vocabs[--models->vocab_count];
    }
}

void gw_models__bind(struct gw_models *models) {
    unused_drop(models);
    for (size_t i = 0; i < models->count; i++) {
        struct gw_model *model = &models->list[i];
        struct gw_vocab_slot *slot = slot_find(models, model->digest);
        if (!slot) { /* there is room: at most one slot a model */
            slot = &models->vocabs[models->vocab_count++];
            *slot = (struct gw_vocab_slot){0};
            memcpy(slot->digest, model->digest, sizeof slot->digest);
        }
        model->vocab = slot->vocab;
    }
}

static bool failed_lately(const struct gw_vocab_slot *slot) {
    return slot->failed_ms && fx_clock_ms() - slot->failed_ms < GW_VOCAB_AGAIN_MS;
}

bool gw_models__vocab_failed(const struct gw_models *models, const char *digest) {
    for (size_t i = 0; i < models->vocab_count; i++)
        if (strcmp(models->vocabs[i].digest, digest) == 0) return failed_lately(&models->vocabs[i]);
    return false;
}

static FX_MUST bool vocab_build(struct gw_models *models, const struct fx_client_result *result,
                                struct gw_vocab **out, fx_error *err) {
    if (result->code != FX_OK) return fx_fail(err, result->code, "%s", result->text);
    const Fractal__V1__GetTokenizerReply *reply = result->reply;
    struct fx_tokenizer_files files = {
        .tokenizer_json = {reply->tokenizer_json.data,        reply->tokenizer_json.len},
        .tokenizer_config_json = {reply->tokenizer_config_json.data,
                           reply->tokenizer_config_json.len                            },
    };
    return gw_vocab_new(models->fetch_digest, &files, out, err);
}

static void fetch_end(struct gw_models *models, struct gw_vocab *vocab, const fx_error *err) {
    struct gw_vocab_slot *slot = slot_find(models, models->fetch_digest);
    models->fetching = false;
    if (models->fetch_memory) fx_arena_done(&models->fetch);
    free(models->fetch_memory);
    models->fetch_memory = NULL;
    if (!vocab) models->opts.on_error("get_tokenizer", err);
    if (!slot) { /* the model went meanwhile */
        gw_vocab_unref(vocab);
        return;
    }
    slot->vocab = vocab;
    slot->failed_ms = vocab ? 0 : fx_clock_ms();
    gw_models__bind(models);
}

static void on_tokenizer(void *user, const struct fx_client_result *result) {
    struct gw_models *models = user;
    struct gw_vocab *vocab = NULL;
    fx_error err = {0};
    bool ok = vocab_build(models, result, &vocab, &err);
    fetch_end(models, ok ? vocab : NULL, &err);
    if (result->code == FX_CANCELLED) return;
    gw_models__settle(models);
    gw_models__vocabs(models);
}

static FX_MUST bool fetch(struct gw_models *models, const char *digest, fx_error *err) {
    Fractal__V1__GetTokenizerRequest message = FRACTAL__V1__GET_TOKENIZER_REQUEST__INIT;
    struct fx_client_request request = {
        .method = "/fractal.v1.SlicerService/GetTokenizer",
        .message = &message,
        .reply = &fractal__v1__get_tokenizer_reply__descriptor,
        .deadline_ms = GW_VOCAB_DEADLINE_MS,
        .arena = &models->fetch,
        .user = models,
        .on_done = on_tokenizer,
    };
    (void)snprintf(models->fetch_digest, sizeof models->fetch_digest, "%s", digest);
    message.digest = models->fetch_digest;
    models->fetch_memory = fx_alloc(1, GW_VOCAB_BYTES_MAX);
    if (!models->fetch_memory) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory");
    fx_arena_init(&models->fetch, models->fetch_memory, GW_VOCAB_BYTES_MAX);
    models->fetching = true;
    return fx_client_start(models->opts.slicer, &request, NULL, err);
}

void gw_models__vocabs(struct gw_models *models) {
    for (size_t i = 0; i < models->vocab_count && !models->fetching; i++) {
        struct gw_vocab_slot *slot = &models->vocabs[i];
        fx_error err = {0};
        if (slot->vocab || failed_lately(slot)) continue;
        if (!fetch(models, slot->digest, &err)) fetch_end(models, NULL, &err);
    }
}
