#include "services/cli/answer.h"
#include <jansson.h>
#include <string.h>
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/heap.h"
#include "services/cli/http.h"
#include "services/cli/interrupt.h"
#include "services/cli/sse.h"

enum {
    ID_MAX = 64,
    KEY_BYTES = 16,
    ASK_AGAIN_MAX = 2,
    WAIT_MS_MIN = 100,
    WAIT_MS_MAX = 2000,

    PATH_MAX_BYTES = 192
};

FX_DEFINE_AUTO(json_t, json_decref)

/* What there is of the answer so far. */
struct answer {
    const struct cli_question *question;
    cli_sse *sse;
    char once[2 * KEY_BYTES + 1]; /* so that the question, asked again, is the same */
    bool reached;                 /* a gateway took it and died before a word */
    bool any;                     /* something came */
    char id[ID_MAX];              /* "": not known yet */
    uint64_t n;                   /* tokens whose text is here */
    bool finished;                /* and its last chunk */
    bool ends;                    /* the gateway said that it ends: another has the rest */
    uint64_t heard_ms;            /* when the gateway was last heard of */
};

/* -- one stream -- */

static FX_MUST bool error_read(struct answer *answer, const json_t *error, fx_error *err) {
    const char *message = json_string_value(json_object_get(error, "message"));
    const char *code = json_string_value(json_object_get(error, "code"));
    answer->ends = code && strcmp(code, "gateway_shutting_down") == 0;
    return fx_fail(err, FX_ABORTED, "the answer ended early: %.200s",
                   message ? message : "no message");
}

static void chunk_read(struct answer *answer, const json_t *chunk) {
    const json_t *choice = json_array_get(json_object_get(chunk, "choices"), 0);
    const json_t *text = json_object_get(json_object_get(choice, "delta"), "content");
    const json_t *n = json_object_get(json_object_get(chunk, "fractal"), "n");
    const char *id = json_string_value(json_object_get(chunk, "id"));
    if (id && !*answer->id && strlen(id) < sizeof answer->id)
        (void)snprintf(answer->id, sizeof answer->id, "%s", id);
    if (json_is_integer(n)) answer->n = (uint64_t)json_integer_value(n);
    if (json_is_string(json_object_get(choice, "finish_reason"))) answer->finished = true;
    fx_span span = {(const uint8_t *)json_string_value(text), json_string_length(text)};
    if (span.len) answer->question->on_text(answer->question->user, span);
}

static bool on_data(void *user, fx_span data, fx_error *err) {
    struct answer *answer = user;
    fx_auto(json_t) chunk = json_loadb((const char *)data.at, data.len, 0, NULL);
    const json_t *error = json_object_get(chunk, "error");
    answer->any = true;
    if (!json_is_object(chunk)) return fx_fail(err, FX_INTERNAL, "the stream has a bad event");
    if (error) return error_read(answer, error, err);
    chunk_read(answer, chunk);
    return true;
}

static bool on_stream(void *user, fx_span bytes, fx_error *err) {
    struct answer *answer = user;
    answer->heard_ms = fx_clock_ms(); /* a ping is a sign of life too */
    return cli_sse_feed(answer->sse, bytes, err);
}

/* The POST, or what is left of its answer. */
static FX_MUST bool stream(struct answer *answer, const char *base, fx_error *err) {
    char url[CLI_URL_MAX + PATH_MAX_BYTES];
    struct cli_http_reply reply = {0};
    fx_auto(cli_sse) sse = NULL;
    if (!cli_sse_new(&(struct cli_sse_opts){on_data, answer}, &sse, err)) return false;
    answer->sse = sse;
    if (*answer->id)
        (void)snprintf(url, sizeof url, "%s/v1/generations/%s/events?after=%llu%s", base,
                       answer->id, (unsigned long long)answer->n, answer->finished ? "e" : "");
    else
        (void)snprintf(url, sizeof url, "%s/v1/chat/completions", base);
    struct cli_http_request request = {.url = url,
                                       .api_key = answer->question->key,
                                       .body = *answer->id ? NULL : answer->question->body,
                                       .once = *answer->id ? NULL : answer->once,
                                       .on_stream = on_stream,
                                       .user = answer};
    if (!cli_http(&request, &reply, err)) return false;
    fx_auto(char) text = reply.body;
    if (reply.status != 200) {
        (void)cli_http_refused(&reply, err);
        if (reply.status >= 500) err->code = FX_UNAVAILABLE;
        return false;
    }
    if (text && *text) return fx_fail(err, FX_INTERNAL, "the gateway sent no event stream");
    return cli_sse_is_done(sse) ||
           fx_fail(err, FX_DATA_LOSS, "the stream ended without [DONE]: the answer is cut off");
}

/* -- coming back -- */

static bool is_cut(const struct answer *answer, const fx_error *err) {
    return answer->ends || err->code == FX_DATA_LOSS || err->code == FX_UNAVAILABLE ||
           err->code == FX_DEADLINE_EXCEEDED;
}

/* The request had a key, so leaving does not cancel it. */
static void cancel(const struct answer *answer, const char *base) {
    char url[CLI_URL_MAX + PATH_MAX_BYTES];
    struct cli_http_reply reply = {0};
    fx_error err = {0};
    (void)snprintf(url, sizeof url, "%s/v1/generations/%s/cancel", base, answer->id);
    struct cli_http_request request = {
        .url = url, .api_key = answer->question->key, .body = "", .last_words = true};
    if (cli_http(&request, &reply, &err)) free(reply.body);
}

/* After a cut the rest is asked for, or all of it again; a question that reached nobody is asked of
 * the next. */
static bool comes_back(const struct answer *answer, uint32_t tries, const fx_error *err) {
    if (!is_cut(answer, err)) return false;
    if (*answer->id) return fx_clock_ms() - answer->heard_ms < CLI_RETURN_MS_MAX;
    if (answer->reached) return !answer->any && tries < ASK_AGAIN_MAX;
    return err->code == FX_UNAVAILABLE && tries + 1 < answer->question->gateways->count;
}

bool cli_answer_follow(const struct cli_question *question, fx_error *err) {
    const struct cli_gateways *gateways = question->gateways;
    struct answer answer = {.question = question, .heard_ms = fx_clock_ms()};
    uint32_t wait = WAIT_MS_MIN;
    uint8_t once[KEY_BYTES];
    fx_random(once, sizeof once);
    fx_hex((fx_span){once, sizeof once}, answer.once);
    for (uint32_t tries = 0;; tries++) {
        const char *base = gateways->url[tries % gateways->count];
        uint64_t heard_ms = answer.heard_ms;
        answer.ends = false;
        if (stream(&answer, base, err)) return true;
        if (err->code == FX_CANCELLED && *answer.id) cancel(&answer, base);
        if (err->code == FX_DATA_LOSS && !answer.any) answer.reached = true;
        if (!comes_back(&answer, tries, err)) return false;
        wait = answer.heard_ms != heard_ms ? WAIT_MS_MIN : wait * 2;
        if (wait > WAIT_MS_MAX) wait = WAIT_MS_MAX;
        if (!cli_interrupt_wait(*answer.id || answer.reached ? wait : 0)) {
            if (*answer.id) cancel(&answer, gateways->url[(tries + 1) % gateways->count]);
            return fx_fail(err, FX_CANCELLED, "cancelled");
        }
    }
}
