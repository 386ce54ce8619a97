/* What tests ask a suite over HTTP. */
#include "tests/e2e/suite.h"

enum { ADMIN_MS = 5000, PIECE_MS = 60000 };

/* -- the admin port -- */

static bool admin_get(const struct service *service, const char *path, struct http_conn *conn,
                      fx_error *err) {
    const struct http_request request = {.method = "GET", .path = path};
    return http_open(conn, service->admin, err) && http_send(conn, &request, err) &&
           http_read_all(conn, ADMIN_MS, err);
}

unsigned service_get(const struct service *service, const char *path) {
    auto_http conn = {0};
    fx_error err;
    return admin_get(service, path, &conn, &err) ? conn.status : 0;
}

bool service_metrics_try(const struct service *service, char **out, fx_error *err) {
    auto_http conn = {0};
    if (!admin_get(service, "/metrics", &conn, err)) return false;
    if (conn.status != 200 || !conn.body.len)
        return fx_fail(err, FX_UNAVAILABLE, "/metrics answers %u", conn.status);
    *out = conn.body.at;
    conn.body = (struct http_text){0};
    return true;
}

char *service_metrics(const struct service *service) {
    char *metrics = NULL;
    fx_error err = {0};
    if (!service_metrics_try(service, &metrics, &err))
        fail_msg("%s: %s", service->process.name, err.text);
    return metrics;
}

bool metric_find(const char *metrics, const char *name, double *out) {
    size_t len = strlen(name);
    bool found = false;
    for (const char *line = metrics; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, len) != 0 || (line[len] != ' ' && line[len] != '{')) continue;
        const char *end = strchrnul(line, '\n'), *value = memrchr(line, ' ', (size_t)(end - line));
        *out = (found ? *out : 0) + strtod(value, NULL);
        found = true;
    }
    return found;
}

double metric_of(const char *metrics, const char *name) {
    double value = 0;
    if (!metric_find(metrics, name, &value)) fail_msg("no metric %s", name);
    return value;
}

double service_metric(const struct service *service, const char *name) {
    auto_text metrics = service_metrics(service);
    return metric_of(metrics, name);
}

bool worker_is_free(const struct service *worker) {
    auto_text now = service_metrics(worker);
    return metric_of(now, "fx_worker_slots_free") == metric_of(now, "fx_worker_slots") &&
           metric_of(now, "fx_worker_kv_blocks_free") == metric_of(now, "fx_worker_kv_blocks");
}

/* -- whole answers -- */

void answer_close(struct answer *answer) {
    http_close(&answer->conn);
    json_decref(answer->json);
    *answer = (struct answer){0};
}

static bool answer_read(struct answer *answer, uint16_t port, const struct http_request *request,
                        fx_error *err) {
    struct http_conn *conn = &answer->conn;
    return http_open(conn, port, err) && http_send(conn, request, err) &&
           http_read_all(conn, SUITE_ANSWER_MS, err);
}

struct answer suite_send(struct suite *suite, const struct http_request *request) {
    struct answer answer = {0};
    char type[64] = "";
    MUST(answer_read(&answer, suite->gateways[0].port, request, &err));
    answer.status = answer.conn.status;
    (void)http_header(&answer.conn, "content-type", type, sizeof type);
    if (strncmp(type, "application/json", 16) != 0) return answer;
    answer.json = json_loadb(answer.conn.body.at, answer.conn.body.len, 0, NULL);
    if (!answer.json) fail_msg("no JSON: %s", answer.conn.body.at);
    return answer;
}

struct answer suite_request(struct suite *suite, const char *method, const char *path,
                            json_t *body) {
    char bearer[128];
    auto_text text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    (void)snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", suite->key);
    const struct http_request request = {
        .method = method,
        .path = path,
        .headers = WORDS(bearer, "Content-Type: application/json"),
        .body = {(const uint8_t *)text, text ? strlen(text) : 0}
    };
    return suite_send(suite, &request);
}

json_t *suite_prompt(const char *prompt, json_t *fields) {
    json_t *body = json_pack("{s:s, s:s, s:i, s:i}", "model", SUITE_MODEL, "prompt", prompt,
                             "max_tokens", 32, "temperature", 0);
    FX_ASSERT(body && (!fields || json_object_update(body, fields) == 0));
    json_decref(fields);
    return body;
}

