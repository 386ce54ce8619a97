/* Log probabilities as gRPC clients get them. */
#include "services/gateway/rpc_logprobs.h"
#include "common/base/arena.h"
#include "common/base/heap.h"
#include "common/model/detok.h"

enum { PIECE_SLACK = 16 /* of the arena, for each of its pieces */, TAIL_ROOM = 9 };

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

void gw_rpc_text(fx_span text, char *out) {
    fx_buf buf = {(uint8_t *)out, 0, gw_rpc_text_room(text.len)};
    for (size_t from = 0, to; from < text.len; from = to + 1) {
        const uint8_t *nul = memchr(text.at + from, 0, text.len - from);
        to = nul ? (size_t)(nul - text.at) : text.len;
        fx_buf_put(&buf, (fx_span){text.at + from, to - from});
        if (nul) fx_buf_put(&buf, fx_span_str(replacement));
    }
    out[buf.len] = '\0';
}

/* -- room -- */

/* Of a token's text before its NULs are gone. */
static size_t detok_room(size_t len) {
    return 3 * len + TAIL_ROOM;
}

static size_t text_room(const struct gw_logprobs *logprobs, uint32_t id) {
    size_t room = detok_room(fx_tokenizer_bytes(logprobs->tokenizer, id).len);
    return room + gw_rpc_text_room(room) + 2 * (size_t)PIECE_SLACK;
}

static size_t room_of(const struct gw_logprobs *logprobs, uint32_t count) {
    size_t token = sizeof(Fractal__V1__TokenLogprob) + 3 * (size_t)PIECE_SLACK + sizeof(void *);
    size_t place = sizeof(Fractal__V1__TopLogprob) + PIECE_SLACK + sizeof(void *);
    size_t room = PIECE_SLACK + count * (token + logprobs->each * place);
    for (size_t i = 0; i < (size_t)count * logprobs->each; i++)
        if (logprobs->at[i].id != FX_LOGPROB_NONE) room += text_room(logprobs, logprobs->at[i].id);
    return room;
}

/* -- messages -- */

static char *text_of(fx_arena *arena, const fx_tokenizer *tokenizer, fx_span bytes) {
    size_t room = detok_room(bytes.len);
    fx_buf text = {fx_arena_alloc(arena, room), 0, room};
    struct fx_detok detok;
    fx_detok_init_middle(&detok, tokenizer);
    fx_detok_push_bytes(&detok, bytes, &text);
    fx_detok_flush(&detok, &text);
    FX_ASSERT(fx_buf_fits(&text));
    char *out = fx_arena_alloc(arena, gw_rpc_text_room(text.len));
    gw_rpc_text((fx_span){text.at, text.len}, out);
    return out;
}

/* Of either message: they have the same fields. */
#define ENTRY_FILL(entry, arena, tokenizer, from)                                                  \
    do {                                                                                           \
        fx_span bytes_ = fx_tokenizer_bytes((tokenizer), (from)->id);                              \
        (entry)->token = (from)->id;                                                               \
        (entry)->logprob = (from)->value;                                                          \
        (entry)->text = text_of((arena), (tokenizer), bytes_);                                     \
        (entry)->raw = (ProtobufCBinaryData){bytes_.len, (uint8_t *)(uintptr_t)bytes_.at};         \
    } while (0)

static void top_fill(Fractal__V1__TokenLogprob *token, const struct gw_logprobs *logprobs,
                     const struct fx_logprob *at, fx_arena *arena) {
    token->top = fx_arena_array(arena, logprobs->each, sizeof(void *));
    for (uint32_t i = 1; i < logprobs->each && at[i].id != FX_LOGPROB_NONE; i++) {
        Fractal__V1__TopLogprob *top = fx_arena_alloc(arena, sizeof *top);
        fractal__v1__top_logprob__init(top);
        ENTRY_FILL(top, arena, logprobs->tokenizer, &at[i]);
        token->top[token->n_top++] = top;
    }
}

bool gw_rpc_logprobs_make(const struct gw_logprobs *logprobs, uint32_t count,
                          struct gw_rpc_logprobs *out) {
    size_t room = count ? room_of(logprobs, count) : 0;
    fx_arena arena;
    *out = (struct gw_rpc_logprobs){.count = count};
    if (!count) return true;
    out->block = fx_alloc(1, room);
    if (!out->block) return false;
    fx_arena_init(&arena, out->block, room);
    out->at = fx_arena_array(&arena, count, sizeof(void *));
    for (uint32_t i = 0; i < count; i++) {
        const struct fx_logprob *at = logprobs->at + (size_t)i * logprobs->each;
        Fractal__V1__TokenLogprob *token = out->at[i] = fx_arena_alloc(&arena, sizeof *token);
        fractal__v1__token_logprob__init(token);
        ENTRY_FILL(token, &arena, logprobs->tokenizer, at);
        top_fill(token, logprobs, at, &arena);
    }
    FX_ASSERT(!arena.full);
    fx_arena_done(&arena);
    return true;
}

void gw_rpc_logprobs_done(struct gw_rpc_logprobs *logprobs) {
    free(fx_take(logprobs->block));
}
