/* What the client sees: events of a stream, or one JSON at the end. */
#include <event2/buffer.h>
#include "common/base/heap.h"
#include "common/http/json.h"
#include "common/http/sse.h"
#include "services/gateway/rejoin.h"

enum {
    TEXT_BYTES_MAX = 32 * 1024 * 1024, /* of an answer that is not streamed */
};

/* -- events -- */

struct news {
    const struct gw_visit *visit;
    bool first;
    struct gw_piece piece;
    bool last; /* the answer ends */
    const struct fx_http_problem *problem;
};

/* Those that come back are told where they are; OpenAI's clients must see no id. */
static void event_open(const struct gw_visit *visit, fx_buf *out) {
    if (visit->rejoin) {
        fx_json_put(out, "id: ");
        gw_places_write(visit, out);
        fx_json_put(out, "\n");
    }
    fx_sse_open(out);
}

static void first_write(const struct gw_visit *visit, fx_buf *out) {
    for (uint32_t i = 0; visit->shape->first && i < visit->choice_count; i++) {
        const struct gw_place *had = &visit->choices[i].had;
        if (had->after || had->end) continue;
        event_open(visit, out);
        visit->shape->first(&visit->answer, i, out);
        fx_sse_close(out);
    }
}

static bool logprobs_has(const struct gw_piece *piece) {
    return piece->logprobs && piece->logprobs->count;
}

static void delta_write(const struct news *news, fx_buf *out) {
    if (!news->piece.text.len && !logprobs_has(&news->piece)) return;
    event_open(news->visit, out);
    news->visit->shape->delta(&news->visit->answer, &news->piece, out);
    fx_sse_close(out);
}

static void finish_write(const struct news *news, fx_buf *out) {
    struct gw_piece piece = news->piece;
    if (!logprobs_has(&piece)) piece.logprobs = NULL;
    event_open(news->visit, out);
    news->visit->shape->finish(&news->visit->answer, &piece, out);
    fx_sse_close(out);
}

static void usage_write(const struct gw_visit *visit, fx_buf *out) {
    if (!visit->answer.include_usage) return;
    event_open(visit, out);
    gw_shape_usage(visit->shape, &visit->answer, visit->tokens, out);
    fx_sse_close(out);
}

static void problem_write(const struct fx_http_problem *problem, fx_buf *out) {
    fx_sse_open(out);
    fx_http_problem_json(problem, out);
    fx_sse_close(out);
}

static void news_write(const struct news *news, fx_buf *out) {
    if (news->first) first_write(news->visit, out);
    if (news->piece.reason && !news->problem)
        finish_write(news, out);
    else
        delta_write(news, out);
    if (news->problem)
        problem_write(news->problem, out);
    else if (news->last)
        usage_write(news->visit, out);
    if (news->problem || news->last) fx_sse_done(out);
}

/* All of it in one write. Out of memory: the stream breaks off, which the client notices. */
static void news_send(struct gw_visit *visit, const struct news *news) {
    fx_buf out = {0};
    news_write(news, &out);
    if (out.len) {
        fx_auto(uint8_t) bytes = fx_alloc(1, out.len);
        if (!bytes) {
            fx_http_stream_abort(visit->call);
            return;
        }
        out = (fx_buf){bytes, 0, out.len};
        news_write(news, &out);
        fx_http_stream_write(visit->call, (fx_span){bytes, out.len});
    }
    if (news->problem || news->last) gw_visit_stream_end(visit);
}

/* 200, the head of a stream and its first chunk; nothing when it is not streamed. */
static void http_begin(struct gw_visit *visit) {
    struct gw_headers headers;
    if (!visit->request.stream) return;
    gw_visit_headers(visit, &headers);
    fx_http_stream_begin(visit->call, headers.at, headers.count, visit->gateway->config->ping_ms);
    visit->http = NULL;
    news_send(visit, &(struct news){.visit = visit, .first = true});
}

/* A status while nothing was sent, else an event and [DONE]. */
static void http_fail(struct gw_visit *visit, const struct gw_problem *problem) {
    if (!visit->call) return;
    if (!fx_http_stream_open(visit->call)) {
        gw_visit_refuse(visit, problem);
        return;
    }
    struct fx_http_problem http = gw_problem_http(problem);
    news_send(visit, &(struct news){.visit = visit, .problem = &http});
}

/* -- one JSON -- */

static struct gw_piece piece_of(const struct gw_choice *choice, fx_span text, const char *reason) {
    return (struct gw_piece){.index = choice->index,
                             .n = choice->tokens,
                             .text = text,
                             .reason = reason,
                             .logprobs = &choice->logprobs};
}

