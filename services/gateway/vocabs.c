#include "services/gateway/vocabs.h"
#include <event2/event.h>
#include <pthread.h>
#include <stdio.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/rpc/client.h"
#include "common/rpc/loop.h"
#include "fractal/v1/slicer.pb-c.h"

enum { INBOX = 64, SWEEP_MS = 2000 };

/** One tokenizer: on its way, there, or why not. A READY one is a reference of ours. */
struct slot {
    char digest[GW_DIGEST_MAX];
    enum gw_vocab_state state;
    struct gw_vocab *vocab;
    uint64_t at_ms; /* when it came to its state */
};

struct gw_vocabs {
    struct gw_vocabs_opts opts;
    fx_loop *loop;
    pthread_mutex_t lock; /* slots, count */
    struct slot slots[GW_VOCABS_MAX];
    size_t count;

    /* the loader's thread */
    fx_client *slicer;
    struct event *sweep;
    bool fetching;
    char digest[GW_DIGEST_MAX]; /* being fetched */
    uint8_t *memory;            /* of its files */
    fx_arena arena;
};

static void load_next(void *user);

/* -- slots, under the lock -- */

static struct slot *slot_find(struct gw_vocabs *vocabs, const char *digest) {
    for (size_t i = 0; i < vocabs->count; i++)
        if (strcmp(vocabs->slots[i].digest, digest) == 0) return &vocabs->slots[i];
    return NULL;
}

static struct slot *slot_add(struct gw_vocabs *vocabs, const char *digest) {
    if (vocabs->count == GW_VOCABS_MAX) return NULL;
    struct slot *slot = &vocabs->slots[vocabs->count++];
    *slot = (struct slot){.state = GW_VOCAB_LOADING, .at_ms = fx_clock_ms()};
    (void)snprintf(slot->digest, sizeof slot->digest, "%s", digest);
    return slot;
}

static void slot_set(struct slot *slot, struct gw_vocab *vocab) {
    slot->vocab = vocab;
    slot->state = vocab ? GW_VOCAB_READY : GW_VOCAB_FAILED;
    slot->at_ms = fx_clock_ms();
}

/* Nobody but us knows it any more. Only want() gives references, under the lock. */
static bool slot_unused(const struct slot *slot) {
    if (slot->state == GW_VOCAB_LOADING || fx_clock_ms() - slot->at_ms < GW_VOCAB_KEEP_MS)
        return false;
    return !slot->vocab || atomic_load(&slot->vocab->refs) == 1;
}

/* The one that waits longest; false: none. */
static bool slot_next(struct gw_vocabs *vocabs, char digest[GW_DIGEST_MAX]) {
    const struct slot *next = NULL;
    pthread_mutex_lock(&vocabs->lock);
    for (size_t i = 0; i < vocabs->count; i++) {
        const struct slot *slot = &vocabs->slots[i];
        if (slot->state == GW_VOCAB_LOADING && (!next || slot->at_ms < next->at_ms)) next = slot;
    }
    if (next) memcpy(digest, next->digest, GW_DIGEST_MAX);
    pthread_mutex_unlock(&vocabs->lock);
    return next != NULL;
}

enum gw_vocab_state gw_vocabs_want(struct gw_vocabs *vocabs, const char *digest,
                                   struct gw_vocab **out) {
    bool begin = false;
    pthread_mutex_lock(&vocabs->lock);
    struct slot *slot = slot_find(vocabs, digest);
    if (!slot) {
        slot = slot_add(vocabs, digest);
        begin = slot != NULL;
    } else if (slot->state == GW_VOCAB_FAILED && fx_clock_ms() - slot->at_ms >= GW_VOCAB_AGAIN_MS) {
        slot->state = GW_VOCAB_LOADING;
        begin = true;
    }
    enum gw_vocab_state state = slot ? slot->state : GW_VOCAB_FAILED;
    if (state == GW_VOCAB_READY) *out = gw_vocab_ref(slot->vocab);
    pthread_mutex_unlock(&vocabs->lock);
    if (begin) (void)!fx_loop_post(vocabs->loop, load_next, vocabs); /* full: of such jobs */
    return state;
}

/* -- the loader -- */

static FX_MUST bool build(struct gw_vocabs *vocabs, const struct fx_client_result *result,
                          struct gw_vocab **out, fx_error *err) {
    if (result->code != FX_OK) return fx_fail(err, result->code, "%s", result->text);
    const Fractal__V1__GetTokenizerReply *reply = result->reply;
    struct fx_tokenizer_files files = {
        .tokenizer_json = {reply->tokenizer_json.data,        reply->tokenizer_json.len},
        .tokenizer_config_json = {reply->tokenizer_config_json.data,
                           reply->tokenizer_config_json.len                            },
    };
    return gw_vocab_new(vocabs->digest, &files, out, err);
}

