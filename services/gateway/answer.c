/* What the client sees: events of a stream, or one JSON at the end. */
#include <event2/buffer.h>
#include "common/base/heap.h"
#include "common/http/json.h"
#include "common/http/sse.h"
#include "services/gateway/visit.h"

enum {
    PING_MS = 10000,
    TEXT_BYTES_MAX = 32 * 1024 * 1024, /* of an answer that is not streamed */
};

/* -- events -- */

struct news {
    const struct gw_visit *visit;
    bool first;
    fx_span text;
    const char *reason; /* NULL: more will come */
    const struct fx_http_problem *problem;
};

static void news_write(const struct news *news, fx_buf *out) {
    const struct gw_visit *visit = news->visit;
    const struct gw_shape *shape = visit->shape;
    if (news->first && shape->first) {
        fx_sse_open(out);
        shape->first(&visit->answer, out);
        fx_sse_close(out);
    }
    if (news->text.len) {
        fx_sse_open(out);
        shape->delta(&visit->answer, visit->tokens, news->text, out);
        fx_sse_close(out);
    }
    if (news->problem) {
        fx_sse_open(out);
        fx_http_problem_json(news->problem, out);
        fx_sse_close(out);
    } else if (news->reason) {
        fx_sse_open(out);
        shape->finish(&visit->answer, visit->tokens, news->reason, out);
        fx_sse_close(out);
        if (visit->answer.include_usage) {
            fx_sse_open(out);
            gw_shape_usage(shape, &visit->answer, visit->tokens, out);
            fx_sse_close(out);
        }
    }
    if (news->problem || news->reason) fx_sse_done(out);
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
    if (news->problem || news->reason) gw_visit_stream_end(visit);
}

/* 200, the head of a stream and its first chunk; nothing when it is not streamed. */
static void http_begin(struct gw_visit *visit) {
    struct gw_limit_headers limits;
    if (!visit->request.stream) return;
    gw_limit_headers(&visit->limits, &limits);
    fx_http_stream_begin(visit->call, limits.headers, limits.count, PING_MS);
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

static void whole_send(struct gw_visit *visit, const char *reason) {
    size_t len = evbuffer_get_length(visit->text);
    fx_span text = {len ? evbuffer_pullup(visit->text, -1) : NULL, len};
    struct gw_problem problem;
    fx_buf out = {0};
    visit->shape->whole(&visit->answer, visit->tokens, text, reason, &out);
    fx_auto(uint8_t) json = fx_alloc(1, out.len);
    if (!json || (len && !text.at)) {
        gw_problem_set(&problem, GW_UNAVAILABLE, NULL, "no memory for the answer");
        gw_visit_refuse(visit, &problem);
        return;
    }
    out = (fx_buf){json, 0, out.len};
    visit->shape->whole(&visit->answer, visit->tokens, text, reason, &out);
    gw_visit_reply(visit, (fx_span){json, out.len});
}

static FX_MUST bool whole_add(struct gw_visit *visit, fx_span text) {
    size_t len = evbuffer_get_length(visit->text);
    return len + text.len <= TEXT_BYTES_MAX && evbuffer_add(visit->text, text.at, text.len) == 0;
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

/* Text goes through the stop strings, but for what min_tokens asks for. */
static void text_put(struct gw_visit *visit, fx_span text, fx_buf *out) {
    if (visit->stops && visit->tokens > visit->request.min_tokens)
        (void)fx_stops_push(visit->stops, text, out);
    else
        fx_buf_put(out, text);
}

/* `room`: for one push of the detokeniser. */
static void detokenise(struct gw_visit *visit, const struct fx_gen_tokens *tokens, fx_buf room,
                       fx_buf *out) {
    for (uint32_t i = 0; i < tokens->count; i++) {
        fx_buf text = room;
        visit->tokens++;
        if (!is_shown(visit, tokens->tokens[i])) continue;
        fx_detok_push(&visit->detok, tokens->tokens[i], &text);
        text_put(visit, (fx_span){text.at, text.len}, out);
    }
    if (tokens->finish == FX_FINISH_NONE) return;
    fx_buf text = room;
    fx_detok_flush(&visit->detok, &text);
    text_put(visit, (fx_span){text.at, text.len}, out);
    if (visit->stops) fx_stops_flush(visit->stops, out);
}

/* "stop" or "length"; NULL when more will come or it went wrong: then `problem` says how. */
static const char *reason_of(const struct fx_gen_tokens *tokens, struct gw_problem *problem,
                             bool *failed) {
    *failed = false;
    if (tokens->finish == FX_FINISH_NONE) return NULL;
    if (tokens->finish == FX_FINISH_STOP) return "stop";
    if (tokens->finish == FX_FINISH_LENGTH) return "length";
    *failed = true;
    if (tokens->finish == FX_FINISH_CANCELLED)
        gw_problem_set(problem, GW_CANCELLED, NULL, "the generation was cancelled");
    else
        gw_problem_set(problem, GW_FAILED, NULL, "the generation failed%s%s",
                       *tokens->detail ? ": " : "", tokens->detail);
    return NULL;
}

static void stream_tokens(struct gw_visit *visit, fx_span text, const char *reason,
                          const struct gw_problem *problem) {
    struct fx_http_problem http;
    if (problem) http = gw_problem_http(problem);
    news_send(visit, &(struct news){.visit = visit,
                                    .text = text,
                                    .reason = reason,
                                    .problem = problem ? &http : NULL});
}

static void whole_tokens(struct gw_visit *visit, fx_span text, const char *reason,
                         const struct gw_problem *problem) {
    struct gw_problem full;
    if (!whole_add(visit, text)) {
        gw_problem_set(&full, GW_FAILED, NULL, "the answer is too long to be sent in one piece");
        gw_generation_fail(visit, &full);
    } else if (problem) {
        gw_visit_refuse(visit, problem);
    } else if (reason) {
        whole_send(visit, reason);
    }
}

static void http_tokens(struct gw_visit *visit, fx_span text, const char *reason,
                        const struct gw_problem *problem) {
    (visit->request.stream ? stream_tokens : whole_tokens)(visit, text, reason, problem);
}

const struct gw_front gw_http_front = {gw_http_read, gw_http_refuse, http_begin, http_tokens,
                                       http_fail};

static void no_memory(struct gw_visit *visit) {
    struct gw_problem problem;
    gw_problem_set(&problem, GW_UNAVAILABLE, NULL, "no memory for the answer");
    gw_generation_fail(visit, &problem);
}

void gw_answer_tokens(struct gw_visit *visit, const struct fx_gen_tokens *tokens) {
    struct gw_problem problem;
    bool failed;
    size_t one = fx_detok_room(visit->model.vocab->tokenizer);
    size_t room = ((size_t)tokens->count + 1) * one + FX_STOP_BYTES_MAX;
    fx_auto(uint8_t) bytes = fx_alloc(1, one + room);
    if (!bytes) {
        no_memory(visit);
        return;
    }
    fx_buf text = {bytes + one, 0, room};
    detokenise(visit, tokens, (fx_buf){bytes, 0, one}, &text);
    FX_ASSERT(fx_buf_fits(&text));
    const char *reason = reason_of(tokens, &problem, &failed);
    visit->front->tokens(visit, (fx_span){text.at, text.len}, reason, failed ? &problem : NULL);
}