/* False: no memory. */
static FX_MUST bool pieces_fill(struct gw_visit *visit, struct gw_piece *pieces) {
    for (uint32_t i = 0; i < visit->choice_count; i++) {
        struct gw_choice *choice = &visit->choices[i];
        size_t len = evbuffer_get_length(choice->text);
        fx_span text = {len ? evbuffer_pullup(choice->text, -1) : NULL, len};
        if (len && !text.at) return false;
        pieces[i] = piece_of(choice, text, choice->reason);
    }
    return true;
}

struct whole {
    const struct gw_visit *visit;
    const struct gw_piece *pieces;
};

static void whole_write(const void *what, fx_buf *out) {
    const struct whole *whole = what;
    const struct gw_visit *visit = whole->visit;
    if (visit->rejoin) gw_status_open(visit, out);
    visit->shape->whole(&visit->answer, whole->pieces, visit->choice_count, out);
    if (visit->rejoin) gw_status_close(out);
}

static void whole_send(struct gw_visit *visit) {
    struct gw_piece pieces[GW_CHOICES_MAX];
    struct gw_problem problem;
    if (pieces_fill(visit, pieces)) {
        gw_visit_reply_written(visit, whole_write, &(struct whole){visit, pieces});
        return;
    }
    gw_problem_set(&problem, GW_UNAVAILABLE, NULL, "no memory for the answer");
    gw_visit_refuse(visit, &problem);
}

static FX_MUST bool whole_add(struct gw_choice *choice, fx_span text) {
    size_t len = evbuffer_get_length(choice->text);
    return len + text.len <= TEXT_BYTES_MAX && evbuffer_add(choice->text, text.at, text.len) == 0;
}

/* -- tokens -- */

static bool is_eos(const struct gw_model *model, uint32_t id) {
    for (uint32_t i = 0; i < model->eos_count; i++)
        if (model->eos_ids[i] == id) return true;
    return false;
}

static bool is_shown(const struct gw_visit *visit, uint32_t id) {
    return visit->request.ignore_eos || !is_eos(&visit->model, id);
}

static uint32_t characters_in(fx_span text) {
    uint32_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += (text.at[i] & 0xc0) != 0x80;
    return count;
}

/* Text goes through the stop strings, but for what min_tokens asks for. */
static void text_put(struct gw_choice *choice, fx_span text, fx_buf *out) {
    choice->characters += characters_in(text);
    if (choice->stops && choice->tokens > choice->visit->request.min_tokens)
        choice->stopped = fx_stops_push(choice->stops, text, out);
    else
        fx_buf_put(out, text);
}

static FX_MUST bool logprobs_take(struct gw_choice *choice, const struct fx_gen_tokens *tokens,
                                  uint32_t index) {
    fx_span text = tokens->logprobs ? tokens->logprobs[index] : (fx_span){NULL, 0};
    return !choice->logprobs.tokenizer ||
           gw_logprobs_add(&choice->logprobs, tokens->tokens[index], text, choice->characters);
}

/* `room`: for one push of the detokeniser. False: no memory. */
static FX_MUST bool detokenise(struct gw_choice *choice, const struct fx_gen_tokens *tokens,
                               fx_buf room, fx_buf *out) {
    for (uint32_t i = 0; i < tokens->count; i++) {
        fx_buf text = room;
        choice->tokens++;
        choice->visit->tokens++;
        if (!is_shown(choice->visit, tokens->tokens[i])) continue;
        if (!logprobs_take(choice, tokens, i)) return false;
        fx_detok_push(&choice->detok, tokens->tokens[i], &text);
        text_put(choice, (fx_span){text.at, text.len}, out);
    }
    if (tokens->finish == FX_FINISH_NONE) return true;
    fx_buf text = room;
    fx_detok_flush(&choice->detok, &text);
    text_put(choice, (fx_span){text.at, text.len}, out);
    if (choice->stops) fx_stops_flush(choice->stops, out);
    return true;
}

/* "stop" or "length"; NULL when more will come or it went wrong: then `problem` says how. A worker
 * that does not know `continues_prompt` may miss a stop string at the begin and go on. */
static const char *reason_of(const struct gw_choice *choice, const struct fx_gen_tokens *tokens,
                             struct gw_problem *problem, bool *failed) {
    bool missed = choice->stopped && tokens->finish == FX_FINISH_LENGTH;
    *failed = false;
    if (tokens->finish == FX_FINISH_NONE) return NULL;
    if (tokens->finish == FX_FINISH_STOP || missed) return "stop";
    if (tokens->finish == FX_FINISH_LENGTH) return "length";
    *failed = true;
    if (tokens->finish == FX_FINISH_CANCELLED)
        gw_problem_set(problem, GW_CANCELLED, NULL, "the generation was cancelled");
    else
        gw_problem_set(problem, GW_FAILED, NULL, "the generation failed%s%s",
                       *tokens->detail ? ": " : "", tokens->detail);
    return NULL;
}