static void fetch_end(struct gw_vocabs *vocabs, struct gw_vocab *vocab, const fx_error *err) {
    vocabs->fetching = false;
    if (vocabs->memory) fx_arena_done(&vocabs->arena);
    free(vocabs->memory);
    vocabs->memory = NULL;
    if (err) vocabs->opts.on_error("get_tokenizer", err);
    pthread_mutex_lock(&vocabs->lock);
    struct slot *slot = slot_find(vocabs, vocabs->digest);
    FX_ASSERT(slot); /* one that is being loaded stays */
    slot_set(slot, vocab);
    pthread_mutex_unlock(&vocabs->lock);
    vocabs->opts.on_change(vocabs->opts.ctx);
}

static void on_tokenizer(void *user, const struct fx_client_result *result) {
    struct gw_vocabs *vocabs = user;
    struct gw_vocab *vocab = NULL;
    fx_error err = {0};
    bool ok = build(vocabs, result, &vocab, &err);
    bool closing = result->code == FX_CANCELLED; /* nobody is left to be told */
    fetch_end(vocabs, ok ? vocab : NULL, ok || closing ? NULL : &err);
    if (!closing) load_next(vocabs);
}

static FX_MUST bool fetch(struct gw_vocabs *vocabs, fx_error *err) {
    Fractal__V1__GetTokenizerRequest message = FRACTAL__V1__GET_TOKENIZER_REQUEST__INIT;
    struct fx_client_request request = {
        .method = "/fractal.v1.SlicerService/GetTokenizer",
        .message = &message,
        .reply = &fractal__v1__get_tokenizer_reply__descriptor,
        .deadline_ms = GW_VOCAB_DEADLINE_MS,
        .arena = &vocabs->arena,
        .user = vocabs,
        .on_done = on_tokenizer,
    };
    message.digest = vocabs->digest;
    vocabs->memory = fx_alloc(1, GW_VOCAB_BYTES_MAX);
    if (!vocabs->memory) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory");
    fx_arena_init(&vocabs->arena, vocabs->memory, GW_VOCAB_BYTES_MAX);
    vocabs->fetching = true;
    return fx_client_start(vocabs->slicer, &request, NULL, err);
}

static void load_next(void *user) {
    struct gw_vocabs *vocabs = user;
    fx_error err = {0};
    while (!vocabs->fetching && slot_next(vocabs, vocabs->digest))
        if (!fetch(vocabs, &err)) fetch_end(vocabs, NULL, &err);
}

/* What no loop uses goes, here: freeing takes its time too. */
static void on_sweep(evutil_socket_t fd, short what, void *arg) {
    struct gw_vocabs *vocabs = arg;
    (void)fd, (void)what;
    pthread_mutex_lock(&vocabs->lock);
    for (size_t i = vocabs->count; i-- > 0;) {
        if (!slot_unused(&vocabs->slots[i])) continue;
        gw_vocab_unref(vocabs->slots[i].vocab);
        vocabs->slots[i] = vocabs->slots[--vocabs->count];
    }
    pthread_mutex_unlock(&vocabs->lock);
}

/* -- life -- */

static FX_MUST bool parts_open(struct gw_vocabs *vocabs, fx_error *err) {
    struct timeval every = {SWEEP_MS / 1000, 0};
    if (!fx_loop_open(INBOX, &vocabs->loop, err)) return false;
    struct fx_client_opts client = {
        .target = vocabs->opts.slicer,
        .base = fx_loop_base(vocabs->loop),
        .tls = vocabs->opts.tls,
        .calls_max = 1,
        .message_bytes_max = GW_VOCAB_BYTES_MAX,
    };
    if (!fx_client_open(&client, &vocabs->slicer, err)) return false;
    vocabs->sweep = event_new(client.base, -1, EV_PERSIST, on_sweep, vocabs);
    if (!vocabs->sweep || event_add(vocabs->sweep, &every) != 0)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a timer");
    return fx_loop_start(vocabs->loop, err);
}

bool gw_vocabs_open(const struct gw_vocabs_opts *opts, struct gw_vocabs **out, fx_error *err) {
    struct gw_vocabs *vocabs = fx_alloc(1, sizeof *vocabs);
    if (!vocabs) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for tokenizers");
    vocabs->opts = *opts;
    (void)pthread_mutex_init(&vocabs->lock, NULL);
    if (!parts_open(vocabs, err)) {
        gw_vocabs_free(vocabs);
        return fx_wrap(err, "tokenizers");
    }
    *out = vocabs;
    return true;
}

void gw_vocabs_stop(struct gw_vocabs *vocabs) {
    if (!vocabs) return;
    if (vocabs->loop) fx_loop_stop(vocabs->loop);
    fx_client_free(fx_take(vocabs->slicer));
}

void gw_vocabs_free(struct gw_vocabs *vocabs) {
    if (!vocabs) return;
    gw_vocabs_stop(vocabs);
    if (vocabs->sweep) event_free(vocabs->sweep);
    fx_loop_free(vocabs->loop);
    for (size_t i = 0; i < vocabs->count; i++)
        gw_vocab_unref(vocabs->slots[i].vocab);
    (void)pthread_mutex_destroy(&vocabs->lock);
    free(vocabs);
}