char *suite_complete(struct suite *suite, const char *prompt, json_t *fields) {
    const char *text = NULL;
    auto_answer answer =
        suite_request(suite, "POST", "/v1/completions", suite_prompt(prompt, fields));
    if (answer.status != 200) fail_msg("%u: %s", answer.status, answer.conn.body.at);
    assert_int_equal(json_unpack(answer.json, "{s:[{s:s}]}", "choices", "text", &text), 0);
    return strdup(text);
}

/* -- streams -- */

static bool stream_send(struct stream *stream, const struct suite *suite, json_t *body,
                        fx_error *err) {
    char bearer[128];
    auto_text text = json_dumps(body, JSON_COMPACT);
    (void)snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", suite->key);
    const struct http_request request = {.method = "POST",
                                         .path = "/v1/completions",
                                         .headers = WORDS(bearer, "Content-Type: application/json"),
                                         .body = fx_span_str(text)};
    return http_open(&stream->conn, suite->gateways[0].port, err) &&
           http_send(&stream->conn, &request, err);
}

bool stream_open(struct stream *stream, const struct suite *suite, const char *prompt,
                 json_t *fields, fx_error *err) {
    auto_json body = suite_prompt(prompt, fields);
    *stream = (struct stream){0};
    (void)json_object_set_new(body, "stream", json_true());
    if (!stream_send(stream, suite, body, err)) return false;
    while (!stream->conn.status)
        if (!http_read(&stream->conn, PIECE_MS, err)) return false;
    if (stream->conn.status == 200) return true;
    (void)!http_read_all(&stream->conn, PIECE_MS, err);
    return fx_fail(err, FX_UNAVAILABLE, "%u: %s", stream->conn.status,
                   stream->conn.body.at ? stream->conn.body.at : "");
}

static bool chunk_read(struct stream *stream, const char *line, fx_error *err) {
    const char *id = NULL;
    json_t *choice;
    size_t i;
    auto_json chunk = json_loads(line, 0, NULL);
    if (!chunk || json_object_get(chunk, "error") || json_unpack(chunk, "{s:s}", "id", &id) != 0)
        return fx_fail(err, FX_DATA_LOSS, "chunk: %s", line);
    (void)snprintf(stream->generation, sizeof stream->generation, "%s", id);
    json_array_foreach(json_object_get(chunk, "choices"), i, choice) {
        const char *text = json_string_value(json_object_get(choice, "text"));
        if (!text) text = "";
        http_text_append(&stream->text, text, strlen(text));
    }
    stream->chunks++;
    return true;
}

/* The next whole line of the body into `line`, which is the caller's; NULL at its end. */
static bool line_read(struct stream *stream, char **line, fx_error *err) {
    struct http_text *body = &stream->conn.body;
    const char *end;
    while (!(end = body->len > stream->at
                       ? memchr(body->at + stream->at, '\n', body->len - stream->at)
                       : NULL)) {
        *line = NULL;
        if (stream->conn.ended) return true;
        if (!http_read(&stream->conn, PIECE_MS, err)) return false;
    }
    *line = strndup(body->at + stream->at, (size_t)(end - body->at) - stream->at);
    stream->at = (size_t)(end - body->at) + 1;
    return true;
}

bool stream_until(struct stream *stream, uint32_t chunks, fx_error *err) {
    while (stream->chunks < chunks) {
        auto_text line = NULL;
        if (!line_read(stream, &line, err)) return false;
        if (!line) return fx_fail(err, FX_NOT_FOUND, "it ends after %u chunks", stream->chunks);
        if (strncmp(line, "data: ", 6) != 0) continue;
        if (strcmp(line, "data: [DONE]") == 0)
            stream->done = true;
        else if (!chunk_read(stream, line + 6, err))
            return false;
    }
    return true;
}

bool stream_rest(struct stream *stream, fx_error *err) {
    if (stream_until(stream, UINT32_MAX, err) || err->code != FX_NOT_FOUND) return false;
    if (!stream->done) return fx_fail(err, FX_DATA_LOSS, "the stream ended without [DONE]");
    *err = (fx_error){0};
    return true;
}

void stream_close(struct stream *stream) {
    http_close(&stream->conn);
    free(stream->text.at);
    *stream = (struct stream){0};
}
