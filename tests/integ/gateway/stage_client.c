#include <jansson.h>
#include "tests/integ/gateway/stage.h"

int stage_connect(const struct stage *stage) {
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(gw_process_port(stage->process)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
    return fd;
}

int stage_connect_narrow(const struct stage *stage) {
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(gw_process_port(stage->process)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int bytes = 4096, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
    return fd;
}

void stage_post(int fd, const char *path, const char *json) {
    char head[512];
    (void)snprintf(head, sizeof head,
                   "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " STAGE_KEY
                   "\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                   path, strlen(json));
    wire_say(fd, head);
    wire_say(fd, json);
}

/* The whole answer to a request that asks to close; the connection's end is the answer's. */
static char *ask(const struct stage *stage, const char *head, const char *body) {
    bool closed;
    int fd = stage_connect(stage);
    wire_say(fd, head);
    wire_say(fd, body);
    char *answer = wire_read(fd, NULL, &closed);
    close(fd);
    if (!closed) fail_msg("no end: %s", answer);
    return answer;
}

void stage_post_once(int fd, const char *key, const char *json) {
    char head[512];
    (void)snprintf(head, sizeof head,
                   "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                   "Authorization: Bearer " STAGE_KEY "\r\n"
                   "Idempotency-Key: %s\r\nContent-Length: %zu\r\n\r\n",
                   key, strlen(json));
    wire_say(fd, head);
    wire_say(fd, json);
}

char *stage_ask(const struct stage *stage, const char *path, const char *json) {
    char head[512];
    (void)snprintf(
        head, sizeof head,
        "POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " STAGE_KEY
        "\r\nContent-Length: %zu\r\n\r\n",
        path, strlen(json));
    return ask(stage, head, json);
}

char *stage_get(const struct stage *stage, const char *path, const char *headers) {
    char head[1024];
    (void)snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n",
                   path, headers);
    return ask(stage, head, "");
}

bool stage_header(const char *answer, const char *name, char out[64]) {
    char line[64];
    const char *end = strstr(answer, "\r\n\r\n");
    (void)snprintf(line, sizeof line, "\r\n%s: ", name);
    const char *at = strstr(answer, line);
    if (!at || !end || at > end) return false;
    at += strlen(line);
    (void)snprintf(out, 64, "%.*s", (int)strcspn(at, "\r"), at);
    return true;
}

char *stage_body(char *answer) {
    char *at = strstr(answer, "\r\n\r\n");
    assert_non_null(at);
    return at + 4;
}

char *stage_dechunk(char *answer) {
    char *body = stage_body(answer), *from = body, *to = body;
    assert_non_null(strstr(answer, "\r\ntransfer-encoding: chunked\r\n"));
    for (;;) {
        char *end;
        size_t len = strtoul(from, &end, 16);
        if (end == from || strncmp(end, "\r\n", 2) != 0) fail_msg("a broken chunk: %s", from);
        from = end + 2;
        assert_true(strlen(from) >= len + 2);
        memmove(to, from, len);
        to += len;
        from += len;
        assert_memory_equal(from, "\r\n", 2);
        from += 2;
        if (!len) break;
    }
    assert_string_equal(from, ""); /* nothing behind the final chunk */
    *to = 0;
    return body;
}

static void chunk_read(json_t *json, struct stage_stream *out, char *id, size_t id_size) {
    json_t *choice = json_array_get(json_object_get(json, "choices"), 0);
    json_t *delta = json_object_get(choice, "delta");
    json_t *text = delta ? json_object_get(delta, "content") : json_object_get(choice, "text");
    json_t *reason = json_object_get(choice, "finish_reason");
    size_t n = (size_t)json_integer_value(json_object_get(json_object_get(json, "fractal"), "n"));
    const char *this_id = json_string_value(json_object_get(json, "id"));
    assert_non_null(this_id);
    if (*id) assert_string_equal(id, this_id);
    (void)snprintf(id, id_size, "%s", this_id);
    assert_true(n >= out->last_n);
    out->last_n = n;
    if (!choice) {
        assert_true(json_is_object(json_object_get(json, "usage")));
        assert_true(*out->reason != 0); /* the usage comes last */
        out->usages++;
        return;
    }
    assert_true(*out->reason == 0); /* nothing after the reason */
    if (json_object_get(delta, "role")) {
        assert_true(!out->deltas && !out->role_first);
        out->role_first = true;
    } else if (json_string_length(text)) {
        out->deltas++;
    }
    if (json_is_string(text)) {
        size_t len = strlen(out->text);
        (void)snprintf(out->text + len, WIRE_REPLY_MAX - len, "%s", json_string_value(text));
    }
    if (json_is_string(reason))
        (void)snprintf(out->reason, sizeof out->reason, "%s", json_string_value(reason));
}

struct stage_stream stage_stream_read(char *answer) {
    struct stage_stream out = {.text = calloc(1, WIRE_REPLY_MAX)};
    char id[64] = "", *at;
    assert_int_equal(wire_status(answer), 200);
    assert_non_null(strstr(answer, "content-type: text/event-stream"));
    assert_non_null(strstr(answer, "x-request-id: "));
    at = stage_dechunk(answer);
    while (strcmp(at, "data: [DONE]\n\n") != 0) {
        char *end = strstr(at, "\n\n");
        if (!end) fail_msg("a broken event: %s", at);
        *end = 0;
        if (strncmp(at, "data: {", 7) == 0 && !strchr(at, '\n')) {
            json_t *json = json_loads(at + 6, JSON_REJECT_DUPLICATES, NULL);
            if (!json) fail_msg("not JSON: %s", at);
            if (json_object_get(json, "error"))
                (void)snprintf(out.reason, sizeof out.reason, "error");
            else
                chunk_read(json, &out, id, sizeof id);
            json_decref(json);
        } else if (*at != ':') {
            fail_msg("neither data nor a comment: %s", at);
        }
        at = end + 2;
    }
    return out;
}