static void stream_tokens(struct gw_choice *choice, fx_span text, const char *reason,
                          const struct gw_problem *problem) {
    struct gw_visit *visit = choice->visit;
    bool last = reason && !visit->choices_left;
    struct fx_http_problem http;
    if (problem) http = gw_problem_http(problem);
    if (reason && choice->had.end) { /* the client has its finish, and the text with it */
        text.len = 0;
        reason = NULL;
        gw_logprobs_clear(&choice->logprobs);
    }
    gw_place_move(choice, reason != NULL);
    news_send(visit, &(struct news){.visit = visit,
                                    .piece = piece_of(choice, text, reason),
                                    .last = last,
                                    .problem = problem ? &http : NULL});
    gw_logprobs_clear(&choice->logprobs);
}

static void whole_tokens(struct gw_choice *choice, fx_span text, const char *reason,
                         const struct gw_problem *problem) {
    struct gw_visit *visit = choice->visit;
    struct gw_problem full;
    if (!whole_add(choice, text)) {
        gw_problem_set(&full, GW_FAILED, NULL, "the answer is too long to be sent in one piece");
        gw_generation_fail(visit, &full);
    } else if (problem) {
        gw_visit_refuse(visit, problem);
    } else if (reason && !visit->choices_left) {
        whole_send(visit);
    }
}

static void http_tokens(struct gw_choice *choice, fx_span text, const char *reason,
                        const struct gw_problem *problem) {
    choice->reason = reason;
    (choice->visit->request.stream ? stream_tokens : whole_tokens)(choice, text, reason, problem);
}

const struct gw_front gw_http_front = {.read = gw_http_read,
                                       .refuse = gw_http_refuse,
                                       .begin = http_begin,
                                       .tokens = http_tokens,
                                       .fail = http_fail,
                                       .status = gw_status_reply};

static void no_memory(struct gw_visit *visit) {
    struct gw_problem problem;
    gw_problem_set(&problem, GW_UNAVAILABLE, NULL, "no memory for the answer");
    gw_generation_fail(visit, &problem);
}

/* What the client has is read again and not sent: what is held back of the rest depends on it.
 * False: no memory. */
static FX_MUST bool had_skip(struct gw_choice *choice, struct fx_gen_tokens *tokens, fx_buf room,
                             fx_buf *out) {
    struct fx_gen_tokens had = *tokens;
    if (choice->tokens >= choice->had.after) return true;
    had.count = choice->had.after - choice->tokens;
    if (had.count > tokens->count) had.count = tokens->count;
    had.finish = FX_FINISH_NONE;
    if (!detokenise(choice, &had, room, out)) return false;
    out->len = 0;
    gw_logprobs_clear(&choice->logprobs);
    tokens->tokens += had.count;
    tokens->count -= had.count;
    if (tokens->logprobs) tokens->logprobs += had.count;
    return true;
}

static void take(struct gw_choice *choice, struct fx_gen_tokens tokens) {
    struct gw_visit *visit = choice->visit;
    struct gw_problem problem;
    bool failed;
    size_t one = fx_detok_room(visit->model.vocab->tokenizer);
    size_t size = ((size_t)tokens.count + 1) * one + FX_STOP_BYTES_MAX;
    fx_auto(uint8_t) bytes = fx_alloc(1, one + size);
    const fx_buf room = {bytes, 0, one};
    fx_buf text = {bytes ? bytes + one : NULL, 0, size};
    if (!bytes || !had_skip(choice, &tokens, room, &text) ||
        !detokenise(choice, &tokens, room, &text)) {
        no_memory(visit);
        return;
    }
    FX_ASSERT(fx_buf_fits(&text));
    const char *reason = reason_of(choice, &tokens, &problem, &failed);
    visit->front->tokens(choice, (fx_span){text.at, text.len}, reason, failed ? &problem : NULL);
    if (failed) gw_generation_gone(visit); /* with the choices that still run */
}

/* The first tokens of the news, as many as the front takes at once, which it loses. */
static struct fx_gen_tokens cut(const struct gw_visit *visit, struct fx_gen_tokens *news) {
    struct fx_gen_tokens first = *news;
    uint32_t max = visit->request.logprobs ? visit->front->logprobs_max : 0;
    if (!max || news->count <= max) return first;
    first.count = max;
    first.finish = FX_FINISH_NONE;
    news->tokens += max;
    news->count -= max;
    if (news->logprobs) news->logprobs += max;
    return first;
}

void gw_answer_tokens(struct gw_choice *choice, const struct fx_gen_tokens *tokens) {
    struct fx_gen_tokens rest = *tokens, first;
    do {
        first = cut(choice->visit, &rest);
        take(choice, first);
    } while (first.tokens != rest.tokens && !choice->visit->given_up);
}
