#include "tests/crowd/client.h"
#include <errno.h>
#include <jansson.h>
#include <unistd.h>
#include "common/base/clock.h"

FX_DEFINE_AUTO(json_t, json_decref)
#define HEADERS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum {
    ANSWER_MS = 60000,
    SILENCE_MS = 20000, /* of one connection: a gateway sends a comment every 10 s */
    SLICE_MS = 50,
    AGAIN_MS = 100,
    LINE_MAX_BYTES = 1 << 20,
};

enum outcome { OVER, AGAIN };

static enum outcome wrong(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The first thing that is wrong is kept. */
static enum outcome wrong(struct client *client, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (!*client->why) (void)vsnprintf(client->why, sizeof client->why, format, args);
    va_end(args);
    return OVER;
}

/* -- events -- */

static void came(struct client *client) {
    uint32_t count = client->chunk_count;
    if (count == client->came_cap) {
        client->came_cap = 2 * count + 64;
        client->came_us = realloc(client->came_us, client->came_cap * sizeof *client->came_us);
        FX_ASSERT(client->came_us);
    }
    client->came_us[count] = fx_clock_us();
    client->chunk_count = count + 1;
}

static const char *text_of(const json_t *choice) {
    const json_t *delta = json_object_get(choice, "delta");
    const char *text = json_string_value(delta ? json_object_get(delta, "content")
                                               : json_object_get(choice, "text"));
    return text ? text : "";
}

/* A chunk's part of one choice; `n`: its tokens so far. */
static void choice_take(struct client *client, const json_t *part, uint32_t n) {
    json_int_t index = json_integer_value(json_object_get(part, "index"));
    const char *text = text_of(part);
    const char *reason = json_string_value(json_object_get(part, "finish_reason"));
    if (index < 0 || index >= (json_int_t)client->opts.request->choices) {
        (void)wrong(client, "a choice %lld", index);
        return;
    }
    struct client_choice *choice = &client->choices[index];
    if (*choice->reason) (void)wrong(client, "choice %lld goes on after its end", index);
    client->repeated |= n < choice->tokens || (*text && !reason && n == choice->tokens);
    if (client->repeated)
        (void)wrong(client, "choice %lld: tokens %u after %u", index, n, choice->tokens);
    choice->tokens = n;
    http_text_append(&choice->text, text, strlen(text));
    if (reason) (void)snprintf(choice->reason, sizeof choice->reason, "%s", reason);
    if (*text) came(client);
}

static enum outcome chunk_take(struct client *client, const char *line) {
    const char *name = NULL;
    json_t *part;
    size_t i;
    json_int_t n = 0;
    fx_auto(json_t) chunk = json_loads(line, 0, NULL);
    const json_t *error = json_object_get(chunk, "error");
    const char *code = json_string_value(json_object_get(error, "code"));
    client->sent_away |= code && strcmp(code, "gateway_shutting_down") == 0;
    if (client->sent_away) return AGAIN;
    if (!chunk || error) return wrong(client, "event %.150s", line);
    if (json_unpack(chunk, "{s:s, s:{s:I}}", "id", &name, "fractal", "n", &n) != 0)
        return wrong(client, "chunk %.150s", line);
    if (*client->name && strcmp(client->name, name) != 0)
        return wrong(client, "%s became %s", client->name, name);
    (void)snprintf(client->name, sizeof client->name, "%s", name);
    json_array_foreach(json_object_get(chunk, "choices"), i, part)
        choice_take(client, part, (uint32_t)n);
    return AGAIN;
}

/* One line of the stream. OVER: nothing more is read. */
static enum outcome line_take(struct client *client, const char *line) {
    if (strncmp(line, "id: ", 4) == 0)
        (void)snprintf(client->id, sizeof client->id, "%s", line + 4);
    else if (!*line)
        memcpy(client->place, client->id, sizeof client->place);
    else if (strcmp(line, "data: [DONE]") == 0)
        client->done = !client->sent_away;
    else if (strncmp(line, "data: ", 6) == 0)
        return chunk_take(client, line + 6);
    return client->done ? OVER : AGAIN;
}

static enum outcome lines_take(struct client *client, struct http_text *body, size_t *at) {
    char *end;
    while (*at < body->len && (end = memchr(body->at + *at, '\n', body->len - *at))) {
        const char *line = body->at + *at;
        *end = 0;
        *at = (size_t)(end - body->at) + 1;
        if (line_take(client, line) == OVER || *client->why) return OVER;
    }
    return AGAIN;
}

/* -- one connection -- */

/* Some more bytes of the answer. False: the gateway is gone, or as good as. */
static bool more(struct client *client, struct http_conn *conn) {
    uint64_t end_ms = fx_clock_ms() + SILENCE_MS;
    if (end_ms > client->end_ms) end_ms = client->end_ms;
    while (fx_clock_ms() < end_ms) {
        if (atomic_exchange(&client->leave, false)) return false;
        if (http_read(conn, SLICE_MS, &client->broken)) return true;
        if (client->broken.code != FX_DEADLINE_EXCEEDED) return false;
    }
    return fx_fail(&client->broken, FX_DEADLINE_EXCEEDED, "nothing more came");
}

static void runs(struct client *client) {
    if (client->phase != CLIENT_ASKING) return;
    client->begun_us = fx_clock_us();
    client->phase = CLIENT_RUNNING;
}

static enum outcome stream_read(struct client *client, struct http_conn *conn) {
    size_t at = 0;
    runs(client);
    for (;;) {
        if (lines_take(client, &conn->body, &at) == OVER) return OVER;
        if (conn->ended || !more(client, conn)) return AGAIN; /* without [DONE] */
    }
}

static enum outcome whole_take(struct client *client, const struct http_conn *conn) {
    const char *name = NULL;
    json_t *part;
    size_t i;
    json_int_t usage = 0;
    fx_auto(json_t) answer = json_loadb(conn->body.at, conn->body.len, 0, NULL);
    if (!answer || json_unpack(answer, "{s:s, s:{s:I}}", "id", &name, "usage", "completion_tokens",
                               &usage) != 0)
        return wrong(client, "answer %.150s", conn->body.at ? conn->body.at : "");
    (void)snprintf(client->name, sizeof client->name, "%s", name);
    client->usage = (uint32_t)usage;
    json_array_foreach(json_object_get(answer, "choices"), i, part) {
        const json_t *message = json_object_get(part, "message"), *of = message ? message : part;
        const char *text = json_string_value(json_object_get(of, message ? "content" : "text"));
        const char *reason = json_string_value(json_object_get(part, "finish_reason"));
        if (i >= client->opts.request->choices || !text || !reason)
            return wrong(client, "choice %zu of %.150s", i, conn->body.at);
        http_text_append(&client->choices[i].text, text, strlen(text));
        (void)snprintf(client->choices[i].reason, sizeof client->choices[i].reason, "%s", reason);
    }
    client->done = true;
    return OVER;
}

/* A refusal: later, when that is what it says. */
static enum outcome refused(struct client *client, const struct http_conn *conn) {
    bool later = conn->status == 503 || conn->status == 429;
    if (!later || client->opts.once)
        return wrong(client, "%u: %.180s", conn->status, conn->body.at ? conn->body.at : "");
    (void)usleep(AGAIN_MS * 1000);
    return AGAIN;
}

static enum outcome answer_read(struct client *client, struct http_conn *conn) {
    bool stream = client->opts.request->stream;
    while (!conn->status)
        if (!more(client, conn)) return AGAIN;
    if (conn->status == 200 && stream) return stream_read(client, conn);
    while (!conn->ended)
        if (!more(client, conn)) return AGAIN;
    return conn->status == 200 ? whole_take(client, conn) : refused(client, conn);
}

/* Where it is, as it counted by itself: "12,8e", e for a choice that has ended. */
static void place_count(const struct client *client, char out[CLIENT_NAME_MAX]) {
    size_t len = 0;
    for (uint32_t i = 0; i < client->opts.request->choices; i++) {
        const struct client_choice *choice = &client->choices[i];
        len += (size_t)snprintf(out + len, CLIENT_NAME_MAX - len, "%s%u%s", i ? "," : "",
                                choice->tokens, *choice->reason ? "e" : "");
    }
}

/* Goes on behind the last event: by its id, or where there are none by its own count. */
static bool ask_back(struct client *client, struct http_conn *conn, const char *bearer) {
    char place[96], path[256], counted[CLIENT_NAME_MAX];
    bool by_id = *client->place != 0;
    place_count(client, counted);
    (void)snprintf(place, sizeof place, "Last-Event-ID: %s", client->place);
    (void)snprintf(path, sizeof path, "/v1/generations/%s/events%s%s", client->name,
                   by_id ? "" : "?after=", by_id ? "" : counted);
    const struct http_request get = {
        .method = "GET", .path = path, .headers = HEADERS(bearer, by_id ? place : NULL)};
    return http_send(conn, &get, &client->broken);
}

static bool ask(struct client *client, struct http_conn *conn) {
    const struct client_opts *opts = &client->opts;
    const struct request *request = opts->request;
    char bearer[128], key[96];
    (void)snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", opts->api_key);
    (void)snprintf(key, sizeof key, "Idempotency-Key: %s-%u", opts->run, request->number);
    if (request->stream && *client->name) return ask_back(client, conn, bearer);
    const struct http_request post = {
        .method = "POST",
        .path = request->chat ? "/v1/chat/completions" : "/v1/completions",
        .headers = HEADERS(bearer, key, "Content-Type: application/json"),
        .body = fx_span_str(request->body)};
    return http_send(conn, &post, &client->broken);
}

static enum outcome visit(struct client *client, uint16_t port) {
    auto_http conn = {0};
    const char *host = client->opts.host ? client->opts.host : "127.0.0.1";
    client->sent_away = false;
    if (!http_open_at(&conn, host, port, &client->broken) || !ask(client, &conn)) {
        (void)usleep(AGAIN_MS * 1000);
        return AGAIN;
    }
    if (!client->opts.request->stream) runs(client);
    return answer_read(client, &conn);
}

static void *run(void *ctx) {
    struct client *client = ctx;
    uint32_t tries = 0, answer_ms = client->opts.answer_ms;
    client->end_ms = fx_clock_ms() + (answer_ms ? answer_ms : ANSWER_MS);
    for (; !client->done && !*client->why; tries++) {
        client->gateway = (client->opts.first + tries) % client->opts.port_count;
        if (visit(client, client->opts.ports[client->gateway]) == OVER) break;
        if (client->opts.once) {
            (void)wrong(client, "broken off after %u chunks: %.160s", client->chunk_count,
                        client->sent_away ? "sent away" : client->broken.text);
            break;
        }
        if (*client->name)
            client->came_back++;
        else
            client->asked_again++;
        if (fx_clock_ms() >= client->end_ms)
            (void)wrong(client, "no end after %u tries and %u chunks: %.120s", tries + 1,
                        client->chunk_count, client->broken.text);
    }
    client->ended_us = fx_clock_us();
    client->phase = CLIENT_ENDED;
    return NULL;
}

/* -- for the test's thread -- */

void client_start(struct client *client, const struct client_opts *opts) {
    *client = (struct client){.opts = *opts, .asked_us = fx_clock_us()};
    FX_ASSERT(pthread_create(&client->thread, NULL, run, client) == 0);
}

void client_leave(struct client *client) {
    client->leave = true;
}

void client_join(struct client *client) {
    FX_ASSERT(pthread_join(client->thread, NULL) == 0);
}

void client_free(struct client *client) {
    for (uint32_t i = 0; i < REQUEST_CHOICES_MAX; i++)
        free(client->choices[i].text.at);
    free(client->came_us);
}

static const char *shown(const struct http_text *text) {
    return text->at ? text->at : "";
}

static bool choice_same(const struct client *got, const struct client *want, uint32_t index,
                        char why[CLIENT_WHY_MAX]) {
    const struct client_choice *one = &got->choices[index], *other = &want->choices[index];
    const char *text = shown(&one->text), *wanted = shown(&other->text);
    size_t at = 0;
    while (text[at] && text[at] == wanted[at])
        at++;
    if (text[at] != wanted[at])
        (void)snprintf(why, CLIENT_WHY_MAX, "choice %u differs at byte %zu: '%.40s', not '%.40s'",
                       index, at, text + at, wanted + at);
    else if (strcmp(one->reason, other->reason) != 0)
        (void)snprintf(why, CLIENT_WHY_MAX, "choice %u ends by '%s', not '%s'", index, one->reason,
                       other->reason);
    else if (one->tokens != other->tokens)
        (void)snprintf(why, CLIENT_WHY_MAX, "choice %u has %u tokens, not %u", index, one->tokens,
                       other->tokens);
    else
        return true;
    return false;
}

bool client_same(const struct client *got, const struct client *want, char why[CLIENT_WHY_MAX]) {
    for (uint32_t i = 0; i < got->opts.request->choices; i++)
        if (!choice_same(got, want, i, why)) return false;
    if (got->usage == want->usage) return true;
    (void)snprintf(why, CLIENT_WHY_MAX, "usage of %u tokens, not %u", got->usage, want->usage);
    return false;
}
